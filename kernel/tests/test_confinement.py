"""What a process cannot do once it has confined itself."""

from __future__ import annotations

import platform
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pdpp_kernel.confinement import filter_program

LINUX = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
CONFINED = """
import os, socket, subprocess, sys
from pathlib import Path
from pdpp_kernel.confinement import confine, Limits
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


ANSWERING = """
import sys
from pdpp_kernel.confinement import confine, LIMITS
confine(LIMITS)
print("ready", flush=True)
for line in sys.stdin:
    print("heard", line.strip(), flush=True)
"""


def test_it_lives_longer_than_the_thread_that_started_it() -> None:
    started: list[tuple[subprocess.Popen[str], int]] = []

    def start() -> None:
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            [sys.executable, "-c", ANSWERING], stdin=pipe, stdout=pipe, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        started.append((child, threading.get_native_id()))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join(60)
    [(child, native)] = started
    while Path(f"/proc/self/task/{native}").exists():  # joined, it may take a moment more
        pass
    assert child.communicate("rain\n", timeout=240)[0] == "heard rain\n"


STARTING = f"""
import os, subprocess, sys
ANSWERING = {ANSWERING!r} + "    while True: pass"
child = subprocess.Popen([sys.executable, "-c", ANSWERING], stdin=subprocess.PIPE)
child.stdin.write(b"rain\\n")
child.stdin.flush()
sys.stdin.readline()
os._exit(0)
"""


def test_it_ends_with_the_process_that_started_it_though_it_is_busy() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", STARTING], stdin=pipe, stdout=pipe, text=True
    ) as starting:
        assert starting.stdout is not None
        assert [starting.stdout.readline() for _ in range(2)] == ["ready\n", "heard rain\n"]
        # what it prints is at its end when nobody is left who could print
        assert starting.communicate("end\n", timeout=240)[0] == ""


ASKED_OF_IMAGES = """
import ctypes, resource
from pdpp_kernel.confinement import forbid_core_dumps
forbid_core_dumps()
print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be asked")
def test_neither_a_file_nor_a_program_gets_the_memory() -> None:
    asked = [sys.executable, "-c", ASKED_OF_IMAGES]
    said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=240)
    assert said.stdout.strip() == "(0, 0) 0"
