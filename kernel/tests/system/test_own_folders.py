"""What is made for one account alone, under the laxest umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdpp_kernel.system.own_folders import make_folders, write_private


@pytest.fixture(autouse=True)
def no_umask() -> Iterator[None]:
    usual = os.umask(0)
    yield
    os.umask(usual)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_nobody_else_writes_into_folders_that_were_missing(tmp_path: Path) -> None:
    make_folders(tmp_path / "a" / "b")
    make_folders(tmp_path / "a" / "b")
    assert {mode_of(each) for each in tmp_path.rglob("*")} == {0o755}


def test_private_folders_are_private_up_to_the_first_that_was_there(tmp_path: Path) -> None:
    make_folders(tmp_path / "a" / "b", 0o700)
    assert {mode_of(each) for each in tmp_path.rglob("*")} == {0o700}


def test_nobody_else_reads_a_private_file_that_others_could_read_before(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"longer than what comes")
    write_private(path, b"short")
    write_private(tmp_path / "new", b"")
    assert (path.read_bytes(), mode_of(path), mode_of(tmp_path / "new")) == (b"short", 0o600, 0o600)
