"""By which sums stored bytes are known to be sound.

A sum has two halves: one over what a line says of its record (key, number and date of its creation,
dates of changed fields), one over the text, begun from the first, so that a text which stands
beside another line is noticed too.  Where the first half is sound, the key is.

CRC-32 finds any stretch of up to 32 damaged bits, and of longer ones all but one in four thousand
million.  It is a guard against disks, not against whoever can write the file.
"""

from __future__ import annotations

from zlib import crc32

_LINE_BITS = 31  # with the 32 of the text they are an integer of the database
_TEXT_BITS = 32


def line_sum(key: str, created: int, created_at_ns: int, changes: str | None) -> int:
    """The half over a line; `changes` as it is stored."""
    line = f"{key}\0{created}\0{created_at_ns}\0{changes or ''}".encode()
    return crc32(line) & ((1 << _LINE_BITS) - 1)


def record_sum(line: int, text: bytes) -> int:
    """The whole sum, of the half over its line and of a text."""
    return line << _TEXT_BITS | crc32(text, line)


def is_line_of(line: int, stored_sum: int) -> bool:
    """Whether a line is the one that a sum was made with."""
    return stored_sum >> _TEXT_BITS == line
