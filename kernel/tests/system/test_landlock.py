"""What a process may still read is what it named, and nothing beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pdpp_kernel.system import landlock
from pdpp_kernel.system.landlock import version

pytestmark = pytest.mark.skipif(not version(), reason="this kernel has no Landlock")
READING = """
import os, sys
from pathlib import Path
from pdpp_kernel.system.confinement import confine, LIMITS
from pdpp_kernel.system.landlock import read_only
{first}
assert read_only([Path(sys.argv[1])])
for path in [*sys.argv[2:], f"/proc/{{os.getppid()}}/mem", f"/proc/{{os.getppid()}}/environ"]:
    try:
        with open(path, "rb") as file:
            file.read(1)
    except PermissionError:
        print("refused")
    except OSError as error:
        print(type(error).__name__)
    else:
        print("read")
import wave  # what the program itself is made of can be loaded
"""


@pytest.mark.parametrize("first", ["confine(LIMITS)", "pass"])
def test_one_export_is_read_and_no_other_file(tmp_path: Path, first: str) -> None:
    export, secret = tmp_path / "export", tmp_path / "secret"
    (export / "in").mkdir(parents=True)
    inside, link = export / "in" / "a", export / "in" / "link"
    inside.write_text("x")
    secret.write_text("x")
    link.symlink_to(secret)
    files = (export, inside, secret, link, tmp_path / "missing", Path("/etc/hostname"))
    told = subprocess.run(
        [sys.executable, "-P", "-c", READING.format(first=first), *map(str, files)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    expected = ["read", "refused", "refused", "FileNotFoundError", "refused", "refused", "refused"]
    assert told.stdout.split() == expected, told.stderr


def test_one_file_is_read_and_its_neighbour_is_not(tmp_path: Path) -> None:
    named, other = tmp_path / "named", tmp_path / "other"
    for each in (named, other):
        each.write_text("x")
    told = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            READING.format(first="pass"),
            str(named),
            str(named),
            str(other),
        ],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert told.stdout.split()[:2] == ["read", "refused"], told.stderr


def test_no_file_stays_open_for_a_rule(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    landlock._add(-1, tmp_path)  # pyright: ignore[reportPrivateUsage]
    assert os.listdir("/proc/self/fd") == before


def test_a_system_without_it_holds_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert landlock.read_only([]) is False
