"""OFX as a stream of finished elements, for SGML without end tags (1.x) and for XML (2.x) alike.

Source: OFX 1.6 and 2.2, chapter 2. In SGML a leaf has no end tag, and nothing tells an empty leaf
from the start of an aggregate. So each empty tag is taken for an aggregate until an outer one
closes over it: then it was a leaf, and what came after it belongs to the outer one.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from personal_server.sources.errors import BadRecord
from personal_server.sources.text import decoded, one_line

CHUNK_BYTES = 65536
LONGEST_VALUE_BYTES = 1_048_576
_TOKEN = re.compile(rb"<(/?)([A-Za-z][A-Za-z0-9_.:-]*)[^<>]*>([^<]*)")
_NEVER_NESTED = frozenset({"STMTTRN"})


@dataclass(slots=True)
class Element:
    """An aggregate: its leaves by upper-case name, and the aggregates inside it.

    Units: `offset` in bytes from the start of the file.
    """

    name: str
    offset: int
    leaves: dict[str, str] = field(default_factory=dict[str, str])
    inner: dict[str, Element] = field(default_factory=dict[str, "Element"])

    def leaf(self, *names: str) -> str | None:
        """The first of these leaves that says something."""
        return next((self.leaves[name] for name in names if self.leaves.get(name)), None)

    def inside(self, name: str) -> Element:
        """An aggregate inside this one, at any depth; an empty one if there is none."""
        if name in self.inner:
            return self.inner[name]
        below = (each.inside(name) for each in self.inner.values())
        return next((each for each in below if each.leaves), Element(name, self.offset))


def finished_elements(stream: BinaryIO) -> Iterator[tuple[Element, list[Element]]]:
    """Each aggregate as it ends, with the aggregates that are still open around it."""
    open_elements: list[Element] = [Element("", 0)]
    for offset, closes, name, value in _tokens(stream):
        if closes or (name in _NEVER_NESTED and _is_open(name, open_elements)):
            yield from _close(name, open_elements)
        if not closes:
            if value:
                open_elements[-1].leaves.setdefault(name, value)
            else:
                open_elements.append(Element(name, offset))


def _is_open(name: str, open_elements: list[Element]) -> bool:
    return any(element.name == name for element in open_elements)


def _close(name: str, open_elements: list[Element]) -> Iterator[tuple[Element, list[Element]]]:
    if not _is_open(name, open_elements):
        return
    while (element := open_elements.pop()).name != name:
        open_elements[-1].leaves = element.leaves | open_elements[-1].leaves
        open_elements[-1].inner = element.inner | open_elements[-1].inner
    yield element, open_elements
    open_elements[-1].inner.setdefault(name, element)


def _tokens(stream: BinaryIO) -> Iterator[tuple[int, bool, str, str]]:
    """Tags with the text after them; a tag is complete once the next one begins."""
    buffer, offset = b"", 0
    while chunk := stream.read(CHUNK_BYTES):
        buffer += chunk
        complete = buffer.rfind(b"<")
        if complete <= 0 and len(buffer) > LONGEST_VALUE_BYTES:
            raise BadRecord("bad_record", "this is not an OFX statement")
        yield from _tokens_in(buffer[: max(complete, 0)], offset)
        buffer = buffer[max(complete, 0) :]
        offset += max(complete, 0)
    yield from _tokens_in(buffer, offset)


def _tokens_in(content: bytes, offset: int) -> Iterator[tuple[int, bool, str, str]]:
    for token in _TOKEN.finditer(content):
        name = token.group(2).decode("ascii").upper()
        value = one_line(html.unescape(decoded(token.group(3))), 4000)
        yield offset + token.start(), bool(token.group(1)), name, value
