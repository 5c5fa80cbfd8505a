"""How the records of a stream are stored: which fields are columns, which columns are indexed.

What a declaration asks for is worked out in `declared_layouts`, the tables are made in
`record_tables`.

Per source there are `r<n>` (one narrow line per record: key, dates of change, comparable values, in
`wc` how many words each lexical field has), `h<n>` (the JSON text, in `sum` the checksum of both)
and `w<n>` (the word index), joined by `id`, and `d<n>` and `g<n>` (`summaries`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from hashlib import blake2b

import msgspec
import orjson

from pdpp_kernel.declaration import (
    LIMITING_KINDS,
)
from pdpp_kernel.person_fields import (
    PersonField,
)
from pdpp_kernel.values import ValueKind
from personal_server.storage.sql.dialect import Value

# How tables are made whatever is declared; raised where all that exist have to be made anew.
# 2: texts have checksums, and word indexes a list for each field; 3: word indexes know stems;
# 4: stems stand under their family of languages; 5: what is posted tells how often; 6: the language
# of a text is told by `domain/text_language.py`.
FORM = 6
CHECKED_FORM = 2


class Column(msgspec.Struct, frozen=True):
    """A field with a column of comparables (strings: their first 256 code points).

    Where it `is_text`, there is no column yet and the value is taken from the JSON text.
    """

    field: str
    kind: ValueKind
    name: str
    indexed: bool

    @property
    def is_text(self) -> bool:
        """Names of columns in tables begin with another letter."""
        return self.name.startswith("v")


class Grouped(msgspec.Struct, frozen=True):
    """A string that records are grouped by, and the strings that label and mark its groups."""

    field: str
    label: str | None = None
    mark: str | None = None


class Layout(msgspec.Struct, frozen=True, dict=True):
    """The columns of one stream; `key`, `cursor`, `consent` and `event` name fields.

    `key` is the primary-key field, if it is one string: its values are the record keys.
    `folded` are names and addresses once more, in lower case, for equality that ignores case.
    `measured` are numbers that are summed or compared: groups find them in their index.
    `placed` is the time by which records are numbered: the one that time constraints ask for, so
    that what a constraint leaves is one stretch of ids; without one, the event time.
    `by_day`: a table counts and sums what each day has (`summaries`), `facets` are the fields of
    few values by which it does so apart; of the `grouped` ones another counts and sums each value.
    Tables of an older `form` were given the columns that they lacked, empty (`rebuilds.adopt`).
    """

    columns: tuple[Column, ...]
    key: str | None
    cursor: str | None
    sortable: tuple[str, ...]
    consent: str | None
    event: str | None
    measured: tuple[str, ...]
    lexical: tuple[str, ...]
    blobs: tuple[str, ...]
    placed: str | None
    form: int = FORM
    persons: tuple[PersonField, ...] = ()
    folded: tuple[Column, ...] = ()
    by_day: bool = False
    facets: tuple[str, ...] = ()
    grouped: tuple[Grouped, ...] = ()

    @cached_property
    def by_field(self) -> dict[str, Column]:
        """The columns by the field that they store."""
        return {column.field: column for column in self.columns}

    @cached_property
    def places(self) -> dict[str, int]:
        """Where a field stands among the columns."""
        return {column.field: index for index, column in enumerate(self.columns)}

    @cached_property
    def limiting(self) -> dict[str, Column]:
        """By field what limits of grants are compared with: folded, where case is ignored."""
        indexed = [c for c in self.columns if c.indexed and c.kind in LIMITING_KINDS]
        by_name = {column.field: column for column in (*indexed, *self.folded)}
        return {name: column for name, column in by_name.items() if name != self.key}

    @cached_property
    def rebuilding(self) -> tuple[Column, ...]:
        """Columns whose values are still taken from the JSON text."""
        return tuple(column for column in self.columns if column.is_text)

    def column(self, field: str | None, kind: ValueKind | None = None) -> Column | None:
        """The column of a field, if it has one (of that kind)."""
        column = self.by_field.get(field or "")
        return column if column is None or kind is None or column.kind is kind else None

    def folded_column(self, field: str) -> Column | None:
        """The column of a field's folded strings, if it has one."""
        return next((column for column in self.folded if column.field == field), None)

    @cached_property
    def line_columns(self) -> tuple[str, ...]:
        """The columns of `r<n>` in the order in which lines are written."""
        names = (column.name for column in (*self.columns, *self.folded))
        return ("id", "k", "cs", "ce", "e", *names, "wc", "fc")

    @cached_property
    def indexes(self) -> dict[str, tuple[str, ...]]:
        """Index name suffix → columns.

        An exact filter in default order is one walk of (value, default sort value, key); a
        sortable field has (value, key).
        """
        cursor = self.column(self.cursor)
        columns_by_name: dict[str, tuple[str, ...]] = {}
        for column in self.columns:
            if not column.indexed:
                continue
            if cursor is None or column.field in self.sortable:
                columns_by_name[column.name] = (column.name, "k")
            else:
                columns_by_name[column.name] = (column.name, cursor.name, "k")
            columns_by_name[column.name] += self._measured_beside(columns_by_name[column.name])
        for column in self.folded:
            columns_by_name[column.name] = (column.name, *([cursor.name] if cursor else []), "k")
        return columns_by_name

    @cached_property
    def measured_columns(self) -> tuple[Column, ...]:
        """The columns of measured numbers."""
        return tuple(column for column in self.columns if column.field in self.measured)

    @cached_property
    def summary_figures(self) -> tuple[str, ...]:
        """The columns of summaries behind their key and the number of records."""
        return tuple(name for column in self.measured_columns for name in self.figures_of(column))

    def figures_of(self, column: Column) -> tuple[str, str, str, str]:
        """How many have a number, the two parts of its sum, how many values stand in neither."""
        name = column.name
        return (f"{name}_present", f"{name}_high", f"{name}_low", f"{name}_odd")

    def _measured_beside(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        names = (column.name for column in self.measured_columns)
        return tuple(name for name in names if name not in columns)

    def render(self) -> str:
        """The layout as stored; equal texts are equal layouts."""
        return orjson.dumps(msgspec.to_builtins(self)).decode()


def render_held(values: Mapping[str, Value]) -> str:
    """What a record held, by field: digests, for what it held goes with it."""
    return orjson.dumps({n: held_digest(v) for n, v in values.items() if v is not None}).decode()


def held_digest(value: Value) -> str:
    """What stands for a value of a column in `was_held`."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    elif not isinstance(value, str):
        value = str(int(value or 0))
    return blake2b(value.encode(errors="replace"), digest_size=8).hexdigest()
