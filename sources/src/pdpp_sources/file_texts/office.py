"""The text of office documents: of Microsoft's and of LibreOffice's, which are XML in a zip.

No library is needed for words alone, and one that builds whole trees would have to be kept from
every trick of XML. So the parts that hold text stream through expat as it comes with Python: memory
holds one element, and a part with a document type is refused, so that no entity is ever resolved.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import PurePosixPath
from xml.parsers import expat

from pdpp_kernel.source_item import TextState
from pdpp_sources.common.archive import check_directory, safe_entries
from pdpp_sources.common.errors import ExportUnsafe
from pdpp_sources.file_texts.draft import Draft, EnoughRead, NoText

MARK = b"PK\x03\x04"
_CHUNK_BYTES = 64 * 1024
_NUMBER = re.compile(r"\d+")
_MOST_SHARED_CHARS = 20_000_000  # of the strings that the cells of a workbook share
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, ValueError)
Attributes = dict[str, str]


def read_office(content: bytes, draft: Draft) -> None:
    """Lay the text of a document to the draft. Raises: NoText, EnoughRead."""
    stream = BytesIO(content)
    try:
        check_directory(stream, len(content))
        with zipfile.ZipFile(stream) as archive:
            entries, refused = safe_entries(archive)
            names = {entry.filename for entry in entries}
            reader = next((read for mark, read in _READERS if mark in names), None)
            if reader is None:
                raise NoText(TextState.OTHER_KIND if not refused else TextState.DAMAGED)
            reader(_Package(archive, names, draft), draft)
    except ExportUnsafe:
        raise NoText(TextState.TOO_COSTLY) from None
    except (expat.ExpatError, NotImplementedError, RuntimeError, *_DAMAGE):
        raise NoText(TextState.DAMAGED) from None


class _Package:
    """The parts of a document."""

    def __init__(self, archive: zipfile.ZipFile, names: set[str], draft: Draft) -> None:
        self._archive = archive
        self._names = names
        self._draft = draft

    def numbered(self, pattern: str) -> list[str]:
        """The parts of that name, by the first number in it."""
        names = (name for name in self._names if re.fullmatch(pattern, name))
        return sorted(names, key=lambda name: (_first_number(PurePosixPath(name).name), name))

    def walk(self, name: str, part: _XmlPart) -> None:
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


class _XmlPart:
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


class _Words(_XmlPart):
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


# Documents and slides ---------------------------------------------------------------------------
_DOCUMENT = "word/document.xml"
_BESIDE = r"word/(?:footnotes|endnotes|comments|header|footer)\d*\.xml"


def _read_document(package: _Package, draft: Draft) -> None:
    for name in [_DOCUMENT, *package.numbered(_BESIDE)]:
        package.walk(name, _Words(draft, "t"))
        draft.add("\n")


def _read_slides(package: _Package, draft: Draft) -> None:
    for kind in ("slides/slide", "notesSlides/notesSlide"):
        for name in package.numbered(rf"ppt/{kind}\d+\.xml"):
            package.walk(name, _Words(draft, "t"))
            draft.add("\n")


def _read_open_document(package: _Package, draft: Draft) -> None:
    """Also its tables and slides: all are one part."""
    encryption = _Encryption()
    package.walk("META-INF/manifest.xml", encryption)
    if encryption.is_there:
        raise NoText(TextState.ENCRYPTED)
    package.walk("content.xml", _Words(draft, "p", "h"))


class _Encryption(_XmlPart):
    """Whether a manifest says that parts are encrypted."""

    is_there = False

    def begins(self, tag: str, _: Attributes, /) -> None:
        """See the base."""
        self.is_there = self.is_there or tag == "encryption-data"


# Workbooks of Microsoft -------------------------------------------------------------------------
def _read_workbook(package: _Package, draft: Draft) -> None:
    shared, book = _Shared(), _Book()
    for name in ("xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/styles.xml"):
        package.walk(name, book)
    package.walk("xl/sharedStrings.xml", shared)
    for name in package.numbered(r"xl/worksheets/sheet\d*\.xml"):
        title = book.title_of(PurePosixPath(name).name)
        draft.add(f"{title}\n" if title else "")
        package.walk(name, _Cells(draft, shared.strings, book))
        draft.add("\n")
    for name in package.numbered(r"xl/comments\d*\.xml"):
        package.walk(name, _Words(draft, "t"))


class _Shared(_XmlPart):
    """The strings that cells share; `rPh` says only how one is read aloud."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._pieces: list[str] = []
        self._is_said = self._is_aloud = False
        self._left = _MOST_SHARED_CHARS

    def begins(self, tag: str, _: Attributes, /) -> None:
        """See the base."""
        self._is_said = tag == "t" and not self._is_aloud
        self._is_aloud = self._is_aloud or tag == "rPh"

    def ends(self, tag: str, /) -> None:
        """See the base."""
        self._is_said = False
        if tag == "rPh":
            self._is_aloud = False
        elif tag == "si":
            self.strings.append("".join(self._pieces))
            self._pieces = []

    def says(self, words: str, /) -> None:
        """See the base."""
        if self._is_said:
            self._pieces.append(words)
            self._left -= len(words)
            if self._left < 0:
                raise EnoughRead


class _Book(_XmlPart):
    """What sheets are called (the workbook names them, its relations their files), and which
    styles show a number as a date.
    """

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._date_formats = {str(number) for number in (*range(14, 23), *range(45, 48))}
        self._dated: list[bool] = []
        self._is_in_cells = False
        self._first_day = _FIRST_DAY

    def begins(self, tag: str, attributes: Attributes, /) -> None:
        """See the base."""
        if tag == "sheet":
            self._names[attributes.get("id", "")] = attributes.get("name", "")
        elif tag == "Relationship":
            file = PurePosixPath(attributes.get("Target", "")).name
            self._files[file] = attributes.get("Id", "")
        elif tag == "workbookPr" and attributes.get("date1904") in ("1", "true"):
            self._first_day = _FIRST_DAY_OF_MACS
        elif tag == "numFmt" and _OF_DAYS.search(_QUOTED.sub("", attributes.get("formatCode", ""))):
            self._date_formats.add(attributes.get("numFmtId", ""))
        elif tag == "xf" and self._is_in_cells:
            self._dated.append(attributes.get("numFmtId") in self._date_formats)
        self._is_in_cells = self._is_in_cells or tag == "cellXfs"

    def ends(self, tag: str, /) -> None:
        """See the base."""
        self._is_in_cells = self._is_in_cells and tag != "cellXfs"

    def title_of(self, file: str) -> str:
        """The name of the sheet in a file, if it has one."""
        return self._names.get(self._files.get(file, "-"), "")

    def shown(self, written: str, style: str) -> str:
        """A number as a cell of that style shows it, where that is a time."""
        at = int(style[:9]) if style.isdecimal() else -1
        if not 0 <= at < len(self._dated) or not self._dated[at]:
            return written
        try:
            instant = self._first_day + timedelta(days=float(written))
        except (ValueError, OverflowError):
            return written
        instant = (instant + timedelta(milliseconds=500)).replace(microsecond=0)
        has_time = (instant.hour, instant.minute, instant.second) != (0, 0, 0)
        if float(written) < 1:
            return instant.strftime("%H:%M:%S")
        return instant.strftime("%Y-%m-%d %H:%M:%S" if has_time else "%Y-%m-%d")


# Excel counts a day that 1900 did not have; of days before March of that year nobody asks.
_FIRST_DAY = datetime(1899, 12, 30, tzinfo=UTC)
_FIRST_DAY_OF_MACS = datetime(1904, 1, 1, tzinfo=UTC)
_QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|General')
_OF_DAYS = re.compile(r"[ydhs]", re.IGNORECASE)


class _Cells(_XmlPart):
    """The rows of a sheet, as lines, their cells parted by tabs."""

    def __init__(self, draft: Draft, shared: list[str], book: _Book) -> None:
        self._draft = draft
        self._shared = shared
        self._book = book
        self._row: list[str] = []
        self._pieces: list[str] = []
        self._kind = self._style = ""
        self._is_said = False

    def begins(self, tag: str, attributes: Attributes, /) -> None:
        """See the base."""
        if tag == "c":
            self._kind, self._style = attributes.get("t", "n"), attributes.get("s", "")
            self._pieces = []
        self._is_said = tag in ("v", "t")

    def ends(self, tag: str, /) -> None:
        """See the base."""
        self._is_said = False
        if tag == "c":
            self._row.append(self._value("".join(self._pieces)))
        elif tag == "row":
            line = "\t".join(self._row).rstrip()
            self._row = []
            if line:
                self._draft.add(line + "\n")

    def says(self, words: str, /) -> None:
        """See the base."""
        if self._is_said:
            self._pieces.append(words)

    def _value(self, written: str) -> str:
        if self._kind == "b":
            return {"0": "FALSE", "1": "TRUE"}.get(written, written)
        if self._kind == "n":
            return self._book.shown(written, self._style)
        if self._kind != "s":
            return written
        at = int(written) if written.isdecimal() else -1
        return self._shared[at] if 0 <= at < len(self._shared) else ""


_READERS: tuple[tuple[str, Callable[[_Package, Draft], None]], ...] = (
    (_DOCUMENT, _read_document),
    ("xl/workbook.xml", _read_workbook),
    ("ppt/presentation.xml", _read_slides),
    ("content.xml", _read_open_document),
)


def _refuse(*_: object) -> None:
    raise NoText(TextState.DAMAGED)


def _first_number(name: str) -> int:
    match = _NUMBER.search(name)
    return int(match.group()[:9]) if match else 0


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _plain(attributes: Attributes) -> Attributes:
    return {_local(name): value for name, value in attributes.items()}
