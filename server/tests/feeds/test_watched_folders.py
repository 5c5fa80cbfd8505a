"""What a look at a folder sees, on real files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pdpp_kernel.system.open_files import MOST_DEPTH
from personal_server.feeds import watched_folders
from personal_server.feeds.watched_folders import (
    FolderLayout,
    FolderTrouble,
    files_beneath,
    layout_of,
    look_at,
)


def seen(folder: Path, layout: FolderLayout = FolderLayout.EXPORTS) -> dict[str, bool]:
    return {each.name: each.is_unfinished for each in look_at(folder, layout, None).items}


def test_hidden_entries_links_and_empty_folders_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / ".hidden")
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.csv").write_text("x")
    assert seen(tmp_path) == {"a.csv": False}


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems have no such names")
def test_entries_whose_names_are_no_text_are_passed_over(tmp_path: Path) -> None:
    for name in (os.fsdecode(b"caf\xe9"), "caf\xe9", "caf\xa0e"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("x")
    for name in (os.fsdecode(b"caf\xe9.csv"), "line\nbreak.csv", "a\xa0b.csv", "a\u3000b.csv"):
        (tmp_path / name).write_text("x")
    assert set(seen(tmp_path)) == {"caf\xe9", "caf\xa0e", "a\xa0b.csv", "a\u3000b.csv"}


def test_folders_are_looked_into_to_a_depth_that_no_export_has(tmp_path: Path) -> None:
    deepest = tmp_path.joinpath("a", *["b"] * (MOST_DEPTH + 1))
    deepest.mkdir(parents=True)
    (deepest / "beyond.csv").write_text("x")
    (deepest.parent / "within.csv").write_text("x")
    assert [path for path, _ in files_beneath(tmp_path / "a")] == ["b/" * MOST_DEPTH + "within.csv"]


@pytest.mark.parametrize("ending", ["part", "crdownload", "partial", "tmp", "download"])
def test_a_download_that_goes_on_is_unfinished(tmp_path: Path, ending: str) -> None:
    (tmp_path / "a.zip").write_text("x")
    (tmp_path / f"a.zip.{ending}").write_text("x")
    (tmp_path / "b.zip").touch()
    assert seen(tmp_path) == {"a.zip": True, f"a.zip.{ending}": True, "b.zip": True}


def test_a_folder_is_one_item_whose_mark_tells_every_change(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "a" / "b").mkdir(parents=True)
    (vault / "a" / "b" / "note.md").write_text("one")
    marks = [look_at(tmp_path, FolderLayout.EXPORTS, None).items[0].mark]
    (vault / "a" / "b" / "note.md").write_text("other")
    marks.append(look_at(tmp_path, FolderLayout.EXPORTS, None).items[0].mark)
    (vault / "a" / "b" / "note.md").rename(vault / "a" / "note.md")
    marks.append(look_at(tmp_path, FolderLayout.EXPORTS, None).items[0].mark)
    (vault / "a" / "two.md").write_text("two")
    marks.append(look_at(tmp_path, FolderLayout.EXPORTS, None).items[0].mark)
    assert len(set(marks)) == 4
    assert look_at(tmp_path, FolderLayout.EXPORTS, None).items[0].mark == marks[-1]


def test_the_new_files_of_a_maildir_are_known_by_the_clock_of_the_place(tmp_path: Path) -> None:
    for name in ("cur", "new", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "cur" / "1:2,S").write_text("x")
    (first,) = look_at(tmp_path, FolderLayout.MAILDIR, None).items
    before = first.newest_ns + 3_600 * 10**9
    assert look_at(tmp_path, FolderLayout.MAILDIR, before).fresh == []
    assert look_at(tmp_path, FolderLayout.MAILDIR, first.newest_ns).fresh == ["cur/1:2,S"]


def test_a_folder_that_is_gone_is_no_empty_one(tmp_path: Path) -> None:
    for layout in FolderLayout:
        with pytest.raises(FolderTrouble) as refused:
            look_at(tmp_path / "gone", layout, None)
        assert (refused.value.code, refused.value.needs_owner) == ("folder_gone", False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_read_needs_its_owner(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    with pytest.raises(FolderTrouble) as refused:
        look_at(tmp_path, FolderLayout.EXPORTS, None)
    tmp_path.chmod(0o700)
    assert (refused.value.code, refused.value.needs_owner) == ("folder_unreadable", True)


def test_a_folder_with_too_many_entries_needs_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_folders, "MOST_ENTRIES", 3)
    for number in range(4):
        (tmp_path / str(number)).write_text("x")
    with pytest.raises(FolderTrouble) as refused:
        look_at(tmp_path, FolderLayout.EXPORTS, None)
    assert refused.value.code == "folder_too_large"


@pytest.mark.parametrize(
    ("names", "layout"),
    [
        (("cur/", "new/", "tmp/"), FolderLayout.MAILDIR),
        (("places.sqlite",), FolderLayout.PROFILE),
        ((".obsidian/", "a.txt"), FolderLayout.TREE),
        (("note.md", "a.zip"), FolderLayout.TREE),
        (("a.zip", "b.pdf"), FolderLayout.EXPORTS),
    ],
)
def test_a_folder_tells_its_layout(
    tmp_path: Path, names: tuple[str, ...], layout: FolderLayout
) -> None:
    for name in names:
        target = tmp_path / name
        target.mkdir() if name.endswith("/") else target.touch()
    assert layout_of(tmp_path) is layout
