"""What lies in the folders that imports may come from: listed, and never a way out of them."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pdpp_kernel.errors import InvalidState, NotFound
from personal_server.collecting import import_folders
from personal_server.collecting.import_folders import ImportFolders

NOBODY = 65_534


@pytest.fixture
def folders(tmp_path: Path) -> ImportFolders:
    inside = tmp_path / "inside"
    (inside / "Mail").mkdir(parents=True)
    (inside / "Mail" / "Inbox.mbox").write_bytes(b"12345")
    (inside / "old.csv").write_bytes(b"a")
    os.utime(inside / "old.csv", (1, 1))
    (inside / ".hidden").write_text("h")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (inside / "link.txt").symlink_to(outside / "secret.txt")
    (inside / "away").symlink_to(outside)
    os.mkfifo(inside / "pipe")
    (inside / os.fsdecode(b"not-\xff-text")).write_text("x")
    return ImportFolders((inside,))


def test_files_and_folders_are_listed_the_newest_first(folders: ImportFolders) -> None:
    found = folders.listing(0)
    assert [(each.name, each.is_folder) for each in found.entries] == [
        ("Mail", True),
        ("old.csv", False),
    ]
    assert found.entries[1].modified_at_ns == 10**9
    assert found.passed_by == 5
    below = folders.listing(0, "Mail")
    assert [(each.name, each.size_bytes) for each in below.entries] == [("Inbox.mbox", 5)]
    assert below.path == "Mail"


def test_any_white_space_of_a_line_may_be_in_the_name_of_a_file(tmp_path: Path) -> None:
    for name in ("明細\u30002026.csv", "line\nbreak.csv", "turned\u202earound.csv"):
        (tmp_path / name).write_text("x")
    found = ImportFolders((tmp_path,)).listing(0)
    assert [each.name for each in found.entries] == ["明細\u30002026.csv"]
    assert found.passed_by == 2
    assert ImportFolders((tmp_path,)).find(0, "明細\u30002026.csv")[1] == found.entries[0]


def test_only_so_many_are_listed(folders: ImportFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_folders, "MOST_SHOWN", 1)
    found = folders.listing(0)
    assert ([each.name for each in found.entries], found.more) == (["Mail"], 1)


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../outside",
        "Mail/../..",
        "Mail/../../outside/secret.txt",
        "/etc",
        "/etc/passwd",
        "away",
        "away/secret.txt",
        "link.txt",
        ".hidden",
        "pipe",
        "old.csv/x",
        "nothing",
        "Mail\x00",
        "Mail\\..",
        "/".join(["Mail"] * 40),
    ],
)
def test_no_path_leads_out_or_to_what_is_not_shown(folders: ImportFolders, path: str) -> None:
    with pytest.raises(NotFound):
        folders.listing(0, path)
    with pytest.raises(NotFound):
        folders.find(0, path)


@pytest.mark.parametrize("number", [-1, 1])
def test_other_folders_are_not_there(folders: ImportFolders, number: int) -> None:
    with pytest.raises(NotFound):
        folders.listing(number)
    with pytest.raises(NotFound):
        ImportFolders((folders.folders[0] / "gone",)).listing(0)


def test_a_file_and_a_folder_are_found(folders: ImportFolders) -> None:
    folder, entry = folders.find(0, "Mail/Inbox.mbox")
    assert (folder, entry.name, entry.size_bytes) == (folders.folders[0], "Inbox.mbox", 5)
    assert folders.find(0, "Mail")[1].is_folder
    with pytest.raises(NotFound):
        folders.find(0, "")


@contextmanager
def without_rights(folder: Path) -> Generator[None]:
    """Root reads everything; so it is somebody else for a moment."""
    folder.chmod(0)
    if os.geteuid() == 0:
        folder.parent.chmod(0o755)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        folder.chmod(0o700)


def test_a_folder_that_may_not_be_read_says_so(folders: ImportFolders) -> None:
    with without_rights(folders.folders[0]), pytest.raises(InvalidState) as refused:
        folders.listing(0)
    assert refused.value.members["next_step"]
