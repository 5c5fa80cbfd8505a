from __future__ import annotations

import subprocess
import sys

import pytest

ASKED = """
import ctypes, resource
from personal_server.app.core_dumps import forbid_core_dumps
forbid_core_dumps()
print(resource.getrlimit(resource.RLIMIT_CORE), ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be asked")
def test_neither_a_file_nor_a_program_gets_the_memory() -> None:
    asked = [sys.executable, "-c", ASKED]
    said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "(0, 0) 0"
