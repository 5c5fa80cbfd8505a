"""What a process cannot do once it has confined itself."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from personal_server.confinement import filter_program

LINUX = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
CONFINED = """
import os, socket, subprocess, sys
from pathlib import Path
from personal_server.confinement import confine, Limits
assert confine(Limits(1, 200 * 1024 * 1024)) == []
try:
    {attempt}
except (PermissionError, MemoryError) as refused:
    print(type(refused).__name__)
"""
ATTEMPTS = [
    ("socket.socket()", "PermissionError"),
    ("socket.socketpair()", "PermissionError"),
    ("socket.create_connection(('127.0.0.1', 9))", "PermissionError"),
    ("os.fork()", "PermissionError"),
    ("os.execv(sys.executable, [sys.executable])", "PermissionError"),
    ("Path('made').write_text('x')", "PermissionError"),
    ("os.open(__file__ if 0 else os.devnull, os.O_RDWR)", "PermissionError"),
    ("os.unlink('nothing')", "PermissionError"),
    ("os.rename('nothing', 'something')", "PermissionError"),
    ("os.mkdir('made')", "PermissionError"),
    ("os.kill(os.getppid(), 0)", "PermissionError"),
    ("bytearray(300 * 1024 * 1024)", "MemoryError"),
]


@pytest.mark.skipif(not LINUX, reason="only Linux refuses calls to a process that asks for it")
@pytest.mark.parametrize(("attempt", "refusal"), ATTEMPTS, ids=[each for each, _ in ATTEMPTS])
def test_it_is_refused(attempt: str, refusal: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONFINED.format(attempt=attempt)], capture_output=True, text=True
    )
    assert done.stdout.strip() == refusal, done.stderr


@pytest.mark.skipif(not LINUX, reason="only Linux refuses calls to a process that asks for it")
def test_reading_goes_on() -> None:
    attempt = "print(len(Path(os.__file__).read_bytes()) > 0)"
    done = subprocess.run(
        [sys.executable, "-c", CONFINED.format(attempt=attempt)], capture_output=True, text=True
    )
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.parametrize(("column", "machine"), [(0, 0xC000003E), (1, 0xC00000B7)])
def test_the_filter_is_whole_instructions_that_end_in_allowing(column: int, machine: int) -> None:
    program = filter_program(column, machine)
    assert len(program) % 8 == 0
    assert program[-8:] == bytes.fromhex("06 00 00 00 00 00 ff 7f")
    assert machine.to_bytes(4, "little") in program


ASKED_OF_IMAGES = """
import ctypes, resource
from personal_server.confinement import forbid_core_dumps
forbid_core_dumps()
print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be asked")
def test_neither_a_file_nor_a_program_gets_the_memory() -> None:
    asked = [sys.executable, "-c", ASKED_OF_IMAGES]
    said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "(0, 0) 0"
