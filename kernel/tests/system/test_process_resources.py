"""What a process holds of the machine, and may hold."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from pdpp_kernel.system.process_resources import memory_bytes, raise_descriptor_limit

HEAPS = """
import ctypes, threading
from pdpp_kernel.system.process_resources import share_one_heap
share_one_heap()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
barrier = threading.Barrier(4)
def allocate():
    barrier.wait()
    library.malloc(ctypes.c_size_t(4096))
    barrier.wait()
threads = [threading.Thread(target=allocate) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
library.fdopen.restype = ctypes.c_void_p
library.malloc_info(0, ctypes.c_void_p(library.fdopen(1, b"w")))
library.fflush(None)
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_info"), reason="only the GNU C library tells its heaps"
)
def test_threads_share_one_heap() -> None:
    told = subprocess.run([sys.executable, "-c", HEAPS], capture_output=True, check=True)
    assert told.stdout.count(b"<heap nr=") == 1


FREED = """
import sys
from pdpp_kernel.system.process_resources import give_memory_back, memory_bytes
held = [bytes(2_000) for _ in range(16_000)]
last = bytes(2_000)
held.clear()
before = memory_bytes()
give_memory_back()
print(before - memory_bytes())
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only the GNU C library can be told"
)
def test_what_was_freed_below_what_is_held_is_given_to_the_system() -> None:
    told = subprocess.run([sys.executable, "-c", FREED], capture_output=True, check=True)
    assert int(told.stdout) > 16 * 1024 * 1024


def test_it_knows_what_it_holds() -> None:
    before = memory_bytes()
    held = b"x" * (64 * 1024 * 1024)
    assert memory_bytes() - before > len(held) / 2


def test_it_takes_the_descriptors_that_it_may() -> None:
    taken = raise_descriptor_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (taken, taken)


def test_where_it_may_not_take_them_it_keeps_those_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def limits(_: int) -> tuple[int, int]:
        return 256, resource.RLIM_INFINITY

    def refuse(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr(resource, "getrlimit", limits)
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_descriptor_limit() == 256


def test_where_the_system_does_not_say_it_is_the_most_that_was_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreadable(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(Path, "read_text", unreadable)
    for platform, unit in (("linux", 1024), ("darwin", 1)):
        monkeypatch.setattr(sys, "platform", platform)
        assert memory_bytes() == resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
