"""Locks on open files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pdpp_kernel.system.file_locks import is_locked, lock, lock_byte, try_lock, unlock, unlock_byte

HOLD = """
import sys
from pdpp_kernel.system.file_locks import try_lock
file = open(sys.argv[1], "ab")
print(try_lock(file), flush=True)
sys.stdin.read()
"""


def test_one_has_it_until_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    words = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        with path.open("ab") as other:
            assert not try_lock(other)
            assert is_locked(other)
            holder.kill()
            holder.wait()
            assert not is_locked(other)
            assert try_lock(other)


def test_the_question_takes_nothing(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("ab") as one, (tmp_path / "lock").open("ab") as other:
        assert not is_locked(one)
        lock(other)
        assert is_locked(one)
        unlock(other)
        assert try_lock(one.fileno())


def test_bytes_are_held_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"12")
    descriptor = os.open(tmp_path / "lock", os.O_RDWR)
    lock_byte(descriptor, 1)
    ask = "import fcntl, os, sys; d = os.open(sys.argv[1], os.O_RDWR)\n"
    ask += "fcntl.lockf(d, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(sys.argv[2]))"
    words = [sys.executable, "-c", ask, str(tmp_path / "lock")]
    assert subprocess.run([*words, "0"], check=False).returncode == 0
    assert subprocess.run([*words, "1"], check=False, stderr=subprocess.DEVNULL).returncode == 1
    unlock_byte(descriptor, 1)
    assert subprocess.run([*words, "1"], check=False).returncode == 0
    os.close(descriptor)


def test_the_byte_behind_one_that_is_held_is_free(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"123")
    descriptor = os.open(tmp_path / "lock", os.O_RDWR)
    ask = "import fcntl, os, sys; d = os.open(sys.argv[1], os.O_RDWR)\n"
    ask += "fcntl.lockf(d, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(sys.argv[2]))"
    words = [sys.executable, "-c", ask, str(tmp_path / "lock"), "1"]
    lock_byte(descriptor, 0)
    assert subprocess.run(words, check=False).returncode == 0
    lock_byte(descriptor, 1)
    unlock_byte(descriptor, 0)
    assert subprocess.run(words, check=False, stderr=subprocess.DEVNULL).returncode == 1
    os.close(descriptor)
