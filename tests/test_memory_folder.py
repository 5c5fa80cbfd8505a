"""Where the files of a whole run lie."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import memory_folder
from tests.memory_folder import (
    BEGIN,
    LEFT_BYTES,
    LONGEST_SECONDS,
    ROOM_BYTES,
    has_room,
    remove_left,
)

ENOUGH_KB = (ROOM_BYTES + LEFT_BYTES) // 1024


def told_of(free: int, flags: int = 0) -> Callable[[object], os.statvfs_result]:
    """What a system says of a folder with so many bytes free."""
    found = os.statvfs_result((4096, 4096, *[free // 4096] * 3, 9, 9, 9, flags, 255))

    def statvfs(place: object) -> os.statvfs_result:
        del place
        return found

    return statvfs


@pytest.mark.parametrize(
    ("told", "is_there"),
    [
        (f"MemTotal: 1 kB\nMemAvailable:   {ENOUGH_KB} kB\n", True),
        (f"MemAvailable: {ENOUGH_KB - 1} kB\n", False),
        ("MemTotal: 99999999 kB\n", False),
        ("", False),
    ],
)
def test_there_is_room_where_memory_is_left_for_programs_too(
    told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    monkeypatch.setattr(os, "statvfs", told_of(ROOM_BYTES))
    assert has_room(tmp_path, told) is is_there


@pytest.mark.parametrize(("free", "flags"), [(ROOM_BYTES - 4096, 0), (ROOM_BYTES, os.ST_NOEXEC)])
def test_a_small_folder_and_one_without_programs_is_no_room(
    free: int, flags: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", told_of(free, flags))
    assert not has_room(tmp_path, f"MemAvailable: {ENOUGH_KB} kB\n")


def test_without_such_a_folder_there_is_no_room(tmp_path: Path) -> None:
    assert not has_room(tmp_path / "none", f"MemAvailable: {ENOUGH_KB} kB\n")


def test_what_a_killed_run_left_goes_and_nothing_else(tmp_path: Path) -> None:
    left, of_now, others = (tmp_path / name for name in (f"{BEGIN}a", f"{BEGIN}b", "pdpp-c"))
    for each in (left, of_now, others):
        (each / "inside").mkdir(parents=True)
    now = of_now.stat().st_mtime
    for each in (left, others):
        os.utime(each, (0, now - LONGEST_SECONDS - 1))
    remove_left(tmp_path, now)
    assert sorted(tmp_path.iterdir()) == sorted([of_now, others])


def test_a_folder_that_was_named_stays_the_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.memory_folder"],
        env={**os.environ, "TMPDIR": str(tmp_path)},  # noqa: TID251 (what tests start with)
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""


def test_servers_of_another_user_reach_what_lies_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(memory_folder, "MEMORY", tmp_path)
    monkeypatch.setattr(memory_folder, "ROOM_BYTES", 0)
    monkeypatch.setattr(memory_folder, "LEFT_BYTES", 0)
    memory_folder.main()
    made = Path(capsys.readouterr().out.strip())
    assert made.parent == tmp_path
    assert stat.S_IMODE(made.stat().st_mode) == 0o1777
