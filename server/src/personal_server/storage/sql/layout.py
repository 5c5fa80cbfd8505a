"""How the records of a stream are stored: which fields are columns, which columns are indexed.

Rule: a layout is a pure function of a declaration, and of the columns that tables already have.

Per source there are `r<n>` (one narrow line per record: key, dates of change, comparable values, in
`wc` how many words each lexical field has), `h<n>` (the JSON text, in `sum` the checksum of both)
and `w<n>` (the word index), joined by `id`, and `d<n>` and `g<n>` (`summaries`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any

import orjson

from pdpp_kernel.declaration import (
    LIMITING_KINDS,
    Property,
    SourceDeclaration,
    Stream,
)
from pdpp_kernel.persons import PersonField, PersonForm
from pdpp_kernel.values import ValueKind
from personal_server.storage.sql.dialect import Dialect, Value
from personal_server.storage.tables import ColumnKind

# How tables are made whatever is declared; raised where all that exist have to be made anew.
# 2: texts have checksums, and word indexes a list for each field; 3: word indexes know stems;
# 4: stems stand under their family of languages; 5: what is posted tells how often.
FORM = 5
CHECKED_FORM = 2
# More numbers than this beside every indexed value would cost more than they save.
MOST_MEASURED = 3
# Each costs a walk of every batch, and so many rows a day as it has values.
MOST_FACETS = 4
# Each costs a walk of every batch, and a row for each value that it has.
MOST_GROUPED = 4


@dataclass(frozen=True, slots=True)
class Column:
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


@dataclass(frozen=True, slots=True)
class Grouped:
    """A string that records are grouped by, and the strings that label and mark its groups."""

    field: str
    label: str | None = None
    mark: str | None = None


@dataclass(frozen=True)
class Layout:
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
        """Columns by field."""
        return {column.field: column for column in self.columns}

    @cached_property
    def places(self) -> dict[str, int]:
        """Where a field stands among the columns."""
        return {column.field: place for place, column in enumerate(self.columns)}

    @cached_property
    def limiting(self) -> dict[str, Column]:
        """By field what limits of grants are compared with: folded, where case is ignored."""
        indexed = [each for each in self.columns if each.indexed and each.kind in LIMITING_KINDS]
        found = {each.field: each for each in (*indexed, *self.folded)}
        return {name: column for name, column in found.items() if name != self.key}

    @cached_property
    def rebuilding(self) -> tuple[Column, ...]:
        """Columns whose values are still taken from the JSON text."""
        return tuple(column for column in self.columns if column.is_text)

    def column(self, field: str | None, kind: ValueKind | None = None) -> Column | None:
        """The column of a field, if it has one (of that kind)."""
        found = self.by_field.get(field or "")
        return found if found is None or kind is None or found.kind is kind else None

    def folded_column(self, field: str) -> Column | None:
        """The column of a field's folded strings, if it has one."""
        return next((column for column in self.folded if column.field == field), None)

    @cached_property
    def line_columns(self) -> tuple[str, ...]:
        """The columns of `r<n>` in the order in which lines are written."""
        named = (column.name for column in (*self.columns, *self.folded))
        return ("id", "k", "cs", "ce", "e", *named, "wc", "fc")

    @cached_property
    def indexes(self) -> dict[str, tuple[str, ...]]:
        """Index name suffix → columns.

        An exact filter in default order is one walk of (value, default sort value, key); a
        sortable field has (value, key).
        """
        cursor = self.column(self.cursor)
        made: dict[str, tuple[str, ...]] = {}
        for column in self.columns:
            if not column.indexed:
                continue
            if cursor is None or column.field in self.sortable:
                made[column.name] = (column.name, "k")
            else:
                made[column.name] = (column.name, cursor.name, "k")
            made[column.name] += self._measured_beside(made[column.name])
        for column in self.folded:
            made[column.name] = (column.name, *([cursor.name] if cursor else []), "k")
        return made

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
        return orjson.dumps(asdict(self)).decode()


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


def parse_layout(text: str) -> Layout:
    """The layout that was rendered."""
    raw = orjson.loads(text)
    return Layout(
        _columns(raw["columns"]),
        raw["key"],
        raw["cursor"],
        tuple(raw["sortable"]),
        raw["consent"],
        raw["event"],
        tuple(raw["measured"]),
        tuple(raw["lexical"]),
        tuple(raw["blobs"]),
        raw.get("placed", raw["event"]),
        raw.get("form", 1),
        tuple(_person_field(each) for each in raw.get("persons", ())),
        _columns(raw.get("folded", ())),
        raw.get("by_day", False),
        tuple(raw.get("facets", ())),
        tuple(Grouped(**each) for each in raw.get("grouped", ())),
    )


def _columns(raw: Iterable[Mapping[str, Any]]) -> tuple[Column, ...]:
    return tuple(
        Column(each["field"], ValueKind(each["kind"]), each["name"], each["indexed"])
        for each in raw
    )


def _person_field(raw: Mapping[str, Any]) -> PersonField:
    members: dict[str, Any] = {**raw, "form": PersonForm(raw["form"])}
    return PersonField(**members)


def layouts(declaration: SourceDeclaration) -> dict[str, Layout]:
    """The layout of each stream; fields that other streams refer to are indexed too."""
    referenced: dict[str, set[str]] = {}
    for stream in declaration.streams.values():
        for relation in stream.relationships:
            if relation.foreign_key_on != "self":
                referenced.setdefault(relation.stream, set()).add(relation.foreign_key)
    return {
        name: layout_of(stream, frozenset(referenced.get(name, ())))
        for name, stream in declaration.streams.items()
    }


def layout_of(stream: Stream, referenced: frozenset[str] = frozenset()) -> Layout:
    """The layout of one stream."""
    timed = {*stream.aggregations.min, *stream.aggregations.max}
    indexed = {*stream.indexed, *referenced, *(n for n in timed if _is_instant(stream, n))}
    kept = [p for p in stream.properties.values() if _has_column(p, stream, indexed)]
    columns = tuple(
        Column(each.name, each.kind, f"c{place}", each.name in indexed)
        for place, each in enumerate(kept)
        if each.kind is not None
    )
    return Layout(
        columns,
        _single_key(stream),
        stream.cursor_field,
        stream.sortable,
        stream.consent_time_field,
        stream.event_time_field,
        _measured(stream),
        stream.lexical_fields,
        stream.blob_fields,
        stream.consent_time_field or stream.event_time_field,
        persons=stream.person_fields,
        folded=_folded(stream),
        by_day=True,
        facets=_facets(columns),
        grouped=_grouped(stream, columns),
    )


def _folded(stream: Stream) -> tuple[Column, ...]:
    """Keys of records are found by their own index, as they are."""
    key = _single_key(stream)
    named = [name for name in stream.caseless_fields if name != key]
    return tuple(
        Column(name, ValueKind.STRING, f"f{place}", indexed=True)
        for place, name in enumerate(named)
    )


def _facets(columns: Iterable[Column]) -> tuple[str, ...]:
    """Those that are grouped by come first."""
    flags = [column for column in columns if column.kind is ValueKind.BOOLEAN]
    named = [column.field for column in sorted(flags, key=lambda flag: not flag.indexed)]
    return tuple(named[:MOST_FACETS])


def _grouped(stream: Stream, columns: Iterable[Column]) -> tuple[Grouped, ...]:
    """Who made records first; what refers to other records has about as many values as they are."""
    references = {relation.foreign_key for relation in stream.relationships}
    apart = {*references, stream.conversation_field, *stream.primary_key}
    strings = {column.field for column in columns if column.kind is ValueKind.STRING}
    named = [n for n in stream.aggregations.group_by if n in strings and n not in apart]
    authors = stream.fields_with_role("author")
    declared = [stream.properties[n] for n in sorted(named, key=lambda n: n not in authors)]

    def told(name: str | None) -> str | None:
        return name if name in strings else None

    return tuple(
        Grouped(each.name, told(each.label_field), told(each.mark_field))
        for each in declared[:MOST_GROUPED]
    )


def _single_key(stream: Stream) -> str | None:
    name = stream.primary_key[0]
    declared = stream.properties[name]
    is_string = declared.kind is ValueKind.STRING and declared.schema.get("type") == "string"
    return name if len(stream.primary_key) == 1 and is_string else None


def _measured(stream: Stream) -> tuple[str, ...]:
    wanted = {*stream.aggregations.sum, *stream.aggregations.min, *stream.aggregations.max}
    numbers = (ValueKind.INTEGER, ValueKind.NUMBER)
    named = [n for n, p in stream.properties.items() if n in wanted and p.kind in numbers]
    return tuple(named[:MOST_MEASURED])


def _is_instant(stream: Stream, field: str) -> bool:
    """The stored text of an extreme instant is looked up by its value."""
    return stream.properties[field].kind is ValueKind.INSTANT


def _has_column(found: Property, stream: Stream, indexed: set[str]) -> bool:
    """Every scalar but texts that nobody sorts or groups by, or sees groups by."""
    if found.kind is None:
        return False
    if found.kind is not ValueKind.STRING or found.name in indexed:
        return True
    if found.name in stream.labelling:
        return True
    is_text = found.type == "text" or "contentMediaType" in found.schema
    return not is_text and found.name not in stream.lexical_fields


def between(stored: Layout, wanted: Layout) -> Layout:
    """How tables of one layout are read while another is wanted: no index is relied on.

    What places, words and references of records follow from is as the tables have it.
    """
    known = {(column.field, column.kind): column for column in stored.columns}
    columns = [
        replace(known.get((each.field, each.kind)) or each, indexed=False)
        if (each.field, each.kind) in known
        else replace(each, name=f"v{place}", indexed=False)
        for place, each in enumerate(wanted.columns)
    ]
    placed = stored.column(stored.placed)
    is_placed = placed is not None and replace(placed, indexed=False) in columns
    return replace(
        wanted,
        columns=tuple(columns),
        key=stored.key if stored.key == wanted.key else None,
        consent=stored.consent,
        lexical=stored.lexical,
        blobs=stored.blobs,
        persons=stored.persons,
        folded=(),
        by_day=False,
        facets=(),
        grouped=(),
        placed=stored.placed if is_placed else None,
        form=stored.form,
    )


def create_tables(
    layout: Layout, number: int, dialect: Dialect, *, scratch: bool = False
) -> list[str]:
    """The statements that make the tables of one source; `scratch` ones end with the snapshot."""
    integer, text, binary = map(
        dialect.column_type, (ColumnKind.INTEGER, ColumnKind.TEXT, ColumnKind.BYTES)
    )
    all_columns = (*layout.columns, *layout.folded)
    types = {kind: dialect.comparable_type(kind) for kind in {c.kind for c in all_columns}}
    columns = "".join(f", {c.name} {types[c.kind]}" for c in all_columns)
    table = partial(dialect.create_table, scratch=scratch)
    index = partial(dialect.create_index, scratch=scratch)
    made = [
        f"{table(f'r{number}')} (id {integer} PRIMARY KEY, k {text} NOT NULL,"
        f" cs {integer} NOT NULL, ce {integer} NOT NULL, e {integer} NOT NULL{columns},"
        f" wc {binary}, fc {text})",
        f"{index(f'r{number}_k', unique=True)} ON r{number} (k)",
        f"{index(f'r{number}_e')} ON r{number} (e)",
        # the sum stands before the text, which may be long, and is read without it
        f"{table(f'h{number}')} (id {integer} PRIMARY KEY, sum {integer}, data {text} NOT NULL)",
    ]
    made += [
        f"{index(f'r{number}_{name}')} ON r{number} ({', '.join(columns)})"
        for name, columns in layout.indexes.items()
    ]
    sums = dialect.comparable_type(ValueKind.INTEGER) or integer
    figures = "".join(f", {name} {sums} NOT NULL" for name in layout.summary_figures)
    if layout.by_day:
        made.append(
            f"{table(f'd{number}')} (facet {integer} NOT NULL, day {integer} NOT NULL,"
            f" value {integer} NOT NULL, n {integer} NOT NULL{figures},"
            f" PRIMARY KEY (facet, day, value)){dialect.table_options(rowid=False)}"
        )
    if layout.grouped:
        made.append(
            f"{table(f'g{number}')} (field {integer} NOT NULL, value {text} NOT NULL,"
            f" label {text} NOT NULL, mark {text} NOT NULL, n {integer} NOT NULL{figures},"
            f" PRIMARY KEY (field, value, label, mark)){dialect.table_options(rowid=False)}"
        )
    if layout.lexical:
        made += dialect.word_index(f"w{number}", scratch=scratch)
    return made


def drop_tables(layout: Layout, number: int, dialect: Dialect) -> list[str]:
    """The statements that remove them."""
    names = [f"r{number}", f"h{number}"]
    names += [f"d{number}"] if layout.by_day else []
    names += [f"g{number}"] if layout.grouped else []
    words = dialect.drop_words(f"w{number}") if layout.lexical else []
    # the word index of the first release, while the new one is not whole
    further = f"DROP TABLE IF EXISTS f{number}"
    return [*(f"DROP TABLE {name}" for name in names), *words, further]
