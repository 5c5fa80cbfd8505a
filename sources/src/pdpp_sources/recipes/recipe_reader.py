"""The source that a recipe makes: it claims the files the recipe knows, and reads their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from pdpp_kernel.source_item import Data, Json, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.source import (
    MOST_REMEMBERED,
    Claim,
    beginning_at,
    claim,
    each_member,
    one_record,
    without_repeats,
)
from pdpp_sources.recipes.field_findings import FieldFindings
from pdpp_sources.recipes.recipe import PARENT, Recipe, RecipeField, RecipeStream
from pdpp_sources.recipes.recipe_row_files import RowFiles, files_beside, lies_in, without_ending
from pdpp_sources.recipes.recipe_rows import RecipeRow, rows_in, streams_in
from pdpp_sources.recipes.recipe_values import BY_COLUMN, converted, has_place, value_at, written
from pdpp_sources.tables.column_days import DAY_FIRST, MONTH_FIRST, day_forms

_LONGEST_KEY_CHARS = 200
Orders = dict[tuple[str, str], str | None]
"""For each stream and field whose days are ordered by their column: which order that is."""


@dataclass(frozen=True, slots=True)
class RecipeSource:
    """Reads what a recipe describes.

    Shapes: `origin` is where the recipe lies, empty for one that ships with the product.
    """

    recipe: Recipe
    origin: str = ""
    declaration: Data = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "declaration", self.recipe.declaration())

    @property
    def connector_key(self) -> str:
        """The short name of the source."""
        return self.recipe.key

    @property
    def how_to_export(self) -> str:
        """How one gets the export."""
        return self.recipe.how_to_export

    def recognize(self, export: Export) -> Claim | None:
        """Claim the files that are called so and whose first row has what it must."""
        found = {m.name: streams_in(m, self.recipe) for m in export.members}
        mine = [member for member in export.members if found[member.name]]
        folders, rows = files_beside(mine, self.recipe), {member.name for member in mine}
        theirs = [
            m for m in export.members if folders and m.name not in rows and lies_in(m, folders)
        ]
        claimed = claim([*mine, *theirs], "its files are named and built so")
        if claimed is None or not self.origin:
            return claimed
        # those that ship have streams for layouts of which an export has one
        from pdpp_sources.recipes.missed_streams import missed_streams  # noqa: PLC0415

        with_rows = {name: streams for name, streams in found.items() if streams}
        return replace(claimed, missed=tuple(missed_streams(export, self.recipe, with_rows)))

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Read one row at a time."""
        texts, files = export, dict[str, ExportMember]()
        if any(stream.file for stream in self.recipe.streams):
            texts = export.only(m for m in export.members if streams_in(m, self.recipe))
            files = {without_ending(m.name): m for m in export.members}
        findings = FieldFindings(self.recipe)
        items = each_member(texts, partial(self._read_member, export, files, findings))
        return beginning_at(start, self._with_findings(without_repeats(items), findings))

    def _with_findings(
        self, items: Iterator[SourceItem], findings: FieldFindings
    ) -> Iterator[SourceItem]:
        place = 0
        for item in items:
            place = item.position
            yield item
        yield from findings.skipped(place, names_empty=bool(self.origin))

    def _read_member(
        self,
        export: Export,
        files: Mapping[str, ExportMember],
        findings: FieldFindings,
        member: ExportMember,
    ) -> Iterator[SourceItem]:
        streams = streams_in(member, self.recipe)
        orders = _orders(member, streams)
        for (_, name), order in orders.items():
            if order is None:
                reason = message(
                    "the days of %(field)s may be written day or month first; they were left out",
                    field=name,
                )
                yield Skipped(member.name, "ambiguous_dates", reason, member.offset)
        records = _Records(self.recipe, export, orders, RowFiles(member, files), findings)
        for number, row in enumerate(rows_in(member, streams), 1):
            if isinstance(row, Skipped):
                yield row
            else:
                records.place = (member.name, number)
                yield from one_record(row.where, row.position, partial(records.of, row))


def _orders(member: ExportMember, streams: Sequence[RecipeStream]) -> Orders:
    """What comes first in the days of the columns of which only all cells together say so."""
    asked = [(s, f) for s in streams for f in s.fields if f.form == BY_COLUMN]
    if not asked:
        return {}
    fitting = [set[str]() for _ in asked]
    is_begun = [False for _ in asked]
    for row in rows_in(member, streams):
        if isinstance(row, Skipped):
            continue
        for number, (_, column) in enumerate(asked):
            found = day_forms(written(_value(column, row.values, row.around)) or "")
            if found:
                fitting[number] = fitting[number] & found if is_begun[number] else found
                is_begun[number] = True
        BOOKMARK.after(row.position)
    return {
        (stream.name, column.name): _order(forms, is_asked=begun)
        for (stream, column), forms, begun in zip(asked, fitting, is_begun, strict=True)
    }


def _order(forms: set[str], *, is_asked: bool) -> str | None:
    is_day, is_month = bool(forms & DAY_FIRST), bool(forms & MONTH_FIRST)
    if is_asked and is_day and is_month:
        return None
    return "month-first" if is_month else "day-first"


class _Records:
    """Makes records of the rows of one file; counts those of equal content.

    Shapes: `place` is the file and the number of the row at work.
    """

    def __init__(
        self,
        recipe: Recipe,
        export: Export,
        orders: Orders,
        files: RowFiles,
        findings: FieldFindings,
    ) -> None:
        self._recipe = recipe
        self._zone = export.zone
        self._orders = orders
        self._files = files
        self._findings = findings
        self.place: tuple[str, int] = ("", 0)
        self._alike: dict[str, int] = {}

    def of(self, row: RecipeRow) -> Iterator[SourceItem]:
        """The records of a row, or a report that it is of no stream. Raises: BadRecord."""
        streams = [stream for stream in row.streams if _takes(stream, row.values)]
        if not streams:
            yield _of_no_stream(row)
        for stream in streams:
            yield from self._records(stream, row, row.values, None)

    def _records(
        self, stream: RecipeStream, row: RecipeRow, values: Data, parent: str | None
    ) -> Iterator[SourceItem]:
        key = self._key(stream, row, values, parent)
        self._findings.row(stream)
        data: Data = {"id": key} if parent is None else {"id": key, PARENT: parent}
        for column in stream.fields:
            form = column.form
            held = _value(column, values, row.around)
            if held not in (None, ""):
                self._findings.valued(stream, column)
            if form == BY_COLUMN:
                form = self._orders.get((stream.name, column.name))
                if form is None:
                    continue
            try:
                value = converted(held, column, self._zone, form)
            except BadRecord:
                self._findings.unreadable(stream, column, held, self._zone, self.place)
                value = None
            if value is not None or column.name != stream.time:
                data[column.name] = value
        data = {n: v for n, v in data.items() if v is not None or _is_nullable(stream, n)}
        record = SourceRecord(stream.name, data, row.position)
        if stream.file is None:
            yield record
        else:
            yield from self._files.with_file(record, stream.file, values)
        for inner in self._recipe.inside(stream):
            yield from self._records_within(inner, row, values, key)

    def _records_within(
        self, inner: RecipeStream, row: RecipeRow, values: Data, parent: str
    ) -> Iterator[SourceItem]:
        """The records of a stream whose rows stand in a row of another."""
        if has_place(values, (inner.rows,)):
            self._findings.placed(inner)
        for entry in _entries(value_at(values, (inner.rows,))):
            if not _takes(inner, entry):
                yield _of_no_stream(row)
                continue
            try:
                yield from self._records(inner, row, entry, parent)
            except BadRecord as bad:  # it costs itself, not the row that it stands in
                yield Skipped(row.where, bad.code, bad.reason, row.position)

    def _key(self, stream: RecipeStream, row: RecipeRow, values: Data, parent: str | None) -> str:
        """What names a record: its key, else what it holds and how many like it came before.

        It is made of what stands in the file, so that another zone or a mended recipe corrects the
        record and makes no other.
        """
        named = stream.key or tuple(each.name for each in stream.fields)
        fields = [each for name in named if (each := stream.field(name))]
        parts = [_part(_value(each, values, row.around)) for each in fields]
        if stream.key and not any(parts):
            raise BadRecord("bad_record", "its key is empty")
        if len(stream.key) == 1 and parent is None and not stream.repeats:
            text = parts[0] or ""
            is_plain = len(text) <= _LONGEST_KEY_CHARS and text.isprintable()
            return text if is_plain else stable_id(stream.name, text)
        key = stable_id(stream.name, parent or "", *parts)
        if stream.key and not stream.repeats:
            return key
        number = self._alike.get(key, 0) + 1
        if number > 1 or len(self._alike) < MOST_REMEMBERED:
            self._alike[key] = number
        return key if number == 1 else f"{key}.{number}"


def _value(column: RecipeField, values: Data, around: Mapping[str, str]) -> Json:
    """What a field is made of: what stands in the row, or the name of what the row stands in."""
    if column.of is not None:
        return around.get(column.of)
    value = value_at(values, column.places)
    return None if column.empty and written(value) in column.empty else value


def _part(value: Any) -> str | None:
    """A value as a part of a key: as it is written; of a list or an object what it holds."""
    text = written(value)
    return text if text is not None or value is None or isinstance(value, str) else repr(value)


def _of_no_stream(row: RecipeRow) -> Skipped:
    reason = message("the entry is of another kind than the recipe describes")
    return Skipped(row.where, "unknown_record_type", reason, row.position)


def _is_nullable(stream: RecipeStream, name: str) -> bool:
    column = stream.field(name)
    return column is not None and column.kind not in ("names", "json") and name != stream.time


def _takes(stream: RecipeStream, values: Data) -> bool:
    """Whether a row is one of a stream."""
    return all(has_place(values, places) for places in stream.has) and all(
        written(value_at(values, (place,))) in allowed for place, allowed in stream.only.items()
    )


def _entries(value: Any) -> list[Data]:
    """The objects of a list, or the one object; what is no object is the `value` of one."""
    entries = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [
        cast("Data", each) if isinstance(each, dict) else {"value": each}
        for each in entries
        if each is not None
    ]
