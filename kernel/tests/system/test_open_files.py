"""What the system tells of open files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pdpp_kernel.system.open_files import is_being_written, real_place, unnamed_file


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who writes")
def test_a_file_that_somebody_writes_is_known(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with path.open("wb") as writing:
        writing.write(b"x")
        writing.flush()
        assert is_being_written(path)
    assert not is_being_written(path)
    with path.open("rb"):
        assert not is_being_written(path)
    assert not is_being_written(tmp_path / "gone")


def test_another_system_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.zip"
    with path.open("wb"):
        monkeypatch.setattr(sys, "platform", "darwin")
        assert is_being_written(path) is False


def test_an_opened_file_lies_where_its_link_leads(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.touch()
    link.symlink_to(target)
    with link.open("rb") as stream:
        assert real_place(stream) == target.resolve()


def test_a_file_without_a_name_is_written_and_read() -> None:
    descriptor = unnamed_file()
    os.write(descriptor, b"x")
    assert os.pread(descriptor, 2, 0) == b"x"
    os.close(descriptor)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who writes")
def test_who_was_asked_about_is_closed_again(tmp_path: Path) -> None:
    path, link = tmp_path / "a.zip", tmp_path / "link"
    path.touch()
    link.symlink_to(path)
    before = len(os.listdir("/proc/self/fd"))
    with path.open("wb"):
        assert is_being_written(path)
    assert not is_being_written(path)
    assert not is_being_written(link)
    assert len(os.listdir("/proc/self/fd")) == before
