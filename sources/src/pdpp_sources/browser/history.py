"""The databases of browsers: visits, bookmarks, downloads and searches, in every layout seen.

Source: the tables themselves, of Chromium (1 to 89), Firefox (desktop, and Android before and after
2020) and Safari; what a version lacks is left out of the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pdpp_kernel.source_item import Skipped, SourceItem, SourceRecord
from pdpp_kernel.texts import message
from pdpp_sources.browser.history_records import Row
from pdpp_sources.browser.layouts import Rows, layout_of
from pdpp_sources.common.database import DatabaseUnreadable, ForeignDatabase, RowTooLarge, opened
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.source import one_record

_TOO_MANY_FOLDERS = message(
    "there are too many folders or tags: some bookmarks were imported without theirs"
)


def is_history(database: ForeignDatabase) -> bool:
    """Whether a database is the history of a browser."""
    return bool(layout_of(database))


def read_history(export: Export, member: ExportMember) -> Iterator[SourceItem]:
    """All records of a database; each row counts as a byte of it, so positions rise."""
    position = member.offset
    try:
        with opened(export, member) as database:
            for rows in layout_of(database):
                statement, joins = _statement(database, rows)
                for number, row in enumerate(database.rows(rows.table, statement, joins), 1):
                    position_text = f"{member.name}, {rows.table}, row {number}"
                    yield from _row_items(rows, row, position_text, position)
                    position += 1
                if rows.is_cut:
                    where = f"{member.name}, {rows.table}"
                    yield Skipped(where, "beyond_bounds", _TOO_MANY_FOLDERS, position)
    except DatabaseUnreadable:
        yield Skipped(member.name, "damaged_file", "the rest of the file cannot be read", position)


def _row_items(
    rows: Rows, row: Row | RowTooLarge, position_text: str, position: int
) -> Iterator[SourceItem]:
    if isinstance(row, RowTooLarge):
        yield Skipped(
            position_text, "too_large", "the entry contains a value that is too long", position
        )
        return

    def build() -> list[SourceItem]:
        return [SourceRecord(stream, data, position) for stream, data in rows.build(row)]

    yield from one_record(position_text, position, build)


def _statement(database: ForeignDatabase, rows: Rows) -> tuple[dict[str, str], str]:
    """The columns and joins that this database has."""
    tables = {"t": database.column_names(rows.table)}
    joins = ""
    for name, table, condition in rows.joins:
        tables[name] = database.column_names(table)
        if tables[name] and _is_known(condition, tables):
            joins += f" LEFT JOIN {table} {name} ON {condition}"
        else:
            tables[name] = ()
    return {n: c if _is_known(c, tables) else "NULL" for n, c in rows.columns.items()}, joins


def _is_known(expression: str, tables: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the tables have every column of an expression: names, `=`, nothing else."""
    for name in expression.replace("=", " ").split():
        table, _, column = name.partition(".")
        if column != "rowid" and column not in tables.get(table, ()):
            return False
    return True
