"""A multistatus, parsed as it comes: its answers one by one, each bounded.

Rule: a document that declares a type, and so may declare entities, is refused before any of it
counts; depth, the number of answers and the length of each text have bounds.
Source: RFC 4918, 13; RFC 6578, 3.
"""

from __future__ import annotations

import re
from xml.parsers import expat

import msgspec

from pdpp_sources.dav.dav_messages import LARGEST_ITEM_BYTES, LONGEST_WORD

DAV = "DAV: "
CALENDAR = "urn:ietf:params:xml:ns:caldav "
CONTACTS = "urn:ietf:params:xml:ns:carddav "
MOST_DEPTH = 40
MOST_ANSWERS = 200_000
_MOST_NAMES = 200
_STATUS = re.compile(r"HTTP/\d\S* (\d{3})")
_ANSWER_DEPTH, _PROPSTAT_DEPTH, _PROP_DEPTH, _PROPERTY_DEPTH = 2, 3, 4, 5
_FOUND, _NOT_FOUND = 200, 300


class XmlRefused(Exception):
    """It is no multistatus, or more than one should be."""


class DavProperty(msgspec.Struct):
    """The value of a property: its text, the names of the elements in it, and its addresses."""

    text: str = ""
    names: set[str] = msgspec.field(default_factory=set[str])
    hrefs: list[str] = msgspec.field(default_factory=list[str])
    is_cut: bool = False


class DavAnswer(msgspec.Struct):
    """What is said of one address: a status of its own, or the properties that it has."""

    href: str = ""
    status: int | None = None
    properties: dict[str, DavProperty] = msgspec.field(default_factory=dict[str, DavProperty])

    def text(self, name: str) -> str | None:
        """The text of a property, if it has one."""
        found = self.properties.get(name)
        return (found.text.strip() or None) if found is not None else None

    def word(self, name: str) -> str | None:
        """The same of one that is kept; nothing where it is longer than any honest one."""
        return _kept(self.text(name))


class Multistatus:
    """Parses a multistatus; `token` is what it ends with, if it does."""

    def __init__(self) -> None:
        self.token: str | None = None
        self._answers: list[DavAnswer] = []
        self._count = 0
        self._path: list[str] = []
        self._text: list[str] = []
        self._size = 0
        self._answer = DavAnswer()
        self._found: dict[str, DavProperty] = {}
        self._status: int | None = None
        self._property = DavProperty()
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse
        parser.EntityDeclHandler = _refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        self._parser = parser

    def feed(self, content: bytes) -> list[DavAnswer]:
        """The answers that these bytes end; no bytes are the end.  Raises: XmlRefused."""
        try:
            self._parser.Parse(content, not content)
        except expat.ExpatError:
            raise XmlRefused from None
        answers, self._answers = self._answers, []
        return answers

    def _start(self, name: str, _: dict[str, str]) -> None:
        self._path.append(name)
        depth = len(self._path)
        if depth > MOST_DEPTH or (depth == 1 and name != f"{DAV}multistatus"):
            raise XmlRefused
        self._text, self._size = [], 0
        if depth == _ANSWER_DEPTH:
            self._answer = DavAnswer()
        elif depth == _PROPSTAT_DEPTH:
            self._found, self._status = {}, None
        elif depth == _PROPERTY_DEPTH:
            self._property = DavProperty()
        elif depth > _PROPERTY_DEPTH and len(self._property.names) < _MOST_NAMES:
            self._property.names.add(name)

    def _characters(self, text: str) -> None:
        self._size += len(text)
        if self._size <= LARGEST_ITEM_BYTES:
            self._text.append(text)
        else:
            self._text.clear()
            self._property.is_cut = True

    def _end(self, name: str) -> None:
        depth, text = len(self._path), "".join(self._text)
        self._path.pop()
        self._text, self._size = [], 0
        if depth > _PROPERTY_DEPTH:
            if name == f"{DAV}href" and len(self._property.hrefs) < _MOST_NAMES:
                self._property.hrefs.append(text.strip())
        elif depth == _PROPERTY_DEPTH:
            self._property.text = text
            self._found[name] = self._property
        elif depth == _PROP_DEPTH and name == f"{DAV}status":
            self._status = _status(text)
        elif depth == _PROPSTAT_DEPTH:
            self._end_of_part(name, text)
        elif depth == _ANSWER_DEPTH and name == f"{DAV}response":
            self._end_of_answer()
        elif depth == _ANSWER_DEPTH and name == f"{DAV}sync-token":
            self.token = _kept(text.strip() or None)

    def _end_of_part(self, name: str, text: str) -> None:
        if name == f"{DAV}href":
            self._answer.href = text.strip()
        elif name == f"{DAV}status":
            self._answer.status = _status(text)
        elif name == f"{DAV}propstat" and (
            self._status is None or _FOUND <= self._status < _NOT_FOUND
        ):
            self._answer.properties |= self._found

    def _end_of_answer(self) -> None:
        self._count += 1
        if self._count > MOST_ANSWERS:
            raise XmlRefused
        self._answers.append(self._answer)


def _kept(text: str | None) -> str | None:
    return None if text is not None and len(text) > LONGEST_WORD else text


def _refuse(*_: object) -> None:
    raise XmlRefused


def _status(line: str) -> int | None:
    found = _STATUS.match(line.strip())
    return int(found[1]) if found else None
