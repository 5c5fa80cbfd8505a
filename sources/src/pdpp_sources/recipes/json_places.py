"""Where in a large file of JSON the values of some JSON Pointers stand (RFC 6901).

Memory holds a chunk of the file and the names of the values around the place that is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.text import decoded

CHUNK_BYTES = 1024 * 1024
_LONGEST_STRING_BYTES = 64 * 1024 * 1024
_TOKEN = re.compile(rb'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"|[{}\[\],:"]', re.DOTALL)
Segments = tuple[str, ...]


class JsonPlace(msgspec.Struct, frozen=True):
    """A list or an object that one of the pointers names.

    Shapes: `number` is which of the pointers it was; `name` what the last `*` of it stands
        for, else its last part.
    Units: `begin` and `end` in bytes from the start of the file; `end` is behind the last bracket,
        or None where the file ends before that.
    """

    number: int
    is_list: bool
    begin: int
    end: int | None
    name: str = ""


def path_of(place: str) -> Segments:
    """The names on the way to a place of a recipe: those in a pointer, or one column."""
    return segments_of(place) if place.startswith("/") else (place,)


def segments_of(pointer: str) -> Segments:
    """The names in a pointer: `/Video/List` gives `Video` and `List`."""
    parts = pointer.split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def json_places(member: ExportMember, pointers: Sequence[Segments]) -> Iterator[JsonPlace]:
    """The lists and objects that the pointers name, in the order of the file.

    In: `{"a": {"list": [{}, {}]}, "b": {"list": [{}]}}` and `("*", "list")`.
    Out: the place of each of the two lists.
    """
    scan = _Scan(pointers)
    with member.open() as stream:
        buffer, offset = b"", 0
        while chunk := stream.read(max(CHUNK_BYTES, len(buffer))):
            buffer += chunk
            at = 0
            for match in _TOKEN.finditer(buffer):
                if match.group() == b'"':  # a string that goes on
                    break
                at = match.end()
                if place := scan.step(match.group(), offset + match.start()):
                    yield place
            else:
                at = len(buffer)
            buffer, offset = buffer[at:], offset + at
            if len(buffer) > _LONGEST_STRING_BYTES:
                break
    if scan.open_place is not None:
        yield scan.open_place


class _Scan:
    """The brackets that are open at the place that is read, and what each is called."""

    def __init__(self, pointers: Sequence[Segments]) -> None:
        self._pointers = pointers
        self._path: list[str] = []  # of the value that is read
        self._kinds = bytearray()
        self._counts: list[int] = []  # of the entries of each open list
        self._last = b""
        self._deep = 0  # the brackets inside a place that was found
        self.open_place: JsonPlace | None = None

    def step(self, token: bytes, at: int) -> JsonPlace | None:
        """Go on over one token. Returns: the place that it ends, if it does."""
        if self.open_place is not None:
            return self._inside(token, at)
        if len(token) > 1:
            self._last = token
        elif token == b":":
            self._name(decoded(self._last[1:-1]))
        elif token == b"," and self._kinds.endswith(b"["):
            self._counts[-1] += 1
            self._name(str(self._counts[-1]))
        elif token in b"{[":
            self._open(token, at)
        elif token in b"}]" and self._kinds:
            self._kinds.pop()
            self._counts.pop()
            del self._path[len(self._kinds) :]
        return None

    def _name(self, name: str) -> None:
        if self._kinds:
            self._path[len(self._kinds) - 1 :] = [name]

    def _open(self, bracket: bytes, at: int) -> None:
        path = self._path[: len(self._kinds)]
        for number, pointer in enumerate(self._pointers):
            if len(pointer) == len(path) and all(
                p in ("*", name) for p, name in zip(pointer, path, strict=True)
            ):
                stars = [index for index, part in enumerate(pointer) if part == "*"]
                name = path[stars[-1]] if stars else "".join(path[-1:])
                self.open_place = JsonPlace(number, bracket == b"[", at, None, name)
                self._deep = 1
                return
        self._kinds += bracket
        self._counts.append(0)
        if bracket == b"[":
            self._name("0")

    def _inside(self, token: bytes, at: int) -> JsonPlace | None:
        if len(token) > 1:
            return None
        self._deep += (token in b"{[") - (token in b"}]")
        place = self.open_place
        if self._deep or place is None:
            return None
        self.open_place = None
        return replace(place, end=at + 1)
