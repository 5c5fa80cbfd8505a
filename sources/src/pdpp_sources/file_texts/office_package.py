"""The parts of an office document, element by element.

Rule: memory holds one element; a part with a document type is refused, so that no entity is ever
resolved.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import PurePosixPath
from xml.parsers import expat

from pdpp_kernel.source_item import TextState
from pdpp_sources.file_texts.draft import Draft, NoText

_CHUNK_BYTES = 64 * 1024
_NUMBER = re.compile(r"\d+")


Attributes = dict[str, str]


class OfficePackage:
    """The parts of a document."""

    def __init__(self, archive: zipfile.ZipFile, names: set[str], draft: Draft) -> None:
        self._archive = archive
        self._names = names
        self._draft = draft

    def numbered(self, pattern: str) -> list[str]:
        """The parts of that name, by the first number in it."""
        names = (name for name in self._names if re.fullmatch(pattern, name))
        return sorted(names, key=lambda name: (_first_number(PurePosixPath(name).name), name))

    def walk(self, name: str, part: OfficePart) -> None:
        """Give each element of a part to whoever reads it; one that is not there has none."""
        if name not in self._names:
            return
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse
        parser.StartElementHandler = lambda tag, attributes: part.begins(
            _local(tag), _plain(attributes)
        )
        parser.EndElementHandler = lambda tag: part.ends(_local(tag))
        parser.CharacterDataHandler = part.says
        with self._archive.open(name) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                self._draft.goes_on()
                parser.Parse(chunk)
            parser.Parse(b"", True)


class OfficePart:
    """What reads the elements of a part; their names come without their namespace."""

    def begins(self, tag: str, attributes: Attributes, /) -> None:
        """An element begins."""

    def ends(self, tag: str, /) -> None:
        """An element ends."""

    def says(self, words: str, /) -> None:
        """Text inside an element."""


# What stands before and behind the words of an element, whoever made the document.
_BEFORE = {"tab": "\t", "br": "\n", "cr": "\n", "line-break": "\n", "noBreakHyphen": "-", "s": " "}
_BEHIND = {"p": "\n", "h": "\n", "page": "\n", "comment": "\n", "tr": "\n", "table-row": "\n"}
_CELLS = frozenset({"tc", "table-cell"})
# An alternative for older programs says the same again; stops of tabs are none.
_UNSEEN = frozenset(
    {"Fallback", "tabs", "tabLst", "rPh"}
    | {"tracked-changes", "automatic-styles", "font-face-decls", "scripts"}
)


class ElementWords(OfficePart):
    """The words of a part: what stands in some elements, with the breaks between them."""

    def __init__(self, draft: Draft, *said_in: str) -> None:
        self._draft = draft
        self._said_in = frozenset(said_in)
        self._depth = self._hidden = self._cells = 0

    def begins(self, tag: str, attributes: Attributes, /) -> None:
        """Elements of one name may lie in each other, as text boxes do in paragraphs."""
        self._hidden += tag in _UNSEEN
        self._depth += tag in self._said_in
        self._cells += tag in _CELLS
        if tag in _BEFORE:
            times = attributes.get("c", "1")[:3] if tag == "s" else "1"  # so many blanks
            self._add(_BEFORE[tag] * (int(times) if times.isdecimal() else 1))

    def ends(self, tag: str, /) -> None:
        """A cell is one line, however many its paragraphs."""
        if tag in _CELLS:
            self._cells -= 1
            self._add("\t")
        elif tag in _BEHIND:
            self._add(" " if self._cells else _BEHIND[tag])
        self._depth -= tag in self._said_in
        self._hidden -= tag in _UNSEEN

    def says(self, words: str, /) -> None:
        """See the base."""
        if self._depth:
            self._add(words)

    def _add(self, words: str) -> None:
        if not self._hidden:
            self._draft.add(words)


def _refuse(*_: object) -> None:
    raise NoText(TextState.DAMAGED)


def _first_number(name: str) -> int:
    match = _NUMBER.search(name)
    return int(match.group()[:9]) if match else 0


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _plain(attributes: Attributes) -> Attributes:
    return {_local(name): value for name, value in attributes.items()}
