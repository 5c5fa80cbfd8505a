"""Small files of FIT, written message by message as the protocol says."""

from __future__ import annotations

import struct
from collections.abc import Sequence

# Base types, each with its format.
BYTE, SHORT, LONG, WHOLE = (0x02, "B"), (0x84, "H"), (0x86, "I"), (0x85, "i")
TIME, FILE_ID, SESSION, POINT = 253, 0, 18, 20
JULY = 1_089_100_800  # 2024-07-05 08:00:00 UTC, in seconds since 1989-12-31
Field = tuple[int, tuple[int, str], int]


def semicircles(degrees: float) -> int:
    """Degrees as FIT counts them."""
    return round(degrees * 2**31 / 180)


def fit_message(number: int, *fields: Field, local: int = 0, defines: bool = True) -> bytes:
    """A message, with the definition of its local type before it."""
    parts = b"".join(bytes((own, struct.calcsize(f), code)) for own, (code, f), _ in fields)
    definition = struct.pack("<BBBHB", 0x40 | local, 0, 0, number, len(fields)) + parts
    values = struct.pack("<" + "".join(f for _, (_, f), _ in fields), *(v for *_, v in fields))
    return (definition if defines else b"") + bytes((local,)) + values


def fit_file(messages: Sequence[bytes], said_bytes: int | None = None) -> bytes:
    """A file of these messages; its checksums, which may be left out, are 0."""
    content = b"".join(messages)
    length = len(content) if said_bytes is None else said_bytes
    return struct.pack("<BBHI4sH", 14, 0x20, 2132, length, b".FIT", 0) + content + b"\0\0"


def fit_point(second: int, north: float, east: float, beats: int, *, height: int = 400) -> bytes:
    """A point of a track."""
    place = ((0, WHOLE, semicircles(north)), (1, WHOLE, semicircles(east)))
    rest = ((2, SHORT, (height + 500) * 5), (3, BYTE, beats), (TIME, LONG, JULY + second))
    return fit_message(POINT, *place, *rest)


def fit_session(second: int, sport: int, seconds: int, meters: int, *more: Field) -> bytes:
    """A session that began then and took so long."""
    times = ((2, LONG, JULY + second), (TIME, LONG, JULY + second + seconds))
    facts = ((5, BYTE, sport), (7, LONG, seconds * 1000), (9, LONG, meters * 100))
    return fit_message(SESSION, *times, *facts, *more, local=1)


def fit_kind(kind: int, maker: int = 123) -> bytes:
    """What a file is, and whose device wrote it."""
    return fit_message(FILE_ID, (0, BYTE, kind), (1, SHORT, maker))


SWIM = fit_file(
    [
        fit_kind(4),
        fit_point(0, 47.0, 8.0, 120),
        fit_point(60, 47.001, 8.0, 0),
        fit_session(0, 5, 1200, 800, (11, SHORT, 200), (16, BYTE, 125)),
    ]
)
SETTINGS = fit_file([fit_kind(2)])
