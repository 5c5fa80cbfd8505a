"""Nobody gets an image of the memory of the server."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASKED_OF_IMAGES = """
import ctypes, resource
from pdpp_kernel.system.memory_images import forbid_core_dumps
forbid_core_dumps()
print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be asked")
def test_neither_a_file_nor_a_program_gets_the_memory() -> None:
    asked = [sys.executable, "-c", ASKED_OF_IMAGES]
    said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=240)
    assert said.stdout.strip() == "(0, 0) 0"
