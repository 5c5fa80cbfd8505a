"""A small file system of its own, and one without a byte left."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIZE = "size=12m"


@contextmanager
def small_disk(place: Path) -> Generator[Path]:
    """Mounted there, and gone in the end."""
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", SIZE, "tmpfs", place], check=False)
    if made.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@contextmanager
def full(disk: Path) -> Generator[None]:
    """Not a byte is left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for step in (65_536, 1):
            try:
                while True:
                    file.write(b"x" * step)
            except OSError:
                continue
    yield
    filler.unlink()


@contextmanager
def only_read(disk: Path) -> Generator[None]:
    """Nothing on it can be written."""
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
