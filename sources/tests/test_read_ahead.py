"""What a process says, taken in before it is asked for."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Generator
from typing import IO

import pytest

from pdpp_sources.read_ahead import read_ahead

SECONDS = 60


@pytest.fixture
def pipe() -> Generator[tuple[IO[bytes], IO[bytes]]]:
    readable, writable = os.pipe()
    with os.fdopen(readable, "rb") as taken, os.fdopen(writable, "wb", 0) as said:
        yield taken, said


def no_thread_is_left() -> bool:
    end = time.monotonic() + SECONDS
    while any(thread.name == "read-ahead" for thread in threading.enumerate()):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_the_bytes_are_those_of_the_pipe_whatever_is_asked_for(
    pipe: tuple[IO[bytes], IO[bytes]],
) -> None:
    taken, said = pipe
    sizes, content = random.Random(5), random.Random(6).randbytes(3_000_000)

    def say() -> None:
        at = 0
        while at < len(content):
            at += said.write(content[at : at + sizes.randrange(1, 90_000)])
        said.close()

    speaker = threading.Thread(target=say)
    speaker.start()
    asked = random.Random(7)
    with read_ahead(taken, 500_000) as ahead:
        parts: list[bytes] = []
        while part := ahead.read(asked.choice([1, 4, 700, 40_000, 900_000])):
            parts.append(part)
        assert b"".join(parts) == content
        assert ahead.read(4) == b""  # the end stays
    speaker.join()
    assert no_thread_is_left()


def test_whoever_speaks_goes_on_while_nobody_asks_but_not_for_ever(
    pipe: tuple[IO[bytes], IO[bytes]],
) -> None:
    taken, said = pipe
    os.set_blocking(said.fileno(), False)
    most, in_a_pipe, chunk = 1_000_000, 64 * 1024, 256 * 1024
    with read_ahead(taken, most) as ahead:
        written, end = 0, time.monotonic() + SECONDS
        while written < most:
            written += said.write(bytes(50_000)) or 0  # `None` of a pipe that is full
            assert time.monotonic() < end
        while wrote := said.write(bytes(50_000)):
            written += wrote
        assert written <= most + in_a_pipe + 2 * chunk
        assert len(ahead.read(written)) == written
        said.close()
        assert ahead.read(1) == b""


def test_whoever_leaves_before_the_end_leaves_no_thread(
    pipe: tuple[IO[bytes], IO[bytes]],
) -> None:
    taken, said = pipe
    ahead = read_ahead(taken, 10)
    said.write(bytes(50_000))
    assert len(ahead.read(5)) == 5
    ahead.close()
    said.close()
    assert no_thread_is_left()
