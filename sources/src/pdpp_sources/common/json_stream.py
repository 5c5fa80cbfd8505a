"""The elements of a large JSON array, or of a file of lines, each with its place in the file.

Memory holds one element, not the file; one that is faulty is reported and the next one read.
`ijson` stops for good at the first byte that is no JSON, and does not say where a value began. Here
a damaged object costs itself only, since the next one begins as all of them begin, and each has its
offset, from which an interrupted import goes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import BinaryIO, Protocol, cast

import msgspec
import orjson
from msgspec.structs import replace

from pdpp_kernel.source_item import Data, Json, Skipped
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.text import decoded

CHUNK_BYTES = 1024 * 1024
LEAD_BYTES = 4096
LARGEST_LINE_BYTES = 32 * 1024 * 1024
LARGEST_ELEMENT_BYTES = 64 * 1024 * 1024
_FAULTS = {
    "bad_record": message("the entry is not valid JSON"),
    "truncated": message("the file ends in the middle of this entry"),
    "too_large": message("the entry is too large"),
    "unknown_record_type": message(
        "the file contains lists and other data; only the lists were read"
    ),
    "no_object": message("the entry is not an object"),
}
_CODES = {"no_object": "bad_record"}
_NAMES = re.compile(rb"\s*+:")
_BETWEEN = re.compile(rb",|[^\s,]+")  # what stands between the objects of a list
_LONGEST_BEGINNING_BYTES = 4096
_MOST_BEGINNINGS = 50
STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(STRING + rb'(?=\s*+[,:\]}])|["{}\[\]]', re.DOTALL)
_FOLLOWED = re.compile(STRING + rb"\s*+\S", re.DOTALL)
_NO_LIST = re.compile(rb'\s*+:\s*+(?!\{|\[\s*+[{\]]|"FeatureCollection")\S', re.DOTALL)
_SCALAR = rb"(?:" + STRING + rb'|[^\s,:{}\[\]"]+)'
_NAME = rb'("[^"\\]{0,100}")\s*:'
_BEGINNING = re.compile(
    rb"\{\s*" + _NAME + rb"(?:\s*" + _SCALAR + rb"\s*,\s*" + _NAME + rb")?", re.DOTALL
)


class Element(msgspec.Struct, frozen=True):
    """One object of an array; `key` names the array within an outer object, if there is one.

    Shapes: `where` names it in reports; `lead` is what stands right before the array, some
        kilobytes at most.
    """

    position: int
    where: str
    value: Data
    key: str = ""
    lead: bytes = b""


def json_elements(
    member: ExportMember, *keys: str, deep: bool = False, only_named: bool = False
) -> Iterator[Element | Skipped]:
    """The objects of the outermost array, or of the arrays under these keys of an outer object.

    `deep`: also of arrays under these keys of objects further inside.
    `only_named`: the outermost array is looked through for those, too.
    """
    names = frozenset(key.encode() for key in keys)
    with member.open() as stream:
        for cut in cut_array(stream, names, deep=deep, only_named=only_named):
            yield _element(cut, member)


def _element(cut: RawElement, member: ExportMember) -> Element | Skipped:
    if cut.raw is not None:
        return _parsed(cut.raw, member, cut.offset, decoded(cut.key), cut.lead)
    position_text, position = member.where(cut.offset), member.offset + cut.offset
    return Skipped(position_text, _CODES.get(cut.fault, cut.fault), _FAULTS[cut.fault], position)


def json_lists(member: ExportMember) -> Iterator[Element | Skipped]:
    """The objects of the outermost array, or of each at most two objects within an outer one.

    Shapes: `key` of an element is the name of its array, empty for the outermost.
    """
    with member.open() as stream:
        for cut in _Cutter(stream, None, deep=False).cuts():
            yield _element(cut, member)


def json_objects(member: ExportMember) -> Iterator[Element | Skipped]:
    """The objects of a file that holds one after the other, on however many lines."""
    with member.open() as stream:
        for cut in _Cutter(_Listed(stream), frozenset(), deep=False).cuts():
            yield _element(replace(cut, offset=max(0, cut.offset - 1)), member)


def json_within(
    member: ExportMember, begin: int, end: int | None, *, is_list: bool
) -> Iterator[Element | Skipped]:
    """The objects of a list that stands between two places of a file, or the object that does.

    Units: in bytes from the start of the file; without an end it was cut off.
    """
    size = LARGEST_ELEMENT_BYTES if end is None else end - begin
    with member.open(begin) as stream:
        if is_list:
            cutter = _Cutter(_Bytes(stream, None if end is None else size), frozenset(), deep=False)
            for cut in cutter.cuts():
                yield _element(replace(cut, offset=begin + cut.offset), member)
        elif end is None or size > LARGEST_ELEMENT_BYTES:
            fault = "truncated" if end is None else "too_large"
            yield _element(RawElement(begin, b"", None, fault), member)
        else:
            yield _parsed(stream.read(size), member, begin)


class _Bytes:
    """The next bytes of a stream, so many at most."""

    def __init__(self, stream: BinaryIO, size_bytes: int | None) -> None:
        self._stream = stream
        self._left = size_bytes

    def read(self, size: int) -> bytes:
        """The next bytes; none at the end."""
        if self._left is None:
            return self._stream.read(size)
        content = self._stream.read(min(size, self._left))
        self._left -= len(content)
        return content


class _Listed:
    """A stream between the brackets of an array."""

    def __init__(self, stream: BinaryIO) -> None:
        self._parts = iter((b"[", None, b"]"))
        self._part = next(self._parts)
        self._stream = stream

    def read(self, size: int) -> bytes:
        """The next bytes; none at the end."""
        content = self._stream.read(size) if self._part is None else self._part or b""
        if self._part is not None or not content:
            self._part = next(self._parts, b"")
        return content or (self.read(size) if self._part else b"")


def json_lines(member: ExportMember) -> Iterator[Element | Skipped]:
    """The objects of a file with one object on each line."""
    offset = 0
    with member.open() as stream:
        while line := stream.readline(LARGEST_LINE_BYTES):
            if line.strip():
                yield _parsed(line, member, offset)
            offset += len(line)


def parse_object(raw: bytes) -> Data:
    """A JSON object, from any bytes that mean to be one. Raises: BadRecord."""
    try:
        value: Json = orjson.loads(raw)
    except orjson.JSONDecodeError:
        try:
            value = json.loads(decoded(raw))
        except (ValueError, RecursionError):
            raise BadRecord("bad_record", "the entry is not valid JSON") from None
    if not isinstance(value, dict):
        raise BadRecord("bad_record", "the entry is not a JSON object")
    return cast(Data, value)


def _parsed(
    raw: bytes, member: ExportMember, offset: int, key: str = "", lead: bytes = b""
) -> Element | Skipped:
    position_text, position = member.where(offset), member.offset + offset
    try:
        BOOKMARK.entry(position)
        return Element(position, position_text, parse_object(raw), key, lead)
    except BadRecord as bad:
        return Skipped(position_text, bad.code, bad.reason, position)


class RawElement(msgspec.Struct, frozen=True):
    """One object of the array; `key` names the array within an outer object, if there is one.

    Units: `offset` in bytes from the start of the file. `raw` is None for one that was given up,
    and `fault` says why. `lead` is what stands before the array, some kilobytes at most.
    """

    offset: int
    key: bytes
    raw: bytes | None
    fault: str = ""
    lead: bytes = b""


def cut_array(
    stream: BinaryIO, keys: frozenset[bytes], *, deep: bool = False, only_named: bool = False
) -> Iterator[RawElement]:
    """What `json_elements` cuts out of a file, as it stands there."""
    return _Cutter(stream, keys, deep=deep, only_named=only_named).cuts()


class _Readable(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """The next bytes; none at the end."""
        ...


# How the cutter works.  It looks for strings and brackets only (`_TOKEN`) and keeps the brackets
# that are open as a stack; an object that opens directly inside the array begins an element, and
# the bracket that closes it ends one.  What lies between is never parsed here.
#
#   in:   {"chats": [{"id": 1, "text": "a } b"}, {"id": 2, "text": , {"id": 3, "text": "c"}]}
#   out:  {"id": 1, …} at its offset · a fault `bad_record` at the second · {"id": 3, …}
#
# Damage is a bracket that closes none, a list among objects, a string without an end.  Then
# (`_give_up`) the current object is reported once, and the scan goes on at the next place where
# something begins as the objects of this array did (`_beginnings`, learnt: `{"id": …, "text":`).
# This is right for exports because a program wrote every element with the same first names; where
# nothing begins alike in this chunk, the scan is `_lost` and looks on in the next one.
#
#   state            members                                     changed by
#   where it reads   _buffer, _offset, _at                       _refill, _scan
#   how deep it is   _open, _within, _home, _key, _lead, _last   _step, _enter, _leave
#   this element     _begin, _beginnings                         _step, _learn
#   after damage     _lost, _damaged                             _give_up, _seek
#   what is no       _is_of_objects, _in_scalar, _is_pair,       _others, _other, _note
#   object           _named_before, _is_beside


class _Cutter:
    """How deep in which array the scan is, over the part of the file that is still needed.

    Without `keys` every array of an outer object, or of an object in that, is meant.
    """

    def __init__(
        self,
        stream: _Readable,
        keys: frozenset[bytes] | None,
        *,
        deep: bool,
        only_named: bool = False,
    ) -> None:
        self._stream = stream
        self._keys = keys
        self._deep = deep
        self._takes_outermost = not only_named
        alternatives = rb"|".join(map(re.escape, sorted(keys or ())))
        self._next_array = re.compile(rb'"(' + alternatives + rb')"\s*:\s*(?=\[)')
        self._buffer = b""
        self._offset: int = 0  # of the first byte in the buffer
        self._at: int = 0  # where in the buffer the scan stands
        self._open = bytearray()  # the brackets that are open
        self._within: int = 0  # how many are inside the array, 0 outside of it
        self._home = b""  # the brackets around the objects of the last array
        self._key = b""
        self._lead = b""
        self._last = b""
        self._begin: int = -1  # where in the buffer the current object begins
        self._beginnings: set[bytes] = set()  # patterns of how the objects so far began
        self._is_beside = False  # whether something stands beside the arrays
        self._lost = False  # whether the next beginning is being looked for
        self._damaged = False
        # Whether the list is one of objects, so that what else stands in it is named; not yet known
        # of one that nobody asked for by name until its first entry.
        self._is_of_objects: bool | None = True
        self._in_scalar = False  # whether the scan stands in the middle of another entry
        self._is_pair = False  # whether a name came, which no entry of a list has
        self._named_before: int = 0  # up to where other entries were named

    def cuts(self) -> Iterator[RawElement]:
        while self._refill():
            yield from self._scan()
            if len(self._buffer) > LARGEST_ELEMENT_BYTES:
                yield from self._give_up("too_large", self._begin + 1)
        while self._begin >= 0:
            yield from self._give_up("", self._begin + 1)
            yield from self._scan()
        if self._open and not self._damaged:
            yield RawElement(self._offset + len(self._buffer), self._key, None, "truncated")
        if self._is_beside:
            end = self._offset + len(self._buffer)
            yield RawElement(end, self._key, None, "unknown_record_type")

    def _refill(self) -> bool:
        """Forget what is not needed, and read on by as much as is still unfinished."""
        needed = self._at if self._begin < 0 else min(self._at, self._begin)
        if not self._within:
            needed = max(0, needed - LEAD_BYTES)
        self._buffer = self._buffer[needed:]
        self._offset += needed
        self._at -= needed
        if self._begin >= 0:
            self._begin -= needed
        chunk = self._stream.read(max(CHUNK_BYTES, len(self._buffer)))
        self._buffer += chunk
        return bool(chunk)

    def _scan(self) -> Iterator[RawElement]:
        """The objects that end in the part that was read."""
        if self._lost:
            self._seek(self._at)
        while not self._lost:
            for match in _TOKEN.finditer(self._buffer, self._at):
                token, at = match.group(), match.start()
                is_among = len(self._open) == self._within > 0
                if is_among:
                    yield from self._others(at)
                if len(token) > 1:
                    self._at = match.end()
                    if is_among:
                        self._is_pair |= bool(_NAMES.match(self._buffer, match.end()))
                        yield from self._other(at)
                    self._note(token)
                    continue
                if token == b'"' and not _FOLLOWED.match(self._buffer, at):
                    self._at = at
                    return
                if token == b'"' or self._is_misplaced(token, at):
                    yield from self._give_up("bad_record", self._before(at))
                    break
                self._at = match.end()
                if cut := self._step(token, at):
                    yield cut
            else:
                if len(self._open) == self._within > 0:
                    yield from self._others(len(self._buffer))
                self._at = max(self._at, len(self._buffer))
                return

    def _others(self, end: int) -> Iterator[RawElement]:
        """What stands between the last object of a list and a place, and is none: `null`, `3`."""
        between = self._buffer[self._at : end]
        for match in _BETWEEN.finditer(between):
            if match.group() == b",":
                self._is_pair = False
            elif b":" in match.group():
                self._is_pair = True
            elif not (self._in_scalar and match.start() == 0):
                yield from self._other(self._at + match.start())
        if between:
            self._in_scalar = between[-1] not in b", \t\r\n"

    def _other(self, at: int) -> Iterator[RawElement]:
        """An entry that is no object, named by itself in a list of objects.

        What has a name is none: then an object around it is damaged, as its end will show.
        """
        self._is_of_objects = bool(self._is_of_objects)
        if self._is_of_objects and not self._is_pair:
            self._named_before = self._offset + at + 1
            yield RawElement(self._offset + at, self._key, None, "no_object")

    def _note(self, token: bytes) -> None:
        """Remember a string outside of arrays: it may be the name of the next."""
        if self._within:
            return
        if self._keys is None:
            self._last = token[1:-1]
            self._is_beside |= bool(_NO_LIST.match(self._buffer, self._at))
        elif self._deep or len(self._open) == 1:
            self._last = token[1:-1]

    def _is_misplaced(self, token: bytes, at: int) -> bool:
        """A bracket that closes none, a list among the objects, or an object for a name.

        After damage also the end of the outermost array, which may be that of one inside; after
        that end, everything.
        """
        if not self._open and self._home == b"[":
            return True
        if token == b"{":
            inside_object = self._open.endswith(b"{")
            return inside_object and self._buffer[self._before(at)] != ord(":")
        if token == b"[":
            return self._within > 0 and len(self._open) == self._within
        if token in (b"}", b"]"):
            ends = self._damaged and len(self._open) == self._within == 1
            return ends or not self._open.endswith(b"{" if token == b"}" else b"[")
        return False

    def _before(self, at: int) -> int:
        """Where the last byte before a place stands that is no blank."""
        at -= 1
        while at > 0 and self._buffer[at] in b" \t\r\n":
            at -= 1
        return max(at, 0)

    def _step(self, bracket: bytes, at: int) -> RawElement | None:
        """Open or close a bracket. Returns: the object that it ends, if it does."""
        if bracket in b"{[":
            if bracket == b"{" and self._within and len(self._open) == self._within:
                self._begin = at
                self._is_of_objects = self._is_of_objects is not False
            self._open += bracket
            if bracket == b"[":
                self._enter(at)
            return None
        self._open.pop()
        if self._begin >= 0 and len(self._open) == self._within:
            self._learn()
            begin, self._begin = self._begin, -1
            raw = self._buffer[begin : at + 1]
            return RawElement(self._offset + begin, self._key, raw, lead=self._lead)
        if len(self._open) < self._within:
            self._within = 0
        return None

    def _enter(self, at: int) -> None:
        depth = len(self._open)
        if self._keys is None:
            is_named = depth in (2, 3, 4) and self._open[:-1].count(b"{") == depth - 1
        else:
            is_named = (self._deep or depth == 2) and self._last in self._keys
        if not self._within and (is_named or (depth == 1 and self._takes_outermost)):
            self._within, self._key = depth, self._last if is_named else b""
            self._lead = self._buffer[max(0, at - LEAD_BYTES) : at]
            self._home = bytes(self._open)
            self._beginnings.clear()
            self._in_scalar = self._is_pair = False
            self._is_of_objects = None if is_named and self._keys is None else True

    def _learn(self) -> None:
        """Remember how the current object begins: its first name, and its second after a scalar."""
        if len(self._beginnings) < _MOST_BEGINNINGS:
            end = self._begin + _LONGEST_BEGINNING_BYTES
            if beginning := _BEGINNING.match(self._buffer, self._begin, end):
                first, second = (re.escape(name or b"") for name in beginning.groups())
                continuation = rb"\s*" + _SCALAR + rb"\s*,\s*" + second if second else b""
                self._beginnings.add(rb"\{\s*" + first + rb"\s*:" + continuation)

    def _give_up(self, fault: str, start: int) -> Iterator[RawElement]:
        """Leave the current object, if there is one, and look for the next that begins alike."""
        begin, was_damaged = self._begin, self._damaged
        if begin >= 0 and not self._beginnings:
            self._learn()
        self._seek(start)
        if begin >= 0 or not was_damaged:
            offset = self._offset + (begin if begin >= 0 else start - 1)
            offset = max(offset, self._named_before)
            ended = "truncated" if self._lost else "bad_record"
            yield RawElement(offset, self._key, None, fault or ended)

    def _seek(self, start: int) -> None:
        match = None
        if self._beginnings:
            alike = rb"[\[,}\]]\s*(?=" + rb"|".join(sorted(self._beginnings)) + rb")"
            match = re.compile(alike, re.DOTALL).search(self._buffer, start)
        self._begin = -1
        self._open[:] = self._home
        self._within = len(self._home)
        self._damaged, self._lost = True, match is None
        array = self._next_array.search(self._buffer, start) if self._deep else None
        if array and (match is None or array.start() < match.start()):
            self._leave(array)
            return
        tail_begin = len(self._buffer) - _LONGEST_BEGINNING_BYTES
        self._at = match.end() if match else max(start, tail_begin)

    def _leave(self, array: re.Match[bytes]) -> None:
        """Go on before another array of such a name: what comes next belongs to that one."""
        self._open[:] = self._home[:-1]
        self._within, self._last = 0, array.group(1)
        self._at, self._lost = array.end(), False
