"""Any table: CSV, JSON and SQLite, described by their own columns.

There is no declaration to ship. The file is read once to learn its columns; from what they hold
follow their types, the key, the time and the title, and what can be asked. Whoever imports may name
key, time and title instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from pathlib import Path

from pdpp_kernel.declaration import OWN_FILE_PREFIX
from pdpp_kernel.source_item import Data, Json, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common.database import beside
from pdpp_sources.common.declaration import (
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
from pdpp_sources.common.epochs import EPOCHS
from pdpp_sources.common.errors import BadRecord, ExportTooCostly, ExportUnreadable, MemberDamaged
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.source import (
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
from pdpp_sources.common.text import one_line
from pdpp_sources.tables.column_keys import key_text
from pdpp_sources.tables.columns import (
    MOST_COLUMNS,
    Survey,
    TableColumn,
    renamed,
    says_nothing,
    typed,
)
from pdpp_sources.tables.csv_file import SUFFIXES
from pdpp_sources.tables.files import (
    Table,
    TableRow,
    could_be_table,
    is_of_notion,
    json_rows,
    left_out,
    looks_like_table,
    slug,
    tables_of,
    views_of_notion,
)


@dataclass(frozen=True, slots=True)
class Guidance:
    """What the owner says of the columns; None lets the columns speak.

    Shapes: `kinds` names columns, and of each a word of `columns.KINDS`.
    """

    key: str | None = None
    time: str | None = None
    title: str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict[str, str])


KEY_FIELD = "id"
UNGUIDED = Guidance()


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
        export = export.only(each for each in export.members if each.name not in views)
        named = list(matching(export, could_be_table, *SUFFIXES))
        first = named or list(matching(export.only(export.members[:1]), looks_like_table))
        alone = [*first, *(each for member in first for each in beside(export, member))]
        if len(alone) == len(export.members):
            return claim(alone, "it is a table" if len(first) == 1 else "its files are tables")
        filled = sum(member.size_bytes > 0 for member in export.members)
        if 2 * len(named) >= filled:
            return claim(named, "its files are tables")
        return claim(filter(is_of_notion, named), "Notion calls its databases so")

    def every_table(self, export: Export) -> Claim | None:
        """Claim whatever could be one, since the owner said so."""
        named = {member.name for member in matching(export, could_be_table, *SUFFIXES)}
        named |= {member.name for member in matching(export, looks_like_table)}
        mine = [member for member in export.members if member.name in named]
        return claim(
            [*mine, *(e for member in mine for e in beside(export, member))], "you said so"
        )

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Read as the columns say."""
        return self.fitted(export).read(export, start)

    def fitted(self, export: Export, guidance: Guidance = Guidance()) -> SourceReader:
        """The source of this very table, with its own declaration."""
        return FittedTable(export, guidance)


class FittedTable:
    """The source of some files, made from their columns."""

    def __init__(self, export: Export, guidance: Guidance) -> None:
        is_one = len(export.members) - len(_logs(export)) == 1
        name = Path(export.members[0].name).stem if is_one else export.path.stem
        if not is_one and all(map(is_of_notion, export.members)):
            name = "Notion databases"  # the name of the file is another for each export
        self.connector_key = f"{OWN_FILE_PREFIX}{slug(name)}"[:64]
        self._fits = _fits(_tables(export), guidance)
        streams = [stream_of(fit.table, fit.columns, fit.time) for fit in self._fits]
        detail = "; ".join(fit.words for fit in self._fits)
        self.declaration: Data = declaration(
            self.connector_key, name[:200] or "Table", detail[:2000], streams
        )
        self.how_to_export = TableSource.how_to_export

    @property
    def columns(self) -> list[tuple[str, TableColumn]]:
        """The name of the stream and the column, of all columns that were found."""
        return [(fit.table.stream, column) for fit in self._fits for column in fit.columns]

    def recognize(self, export: Export) -> Claim | None:
        """Claim the file it was made for."""
        return claim(export.members, "; ".join(fit.words for fit in self._fits))

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each row; one that does not fit its columns is reported."""
        logs = _logs(export)

        def read_member(member: ExportMember) -> Iterator[SourceItem]:
            if member.name not in {fit.table.member.name for fit in self._fits} | logs:
                yield Skipped(
                    member.name, "bad_record", "the file contains no table", member.offset
                )
            yield from left_out(export, member)
            fits = [fit for fit in self._fits if fit.table.member.name == member.name]
            if fits and (form := fits[0].table.json):
                rows = json_rows(member, form)  # of all in one pass, so that positions rise
                yield from without_repeats(_mixed(fits, rows, export.zone))
                return
            for fit in fits:
                rows = fit.read(export.zone)
                # A row without a key is itself however often it comes.
                yield from without_repeats(rows) if fit.key else rows

        return beginning_at(start, each_member(export, read_member))


def _mixed(
    fits: list[_Fit], rows: Iterator[TableRow | Skipped], zone: tzinfo
) -> Iterator[SourceItem]:
    """The rows of several tables in the order of their file, as the records of each."""
    by_part = {fit.table.part: fit for fit in fits}
    alike: dict[str, dict[str, int]] = {part: {} for part in by_part}
    for fit in fits:
        yield from fit.beyond()
    for row in rows:
        if isinstance(row, Skipped):
            yield row
            BOOKMARK.after(row.position)
        elif row.part in by_part:
            yield from by_part[row.part].items(row, zone, alike[row.part])


def _logs(export: Export) -> set[str]:
    """The names of files that are part of a database beside them."""
    return {log.name for member in export.members for log in beside(export, member)}


def _tables(export: Export) -> list[Table]:
    """The tables of all files, each of a name of its own; what cannot be begun is left.

    Raises: ExportUnreadable, ExportTooCostly, if there is but one file.
    """
    found: list[Table] = []
    logs = _logs(export)
    members = [member for member in export.members if member.name not in logs]
    for member in members:
        try:
            BOOKMARK.beginning(member)
            found += tables_of(export, member)
        except (BadRecord, ExportUnreadable, MemberDamaged) as error:
            if len(members) > 1:
                continue
            if not isinstance(error, BadRecord):
                raise
            next_step = "Import a part of it, or export it in another form."
            sentence = f"{error.reason[0].upper()}{error.reason[1:]}."
            raise ExportTooCostly(sentence, next_step) from None
    return _apart(found)


def _apart(tables: list[Table]) -> list[Table]:
    """Tables of one name are told apart by the folders they lie in, else by numbers."""
    names = Counter(table.stream for table in tables)
    longer = [
        replace(each, name=each.member.name.rpartition(".")[0])
        if names[each.stream] > 1 and each.kind != "sqlite"
        else each
        for each in tables
    ]
    taken: set[str] = set()
    apart: list[Table] = []
    for table in longer:
        is_taken = table.stream in taken
        apart.append(replace(table, name=f"{table.name[:40]} {len(apart)}") if is_taken else table)
        taken.add(apart[-1].stream)
    return apart


def _fits(tables: list[Table], guidance: Guidance) -> list[_Fit]:
    """Each table with its roles; a column that the owner names has to be in one of them."""
    fits: list[_Fit] = []
    faults: list[BadRecord] = []
    for table in tables:
        try:
            fits.append(_fit(table, guidance))
        except BadRecord as bad:
            faults.append(bad)
            fits.append(_fit(table, UNGUIDED))
    if faults and len(faults) == len(tables):
        raise faults[0]
    everywhere = tuple(column for fit in fits for column in fit.columns)
    for name in guidance.kinds:
        _column_named(everywhere, name)
    return fits


@dataclass(frozen=True, slots=True)
class _Fit:
    """One table with the roles of its columns."""

    table: Table
    columns: tuple[TableColumn, ...]
    key: str | None
    time: str | None
    has_more_columns: bool = False

    @property
    def words(self) -> str:
        """The guess, for whoever imports."""
        title = next((column.name for column in self.columns if column.is_title), None)
        roles = {
            "key": self.key or "none, rows are told apart by content; set one with --key",
            "time": self.time,
            "title": title,
        }
        counted = {c.name: EPOCHS[c.spelling] for c in self.columns if c.spelling in EPOCHS}
        times = [f"{name}: {epoch.words}" for name, epoch in counted.items()]
        guess = ", ".join([*(f"{role}: {name}" for role, name in roles.items() if name), *times])
        guess += f", {self.table.form.words}" if self.table.form and self.table.form.words else ""
        return f"{self.table.name} ({guess})"

    def read(self, zone: tzinfo) -> Iterator[SourceItem]:
        """The rows as records; times without a zone are of that one."""
        alike: dict[str, int] = {}
        yield from self.beyond()
        for row in self.table.rows():
            if isinstance(row, Skipped):
                yield row
                BOOKMARK.after(row.position)
            else:
                yield from self.items(row, zone, alike)

    def beyond(self) -> Iterator[Skipped]:
        """A report of columns that are too many."""
        if self.has_more_columns:
            reason = message(
                "columns after the first %(most)s were left out", most=str(MOST_COLUMNS)
            )
            first = self.table.member.offset + self.table.rows_before
            yield Skipped(self.table.name, "too_large", reason, first)

    def items(self, row: TableRow, zone: tzinfo, alike: dict[str, int]) -> Iterator[SourceItem]:
        """One row as a record; `alike` counts the rows of equal content so far."""
        return one_record(row.where, row.position, partial(self._records, row, zone, alike))

    def _records(self, row: TableRow, zone: tzinfo, alike: dict[str, int]) -> list[SourceItem]:
        data: Data = {}
        beside: list[SourceItem] = []
        for column in self.columns:
            if column.kind not in ("string", "json") and says_nothing(
                row.values.get(column.source_name)
            ):
                reason = message(
                    "some cells say that there is no value (NaN, N/A, a blank); "
                    "these cells were imported as empty"
                )
                beside.append(Skipped(row.where, "no_value", reason, row.position))
            value = typed(row.values.get(column.source_name), column.spelling, zone)
            if value is not None or column.name != self.time:
                data[column.name] = value
        data[KEY_FIELD] = self._key(row, data, alike)
        return [SourceRecord(self.table.stream, data, row.position), *beside]

    def _key(self, row: TableRow, data: Data, alike: dict[str, int]) -> str:
        """What names a row: its key, else its content and how many like it came before."""
        value: Json = data.get(self.key) if self.key else None
        own = next((column for column in self.columns if column.is_key), None)
        if own and own.name == self.key:
            value = key_text(row.values.get(own.source_name), is_whole=own.has_whole_keys)
        if self.key is None:
            content = repr(sorted((str(k), str(v)) for k, v in row.values.items()))
            row_id = stable_id("row", content)
            number = alike.get(row_id, 0) + 1
            if number > 1 or len(alike) < MOST_REMEMBERED:
                alike[row_id] = number
            return row_id if number == 1 else f"{row_id}.{number}"
        if value in (None, ""):
            raise BadRecord("bad_record", "the key of the row is empty")
        text = str(value)
        return text if len(text) <= 200 and text.isprintable() else stable_id("key", text)


def _fit(table: Table, guidance: Guidance) -> _Fit:
    """Read a table once and give its columns their roles. Raises: BadRecord."""
    survey = Survey(frozenset(name for name, kind in guidance.kinds.items() if kind == "instant"))
    with suppress(BadRecord):  # what follows is too costly; it is reported where it is read
        for row in table.rows():
            if isinstance(row, TableRow):
                survey.add(row.values)
            BOOKMARK.after(row.position)
    columns = survey.columns(None, guidance.kinds)
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
        columns = renamed(columns, KEY_FIELD, "column_id")
    return _Fit(table, columns, key, time, survey.has_more_columns)


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
    """The field of a column; how the file calls it is its title where that is another name."""
    made = _made(column, is_event=is_event)
    if column.source_name == column.name:
        return made
    return replace(made, schema=made.schema | {"title": column.source_name})


def _made(column: TableColumn, *, is_event: bool) -> Field:
    about = f"Column {column.source_name}"
    about += f", in {column.currency}" if column.currency else ""
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
