"""Streams that are made ahead of who takes them."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from personal_server.reading.scratch import ScratchStream

CHUNKS = [bytes([number]) * 100_000 for number in range(20)]
WHOLE = b"".join(CHUNKS)
SECONDS = 20


@pytest.fixture
def made() -> threading.Event:
    return threading.Event()


def test_everything_is_made_before_anything_is_taken(made: threading.Event) -> None:
    stream = ScratchStream(iter(CHUNKS), made.set)
    assert made.wait(SECONDS)
    assert b"".join(stream) == WHOLE
    stream.close()


def test_what_waits_is_handed_over_64_kibibytes_at_a_time(made: threading.Event) -> None:
    stream = ScratchStream(iter(CHUNKS[:2]), made.set)
    assert made.wait(SECONDS)
    assert [len(chunk) for chunk in stream] == [65_536, 65_536, 65_536, 3_392]
    stream.close()


def test_a_stream_may_be_left_in_the_middle(made: threading.Event) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield CHUNKS[0]

    stream = ScratchStream(endless(), made.set)
    assert next(stream)
    stream.close()
    assert made.is_set()


def test_where_nothing_can_be_written_chunks_wait_to_be_asked_for(
    made: threading.Event, tmp_path: Path
) -> None:
    stream = ScratchStream(iter(CHUNKS), made.set, tmp_path / "missing")
    first = next(stream)
    assert not made.is_set()
    assert first + b"".join(stream) == WHOLE
    stream.close()
    assert made.is_set()


def test_a_stream_that_cannot_be_written_may_be_left_too(
    made: threading.Event, tmp_path: Path
) -> None:
    ScratchStream(iter(CHUNKS), made.set, tmp_path / "missing").close()
    assert made.is_set()


def test_what_fails_fails_where_it_is_taken(made: threading.Event) -> None:
    def failing() -> Iterator[bytes]:
        yield b"one"
        raise LookupError

    stream = ScratchStream(failing(), made.set)
    assert made.wait(SECONDS)
    assert next(stream) == b"one"
    with pytest.raises(LookupError):
        next(stream)
    stream.close()


def test_what_fails_when_it_is_let_go_of_fails_where_it_is_taken() -> None:
    def fail() -> None:
        raise ValueError

    stream = ScratchStream(iter(CHUNKS), fail)
    with pytest.raises(ValueError):  # noqa: PT011 (whatever it was)
        b"".join(stream)
    stream.close()


@pytest.mark.parametrize("at_once", [1_000, 100_000])
def test_what_has_no_room_any_more_is_handed_over_behind_what_had(
    made: threading.Event, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """A disk may take less than it is given, and is full after a quarter of a million bytes."""
    real = os.pwrite

    def pwrite(descriptor: int, data: Any, offset: int) -> int:
        if offset + len(data) > 250_000:
            raise OSError(errno.ENOSPC, "no room")
        return real(descriptor, data[:at_once], offset)

    monkeypatch.setattr("personal_server.reading.scratch.os.pwrite", pwrite)
    stream = ScratchStream(iter(CHUNKS), made.set)
    assert b"".join(stream) == WHOLE
    stream.close()
    assert made.is_set()


def test_a_chunk_that_could_not_be_written_waits_until_those_before_are_taken(
    made: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pwrite(descriptor: int, data: Any, offset: int) -> int:
        if offset:
            raise OSError(errno.ENOSPC, "no room")
        return real(descriptor, data, offset)

    real = os.pwrite
    monkeypatch.setattr("personal_server.reading.scratch.os.pwrite", pwrite)
    stream = ScratchStream(iter(CHUNKS[:3]), made.set)
    lengths = [len(chunk) for chunk in stream]
    assert lengths == [65_536, 34_464, 100_000, 100_000]
    stream.close()
