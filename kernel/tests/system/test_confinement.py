"""What a process cannot do once it has confined itself."""

from __future__ import annotations

import platform
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pdpp_kernel.system.confinement import LIMITS, Limits

LINUX = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
CONFINED = """
import fcntl, os, resource, signal, socket, subprocess, sys, termios, threading
from pathlib import Path
from pdpp_kernel.system.confinement import confine, Limits
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
    ("os.kill(os.getpid(), 0)", "PermissionError"),
    ("os.chmod(sys.executable, 0o755)", "PermissionError"),
    ("os.utime(sys.executable)", "PermissionError"),
    ("os.setxattr(sys.executable, 'user.x', b'')", "PermissionError"),
    ("os.pidfd_open(os.getppid())", "PermissionError"),
    ("os.open(f'/proc/{os.getppid()}/mem', os.O_RDWR)", "PermissionError"),
    ("fcntl.ioctl(0, termios.TIOCSTI, b'x')", "PermissionError"),
    ("fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())", "PermissionError"),
    ("resource.prlimit(os.getppid(), resource.RLIMIT_CPU)", "PermissionError"),
    ("os.sched_setaffinity(0, [0])", "PermissionError"),
    ("signal.pthread_kill(threading.get_ident(), 0)", "PermissionError"),
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


OF_ITS_OWN = """
import ctypes, os, sys
from pdpp_kernel.system.confinement import confine, LIMITS
before = open("/proc/self/stat").read().split()
confine(LIMITS)
status = open("/proc/self/status").read()
after = open("/proc/self/stat").read().split()
print(after[5] == after[0] != before[5], "NoNewPrivs:\t1" in status, "Seccomp:\t2" in status)
print(os.stat("/proc/self/mem").st_uid == 0, os.geteuid() == 0)
"""


@pytest.mark.skipif(not LINUX, reason="only Linux says so")
def test_it_has_no_terminal_and_nobody_reads_its_memory() -> None:
    told = subprocess.run(
        [sys.executable, "-c", OF_ITS_OWN], capture_output=True, text=True, check=True
    )
    # files of a process that is not dumpable belong to the administrator, whoever runs it
    assert told.stdout.split() in (["True"] * 4 + ["False"], ["True"] * 5)


ANSWERING = """
import sys
from pdpp_kernel.system.confinement import confine, LIMITS
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


LOOKING = """
import os, signal, sys
from pdpp_kernel.system.confinement import end_with
end_with(os.getppid())
assert signal.getitimer(signal.ITIMER_REAL)[1] == 2
signal.raise_signal(signal.SIGALRM)
print("goes on", flush=True)
end_with(os.getpid())
signal.raise_signal(signal.SIGALRM)
print("goes on")
"""


WITHOUT = """
import os, resource, sys
from pdpp_kernel.system import confinement, landlock, system_calls
made = []
os.setsid = lambda: made.append("session")
sys.platform, others, known = sys.argv[1], sys.argv[2] == "yes", int(sys.argv[3])
system_calls.refuse_others = lambda: others
landlock.version = lambda: known
print(confinement.confine(confinement.LIMITS), sys.dont_write_bytecode, made)
for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_DATA):
    print(resource.getrlimit(kind)[1])
"""
MEMORY = 256 * 1024 * 1024
MORE, NETWORK, FILES = "using more memory", "using the network", "reading other files"


@pytest.mark.skipif(not LINUX, reason="what Linux gives up is taken away here")
@pytest.mark.parametrize(
    ("platform_", "refuses", "version", "missing"),
    [
        ("linux", "yes", "3", []),
        ("linux", "yes", "0", [FILES]),
        ("linux", "no", "3", [NETWORK]),
        ("linux", "no", "0", [NETWORK, FILES]),
        ("darwin", "yes", "3", [MORE, NETWORK, FILES]),
    ],
)
def test_what_cannot_be_given_up_is_named(
    platform_: str, refuses: str, version: str, missing: list[str]
) -> None:
    command = [sys.executable, "-c", WITHOUT, platform_, refuses, version]
    told = subprocess.run(command, capture_output=True, text=True)
    first, core, size, data = told.stdout.splitlines() or [told.stderr] * 4
    assert first == f"{missing} True ['session']"
    assert (core, size) == ("0", "0")
    assert (data == str(MEMORY)) == (platform_ == "linux")


def test_an_entry_may_take_ten_seconds_and_256_mebibytes() -> None:
    assert Limits() == LIMITS == Limits(10, MEMORY)


def test_it_ends_where_another_process_has_become_its_parent() -> None:
    told = subprocess.run([sys.executable, "-c", LOOKING], capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (1, "goes on\n"), told.stderr
