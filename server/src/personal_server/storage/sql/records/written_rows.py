"""From an accepted write to what the tables hold of it: text, comparables, words.

Rule: what needs no lock (`prepare`) is pure, and done before the write transaction begins.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import orjson

from pdpp_kernel.record import JsonObject
from pdpp_kernel.values import (
    COMPARED_CODE_POINTS,
    DAY_NANOSECONDS,
    ValueKind,
    bound,
    comparable,
)
from personal_server.domain.stored import RecordWrite
from personal_server.domain.text_language import foretell
from personal_server.storage.folding import fold
from personal_server.storage.record_changes import blob_ids
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.fixed_tables import MentionRow
from personal_server.storage.sql.layout import Layout
from personal_server.storage.sql.records.summaries import count_lines
from personal_server.storage.sql.records.word_index import marked_words
from personal_server.storage.sql.statements import delete
from personal_server.storage.tables import ColumnKind

# So many records are looked up and written at once, of so many bytes.
FLUSHED_AT = 2_000
FLUSHED_BYTES = 8 * 1024 * 1024
# So many are prepared at once.
_AT_ONCE = 500
_FORGET_MENTIONS = f"{delete(MentionRow, MentionRow.source, MentionRow.field)} AND key IN"


class Prepared(NamedTuple):
    """One write, a tuple as all that there is for each record.  `text` `None`: a delete.

    Shapes: `values` by the layout's columns, then its folded ones; `words` and `word_counts` as the
        word index takes them; `placed_ns` and `consent_at` are the instants that place it in time
        and that time constraints ask for; `mentions` are rows of `MentionRow` without their source.
    """

    key: str
    emitted_at_ns: int
    text: str | None = None
    values: tuple[Value, ...] = ()
    words: str = ""
    word_counts: bytes = b""
    placed_ns: int | None = None
    consent_at: Value = None
    blobs: Mapping[str, str] | None = None
    mentions: tuple[tuple[Value, ...], ...] = ()


def prepare(writes: Iterable[RecordWrite], layout: Layout) -> list[Prepared]:
    """All writes of a batch."""
    prepared, waiting = list[Prepared](), iter(writes)
    while some := list(itertools.islice(waiting, _AT_ONCE)):
        records = [write.data for write in some if write.data is not None]
        texts = (record.get(name) for record in records for name in layout.lexical)
        foretell(text for text in texts if isinstance(text, str))
        prepared += [
            Prepared(write.key, write.emitted_at_ns)
            if write.data is None
            else prepare_one(write.key, write.data, write.emitted_at_ns, layout)
            for write in some
        ]
    return prepared


def prepare_again(prepared: Iterable[Prepared], layout: Layout) -> list[Prepared]:
    """The same writes, for tables that are laid out another way since."""
    return [
        write
        if write.text is None
        else prepare_one(write.key, orjson.loads(write.text), write.emitted_at_ns, layout)
        for write in prepared
    ]


def prepare_one(key: str, data: JsonObject, emitted_at_ns: int, layout: Layout) -> Prepared:
    """A record as its tables hold it."""
    values = [value_in(data.get(column.field), column.kind) for column in layout.columns]
    values += [_folded(data.get(column.field)) for column in layout.folded]
    placed = _instant(values, layout, layout.placed)
    return Prepared(
        key,
        emitted_at_ns,
        orjson.dumps(data).decode(),
        tuple(values),
        *marked_words([data.get(name) for name in layout.lexical]),
        int(placed) if isinstance(placed, int | float) else None,
        _instant(values, layout, layout.consent),
        blob_ids(data, layout.blobs) if layout.blobs else None,
        _mentions(key, data, layout),
    )


def limiting_values(data: JsonObject, layout: Layout) -> dict[str, Value]:
    """What its columns would hold of a record, of those that limits are compared with."""
    return {
        name: _folded(data.get(name))
        if column in layout.folded
        else value_in(data.get(name), column.kind)
        for name, column in layout.limiting.items()
    }


def _mentions(key: str, data: JsonObject, layout: Layout) -> tuple[tuple[Value, ...], ...]:
    return tuple(
        (person_field.field, key, position, identity.kind, identity.value, name)
        for person_field in layout.persons
        for position, (identity, name) in enumerate(person_field.read(data))
    )


def value_in(value: object, kind: ValueKind) -> Value:
    """What a column of that kind holds of a JSON value."""
    if value is None:
        return None
    compared = comparable(value, kind)
    return compared[:COMPARED_CODE_POINTS] if isinstance(compared, str) else bound(compared)


def _folded(value: object) -> Value:
    return fold(value)[:COMPARED_CODE_POINTS] if isinstance(value, str) else None


def _instant(values: Sequence[Value], layout: Layout, field: str | None) -> Value:
    """The instant of a time column: days begin at 00:00:00Z."""
    column = layout.column(field)
    if column is None:
        return None
    value = values[layout.places[column.field]]
    if column.kind is ValueKind.DATE and isinstance(value, int):
        return value * DAY_NANOSECONDS
    return value


def put_mentions(
    session: Session,
    source: int,
    layout: Layout,
    mentions: Mapping[str, Sequence[tuple[Value, ...]]],
) -> None:
    """Replace what records mention, by their keys."""
    if not mentions or not layout.persons:
        return
    keys = orjson.dumps(list(mentions)).decode()
    forget = f"{_FORGET_MENTIONS} {session.dialect.values('?', ColumnKind.TEXT)}"
    for person_field in layout.persons:
        session.run(forget, (source, person_field.field, keys))
    lines = [(source, *mention) for of_field in mentions.values() for mention in of_field]
    if lines:
        session.add(MentionRow.table.name, MentionRow.table.names, lines)


class NewLines(msgspec.Struct, frozen=True):
    """What the tables of a source get of new records: lines, texts with their sums, words."""

    lines: list[tuple[Value, ...]] = msgspec.field(default_factory=list[tuple[Value, ...]])
    texts: list[tuple[int, int, str]] = msgspec.field(default_factory=list[tuple[int, int, str]])
    words: list[tuple[int, str]] = msgspec.field(default_factory=list[tuple[int, str]])

    def add(self, session: Session, number: int, layout: Layout) -> None:
        """Words in the order of their ids; days with their lines."""
        if self.lines:
            session.add(f"r{number}", layout.line_columns, self.lines)
            session.add(f"h{number}", ("id", "sum", "data"), self.texts)
            count_lines(session, layout, number, (line[0] for line in self.lines))
        if self.words:
            for line in session.dialect.indexed_lines(f"w{number}", sorted(self.words)):
                session.add(*line)
