"""The messages of FIT, the binary form in which watches and bicycle computers keep workouts.

Source: the document of the FIT protocol (headers, definitions, base types, compressed times) and
its profile, which numbers messages and fields. Several files may lie behind each other in one.
Fields that a maker defined, and those whose length is none of their type, are passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.times import rendered

TIMESTAMP = 253
Value = int | float | str
_MARK = b".FIT"
_MARK_AT = 8  # where it stands in a header
_HEADERS = (12, 14)
_CHECKSUM_BYTES = 2
_DEFINES, _OF_MAKER = 0x40, 0x20
_COMPRESSED = 0x80
_EPOCH = datetime(1989, 12, 31, tzinfo=UTC)
_FIRST_SECOND = 0x1000_0000  # below it a number counts from when the device was switched on
# Of each base type: how it is packed, and what stands for nothing.
_TYPES: Mapping[int, tuple[str, int]] = {
    0x00: ("B", 0xFF),
    0x01: ("b", 0x7F),
    0x02: ("B", 0xFF),
    0x83: ("h", 0x7FFF),
    0x84: ("H", 0xFFFF),
    0x85: ("i", 0x7FFF_FFFF),
    0x86: ("I", 0xFFFF_FFFF),
    0x0A: ("B", 0),
    0x8B: ("H", 0),
    0x8C: ("I", 0),
    0x8E: ("q", 0x7FFF_FFFF_FFFF_FFFF),
    0x8F: ("Q", 0xFFFF_FFFF_FFFF_FFFF),
    0x90: ("Q", 0),
    0x88: ("f", 0),
    0x89: ("d", 0),
}
_FLOATS = ("f", "d")
_TEXT = 0x07


class FitMessage(msgspec.Struct, frozen=True):
    """One message: its number in the profile, and the fields that were asked for and say something.

    Shapes: values are as they are written, without scale and offset.
    Units: `at` in bytes from the begin of the content.
    """

    number: int
    values: dict[int, Value]
    at: int


class FitCut(Exception):
    """The content ends, or stops to be FIT, before the end that its header names."""


class _Layout(msgspec.Struct, frozen=True):
    """How the messages of a local type are laid out.

    Shapes: `fields` has for each value that is unpacked its number and what stands for nothing,
        None for text and for numbers with a fraction; it is empty where none was asked for.
    """

    number: int
    packed: struct.Struct
    fields: tuple[tuple[int, int | None], ...]


def is_fit(head: bytes) -> bool:
    """Whether a file begins as FIT."""
    return _header_bytes(head, 0) is not None


def fit_files(content: bytes) -> Iterator[tuple[int, int]]:
    """Where each file begins and ends whose header is whole, as far as there is content."""
    at = 0
    while (size := _header_bytes(content, at)) is not None:
        (data_bytes,) = struct.unpack_from("<I", content, at + 4)
        end = at + size + data_bytes + _CHECKSUM_BYTES
        if not data_bytes and _header_bytes(content, end) is None:
            end = len(content) + _CHECKSUM_BYTES  # it was not closed: the length is written last
        yield at, end
        at = end


def fit_messages(
    content: bytes, begin: int, end: int, wanted: Mapping[int, frozenset[int]]
) -> Iterator[FitMessage]:
    """The messages of the numbers that are wanted, of a file at a place, with these fields.

    Raises: FitCut.
    """
    at = begin + content[begin]
    end -= _CHECKSUM_BYTES
    forms: dict[int, _Layout] = {}
    last_second = 0
    while at < end:
        start, head = at, _byte(content, at)
        if not head & _COMPRESSED and head & _DEFINES:
            forms[head & 0x0F], at = _form(content, at, wanted, is_wider=bool(head & _OF_MAKER))
            continue
        form = forms.get((head >> 5) & 0x03 if head & _COMPRESSED else head & 0x0F)
        if form is None:
            raise FitCut
        at += 1 + form.packed.size
        if at > len(content):
            raise FitCut
        values: dict[int, Value] = {}
        if form.fields:
            values = _values(form, content, start + 1)
            if isinstance(second := values.get(TIMESTAMP), int):
                last_second = second
        if head & _COMPRESSED and last_second:
            last_second += ((head & 0x1F) - last_second) & 0x1F
            values[TIMESTAMP] = last_second
        if values and form.number in wanted:
            yield FitMessage(form.number, values, start)


def fit_instant(second: Value | None) -> str | None:
    """The instant of a number of FIT's seconds, where it is one."""
    if not isinstance(second, int) or second < _FIRST_SECOND:
        return None
    try:
        return rendered(_EPOCH + timedelta(seconds=second))
    except (OverflowError, BadRecord):
        return None


def _header_bytes(content: bytes, at: int) -> int | None:
    size = content[at] if at < len(content) else 0
    is_header = content.startswith(_MARK, at + _MARK_AT)
    return size if size in _HEADERS and is_header else None


def _byte(content: bytes, at: int) -> int:
    if at >= len(content):
        raise FitCut
    return content[at]


def _form(
    content: bytes, at: int, wanted: Mapping[int, frozenset[int]], *, is_wider: bool
) -> tuple[_Layout, int]:
    """What a definition says, and where the next message begins. Raises: FitCut."""
    try:
        order = ">" if content[at + 2] else "<"
        (number,) = struct.unpack_from(f"{order}H", content, at + 3)
        # compressed times of any message count from the time of the one before
        asked = wanted.get(number, frozenset[int]()) | {TIMESTAMP}
        count, at = content[at + 5], at + 6
        layout, fields = [order], list[tuple[int, int | None]]()
        for _ in range(count):
            own, size, kind = content[at], content[at + 1], content[at + 2]
            part, nothing = _packed(kind, size) if own in asked else (None, None)
            layout.append(part or f"{size}x")
            if part:
                fields.append((own, nothing))
            at += 3
        if is_wider:
            count, at = content[at], at + 1
            layout += [f"{content[at + 3 * index + 1]}x" for index in range(count)]
            at += 3 * count
    except (IndexError, struct.error):
        raise FitCut from None
    return _Layout(number, struct.Struct("".join(layout)), tuple(fields)), at


def _packed(kind: int, size: int) -> tuple[str | None, int | None]:
    """How a field is unpacked, None if it is passed over, and what stands for nothing in it."""
    if kind == _TEXT:
        return f"{size}s", None
    code, nothing = _TYPES.get(kind, (None, 0))
    if code is None or struct.calcsize(f"<{code}") != size:
        return None, None
    return code, None if code in _FLOATS else nothing


def _values(form: _Layout, content: bytes, at: int) -> dict[int, Value]:
    found: dict[int, Value] = {}
    unpacked = form.packed.unpack_from(content, at)
    for (number, nothing), value in zip(form.fields, unpacked, strict=True):
        if isinstance(value, bytes):
            if text := value.partition(b"\0")[0].decode("utf-8", "replace"):
                found[number] = text
        elif nothing is None:
            if value - value == 0:  # neither infinite nor no number
                found[number] = value
        elif value != nothing:
            found[number] = value
    return found
