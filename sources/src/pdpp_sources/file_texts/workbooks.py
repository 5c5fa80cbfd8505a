"""The text of workbooks of Microsoft: their cells, as they are shown."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from pdpp_sources.file_texts.draft import Draft, EnoughRead
from pdpp_sources.file_texts.office_package import (
    Attributes,
    ElementWords,
    OfficePackage,
    OfficePart,
)

_MOST_SHARED_CHARS = 20_000_000  # of the strings that the cells of a workbook share


def read_workbook(package: OfficePackage, draft: Draft) -> None:
    """Lay each sheet to the draft, below its title."""
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
        package.walk(name, ElementWords(draft, "t"))


class _Shared(OfficePart):
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


class _Book(OfficePart):
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


class _Cells(OfficePart):
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
