"""Files of blobs: what a disk refuses is told by its reason, and leaves no scratch file."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdpp_kernel.errors import BodyTooLarge, StorageUnavailable
from pdpp_kernel.refused_writes import data_moved, read_only
from personal_server.storage.sql.records import blob_files
from personal_server.storage.sql.records.blob_files import (
    PREFIX,
    blob_path,
    is_damaged,
    keep_on_disk,
    put_in_place,
    receive_file,
    remove_files,
    stray_files,
)

HELLO = PREFIX + "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


def test_bytes_that_came_are_named_by_their_content(tmp_path: Path) -> None:
    blobs = tmp_path / "blobs"
    scratch, blob_id, size = receive_file(blobs, [b"he", b"llo"], 5)
    assert (blob_id, size, scratch.read_bytes()) == (HELLO, 5, b"hello")
    assert not is_damaged(blobs, blob_id)  # there is none yet
    put_in_place(blobs, [(scratch, blob_id)])
    path = blob_path(blobs, blob_id)
    assert path == blobs / "2c" / HELLO.removeprefix(PREFIX)
    assert [each for each in blobs.rglob("*") if each.is_file()] == [path]
    assert [each.stat().st_mode & 0o777 for each in (blobs, path.parent)] == [0o700, 0o700]
    assert not is_damaged(blobs, blob_id)
    path.write_bytes(b"hullo")
    assert is_damaged(blobs, blob_id)
    put_in_place(blobs, [(receive_file(blobs, [b"hello"], 5)[0], blob_id)])
    assert path.read_bytes() == b"hello"


def refused_by(number: int) -> Iterator[bytes]:
    yield b"he"
    raise OSError(number, "refused")


REFUSALS = {
    errno.ENOSPC: read_only("disk_full"),
    errno.EROFS: read_only("read_only"),
    errno.ENOENT: data_moved(),
    errno.EPERM: StorageUnavailable("", retry_after_seconds=30),
}


@pytest.mark.parametrize("number", REFUSALS)
def test_what_a_disk_refuses_leaves_nothing_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    with pytest.raises(StorageUnavailable) as refused:
        receive_file(tmp_path / "blobs", refused_by(number), 9)
    assert list((tmp_path / "blobs").iterdir()) == []
    assert errno.errorcode[number] in caplog.text
    expected = REFUSALS[number]
    assert (type(refused.value), refused.value.members) == (type(expected), expected.members)


def test_a_blob_that_is_too_large_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BodyTooLarge):
        receive_file(tmp_path / "blobs", [b"he", b"llo"], 4)
    assert list((tmp_path / "blobs").iterdir()) == []


def test_a_folder_that_is_none_can_take_no_blob(tmp_path: Path) -> None:
    nowhere = tmp_path / "gone" / "blobs"
    scratch = tmp_path / "scratch"
    scratch.touch()
    for write in (
        lambda: receive_file(nowhere, [b"hello"], 5),
        lambda: put_in_place(nowhere, [(scratch, HELLO)]),
        lambda: keep_on_disk([nowhere]),
    ):
        with pytest.raises(StorageUnavailable) as refused:
            write()
        assert refused.value.members == data_moved().members


def test_all_that_was_named_is_brought_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def note(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    scratch, blob_id, _ = receive_file(tmp_path, [b"hello"], 5)
    monkeypatch.setattr(blob_files.os, "fsync", note)
    put_in_place(tmp_path, [(scratch, blob_id)])
    assert synced == [str(tmp_path / "2c"), str(tmp_path)]
    descriptors = Path("/proc/self/fd").iterdir()
    assert not {os.readlink(each) for each in descriptors if each.is_symlink()} & set(synced)


def test_strays_are_files_of_before(tmp_path: Path) -> None:
    assert stray_files(tmp_path / "blobs", 9) == []
    old, young = tmp_path / "2c" / "old", tmp_path / "young"
    old.parent.mkdir()
    for path, at_ns in ((old, 4), (young, 5), (old.parent, 1)):
        path.touch(exist_ok=True)
        os.utime(path, ns=(at_ns, at_ns))
    assert stray_files(tmp_path, 5) == [old]
    remove_files([old, tmp_path / "never"])
    assert not old.exists()
    with pytest.raises(StorageUnavailable):
        remove_files([old.parent, young])
    assert not young.exists()


def test_what_vanishes_while_it_is_looked_for_is_no_stray(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    (tmp_path / "there").write_bytes(b"x")
    age_ns = (tmp_path / "there").stat().st_mtime_ns
    assert stray_files(tmp_path, age_ns + 1) == [tmp_path / "there"]
    assert stray_files(tmp_path, age_ns) == []
    assert stray_files(tmp_path / "nowhere", age_ns) == []
