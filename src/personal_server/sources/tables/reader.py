"""Any table: CSV, JSON lines and SQLite, described by their own columns.

There is no declaration to ship. The file is read once to learn its columns; from what they hold
follow their types, the key, the time and the title, and what can be asked. Whoever imports may name
key, time and title instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from pathlib import Path

from personal_server.domain.declaration import OWN_FILE_PREFIX
from personal_server.domain.source_item import (
    Data,
    Json,
    Skipped,
    SourceItem,
    SourceRecord,
    stable_id,
)
from personal_server.sources.common.bookmark import BOOKMARK
from personal_server.sources.common.database import beside
from personal_server.sources.common.declaration import (
    Field,
    StreamForm,
    day,
    declaration,
    flag,
    free,
    integer,
    key,
    moment,
    number,
    text,
    word,
)
from personal_server.sources.common.epochs import EPOCHS
from personal_server.sources.common.errors import BadRecord, ExportTooCostly
from personal_server.sources.common.export import Export, ExportMember
from personal_server.sources.common.source import (
    MOST_REMEMBERED,
    Claim,
    SourceReader,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from personal_server.sources.common.text import one_line
from personal_server.sources.tables.columns import Survey, TableColumn, typed
from personal_server.sources.tables.files import (
    Table,
    TableRow,
    left_out,
    looks_like_table,
    slug,
    tables_of,
)


@dataclass(frozen=True, slots=True)
class Guidance:
    """What the owner says of the columns; None lets the columns speak."""

    key: str | None = None
    time: str | None = None
    title: str | None = None


KEY_FIELD = "id"


class TableSource:
    """Recognizes tables; `fitted` makes the source that reads one of them."""

    connector_key = "table"
    declaration: Data = declaration(
        "table",
        "Your own tables",
        "CSV, JSON lines and SQLite, as their columns describe them.",
        [],
    )
    how_to_export = (
        "Any .csv, .tsv, .jsonl or SQLite file, one at a time. Look first with --dry-run; name the "
        "columns with --key, --time and --title where the guess is wrong."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim a single file whose first lines agree on their columns."""
        first = export.members[:1]
        mine = list(matching(export.only(first), looks_like_table))
        others = [each for member in mine for each in beside(export, member)]
        if 1 + len(others) < len(export.members):
            return None
        return claim([*mine, *others] if mine else (), "it is a table")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Read as the columns say."""
        return self.fitted(export).read(export, start)

    def fitted(self, export: Export, guidance: Guidance = Guidance()) -> SourceReader:
        """The source of this very table, with its own declaration."""
        return FittedTable(export, guidance)


class FittedTable:
    """The source of one file, made from its columns."""

    def __init__(self, export: Export, guidance: Guidance) -> None:
        name = Path(export.members[0].name).stem
        self.connector_key = f"{OWN_FILE_PREFIX}{slug(name)}"[:64]
        self._fits = [_fit(table, guidance) for table in _tables(export)]
        streams = [stream_of(fit.table, fit.columns, fit.time) for fit in self._fits]
        detail = "; ".join(fit.words for fit in self._fits)
        self.declaration: Data = declaration(
            self.connector_key, name[:200] or "Table", detail, streams
        )
        self.how_to_export = TableSource.how_to_export

    def recognize(self, export: Export) -> Claim | None:
        """Claim the file it was made for."""
        return claim(export.members, "; ".join(fit.words for fit in self._fits))

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each row; one that does not fit its columns is reported."""

        def read_member(member: ExportMember) -> Iterator[SourceItem]:
            if member == export.members[0]:
                yield from left_out(export)
            for fit in self._fits:
                if fit.table.member.name == member.name:
                    rows = fit.read(export.zone)
                    # A row without a key is itself however often it comes.
                    yield from without_repeats(rows) if fit.key else rows

        return beginning_at(start, each_member(export, read_member))


def _tables(export: Export) -> list[Table]:
    """The tables of a single file. Raises: ExportUnreadable, ExportTooCostly."""
    try:
        BOOKMARK.beginning(export.members[0])
    except BadRecord as bad:
        next_step = "Import a part of it, or export it in another form."
        raise ExportTooCostly(f"{bad.reason[0].upper()}{bad.reason[1:]}.", next_step) from None
    return tables_of(export)


@dataclass(frozen=True, slots=True)
class _Fit:
    """One table with the roles of its columns."""

    table: Table
    columns: tuple[TableColumn, ...]
    key: str | None
    time: str | None

    @property
    def words(self) -> str:
        """The guess, for whoever imports."""
        title = next((column.name for column in self.columns if column.is_title), None)
        roles = {
            "key": self.key or "the row's content and place among equal rows",
            "time": self.time,
            "title": title,
        }
        counted = {c.name: EPOCHS[c.spelling] for c in self.columns if c.spelling in EPOCHS}
        times = [f"{name}: {epoch.words}" for name, epoch in counted.items()]
        guess = ", ".join([*(f"{role}: {name}" for role, name in roles.items() if name), *times])
        return f"{self.table.name} ({guess})"

    def read(self, zone: tzinfo) -> Iterator[SourceItem]:
        """The rows as records; times without a zone are of that one."""
        alike: dict[str, int] = {}
        for row in self.table.rows():
            if isinstance(row, Skipped):
                yield row
                BOOKMARK.after(row.position)
            else:
                build = partial(self._records, row, zone, alike)
                yield from one_record(row.where, row.position, build)

    def _records(self, row: TableRow, zone: tzinfo, alike: dict[str, int]) -> list[SourceItem]:
        data: Data = {}
        for column in self.columns:
            value = typed(row.values.get(column.source_name), column.spelling, zone)
            if value is not None or column.name != self.time:
                data[column.name] = value
        data[KEY_FIELD] = self._key(row, data, alike)
        return [SourceRecord(self.table.stream, data, row.position)]

    def _key(self, row: TableRow, data: Data, alike: dict[str, int]) -> str:
        """What names a row: its key, else its content and how many like it came before."""
        value: Json = data.get(self.key) if self.key else None
        if self.key is None:
            content = repr(sorted((str(k), str(v)) for k, v in row.values.items()))
            own = stable_id("row", content)
            number = alike.get(own, 0) + 1
            if number > 1 or len(alike) < MOST_REMEMBERED:
                alike[own] = number
            return own if number == 1 else f"{own}.{number}"
        if value in (None, ""):
            raise BadRecord("bad_record", "its key is empty")
        text = str(value)
        return text if len(text) <= 200 and text.isprintable() else stable_id("key", text)


def _fit(table: Table, guidance: Guidance) -> _Fit:
    """Read a table once and give its columns their roles. Raises: BadRecord."""
    survey = Survey()
    with suppress(BadRecord):  # what follows is too costly; it is reported where it is read
        for row in table.rows():
            if isinstance(row, TableRow):
                survey.add(row.values)
            BOOKMARK.after(row.position)
    columns = survey.columns()
    own_key = table.key if any(c.source_name == table.key for c in columns) else None
    named_key = _column_named(columns, guidance.key or own_key)
    named_time = _column_named(columns, guidance.time)
    title = _column_named(columns, guidance.title)
    key = named_key or next((c.name for c in columns if c.is_key), None)
    time = named_time or next((c.name for c in columns if c.is_time), None)
    if time and not any(c.name == time and c.kind in ("date", "date-time") for c in columns):
        raise BadRecord("usage", f"the column {time!r} holds no days or times")
    if title:
        columns = tuple(replace(c, is_title=c.name == title) for c in columns)
    if key != KEY_FIELD:
        columns = tuple(replace(c, name="column_id") if c.name == KEY_FIELD else c for c in columns)
    return _Fit(table, columns, key, time)


def _column_named(columns: tuple[TableColumn, ...], name: str | None) -> str | None:
    """The column of that name. Raises: BadRecord."""
    if name is None:
        return None
    found = next((c.name for c in columns if name in (c.name, c.source_name)), None)
    if found is None:
        known = ", ".join(column.source_name for column in columns)
        raise BadRecord("usage", f"it has no column {name!r}, but {one_line(known, 300)}")
    return found


def stream_of(table: Table, columns: tuple[TableColumn, ...], time: str | None) -> StreamForm:
    """A stream with a field for each column and an `id` for the record."""
    fields = [_field(column, is_event=column.name == time) for column in columns]
    return StreamForm(
        table.stream,
        f"Rows of {table.name}"[:200],
        "All columns: " + ", ".join(column.source_name for column in columns)[:900],
        [key(), *(each for each in fields if each.name != "id")],
        time_field=time,
    )


def _field(column: TableColumn, *, is_event: bool) -> Field:
    about = f"Column {column.source_name}"
    if column.spelling in EPOCHS:
        about += f", written as {EPOCHS[column.spelling].words}"
    if column.kind in _MAKERS:
        return _MAKERS[column.kind](column, about, is_event)
    if column.is_grouped:
        return word(column.name, about, title=column.is_title, searched=True)
    return text(column.name, about, title=column.is_title)


_MAKERS: dict[str, Callable[[TableColumn, str, bool], Field]] = {
    "boolean": lambda column, about, _: flag(column.name, about),
    "integer": lambda column, about, _: integer(column.name, about, summed=True),
    "number": lambda column, about, _: number(column.name, about, summed=True),
    "date": lambda column, about, event: day(column.name, about, event=event),
    "date-time": lambda column, about, event: moment(column.name, about, event=event),
    "json": lambda column, about, _: free(column.name, about),
}
