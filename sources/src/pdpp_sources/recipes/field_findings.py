"""What is found of a recipe while its rows are read: fields and streams within others that have
none, values that cannot be read.

Rule: each is named once, with how many rows it concerns and what may mend the recipe; never a
value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import tzinfo

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import Json, Skipped
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.recipes.recipe import Recipe, RecipeField, RecipeStream
from pdpp_sources.recipes.recipe_values import converted, written

_MOST_HINTED = 100
_EPOCHS = {10: "seconds", 13: "milliseconds", 16: "microseconds", 19: "nanoseconds"}


class _Unreadable(msgspec.Struct):
    where: str
    row: int
    count: int = 0
    hints: Counter[str] = msgspec.field(default_factory=Counter[str])


class FieldFindings:
    """Counts over all files of an export."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._rows = Counter[str]()
        self._valued = Counter[tuple[str, str]]()
        self._unreadable: dict[tuple[str, str], _Unreadable] = {}
        self._placed = set[str]()

    def row(self, stream: RecipeStream) -> None:
        """Count a row of a stream."""
        self._rows[stream.name] += 1

    def placed(self, inner: RecipeStream) -> None:
        """Note that a row has the place where the rows of a stream within it stand."""
        self._placed.add(inner.name)

    def valued(self, stream: RecipeStream, column: RecipeField) -> None:
        """Count a row that has something at the place of a field."""
        self._valued[stream.name, column.name] += 1

    def unreadable(
        self,
        stream: RecipeStream,
        column: RecipeField,
        value: Json,
        zone: tzinfo,
        where: tuple[str, int],
    ) -> None:
        """Count a value that cannot be read; `where` is its file and the number of its row."""
        found = self._unreadable.setdefault((stream.name, column.name), _Unreadable(*where))
        found.count += 1
        if found.count <= _MOST_HINTED and (hint := hint_of(value, column, zone)):
            found.hints[hint] += 1

    def skipped(self, place: int, *, names_empty: bool) -> Iterator[Skipped]:
        """A report of each field that has unreadable values, or none at all in any row.

        In: `place`, how far the files are read; with `names_empty` those without a value, too.
        """
        for (stream, name), found in self._unreadable.items():
            reason = message(
                "%(field)s of %(stream)s: %(count)s of %(all)s values cannot be read, the first in "
                "row %(row)s",
                field=name,
                stream=stream,
                count=str(found.count),
                all=str(self._valued[stream, name]),
                row=str(found.row),
            )
            if found.hints:
                ((hint, _),) = found.hints.most_common(1)
                reason = message(
                    "%(finding)s; perhaps the recipe needs `%(hint)s`", finding=reason, hint=hint
                )
            yield Skipped(found.where, "no_value", reason, place)
        for stream in self._recipe.streams if names_empty else ():
            yield from self._rowless(stream, place)
            for column in stream.fields if self._rows[stream.name] else ():
                if not self._valued[stream.name, column.name]:
                    yield self._empty(stream, column, place)

    def _rowless(self, stream: RecipeStream, place: int) -> Iterator[Skipped]:
        """A report of a stream within another, whose place no row of that one has."""
        if stream.within is None or not self._rows[stream.within]:
            return
        if stream.name not in self._placed:
            reason = message(
                "%(stream)s: nothing stands at `rows` (%(place)s) in any row of %(outer)s",
                stream=stream.name,
                place=stream.rows,
                outer=stream.within,
            )
            yield Skipped(stream.name, "no_rows", reason, place)

    def _empty(self, stream: RecipeStream, column: RecipeField, place: int) -> Skipped:
        reason = message(
            "%(field)s: no value in any of %(count)s rows; check its `from` (%(places)s)",
            field=column.name,
            count=str(self._rows[stream.name]),
            places=column.of or ", ".join(column.places),
        )
        return Skipped(stream.name, "empty_field", reason, place)


def hint_of(value: Json, column: RecipeField, zone: tzinfo) -> str | None:
    """What a field lacks in the recipe, if with it the value can be read.

    In: `"3,45"` of an amount. Out: `decimal = ","`.
    """
    text = written(value) or ""
    if column.is_number:
        other = "," if column.decimal == "." else "."
        is_read = _reads(value, replace(column, decimal=other), zone, None)
        return f'decimal = "{other}"' if is_read else None
    if not column.is_time:
        return None
    digits = re.fullmatch(r"-?(\d+)(?:\.\d+)?", text)
    if digits:
        form = _EPOCHS.get(len(digits[1]))
        return f'format = "{form}"' if form and form != column.form else None
    if column.form is None and _reads(value, column, zone, "day-first"):
        return 'format = "by-column"'
    return None


def _reads(value: Json, column: RecipeField, zone: tzinfo, form: str | None) -> bool:
    try:
        return converted(value, column, zone, form) is not None
    except BadRecord:
        return False
