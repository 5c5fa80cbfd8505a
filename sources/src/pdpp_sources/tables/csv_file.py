"""The rows of CSV as programs write it: its charset, what separates cells, and what names them.

What is sure is recognized in any file: a row of names, and rows as wide as it. Of a file that is
called a table (`.csv`, or the owner said so) more is believed: one column, no row of names, names
that come twice or are as long as a question.
"""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from pdpp_kernel.texts import plural
from pdpp_sources.common.export import HEAD_BYTES, ExportMember
from pdpp_sources.common.text import decoded, printable
from pdpp_sources.tables.columns import spellings_of

LONGEST_CELL_CHARS = 4 * 1024 * 1024
MOST_LINES_BEFORE = 20
SUFFIXES = (".csv", ".tsv", ".tab")
_DELIMITERS = ",;\t|"
_MARKUP = (b"<", b"{", b"[")  # how XML, HTML and JSON begin, whose commas separate no cells
_NO_DELIMITER = "\x1f"  # of one column: what stands in no text
_ALIKE = 0.6
_LONGEST_NAME = 80
_LONGEST_QUESTION = 2_000
_CHUNK_BYTES = 64 * 1024
_SAMPLE_BYTES = 16 * 1024
_MOST_REREAD = 20  # rows of a file from which reading is begun again
_WIDE = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_SHOWN = {"mac_roman": "Mac Roman", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}


class CsvForm(msgspec.Struct, frozen=True):
    """How the cells of a file are written, and the names of its columns.

    Shapes: `has_header` is False where no row names them; `before` counts the rows before it;
        `written` are the names with their blanks, where they have any.
    """

    delimiter: str
    names: tuple[str, ...]
    has_header: bool = True
    before: int = 0
    charset: str | None = None
    ends_lines: str = "\n"
    written: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many cells a row has."""
        return len(self.names)

    @property
    def words(self) -> str:
        """What was taken for granted, for whoever imports."""
        facts = [f"in {_SHOWN[self.charset]}"] if self.charset in _SHOWN else []
        facts += [] if self.has_header else ["no names"]
        return ", ".join(facts)


class CsvRow(msgspec.Struct, frozen=True):
    """One row: where it begins, and its cells, or why it has none.

    Shapes: `code` and `reason` say what could not be read; then there are no cells.
    """

    offset: int
    cells: Sequence[str] = ()
    code: str = ""
    reason: str = ""


def form_of(head: bytes, *, is_called_table: bool) -> CsvForm | None:
    """The form that most of the first rows have, or None if they are no table."""
    charset = _WIDE.get(head[:2])
    if charset is None and b"\x00" in head:
        return None
    if not is_called_table and head.lstrip()[:1] in _MARKUP:
        return None
    text = head[2:].decode(charset, "replace") if charset else decoded(head)
    ends = "\r" if "\n" not in text and "\r" in text else "\n"
    lines = text.split(ends)
    lines = lines[:-1] if len(head) >= HEAD_BYTES and len(lines) > 1 else lines
    forms: list[CsvForm] = []
    for delimiter in _DELIMITERS:
        rows = _head_rows(lines, delimiter)
        form = _named(rows, delimiter)
        forms += [form] if form else []
    best = max(forms, key=lambda form_of_rows: form_of_rows.width, default=None)
    if best is None and is_called_table and printable(text) == text:
        best = _guessed(lines)
    if best is None:
        return None
    return replace(best, charset=charset, ends_lines=ends)


def form_with_header(head: bytes, names: AbstractSet[str]) -> CsvForm | None:
    """The form of a file one of whose first rows names all of these columns, in any case."""
    charset = _WIDE.get(head[:2])
    if charset is None and b"\x00" in head:
        return None  # a picture, say: decoding it would take a hundred times as long as a table
    text = head[2:].decode(charset, "replace") if charset else decoded(head)
    ends = "\r" if "\n" not in text and "\r" in text else "\n"
    plain = text.lower()
    if not all(name in plain for name in names):
        return None
    for delimiter in _DELIMITERS:
        for number, row in enumerate(_head_rows(text.split(ends), delimiter)[:MOST_LINES_BEFORE]):
            if names <= {cell.strip().lower() for cell in row}:
                return CsvForm(delimiter, _distinct(row), True, number, charset, ends)
    return None


def _head_rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The rows of a few lines; one whose quote stays open is left out."""
    begin, rows = 0, list[list[str]]()
    while begin < len(lines):
        rows_after = _Rows(((1, line + "\n") for line in lines[begin:]), delimiter, begin)
        if begin and rows:
            rows_after.pass_torn(len(rows[-1]))
        begin = len(lines)
        for row in rows_after.whole():
            rows += [list(row.cells)] if _filled(row.cells) else []
        if rows_after.torn:
            begin = rows_after.first_line_ends
    return rows


def _named(rows: list[list[str]], delimiter: str) -> CsvForm | None:
    """The first row of names that most rows after it are as wide as."""
    for number, names in enumerate(rows[:MOST_LINES_BEFORE]):
        after = rows[number + 1 :]
        alike = sum(len(row) == len(names) for row in after)
        if after and _is_header(names) and alike >= _ALIKE * len(after):
            if any(len(row) == len(names) and _filled(row) > 1 for row in rows[:number]):
                return None  # then those before it are rows too
            return _with_header(delimiter, names, number)
    return None


def _filled(row: Sequence[str]) -> int:
    """How many cells hold more than blanks: none in an empty row, one in a title that is padded."""
    return sum(bool(cell.strip()) for cell in row)


def _is_header(cells: list[str]) -> bool:
    """Names are short, different, and not numbers; the last may be missing."""
    names = [cell.strip() for cell in (cells if cells[-1].strip() else cells[:-1])]
    is_named = all(name and len(name) <= _LONGEST_NAME and not name[0].isdigit() for name in names)
    return len(names) > 1 and is_named and len(set(names)) == len(names)


def _guessed(lines: Sequence[str]) -> CsvForm | None:
    """What a file that is called a table holds at least: rows of one width, or one column."""
    best: tuple[int, str, list[list[str]]] = (1, _NO_DELIMITER, _head_rows(lines, _NO_DELIMITER))
    for delimiter in _DELIMITERS:
        rows = _head_rows(lines, delimiter)
        widths = Counter(map(len, rows))
        [(width, count)] = widths.most_common(1) or [(0, 0)]
        if width > best[0] and count >= _ALIKE * len(rows):
            best = (width, delimiter, rows)
    if best[1] == _NO_DELIMITER and (ragged := _ragged(lines)):
        return ragged
    width, delimiter, rows = best
    begin = next((n for n, row in enumerate(rows) if len(row) == width), None)
    if begin is None:
        return None
    first, after = rows[begin], rows[begin + 1 :]
    if _could_name(first, after):
        return _with_header(delimiter, first, begin)
    widest = max(len(row) for row in rows)
    return CsvForm(delimiter, tuple(f"column_{n}" for n in range(1, widest + 1)), has_header=False)


def _ragged(lines: Sequence[str]) -> CsvForm | None:
    """A row of names over rows of which most have some cells, and no more than it has names."""
    forms: list[CsvForm] = []
    for delimiter in _DELIMITERS:
        rows = _head_rows(lines, delimiter)
        begin = next((n for n, row in enumerate(rows[:MOST_LINES_BEFORE]) if len(row) > 1), None)
        if begin is None:
            continue
        names, after = rows[begin], rows[begin + 1 :]
        names_in_row = [cell.strip() for cell in (names if names[-1].strip() else names[:-1])]
        plain = all(n and len(n) <= _LONGEST_NAME and not _is_value(n) for n in names_in_row)
        within = sum(1 < len(row) <= len(names) for row in after)
        if len(names_in_row) > 1 and plain and after and within >= _ALIKE * len(after):
            forms.append(_with_header(delimiter, names, begin))
    return max(forms, key=lambda form_of_rows: form_of_rows.width, default=None)


def _could_name(cells: list[str], after: list[list[str]]) -> bool:
    """Whether a row may be one of names: words, most of them there, that are no values below."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    values = {tuple(row) for row in after}
    plain = all(len(n) <= _LONGEST_QUESTION and not _is_value(n) for n in filled)
    return 2 * len(filled) > len(cells) and plain and tuple(cells) not in values


def _is_value(cell: str) -> bool:
    """Whether it is a number, a day or the like; a year may be the name of a column."""
    is_year = len(cell) == 4 and cell.isdigit() and cell[:2] in ("19", "20")
    return not is_year and bool(spellings_of(cell) - {"string", "json"})


def _with_header(delimiter: str, cells: Sequence[str], before: int) -> CsvForm:
    """The form of rows below one of names, behind so many others."""
    names = _distinct(cells)
    written = tuple(
        cell if cell.strip() == name else name for cell, name in zip(cells, names, strict=True)
    )
    padded = written if written != names else ()
    return CsvForm(delimiter, names, before=before, written=padded)


def _distinct(cells: Sequence[str]) -> tuple[str, ...]:
    """A name for each column; of two that are called alike the second is numbered."""
    names: list[str] = []
    for number, cell in enumerate(cells, 1):
        name = cell.strip() or f"column_{number}"
        again = next(n for n in range(1, len(cells) + 1) if _numbered(name, n) not in names)
        names.append(_numbered(name, again))
    return tuple(names)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name} ({number})"


def charset_of(member: ExportMember) -> str | None:
    """The charset of a file that is neither UTF-8 nor Western Windows; a guess by its letters."""
    sample = _first_foreign(member)
    if sample[:2] in _WIDE and b"\x00" in sample:
        return _WIDE[sample[:2]]
    with suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(sample)
        return None
    # Letters with accents lie from 0x80 on Macs and from 0xC0 on Windows, which has quotation
    # marks and dashes between.
    western = sum(byte >= 0xC0 for byte in sample)
    mac = sum(0x80 <= byte < 0xA0 and not 0x91 <= byte <= 0x97 for byte in sample)
    return "mac_roman" if mac > western else None


def _first_foreign(member: ExportMember) -> bytes:
    """Some bytes from the first on that is not ASCII."""
    with member.open() as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            if not chunk.isascii():
                at = next(n for n, byte in enumerate(chunk) if byte > 0x7F)
                return (chunk[at:] + stream.read(_SAMPLE_BYTES))[:_SAMPLE_BYTES]
    return b""


def rows_of_csv(member: ExportMember, form: CsvForm) -> Iterator[CsvRow]:
    """All rows after the names. One whose quote is never closed costs itself and what looks torn.

    Shapes: rows without any cell are left out; those before the names are one report.
    """
    csv.field_size_limit(LONGEST_CELL_CHARS)
    at = len(codecs.BOM_UTF16_LE) if form.charset in _WIDE.values() else 0
    left_to_pass, reread, torn_at = form.before + form.has_header, 0, -1
    if form.before:
        reason = plural(
            "1 line before the column names was ignored",
            "%(num)s lines before the column names were ignored",
            form.before,
        )
        yield CsvRow(at, (), "before_header", reason)
    while True:
        with member.open(at) as stream:
            rows = _Rows(_lines_of(stream, form), form.delimiter, at)
            while True:
                if torn_at >= 0:
                    count = rows.pass_torn(form.width)
                    yield CsvRow(torn_at, (), "bad_record", _torn_words(count))
                    torn_at = -1
                for row in rows.whole():
                    if left_to_pass and _filled(row.cells):
                        left_to_pass -= 1
                    elif _filled(row.cells) or row.code:
                        yield row
                if not rows.torn:
                    return
                torn_at, at = rows.begin, rows.first_line_ends
                reread += 1
                if reread <= _MOST_REREAD:
                    break  # from the line after the one that was torn


def _torn_words(lines: int) -> str:
    more = f", nor {lines:,} lines after it" if lines else ""
    return f"a quote in it is never closed; it was not read{more}"


def _lines_of(stream: BinaryIO, form: CsvForm) -> Iterator[tuple[int, str | None]]:
    """Each line with its length in bytes; None for one that is too long."""
    if form.ends_lines == "\n" and form.charset not in _WIDE.values():
        size, is_too_long = 0, False
        while raw := stream.readline(LONGEST_CELL_CHARS):
            size += len(raw)
            is_too_long |= size > len(raw)
            if len(raw) < LONGEST_CELL_CHARS or raw.endswith(b"\n"):
                yield size, None if is_too_long else decoded(raw, form.charset)
                size, is_too_long = 0, False
        if size:
            yield size, None
        return
    is_wide = form.charset in _WIDE.values()
    carrier = form.charset if is_wide and form.charset else "latin-1"
    decoder = codecs.getincrementaldecoder(carrier)("replace")
    carried, beyond = "", 0
    while chunk := stream.read(_CHUNK_BYTES):
        text: str = decoder.decode(chunk)
        *whole, carried = (carried + text).split(form.ends_lines)
        for line in whole:
            size, line_read = _carried(line + form.ends_lines, carrier, form.charset)
            yield size + beyond, None if beyond else line_read
            beyond = 0
        if len(carried) > LONGEST_CELL_CHARS:
            beyond += _carried(carried, carrier, form.charset)[0]
            carried = ""
    if carried or beyond:
        size, line_read = _carried(carried, carrier, form.charset)
        yield size + beyond, None if beyond else line_read


def _carried(line: str, carrier: str, charset: str | None) -> tuple[int, str]:
    raw = line.encode(carrier, "surrogatepass" if carrier != "latin-1" else "strict")
    return len(raw), printable(line) if carrier == charset else decoded(raw, charset)


class _LineTooLong(Exception):
    """A line is longer than any cell may be."""


class _Rows:
    """Cuts lines into rows, and knows where each begins."""

    def __init__(self, lines: Iterator[tuple[int, str | None]], delimiter: str, at: int) -> None:
        self._lines = lines
        self._delimiter = delimiter
        self._taken = 0  # lines of the row that is being cut
        self._ended = False
        self._last = "\n"
        self._given_back = ""
        self.offset = at
        self.begin = at
        self.first_line_ends = at
        self.torn = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._given_back:
            line, self._given_back = self._given_back, ""
        else:
            size, line = next(self._lines, (0, ""))
            self._ended = not size
            self.offset += size
            if self._ended:
                raise StopIteration
        self._taken += 1
        if line is None:
            raise _LineTooLong
        self._last = line
        if self._taken == 1:
            self.first_line_ends = self.offset
        return line

    def whole(self) -> Iterator[CsvRow]:
        """The rows up to the end, or to the first whose quote is not closed (`torn`)."""
        reader = csv.reader(self, delimiter=self._delimiter, strict=True)
        self.torn = False
        while True:
            self._taken = 0
            if not self._given_back:
                self.begin = self.offset
            try:
                yield CsvRow(self.begin, next(reader))
            except StopIteration:
                return
            except _LineTooLong:
                yield CsvRow(self.begin, (), "too_large", "a line of it is over 4 MB")
                reader = csv.reader(self, delimiter=self._delimiter, strict=True)
            except csv.Error:
                if self._taken > 1 or self._ended:
                    self.torn = True
                    return
                yield self._loose_row()

    def _loose_row(self) -> CsvRow:
        """A row of one line whose quotes stand anywhere."""
        try:
            return CsvRow(self.begin, next(csv.reader([self._last], delimiter=self._delimiter), ()))
        except csv.Error:
            return CsvRow(self.begin, (), "bad_record", "the row cannot be cut")

    def pass_torn(self, width: int) -> int:
        """Pass over lines up to one that is a whole row by itself; how many they are."""
        passed = 0
        while True:
            begin = self.offset
            try:
                line = next(self, None)
            except _LineTooLong:
                line = ""
            if line is None:
                return passed
            if self._is_row(line, width):
                self._given_back, self.begin = line, begin
                return passed
            passed += 1

    def _is_row(self, line: str, width: int) -> bool:
        if line.count(self._delimiter) < width - 1 or line.count('"') % 2:
            return False
        try:
            return len(next(csv.reader([line], delimiter=self._delimiter), ())) == width
        except csv.Error:
            return False
