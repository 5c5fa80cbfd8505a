"""The rows of CSV, JSON lines and SQLite files, one at a time, each with its place."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from personal_server.domain.source_item import Data, Json, Skipped
from personal_server.sources.common.database import (
    LARGEST_VALUE_BYTES,
    Cell,
    DatabaseTable,
    DatabaseUnreadable,
    ForeignDatabase,
    RowTooLarge,
    is_database,
    opened,
)
from personal_server.sources.common.errors import ExportUnreadable
from personal_server.sources.common.export import HEAD_BYTES, Export, ExportMember
from personal_server.sources.common.json_stream import Element, json_lines
from personal_server.sources.common.text import decoded, printable

LONGEST_CELL_CHARS = 4 * 1024 * 1024
_DELIMITERS = ",;\t|"
_ALIKE = 0.6
MOST_LINES_BEFORE = 20


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row: its cells by column, and where it begins."""

    position: int
    where: str
    values: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a file; `key` is the primary key that the file itself declares."""

    name: str
    member: ExportMember
    kind: str
    export: Export
    key: str | None = None
    rows_before: int = 0
    stored: DatabaseTable | None = None

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return slug(self.name).replace("-", "_")

    def rows(self) -> Iterator[TableRow | Skipped]:
        """All rows in their order."""
        match self.kind:
            case "jsonl":
                return _json_rows(self.member)
            case "sqlite":
                return _database_rows(self, self.stored) if self.stored else iter(())
            case _:
                return _csv_rows(self.member)


def looks_like_table(head: bytes) -> bool:
    """Whether the first bytes are those of a database, of JSON lines, or of equally wide rows."""
    if is_database(head):
        return True
    if b"\x00" in head:
        return False
    lines = [line for line in decoded(head).splitlines() if line.strip()]
    whole = lines[:-1] if len(lines) > 1 and len(head) >= HEAD_BYTES else lines
    objects = [line for line in whole[:20] if line.startswith("{") and line.endswith("}")]
    if objects and len(objects) >= _ALIKE * len(whole[:20]):
        return True
    return _dialect_of(head) is not None


def slug(name: str) -> str:
    """A name as a part of keys and of stream names."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50] or "data"


def tables_of(export: Export) -> list[Table]:
    """The tables of a single file. Raises: ExportUnreadable."""
    member = export.members[0]
    head = member.head()
    name = Path(member.name).stem
    if is_database(head):
        try:
            with opened(export, member) as database:
                return list(_database_tables(database, export, member))
        except DatabaseUnreadable as unreadable:
            raise ExportUnreadable(
                "The database is damaged, encrypted, or left in the middle of a change.",
                unreadable.next_step,
            ) from None
    kind = "jsonl" if head.lstrip().startswith(b"{") else "csv"
    return [Table(name, member, kind, export)]


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What separates the cells, and the row that names them."""

    delimiter: str
    header: list[str]


def _dialect_of(head: bytes) -> _Dialect | None:
    """The delimiter and the header that most rows after it are as wide as; the widest wins."""
    found: list[_Dialect] = []
    text = decoded(head)
    for delimiter in _DELIMITERS:
        try:
            rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
        except csv.Error:
            return None
        rows = rows[:-1] if len(head) >= HEAD_BYTES else rows
        for number, header in enumerate(rows[:MOST_LINES_BEFORE]):
            after = rows[number + 1 :]
            alike = sum(len(row) == len(header) for row in after)
            if after and _is_header(header) and alike >= _ALIKE * len(after):
                found.append(_Dialect(delimiter, header))
                break
    return max(found, key=lambda each: len(each.header), default=None)


def _is_header(cells: list[str]) -> bool:
    """Names are short, different, and not numbers; the last may be missing."""
    names = [cell.strip() for cell in (cells if cells[-1].strip() else cells[:-1])]
    named = all(name and len(name) <= 80 and not name[0].isdigit() for name in names)
    return len(names) > 1 and named and len(set(names)) == len(names)


def _csv_rows(member: ExportMember) -> Iterator[TableRow | Skipped]:
    """Rows after a header, which banks put words before; cells beyond it are a fault of the row."""
    dialect = _dialect_of(member.head()) or _Dialect(",", [])
    csv.field_size_limit(LONGEST_CELL_CHARS)
    with member.open() as stream:
        lines = _Lines(stream)
        reader = csv.reader(lines, delimiter=dialect.delimiter)
        header: list[str] | None = None
        while True:
            begin = lines.offset
            try:
                cells = next(reader, None)
            except csv.Error:
                where = member.where(begin)
                yield Skipped(where, "bad_record", "the row cannot be cut", member.offset + begin)
                continue
            if cells is None:
                return
            if header is None and cells != dialect.header and dialect.header:
                continue
            if header is None:
                header = [name or f"column_{n}" for n, name in enumerate(cells, 1)]
            elif any(cells):
                yield _csv_row(member, begin, header, cells)


def _csv_row(
    member: ExportMember, begin: int, header: list[str], cells: list[str]
) -> TableRow | Skipped:
    where, position = member.where(begin), member.offset + begin
    if len(cells) > len(header):
        return Skipped(where, "bad_record", "the row has more cells than the header", position)
    return TableRow(position, where, dict(zip(header, cells, strict=False)))


class _Lines:
    """Decoded lines of a binary stream that know how far they have come."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.offset = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        raw = self._stream.readline(LONGEST_CELL_CHARS)
        if not raw:
            raise StopIteration
        self.offset += len(raw)
        return decoded(raw)


def _json_rows(member: ExportMember) -> Iterator[TableRow | Skipped]:
    for element in json_lines(member):
        is_row = isinstance(element, Element)
        yield TableRow(element.position, element.where, element.value) if is_row else element


def _database_tables(
    database: ForeignDatabase, export: Export, member: ExportMember
) -> Iterator[Table]:
    """The tables that hold a row at all, or that cannot be counted. Raises: ExportUnreadable."""
    rows_before = 0
    for name in database.table_names():
        try:
            stored = database.table(name)
        except DatabaseUnreadable:
            continue  # it is named where the others are read
        if stored.row_count:
            yield Table(name, member, "sqlite", export, stored.key, rows_before, stored)
        rows_before += stored.row_count
    if not rows_before:
        raise ExportUnreadable(
            "No table of this database holds a row that can be read.", "Look into it first."
        )


def left_out(export: Export) -> Iterator[Skipped]:
    """What of a database is no table that can be read: views, virtual tables, broken ones."""
    member = export.members[0]
    if not is_database(member.head()):
        return
    with opened(export, member) as database:
        for name, what in database.computed_names():
            reason = f"a {what} is computed, and not read"
            yield Skipped(printable(name), "unknown_record_type", reason, member.offset)
        for name in database.table_names():
            try:
                database.table(name)
            except DatabaseUnreadable:
                reason = "this table cannot be read"
                yield Skipped(printable(name), "damaged_file", reason, member.offset)


def _database_rows(table: Table, stored: DatabaseTable) -> Iterator[TableRow | Skipped]:
    """Rows in the order of the table; each counts as a byte of the file, so positions rise."""
    position = table.member.offset + table.rows_before
    try:
        with opened(table.export, table.member) as database:
            for number, cells in enumerate(database.rows_of(stored), 1):
                where = f"{table.name}, row {number}"
                if isinstance(cells, RowTooLarge):
                    limit = LARGEST_VALUE_BYTES // 1024 // 1024
                    yield Skipped(where, "too_large", f"it holds a value over {limit} MB", position)
                else:
                    values: Data = {n: _cell(c) for n, c in zip(stored.columns, cells, strict=True)}
                    yield TableRow(position, where, values)
                position += 1
    except DatabaseUnreadable:
        yield Skipped(table.name, "damaged_file", "the rest cannot be read", position)


def _cell(value: Cell) -> Json:
    """Bytes are no JSON; their length is said instead."""
    return f"({len(value)} bytes)" if isinstance(value, bytes) else value
