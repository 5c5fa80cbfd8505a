"""The elements of a large JSON array, or of a file of lines, each with its place in the file.

Memory holds one element, not the file; one that is faulty is reported and the next one read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import orjson

from personal_server.domain.source_item import Data, Json, Skipped
from personal_server.sources.errors import BadRecord
from personal_server.sources.export import Member
from personal_server.sources.json_cutting import Cut, cut_array
from personal_server.sources.text import decoded

LARGEST_LINE_BYTES = 64 * 1024 * 1024
_FAULTS = {
    "bad_record": "it is not valid JSON",
    "truncated": "the file ends in the middle of this entry",
    "too_large": "an entry is too large",
}


@dataclass(frozen=True, slots=True)
class Element:
    """One object of an array; `key` names the array within an outer object, if there is one.

    Shapes: `lead` is what stands right before the array, some kilobytes at most.
    """

    position: int
    value: Data
    key: str = ""
    lead: bytes = b""


def json_elements(member: Member, *keys: str, deep: bool = False) -> Iterator[Element | Skipped]:
    """The objects of the outermost array, or of the arrays under these keys of an outer object.

    `deep`: also of arrays under these keys of objects further inside.
    """
    with member.open() as stream:
        for cut in cut_array(stream, frozenset(key.encode() for key in keys), deep=deep):
            if cut.raw is None:
                yield _skipped(member, cut)
            else:
                yield _parsed(cut.raw, member, cut.offset, cut.key.decode(), cut.lead)


def json_lines(member: Member) -> Iterator[Element | Skipped]:
    """The objects of a file with one object on each line."""
    offset = 0
    with member.open() as stream:
        while line := stream.readline(LARGEST_LINE_BYTES):
            if line.strip():
                yield _parsed(line, member, offset)
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


def _parsed(
    raw: bytes, member: Member, offset: int, key: str = "", lead: bytes = b""
) -> Element | Skipped:
    position = member.offset + offset
    where = f"{member.name} at byte {offset}"
    try:
        return Element(position, parse_object(raw), key, lead)
    except BadRecord as bad:
        return Skipped(where, bad.code, bad.reason, position)


def _skipped(member: Member, cut: Cut) -> Skipped:
    where = f"{member.name} at byte {cut.offset}"
    return Skipped(where, cut.fault, _FAULTS[cut.fault], member.offset + cut.offset)
