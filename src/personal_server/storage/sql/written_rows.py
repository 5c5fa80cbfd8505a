"""From an accepted write to what the tables hold of it: text, comparables, words.

Rule: what needs no lock (`prepare`) is pure, and done before the write transaction begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import orjson

from personal_server.domain.record import JsonObject
from personal_server.domain.values import (
    COMPARED_CODE_POINTS,
    DAY_NANOSECONDS,
    ValueKind,
    bound,
    comparable,
    without_nul,
)
from personal_server.storage.meaning import blob_ids, fold
from personal_server.storage.ports import RecordWrite
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.fixed_tables import MentionRow
from personal_server.storage.sql.layout import Layout
from personal_server.storage.sql.statements import delete, ignoring, insert
from personal_server.storage.sql.word_index import marked_words

# So many lines wait in memory before they are written.
FLUSHED_AT = 2_000
# Places in time: id = microseconds << SLOT_BITS, so that walking ids is walking time.
SLOT_BITS = 5
# A record whose place is taken stands at most so many ids later.
WIDEST_PROBE = 1 << 31
_FORGET_MENTIONS = delete(MentionRow, MentionRow.source, MentionRow.field, MentionRow.key)
_TIMELESS = -5 * 10**18
# Before every place of a record that has a time.
FIRST_IN_TIME = -3 * 10**18


@dataclass(frozen=True, slots=True)
class Prepared:
    """One write.  `text` `None`: a delete.

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
    return [
        Prepared(write.key, write.emitted_at_ns)
        if write.data is None
        else prepare_one(write.key, write.data, write.emitted_at_ns, layout)
        for write in writes
    ]


def prepare_again(prepared: Iterable[Prepared], layout: Layout) -> list[Prepared]:
    """The same writes, for tables that are laid out another way since."""
    return [
        each
        if each.text is None
        else prepare_one(each.key, orjson.loads(each.text), each.emitted_at_ns, layout)
        for each in prepared
    ]


def prepare_one(key: str, data: JsonObject, emitted_at_ns: int, layout: Layout) -> Prepared:
    """A record as its tables hold it."""
    values = [value_in(data.get(each.field), each.kind) for each in layout.columns]
    values += [_folded(data.get(each.field)) for each in layout.folded]
    return Prepared(
        key,
        emitted_at_ns,
        orjson.dumps(data).decode(),
        tuple(values),
        *marked_words([data.get(name) for name in layout.lexical]),
        _placed_ns(values, layout),
        _instant(values, layout, layout.consent),
        blob_ids(data, layout.blobs) if layout.blobs else None,
        _mentions(key, data, layout),
    )


def _mentions(key: str, data: JsonObject, layout: Layout) -> tuple[tuple[Value, ...], ...]:
    return tuple(
        (each.field, key, place, identity.kind, identity.value, name)
        for each in layout.persons
        for place, (identity, name) in enumerate(each.read(data))
    )


def value_in(value: object, kind: ValueKind) -> Value:
    """What a column of that kind holds of a JSON value."""
    if value is None:
        return None
    if kind is ValueKind.STRING:
        return without_nul(value[:COMPARED_CODE_POINTS]) if isinstance(value, str) else None
    return bound(comparable(value, kind))


def _folded(value: object) -> Value:
    return fold(value)[:COMPARED_CODE_POINTS] if isinstance(value, str) else None


def _instant(values: Sequence[Value], layout: Layout, field: str | None) -> Value:
    """The instant of a time column: days begin at 00:00:00Z."""
    column = layout.column(field)
    if column is None:
        return None
    value = values[layout.columns.index(column)]
    if column.kind is ValueKind.DATE and isinstance(value, int):
        return value * DAY_NANOSECONDS
    return value


def _placed_ns(values: Sequence[Value], layout: Layout) -> int | None:
    instant = _instant(values, layout, layout.placed)
    return int(instant) if isinstance(instant, int | float) else None


def place_in_time(placed_ns: int | None, created_at_ns: int, layout: Layout) -> int:
    """Where a record stands in time (`Layout.placed`); without one, before all that have one.

    Streams without times stand in the order of their creation.
    """
    if placed_ns is not None:
        return placed_ns // 1_000 << SLOT_BITS
    created = created_at_ns // 1_000 << SLOT_BITS
    return created if layout.column(layout.placed) is None else _TIMELESS + created


def insert_line(
    session: Session, number: int, layout: Layout, at: int, rest: tuple[Value, ...]
) -> int:
    """Store a record's line at the first free id near `at`; `rest` begins with the key."""
    columns = layout.line_columns
    places = ", ".join("?" * len(columns))
    named = ", ".join(columns)
    statement = ignoring(f"INSERT INTO r{number} ({named}) VALUES ({places})")  # noqa: S608
    chosen, attempt = at, 0
    session.run(statement, (chosen, *rest))
    while session.changed == 0:
        chosen = at + crc32(f"{attempt} {rest[0]}".encode()) % min(32 << attempt, WIDEST_PROBE)
        attempt += 1
        session.run(statement, (chosen, *rest))
    return chosen


def put_mentions(
    session: Session,
    source: int,
    key: str,
    layout: Layout,
    mentions: Sequence[tuple[Value, ...]] = (),
) -> None:
    """Replace what a record mentions."""
    for each in layout.persons:
        session.run(_FORGET_MENTIONS, (source, each.field, key))
    session.many(insert(MentionRow), [(source, *each) for each in mentions])


def insert_words(session: Session, number: int, words: list[tuple[int, str]]) -> None:
    """Index the words of records (id, words) in the order of their ids, and forget them here."""
    if words:
        session.many(*session.dialect.add_words(f"w{number}", sorted(words)))
    words.clear()
