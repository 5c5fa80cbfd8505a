"""Any table: CSV, JSON and SQLite, described by their own columns.

There is no declaration to ship. The file is read once to learn its columns; from what they hold
follow their types, the key, the time and the title, and what can be asked. Whoever imports may name
key, time and title instead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import tzinfo
from pathlib import Path

from msgspec.structs import replace

from pdpp_kernel.source_item import Data, Skipped, SourceItem
from pdpp_sources.common.database import beside
from pdpp_sources.common.declaration import (
    Field,
    StreamForm,
    conversation,
    day,
    declaration,
    flag,
    free,
    integer,
    key,
    moment,
    names,
    number,
    reference,
    text,
    word,
    written_by,
)
from pdpp_sources.common.epochs import EPOCHS
from pdpp_sources.common.errors import BadRecord, ExportTooCostly, ExportUnreadable, MemberDamaged
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.source import (
    Claim,
    SourceReader,
    beginning_at,
    claim,
    each_member,
    matching,
    without_repeats,
)
from pdpp_sources.common.unit_fields import currency, in_unit
from pdpp_sources.file_names import family_name, table_key
from pdpp_sources.reader_messages import KnownColumn
from pdpp_sources.tables.columns import TableColumn
from pdpp_sources.tables.csv_file import SUFFIXES
from pdpp_sources.tables.files import (
    Table,
    TableRow,
    could_be_table,
    is_of_notion,
    json_rows,
    left_out,
    looks_like_table,
    tables_of,
    views_of_notion,
)
from pdpp_sources.tables.table_fit import UNGUIDED, Guidance, TableFit, fits_of
from pdpp_sources.tables.table_series import renamed, series_of, stream_name

JSON_SUFFIXES = (".json", ".jsonl", ".ndjson", ".geojson")


class TableSource:
    """Recognizes tables; `fitted` makes the source that reads one of them."""

    connector_key = "table"
    declaration: Data = declaration(
        "table",
        "Your own tables",
        "CSV, JSON and SQLite, as their columns describe them.",
        [],
    )
    how_to_export = (
        "Any .csv, .tsv, .json, .jsonl, .geojson or SQLite file, one at a time. Look first with "
        "--dry-run; name the columns with --key, --time and --title where the guess is wrong."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim a table, or the tables that make out most of a folder."""
        views = views_of_notion(export)
        export = export.only(member for member in export.members if member.name not in views)
        tables = list(matching(export, could_be_table, *SUFFIXES))
        first = tables or list(matching(export.only(export.members[:1]), looks_like_table))
        alone = [*first, *(companion for member in first for companion in beside(export, member))]
        if len(alone) == len(export.members):
            return claim(alone, "it is a table" if len(first) == 1 else "its files are tables")
        filled = sum(member.size_bytes > 0 for member in export.members)
        if 2 * len(tables) >= filled:
            return claim(tables, "its files are tables")
        return claim(filter(is_of_notion, tables), "Notion calls its databases so")

    def folder_of_json(self, export: Export) -> Claim | None:
        """Claim the JSON that makes out most of a folder which no source knows."""
        json_tables = list(matching(export, looks_like_table, *JSON_SUFFIXES))
        filled = sum(member.size_bytes > 0 for member in export.members)
        return claim(json_tables if 2 * len(json_tables) >= filled else (), "its files are JSON")

    def every_table(self, export: Export) -> Claim | None:
        """Claim whatever could be one, since the owner said so."""
        table_names = {member.name for member in matching(export, could_be_table, *SUFFIXES)}
        table_names |= {member.name for member in matching(export, looks_like_table)}
        mine = [member for member in export.members if member.name in table_names]
        return claim(
            [*mine, *(e for member in mine for e in beside(export, member))], "you said so"
        )

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Read as the columns say."""
        return self.fitted(export).read(export, start)

    def fitted(self, export: Export, guidance: Guidance = UNGUIDED) -> SourceReader:
        """The source of this very table, with its own declaration."""
        return FittedTable(export, guidance)


class FittedTable:
    """The source of some files, made from their columns."""

    def __init__(self, export: Export, guidance: Guidance) -> None:
        is_one = len(export.members) - len(_logs(export)) == 1
        name = Path(export.members[0].name).stem if is_one else export.path.stem
        if not is_one and all(map(is_of_notion, export.members)):
            name = "Notion databases"  # the name of the file is another for each export
        self.full_name, known_tables = name, guidance.known
        name = known_tables.name if known_tables else family_name(name)
        self.connector_key = known_tables.connector_key if known_tables else table_key(name)
        stored = known_tables.streams.keys() if known_tables else frozenset[str]()
        series = series_of(_tables(export, stored), name, stored)
        if known_tables and len(series) == len(known_tables.streams) == 1:
            series = [renamed(series[0], next(iter(known_tables.streams)))]
        self._fits = fits_of(series, guidance)
        streams = [stream for fit in self._fits for stream in streams_of(fit, guidance)]
        detail = "; ".join(fit.words for fit in self._fits)
        self.declaration: Data = declaration(
            self.connector_key, name[:200] or "Table", detail[:2000], streams
        )
        self.how_to_export = TableSource.how_to_export

    @property
    def columns(self) -> list[tuple[str, TableColumn]]:
        """The name of the stream and the column, of all columns that were found."""
        own = [(fit.series.stream, column) for fit in self._fits for column in fit.columns]
        nested = [nested for fit in self._fits for nested in fit.nested]
        return [*own, *((inner.stream, column) for inner in nested for column in inner.columns)]

    def recognize(self, export: Export) -> Claim | None:
        """Claim the file it was made for."""
        return claim(export.members, "; ".join(fit.words for fit in self._fits))

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each row; one that does not fit its columns is reported."""
        logs = _logs(export)
        export.accounted_for.update(logs)  # they are parts of their databases
        files = dataclasses.replace(
            export, members=tuple(m for m in export.members if m.name not in logs)
        )

        def read_member(member: ExportMember) -> Iterator[SourceItem]:
            fitting = [(fit, t) for fit in self._fits for t in fit.tables_in(member.name)]
            if not fitting:
                yield Skipped(
                    member.name, "bad_record", "the file contains no table", member.offset
                )
            yield from left_out(export, member)
            if fitting and (form := fitting[0][1].json):
                rows = json_rows(member, form)  # of all in one pass, so that positions rise
                yield from without_repeats(_mixed(fitting, rows, export.zone))
                return
            for fit, table in fitting:
                items = fit.read(table, export.zone)
                # A row without a key is itself however often it comes.
                yield from without_repeats(items) if fit.key else items

        return beginning_at(start, each_member(files, read_member))


def _mixed(
    fitting: list[tuple[TableFit, Table]], rows: Iterator[TableRow | Skipped], zone: tzinfo
) -> Iterator[SourceItem]:
    """The rows of several tables in the order of their file, as the records of each."""
    by_part = {table.part: (fit, table) for fit, table in fitting}
    alike: dict[str, dict[str, int]] = {part: {} for part in by_part}
    for fit, table in fitting:
        yield from fit.beyond(table)
    for row in rows:
        if isinstance(row, Skipped):
            yield row
            BOOKMARK.after(row.position)
        elif row.part in by_part:
            fit, table = by_part[row.part]
            yield from fit.items(table, row, zone, alike[row.part])


def _logs(export: Export) -> set[str]:
    """The names of files that are part of a database beside them."""
    return {log.name for member in export.members for log in beside(export, member)}


def _tables(export: Export, stored: AbstractSet[str]) -> list[Table]:
    """The tables of all files, each of a name of its own; what cannot be begun is left.

    Shapes: `stored` are the names of streams.
    Raises: ExportUnreadable, ExportTooCostly, if there is but one file.
    """
    tables: list[Table] = []
    logs = _logs(export)
    members = [member for member in export.members if member.name not in logs]
    for member in members:
        try:
            BOOKMARK.beginning(member)
            tables += tables_of(export, member, stored)
        except (BadRecord, ExportUnreadable, MemberDamaged) as error:
            if len(members) > 1:
                continue
            if not isinstance(error, BadRecord):
                raise
            next_step = "Import a part of it, or export it in another form."
            sentence = f"{error.reason[0].upper()}{error.reason[1:]}."
            raise ExportTooCostly(sentence, next_step) from None
    return tables


def streams_of(fit: TableFit, guidance: Guidance) -> list[StreamForm]:
    """A stream with a field for each column and an `id` for the record, and those inside its rows.

    Columns that are stored and not in these files stay declared.
    """
    series, known_columns = fit.series, guidance.columns_of(fit.series.stream)
    columns = [_in_stored_unit(column, known_columns) for column in fit.columns]
    field_names = {column.name for column in columns}
    absent = [
        TableColumn(
            name,
            column.field,
            column.spelling or _SPELLING_OF.get(column.kind, "string"),
            is_currency=column.is_currency,
            currency=column.unit,
            currency_field=column.unit_field,
            is_prose=column.is_prose,
        )
        for name, column in known_columns.items()
        if column.field not in field_names and column.field != "id"
    ]
    fields = [_field(c, is_event=c.name == fit.time) for c in (*columns, *absent)]
    nested = [
        StreamForm(
            nested.stream,
            f"{nested.source_name} of {series.name}"[:200],
            f"Entries of {nested.source_name}, which rows of {series.name} list"[:2000],
            [
                key(),
                reference(nested.parent, f"The row of {series.name}", required=True),
                integer(nested.number, "The place among the entries of the row"),
                *(_field(column, is_event=False) for column in nested.columns),
            ],
            parents={"row": (series.stream, nested.parent)},
            semantic=[column.name for column in nested.columns if column.is_prose],
        )
        for nested in fit.nested
    ]
    whole = StreamForm(
        series.stream,
        f"Rows of {series.name}"[:200],
        "All columns: " + ", ".join(column.source_name for column in columns)[:900],
        [key(), *(field for field in fields if field.name != "id")],
        time_field=fit.time,
        children={stream_name(e.source_name): (e.stream, e.parent) for e in fit.nested},
        semantic=[
            column.name
            for column in (*columns, *absent)
            if column.is_prose or _is_known_prose(column, known_columns)
        ],
    )
    return [whole, *nested]


def _is_known_prose(column: TableColumn, known: Mapping[str, KnownColumn]) -> bool:
    stored = known.get(column.source_name)
    return stored is not None and stored.is_prose and column.kind == "string"


def _in_stored_unit(column: TableColumn, known: Mapping[str, KnownColumn]) -> TableColumn:
    """A column with the unit that is stored of it, where its file says none.

    Amounts of two currencies that no column tells apart have none; those that are stored without
    one may be such, so that a further file gives them none.
    """
    stored = known.get(column.source_name)
    if stored is None:
        return column
    is_currency = column.is_currency or (stored.is_currency and column.kind == "string")
    by = column.currency_field or stored.unit_field
    unit = stored.unit if column.currency in (None, stored.unit) else None
    return replace(column, is_currency=is_currency, currency=unit, currency_field=by)


_SPELLING_OF = {
    **{kind: kind for kind in ("integer", "number", "boolean", "date", "date-time")},
    **{kind: kind for kind in ("strings", "json")},
    "string": "string",
}


def _field(column: TableColumn, *, is_event: bool) -> Field:
    """The field of a column; how the file calls it is its title where that is another name."""
    field_made = _made(column, is_event=is_event)
    schema: Data = {"x_table_column": [column.source_name, column.spelling]}
    if column.source_name != column.name:
        schema["title"] = column.source_name
    return replace(field_made, schema=field_made.schema | schema)


def _made(column: TableColumn, *, is_event: bool) -> Field:
    about = f"Column {column.source_name}"
    about += f", in {column.currency}" if column.currency else ""
    if column.spelling in EPOCHS:
        about += f", written as {EPOCHS[column.spelling].words}"
    if column.kind in _MAKERS:
        return _MAKERS[column.kind](column, about, is_event)
    if column.is_currency and not column.is_title:
        return currency(column.name, about, searched=True)
    if column.is_conversation and not column.is_title:
        return conversation(word(column.name, about, searched=True))
    if column.is_speaker and not column.is_title:
        return written_by(word(column.name, about, searched=True))
    if column.is_grouped:
        return word(column.name, about, title=column.is_title, searched=True)
    return text(column.name, about, title=column.is_title)


def _listed(field: Field) -> Field:
    """The field of a list that rows may go without."""
    return replace(field, schema=field.schema | {"type": ["array", "null"]})


_MAKERS: dict[str, Callable[[TableColumn, str, bool], Field]] = {
    "boolean": lambda column, about, _: flag(column.name, about),
    "integer": lambda column, about, _: in_unit(
        integer(column.name, about, summed=True), by=column.currency_field
    ),
    "number": lambda column, about, _: in_unit(
        number(column.name, about, summed=True),
        by=column.currency_field,
        unit=None if column.currency_field else column.currency,
    ),
    "date": lambda column, about, event: day(column.name, about, event=event),
    "date-time": lambda column, about, event: moment(column.name, about, event=event),
    "strings": lambda column, about, _: _listed(names(column.name, about)),
    "json": lambda column, about, _: free(column.name, about),
}
