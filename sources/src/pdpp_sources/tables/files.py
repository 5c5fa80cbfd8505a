"""The rows of CSV, JSON and SQLite files, one at a time, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import Data, Json, Skipped
from pdpp_kernel.texts import message
from pdpp_sources.common.database import (
    LARGEST_VALUE_BYTES,
    Cell,
    DatabaseTable,
    DatabaseUnreadable,
    ForeignDatabase,
    RowTooLarge,
    is_database,
    opened,
)
from pdpp_sources.common.errors import ExportUnreadable
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.text import printable
from pdpp_sources.file_names import slug
from pdpp_sources.tables.csv_file import CsvForm, charset_of, form_of, rows_of_csv
from pdpp_sources.tables.json_file import (
    JsonForm,
    form_of_json,
    holds_more_than_lists,
    rows_of_json,
    tables_of_json,
)
from pdpp_sources.tables.meta_text import MetaText

_OF_NOTION = re.compile(r"( [0-9a-f]{32})(_all)?\.csv$")


class TableRow(msgspec.Struct, frozen=True):
    """One row: its cells by column, where it begins, and in which part of its file.

    Shapes: `written` are the cells as they stand in the file, where those are not what they mean; a
        row without a key is known by them.
    """

    position: int
    where: str
    values: dict[str, Json]
    part: str = ""
    written: dict[str, Json] | None = None


class Table(msgspec.Struct, frozen=True):
    """One table of a file; `key` is the primary key that the file itself declares.

    Shapes: `part` is the list of a file of JSON, whatever the table is called.
    """

    name: str
    member: ExportMember
    kind: str
    export: Export
    key: str | None = None
    rows_before: int = 0
    stored: DatabaseTable | None = None
    form: CsvForm | None = None
    json: JsonForm | None = None
    part: str = ""

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return slug(self.name).replace("-", "_")

    def rows(self) -> Iterator[TableRow | Skipped]:
        """All rows in their order."""
        match self.kind:
            case "json":
                rows = json_rows(self.member, self.json) if self.json else iter(())
                return (row for row in rows if isinstance(row, Skipped) or row.part == self.part)
            case "sqlite":
                return _database_rows(self, self.stored) if self.stored else iter(())
            case _:
                return _csv_rows(self.member, self.form) if self.form else iter(())


def looks_like_table(head: bytes) -> bool:
    """Whether the first bytes are those of a database, of JSON, or of equally wide rows."""
    is_known = is_database(head) or form_of_json(head) is not None
    return is_known or _is_csv(head, is_called_table=False)


def could_be_table(head: bytes) -> bool:
    """The same for a file whose name says that it is a table."""
    return looks_like_table(head) or _is_csv(head, is_called_table=True)


def _is_csv(head: bytes, *, is_called_table: bool) -> bool:
    return form_of(head, is_called_table=is_called_table) is not None


def is_of_notion(member: ExportMember) -> bool:
    """Whether a file is called as Notion calls its databases: by a name and an id."""
    return _OF_NOTION.search(member.name) is not None


def views_of_notion(export: Export) -> list[str]:
    """Files that show a part of a database of Notion which lies beside them whole."""
    names = {member.name for member in export.members}
    wholes = ((name, _OF_NOTION.sub(r"\1_all.csv", name)) for name in names)
    return [name for name, whole in wholes if whole != name and whole in names]


def tables_of(
    export: Export, member: ExportMember, stored: AbstractSet[str] = frozenset()
) -> list[Table]:
    """The tables of a file; `stored` are streams that are there. Raises: ExportUnreadable."""
    head = member.head()
    name = Path(_OF_NOTION.sub(".csv", member.name)).stem
    if is_database(head):
        try:
            with opened(export, member) as database:
                return list(_database_tables(database, export, member))
        except DatabaseUnreadable as unreadable:
            raise ExportUnreadable(
                "The database is damaged, encrypted, or in the middle of a change.",
                unreadable.next_step,
            ) from None
    if json_form := form_of_json(head):
        json_form, parts = tables_of_json(member, json_form)
        if not parts:
            raise ExportUnreadable(
                "This file contains no readable JSON object.",
                "Open the file and check its content first.",
            )
        tables = [Table(part, member, "json", export, json=json_form, part=part) for part in parts]
        whole = Table(name, member, "json", export, json="objects", part=name)
        is_kept = whole.stream in stored and all(whole.stream != each.stream for each in tables)
        return [whole] if is_kept and holds_more_than_lists(member, json_form) else tables
    form = form_of(head, is_called_table=True)
    if form is None:
        raise ExportUnreadable(
            "This file contains no rows of text.", "Save the table as CSV (UTF-8), and import that."
        )
    form = replace(form, charset=charset_of(member))
    return [Table(name, member, "csv", export, form=form)]


def _csv_rows(member: ExportMember, form: CsvForm) -> Iterator[TableRow | Skipped]:
    """Rows by the names of their columns; cells beyond those are a fault of the row."""
    for row in rows_of_csv(member, form):
        position_text, position = member.where(row.offset), member.offset + row.offset
        if row.code:
            yield Skipped(position_text, row.code, row.reason, position)
        elif len(row.cells) > form.width:
            reason = message("the row has more cells than the header")
            yield Skipped(position_text, "bad_record", reason, position)
        else:
            cells = dict[str, Json](zip(form.names, row.cells, strict=False))
            written = dict[str, Json](zip(form.written, row.cells, strict=False)) or None
            yield TableRow(position, position_text, cells, written=written)


def json_rows(member: ExportMember, form: JsonForm) -> Iterator[TableRow | Skipped]:
    """The rows of all tables of a file of JSON in their order."""
    texts = MetaText(member)
    for row in rows_of_json(member, form):
        if isinstance(row, Skipped):
            yield row
        else:
            part, position_text, position, values = row
            data = texts.mended(values)
            written = None if data == values else values
            yield TableRow(position, position_text, data, part, written)


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
            "No table of this database contains a readable row.",
            "Open the file and check its content first.",
        )


def left_out(export: Export, member: ExportMember) -> Iterator[Skipped]:
    """What of a database is no table that can be read: views, virtual tables, broken ones."""
    if not is_database(member.head()):
        return
    with opened(export, member) as database:
        for name, omission in database.computed_names():
            reason = message(
                "a %(kind)s is computed from other data and was not imported", kind=omission
            )
            yield Skipped(printable(name), "unknown_record_type", reason, member.offset)
        for name in database.table_names():
            try:
                database.table(name)
            except DatabaseUnreadable:
                reason = message("this table cannot be read")
                yield Skipped(printable(name), "damaged_file", reason, member.offset)


def _database_rows(table: Table, stored: DatabaseTable) -> Iterator[TableRow | Skipped]:
    """Rows in the order of the table; each counts as a byte of the file, so positions rise."""
    position = table.member.offset + table.rows_before
    try:
        with opened(table.export, table.member) as database:
            for number, cells in enumerate(database.rows_of(stored), 1):
                position_text = f"{table.name}, row {number}"
                if isinstance(cells, RowTooLarge):
                    limit = LARGEST_VALUE_BYTES // 1024 // 1024
                    yield Skipped(
                        position_text,
                        "too_large",
                        message("the row contains a value over %(most)s MB", most=limit),
                        position,
                    )
                else:
                    values: Data = {n: _cell(c) for n, c in zip(stored.columns, cells, strict=True)}
                    yield TableRow(position, position_text, values)
                position += 1
    except DatabaseUnreadable:
        yield Skipped(table.name, "damaged_file", "the rest of the file cannot be read", position)


def _cell(value: Cell) -> Json:
    """Bytes are no JSON; their length is said instead."""
    return f"({len(value)} bytes)" if isinstance(value, bytes) else value
