"""The memory of a process that goes on for long."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

HEAPS = """
import ctypes, threading
from pdpp_mcp_server.commands import long_life
long_life.share_one_heap()
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
