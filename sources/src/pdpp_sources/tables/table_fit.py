"""Tables with the roles of their columns: what their rows become as records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import tzinfo
from functools import partial
from typing import cast

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import Data, Json, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common.epochs import EPOCHS
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.source import MOST_REMEMBERED, one_record
from pdpp_sources.common.text import one_line
from pdpp_sources.reader_messages import KnownColumn, KnownTable
from pdpp_sources.tables.column_keys import key_text
from pdpp_sources.tables.column_names import field_names
from pdpp_sources.tables.columns import (
    MOST_COLUMNS,
    Survey,
    TableColumn,
    renamed,
    says_nothing,
    typed,
)
from pdpp_sources.tables.files import Table, TableRow
from pdpp_sources.tables.table_series import Series, stream_name
from pdpp_sources.tables.utc_columns import zone_of_column

KEY_FIELD = "id"
_MOST_LISTS = 20  # lists of objects in the rows of a table that become streams


class Guidance(msgspec.Struct, frozen=True):
    """What the owner says of the columns, and what is stored; None lets the columns speak.

    Shapes: `kinds` names columns, and of each a word of `columns.KINDS`.
    """

    key: str | None = None
    time: str | None = None
    title: str | None = None
    kinds: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    known: KnownTable | None = None

    def columns_of(self, stream: str) -> Mapping[str, KnownColumn]:
        """What is stored of the columns of a stream."""
        return self.known.streams.get(stream, {}) if self.known else {}


UNGUIDED = Guidance()


class Nested(msgspec.Struct, frozen=True):
    """A list of objects in the rows of a table: the stream of its entries, and their columns.

    Shapes: `parent` is the field that holds the key of the row they stand in, `number` the one of
        their place among its entries.
    """

    source_name: str
    stream: str
    parent: str
    number: str
    columns: tuple[TableColumn, ...]


class TableFit(msgspec.Struct, frozen=True):
    """Tables of one shape with the roles of their columns."""

    series: Series
    columns: tuple[TableColumn, ...]
    key: str | None
    time: str | None
    has_more_columns: bool = False
    nested: tuple[Nested, ...] = ()

    @property
    def words(self) -> str:
        """The guess, for whoever imports."""
        source_names = {column.name: column.source_name for column in self.columns}
        title = next((column.name for column in self.columns if column.is_title), None)
        roles = {
            "key": self.key and source_names.get(self.key, self.key),
            "time": self.time and source_names.get(self.time, self.time),
            "title": title and source_names.get(title, title),
        }
        roles["key"] = roles["key"] or "none, rows are told apart by content; set one with --key"
        counted = {c.source_name: EPOCHS[c.spelling] for c in self.columns if c.spelling in EPOCHS}
        times = [f"{name}: {epoch.words}" for name, epoch in counted.items()]
        guess = ", ".join([*(f"{role}: {name}" for role, name in roles.items() if name), *times])
        form = self.series.first.form
        guess += f", {form.words}" if form and form.words else ""
        count = len(self.series.tables)
        guess += f", {count} files" if count > 1 else ""
        return f"{self.series.name} ({guess})"

    def tables_in(self, name: str) -> list[Table]:
        """Those that lie in the file of that name."""
        return [table for table in self.series.tables if table.member.name == name]

    def read(self, table: Table, zone: tzinfo) -> Iterator[SourceItem]:
        """The rows of a table as records; times without a zone are of that one."""
        alike: dict[str, int] = {}
        yield from self.beyond(table)
        for row in table.rows():
            if isinstance(row, Skipped):
                yield row
                BOOKMARK.after(row.position)
            else:
                yield from self.items(table, row, zone, alike)

    def beyond(self, table: Table) -> Iterator[Skipped]:
        """A report of columns that are too many."""
        if self.has_more_columns:
            reason = message(
                "columns after the first %(most)s were left out", most=str(MOST_COLUMNS)
            )
            first = table.member.offset + table.rows_before
            yield Skipped(table.name, "too_large", reason, first)

    def items(
        self, table: Table, row: TableRow, zone: tzinfo, alike: dict[str, int]
    ) -> Iterator[SourceItem]:
        """One row as records; `alike` counts the rows of equal content so far."""
        written = row.written
        if written is not None:
            written = self.series.values(table, replace(row, values=written))
        row = replace(row, values=self.series.values(table, row), written=written)
        return one_record(row.where, row.position, partial(self._records, row, zone, alike))

    def _records(self, row: TableRow, zone: tzinfo, alike: dict[str, int]) -> list[SourceItem]:
        data, sub_records = _cells(self.columns, row, row.values, zone, self.time)
        key = data[KEY_FIELD] = self._key(row, data, alike)
        items: list[SourceItem] = [
            SourceRecord(self.series.stream, data, row.position),
            *sub_records,
        ]
        for nested in self.nested:
            listed = cast("Sequence[Data]", row.values.get(nested.source_name) or ())
            for number, entry in enumerate(listed, 1):
                cells, sub_records = _cells(nested.columns, row, entry, zone, None)
                own: Data = {KEY_FIELD: f"{key}.{number}", nested.parent: key}
                cells |= own | {nested.number: number}
                items += [SourceRecord(nested.stream, cells, row.position), *sub_records]
        return items

    def _key(self, row: TableRow, data: Data, alike: dict[str, int]) -> str:
        """What names a row: its key, else its content and how many like it came before."""
        value: Json = data.get(self.key) if self.key else None
        own = next((column for column in self.columns if column.is_key), None)
        if own and own.name == self.key:
            value = key_text(row.values.get(own.source_name), is_whole=own.has_whole_keys)
        if self.key is None:
            cells = row.values if row.written is None else row.written
            content = repr(sorted((str(k), str(v)) for k, v in cells.items()))
            row_id = stable_id("row", content)
            number = alike.get(row_id, 0) + 1
            if number > 1 or len(alike) < MOST_REMEMBERED:
                alike[row_id] = number
            return row_id if number == 1 else f"{row_id}.{number}"
        if value in (None, ""):
            raise BadRecord("bad_record", "its key is empty")
        text = str(value)
        return text if len(text) <= 200 and text.isprintable() else stable_id("key", text)


def _cells(
    columns: Sequence[TableColumn],
    row: TableRow,
    values: Mapping[str, Json],
    zone: tzinfo,
    time: str | None,
) -> tuple[Data, list[SourceItem]]:
    """The cells of a row by their fields, and what is told beside; a time is left out if empty."""
    data: Data = {}
    sub_records: list[SourceItem] = []
    for column in columns:
        value = values.get(column.source_name)
        if column.kind not in ("string", "strings", "json") and says_nothing(value):
            reason = message(
                "some cells say that there is no value (NaN, N/A, a blank); "
                "these cells were imported as empty"
            )
            sub_records.append(Skipped(row.where, "no_value", reason, row.position))
        cell = typed(value, column.spelling, zone_of_column(column.source_name, values, zone))
        if cell is not None or column.name != time:
            data[column.name] = cell
    return data, sub_records


def fits_of(series: Sequence[Series], guidance: Guidance) -> list[TableFit]:
    """Each series with its roles; a column that the owner names has to be in one of them.

    Raises: BadRecord (`usage`).
    """
    fits: list[TableFit] = []
    faults: list[BadRecord] = []
    for table_series in series:
        try:
            fits.append(_fit(table_series, guidance))
        except BadRecord as bad:
            faults.append(bad)
            fits.append(_fit(table_series, replace(UNGUIDED, known=guidance.known)))
    if faults and len(faults) == len(series):
        raise faults[0]
    everywhere = tuple(column for fit in fits for column in fit.columns)
    for name in guidance.kinds:
        _column_named(everywhere, name)
    return fits


class _Lists:
    """The entries of lists of objects in the rows of a table, each list with its columns."""

    def __init__(self, kept_columns: Mapping[str, KnownColumn]) -> None:
        self._kept = kept_columns  # columns that are stored as they are
        self._surveys: dict[str, Survey] = {}
        self._others: set[str] = set()

    def add(self, values: Mapping[str, Json]) -> None:
        """Learn from one row."""
        for name, value in values.items():
            if value is None or name in self._kept or name in self._others:
                continue
            entries = cast("list[object]", value) if isinstance(value, list) else None
            if entries is None or not all(isinstance(entry, dict) for entry in entries):
                self._others.add(name)
            elif name in self._surveys or len(self._surveys) < _MOST_LISTS:
                survey = self._surveys.setdefault(name, Survey())
                for entry in entries:
                    survey.add(cast("Data", entry))

    def nested(self, series: Series) -> tuple[Nested, ...]:
        """The lists that hold nothing but objects, and some."""
        nested_lists: list[Nested] = []
        for name, survey in self._surveys.items():
            columns = survey.columns()
            if name in self._others or not columns or survey.has_more_columns:
                continue
            parent, number = f"{series.stream}_id", "number"
            field_names_used = field_names(
                [KEY_FIELD, parent, number, *(c.source_name for c in columns)], {}
            )
            columns = tuple(
                replace(
                    c,
                    name=field_names_used[c.source_name]
                    if c.source_name != KEY_FIELD
                    else "column_id",
                )
                for c in columns
            )
            stream = f"{series.stream}_{stream_name(name)}"[:100]
            own = {c.name for c in columns}
            parent = f"{parent}_of_row" if parent in own else parent
            number = "number_in_row" if number in own else number
            nested_lists.append(Nested(name, stream, parent, number, columns))
        return tuple(nested_lists)


def _fit(series: Series, guidance: Guidance) -> TableFit:
    """Read tables once and give their columns their roles. Raises: BadRecord."""
    known_table = guidance.columns_of(series.stream)
    form = series.first.form
    survey = Survey(
        frozenset(name for name, kind in guidance.kinds.items() if kind == "instant"),
        has_semicolons=form is not None and form.delimiter == ";",
    )
    lists = _Lists(known_table)
    for table in series.tables:
        with suppress(BadRecord):  # what follows is too costly; it is reported where it is read
            for row in table.rows():
                if isinstance(row, TableRow):
                    values = series.values(table, row)
                    survey.add(values)
                    if table.kind == "json":
                        lists.add(values)
                BOOKMARK.after(row.position)
    nested = lists.nested(series)
    split = {inner.source_name for inner in nested}
    columns = tuple(
        c for c in survey.columns(known_table, guidance.kinds) if c.source_name not in split
    )
    own_key = series.first.key
    own_key = own_key if any(c.source_name == own_key for c in columns) else None
    named_key = _column_named(columns, guidance.key)
    named_time = _column_named(columns, guidance.time)
    title = _column_named(columns, guidance.title)
    key = named_key or _key_of(columns, guidance.known, series.stream, own_key)
    time = named_time or _time_of(columns, guidance.known, series.stream)
    if time and not any(c.name == time and c.kind in ("date", "date-time") for c in columns):
        raise BadRecord("usage", f"the column {time!r} holds no days or times")
    if title:
        columns = tuple(replace(c, is_title=c.name == title) for c in columns)
    if key != KEY_FIELD:
        columns = renamed(columns, KEY_FIELD, "column_id")
    return TableFit(series, columns, key, time, survey.has_more_columns, nested)


def _key_of(
    columns: Sequence[TableColumn],
    known_table: KnownTable | None,
    stream: str,
    own_key: str | None,
) -> str | None:
    """What names the rows that are stored; else the key that the file declares, or that is seen."""
    fields = {c.source_name: c.name for c in columns}
    before = known_table.keys.get(stream) if known_table else None
    if before == "" or before in fields:
        return fields.get(before)
    return fields.get(own_key or "") or next((c.name for c in columns if c.is_key), None)


def _time_of(
    columns: Sequence[TableColumn], known_table: KnownTable | None, stream: str
) -> str | None:
    """The time that is stored, where its column is still one; else the first."""
    times = [c.name for c in columns if c.kind in ("date", "date-time")]
    before = known_table.times.get(stream) if known_table else None
    return before if before in times else next((c.name for c in columns if c.is_time), None)


def _column_named(columns: tuple[TableColumn, ...], name: str | None) -> str | None:
    """The column of that name. Raises: BadRecord."""
    if name is None:
        return None
    match = next((c.name for c in columns if name in (c.name, c.source_name)), None)
    if match is None:
        column_names = ", ".join(column.source_name for column in columns)
        raise BadRecord("usage", f"it has no column {name!r}, but {one_line(column_names, 300)}")
    return match
