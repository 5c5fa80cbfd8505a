"""What a process may still read is what it named, and nothing beside it."""

from __future__ import annotations

import os
import struct
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
    before = set(os.listdir("/proc/self/fd"))
    landlock._add(-1, tmp_path)  # pyright: ignore[reportPrivateUsage]
    # one of before may be gone: what other tests left open is closed whenever it is collected
    assert set(os.listdir("/proc/self/fd")) <= before


def test_a_folder_is_listed_as_far_as_it_was_named(tmp_path: Path) -> None:
    (tmp_path / "in" / "deeper").mkdir(parents=True)
    program = READING.format(first="pass") + LISTING
    told = subprocess.run(
        [sys.executable, "-P", "-c", program, str(tmp_path / "in")],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert told.stdout.split()[-3:] == ["['deeper']", "[]", "refused"], told.stderr


LISTING = """
named = Path(sys.argv[1])
for folder in (named, named / "deeper", named.parent):
    try:
        print(os.listdir(folder))
    except PermissionError:
        print("refused")
"""


class Kernel:
    """What is asked of a kernel that knows one version of Landlock (linux/landlock.h)."""

    def __init__(self, version: int, refused: int | None = None) -> None:
        self.version = version
        self.refused = refused
        self.asked: list[tuple[int, ...]] = []
        self.rules: dict[str, int] = {}

    def call(self, number: int, *arguments: bytes | int | None) -> int:
        if number == self.refused:
            return -1
        match number, arguments:
            case 444, (None, 0, 1):
                return self.version
            case 444, (bytes() as attributes, length, 0):
                assert length == len(attributes)
                self.asked.append(struct.unpack(f"={len(attributes) // 8}Q", attributes))
                return os.open(os.devnull, os.O_RDONLY)
            case 445, (_, 1, bytes() as rule, 0):
                allowed, file = struct.unpack("=Qi", rule)
                self.rules[os.readlink(f"/proc/self/fd/{file}")] = allowed
                return 0
            case 446, (_, 0):
                return 0
            case _:
                raise AssertionError(number)


@pytest.mark.parametrize(
    ("version", "handled"),
    [
        (1, (0x1FFF,)),
        (2, (0x3FFF,)),
        (3, (0x7FFF,)),
        (4, (0x7FFF, 0b11)),
        (5, (0xFFFF, 0b11)),
        (6, (0xFFFF, 0b11, 0b11)),
        (9, (0xFFFF, 0b11, 0b11)),
    ],
)
def test_each_version_is_asked_for_all_that_it_knows(
    version: int, handled: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kernel, before = Kernel(version), os.listdir("/proc/self/fd")
    monkeypatch.setattr(landlock, "_call", kernel.call)
    (tmp_path / "file").touch()
    assert landlock.read_only([tmp_path, tmp_path / "file", tmp_path / "missing"])
    assert kernel.asked == [handled]
    read_file, read_folder = 0b100, 0b1000
    assert kernel.rules[str(tmp_path)] == read_file | read_folder
    assert kernel.rules[str(tmp_path / "file")] == read_file
    assert kernel.rules["/dev/null"] == read_file
    assert {Path(sys.prefix, "lib"), Path(sys.base_prefix, "lib")} <= {*map(Path, kernel.rules)}
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("refused", [444, 446])
def test_what_the_kernel_refuses_is_not_held(refused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(3, refused)
    monkeypatch.setattr(landlock, "version", lambda: 3)
    monkeypatch.setattr(landlock, "_call", kernel.call)
    assert landlock.read_only([]) is False


def test_there_is_none_where_the_system_is_another_or_knows_no_such_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(landlock, "_call", Kernel(3, 444).call)
    assert landlock.version() == 0
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(landlock, "_call", Kernel(3).call)
    assert landlock.version() == 0


def test_a_system_without_it_holds_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    assert landlock.read_only([]) is False
