"""The elements of a large JSON array, one at a time, each with its place in the file.

A file of many elements is cut at their outer braces before anything is parsed, so that a faulty one
is reported and the next one read, and memory holds one element, not the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

import orjson

from personal_server.sources.errors import BadRecord
from personal_server.sources.export import Member
from personal_server.sources.item import Data, Json, Skipped
from personal_server.sources.text import decoded

CHUNK_BYTES = 1024 * 1024
LARGEST_ELEMENT_BYTES = 256 * 1024 * 1024
LARGEST_LINE_BYTES = 64 * 1024 * 1024
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Element:
    """One object of an array; `key` names the array within an outer object, if there is one."""

    position: int
    value: Data
    key: str = ""


def json_elements(member: Member, *keys: str) -> Iterator[Element | Skipped]:
    """The objects of the outermost array, or of the arrays under these keys of an outer object."""
    with member.open() as stream:
        for offset, key, raw in _cut(stream, frozenset(key.encode() for key in keys)):
            yield _parsed(raw, member, offset, key.decode())


def json_lines(member: Member) -> Iterator[Element | Skipped]:
    """The objects of a file with one object on each line."""
    offset = 0
    with member.open() as stream:
        while line := stream.readline(LARGEST_LINE_BYTES):
            if line.strip():
                yield _parsed(line, member, offset, "")
            offset += len(line)


def json_document(member: Member) -> Json:
    """A small file as a whole. Raises: BadRecord."""
    if member.size_bytes > LARGEST_LINE_BYTES:
        raise BadRecord("too_large", "it is too large to be read as a whole")
    with member.open() as stream:
        return parse_json(stream.read())


def parse_json(raw: bytes) -> Json:
    """A JSON value, from any bytes that mean to be one. Raises: BadRecord."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(decoded(raw))
    except (ValueError, RecursionError):
        raise BadRecord("bad_record", "it is not valid JSON") from None


def parse_object(raw: bytes) -> Data:
    """The same, where only an object will do. Raises: BadRecord."""
    value = parse_json(raw)
    if not isinstance(value, dict):
        raise BadRecord("bad_record", "it is not an object")
    return cast(Data, value)


def _parsed(raw: bytes, member: Member, offset: int, key: str) -> Element | Skipped:
    position = member.offset + offset
    where = f"{member.name} at byte {offset}"
    try:
        return Element(position, parse_object(raw), key)
    except BadRecord as bad:
        return Skipped(where, bad.code, bad.reason, position)


def _cut(stream: BinaryIO, keys: frozenset[bytes]) -> Iterator[tuple[int, bytes, bytes]]:
    """Offset, key and bytes of each element."""
    window = _Window(stream)
    depth, within, key, last, begin = 0, 0, b"", b"", -1
    for at, token in window.tokens():
        if token == b"{":
            if depth == within and within and begin < 0:
                begin = at
                window.keep_from(at)
            depth += 1
        elif token == b"[":
            depth += 1
            if not within and (depth == 1 or (depth == 2 and last in keys)):
                within, key = depth, last if depth == 2 else b""
        elif token in (b"}", b"]"):
            depth -= 1
            if begin >= 0 and depth == within:
                yield begin, key, window.taken(begin, at + 1)
                begin = -1
            elif depth < within:
                within = 0
        elif depth == 1:
            last = token[1:-1]


class _Window:
    """The part of a file that is needed to find the next token and to cut the current element."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._buffer = b""
        self._offset = 0
        self._kept_from: int | None = None

    def keep_from(self, offset: int) -> None:
        """Hold on to the bytes from an offset of the file on."""
        self._kept_from = offset

    def taken(self, begin: int, end: int) -> bytes:
        """The bytes between two offsets; nothing before the end is needed any more."""
        self._kept_from = None
        return self._buffer[begin - self._offset : end - self._offset]

    def tokens(self) -> Iterator[tuple[int, bytes]]:
        """Strings and brackets with their offsets."""
        scanned = 0
        while self._refill(scanned):
            scanned = max(scanned, self._offset)
            for found in _TOKEN.finditer(self._buffer, scanned - self._offset):
                token = found.group()
                if token == b'"':
                    scanned = self._offset + found.start()
                    break
                yield self._offset + found.start(), token
                scanned = self._offset + found.end()
            else:
                scanned = self._offset + len(self._buffer)

    def _refill(self, scanned: int) -> bool:
        """Forget what is not needed, and read on by as much as is still unfinished."""
        needed = scanned if self._kept_from is None else min(scanned, self._kept_from)
        self._buffer = self._buffer[max(0, needed - self._offset) :]
        self._offset = max(needed, self._offset)
        if len(self._buffer) > LARGEST_ELEMENT_BYTES:
            raise BadRecord(
                "too_large", "an entry is too large; the rest of this file was not read"
            )
        chunk = self._stream.read(max(CHUNK_BYTES, len(self._buffer)))
        self._buffer += chunk
        return bool(chunk)
