"""Counts, spans and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from personal_server.domain.criteria import Condition, WordQuery
from personal_server.domain.record import FieldChange, StoredRecord
from personal_server.domain.values import Comparable, ValueKind, instant_text, render_day
from personal_server.enforcement.named_fields import conditions_in, words_in
from personal_server.enforcement.plans import RecordsPlan, Scope
from personal_server.enforcement.rows import Span, Summary
from personal_server.storage.meaning import (
    granted_lexical_fields,
    holds_words,
    latest_change,
    plain_value,
    stored_text,
    words_of,
)
from personal_server.storage.sql.compiler import Statement, Where
from personal_server.storage.sql.day_segments import days_of
from personal_server.storage.sql.layout import Column
from personal_server.storage.sql.source_tables import Reader, ScopedSource, parse_changes

WALKED_AT_ONCE = 200
# No text of an instant is farther away than year 9999.
FARTHEST_NS = 2.5e20


def count(reader: Reader, plan: RecordsPlan) -> int:
    """How many, over all sources."""
    total = 0
    for place in reader.places(plan.scopes):
        left = None if plan.most is None else plan.most - total
        total += count_place(reader, place, plan.conditions, left)
    return total


def count_place(
    reader: Reader,
    place: ScopedSource,
    conditions: Sequence[Condition],
    most: int | None = None,
) -> int:
    """How many of one source, with those that are known to be damaged, which it notes.

    A whole source has its number at hand, and each of its days.  Elsewhere no line beyond `most`
    is met.
    """
    reader.recall(place, conditions)
    if place.is_whole and not conditions:
        records = place.source.records
        return records if most is None else min(records, most)
    if (days := days_of(reader, place, conditions)) is not None:
        return days.count() if most is None else min(days.count(), most)
    tail = "" if most is None else f" LIMIT {most}"
    met = place.compiler.select("1", place.matching(conditions), tail)
    counted = f"SELECT count(*) FROM ({met.sql}) AS met"  # noqa: S608
    found: Any = reader.value(Statement(counted, met.params))
    return int(found)


def lines_with(reader: Reader, place: ScopedSource, words: WordQuery) -> Where:
    """Visible lines of a source whose granted searchable fields hold what is sought.

    By the word index, where that knows all of them; else, and where only a few keys are visible,
    by their texts, since the index knows the hidden ones too.
    """
    scope, compiler = place.scope, place.compiler
    fields = granted_lexical_fields(scope)
    conditions = conditions_in(words, scope.stream, scope.fields)
    words = words_in(words, scope.stream, scope.fields)
    met = place.matching(conditions) if conditions else Where()
    lexical = compiler.layout.lexical
    is_known = compiler.is_indexed and set(fields) <= set(lexical)
    if is_known and fields and not place.is_read(reader):
        places = {name: lexical.index(name) for name in fields}
        return met & compiler.with_words(scope, words, places)
    found: list[int] = []
    for line in reader.each_line(place.source, compiler.rows(place.visible())):
        reader.session.check()
        row = reader.whole(place.source, line)
        if row is not None and holds_words(words_of(row.data, fields), words):
            found.append(line[0])
    return met & compiler.with_ids(found)


def span(reader: Reader, plan: RecordsPlan) -> Span:
    """How many, and the stored extremes of a time field."""
    places = reader.places(plan.scopes)
    total = count(reader, plan)
    if plan.span_field is None:
        return Span(total, None, None)
    ends = [
        stored_extreme(reader, places, plan.span_field, plan.conditions, highest=highest)
        for highest in (False, True)
    ]
    earliest, latest = (None if end is None else stored_text(end) for end in ends)
    return Span(total, earliest, latest)


def stored_extreme(
    reader: Reader,
    places: Sequence[ScopedSource],
    field: str,
    conditions: Sequence[Condition],
    *,
    highest: bool,
) -> object:
    """The stored value of the extreme record: of equal ones the first by (key, connection)."""
    found: list[tuple[Any, ScopedSource, Column]] = []
    for place in places:
        column = place.compiler.layout.column(field)
        if column is not None:
            value = reader.extreme(place, column, place.matching(conditions), highest=highest)
            found += [] if value is None else [(value, place, column)]
    if not found:
        return None
    best = (max if highest else min)(value for value, _, _ in found)
    equal = [
        _first_with(reader, place, place.matching(conditions) & place.compiler.equal(column, best))
        for value, place, column in found
        if value == best
    ]
    firsts = [row for rows in equal for row in rows]
    if not firsts:
        return plain_point(best, found[0][2].kind)
    return min(firsts, key=lambda row: (row.key, row.connection_id)).data[field]


def plain_point(point: Comparable, kind: ValueKind) -> object:
    """A comparable as a JSON value, where no stored one is at hand."""
    if kind is ValueKind.DATE and isinstance(point, int):
        return render_day(point)
    if kind is ValueKind.INSTANT and isinstance(point, int | float):
        return instant_text(int(point)) if abs(point) < FARTHEST_NS else None
    if kind is ValueKind.BOOLEAN:
        return bool(point)
    return plain_value(point, point, kind)


def _first_with(reader: Reader, place: ScopedSource, where: Where) -> list[StoredRecord]:
    """The first record by key; none if that is damaged."""
    return reader.rows(place, where, " ORDER BY r.k LIMIT 1")


def summary(reader: Reader, scope: Scope) -> Summary:
    """How many, and the newest date of a granted change."""
    for place in reader.places([scope]):
        total = count_place(reader, place, ())
        return Summary(total, _newest(reader, place) if total else None)
    return Summary(0, None)


def _newest(reader: Reader, place: ScopedSource) -> int | None:
    """Lines by their newest date of any field; the walk ends where none can be newer."""
    newest: int | None = None
    where = place.visible()
    while True:
        tail = f" ORDER BY r.e DESC, r.id DESC LIMIT {WALKED_AT_ONCE}"
        lines = reader.lines(
            place.source, place.compiler.select("r.e, r.cs, r.ce, r.fc, r.id", where, tail)
        )
        for latest, created, created_at, changes, _ in lines:
            if newest is not None and latest <= newest:
                return newest
            dated = _dated(place.scope, created, created_at, changes)
            newest = dated if newest is None else max(newest, dated)
        if len(lines) < WALKED_AT_ONCE:
            return newest
        last, *_, last_id = lines[-1]
        where = place.visible() & Where(("(r.e, r.id) < (?, ?)",), (last, last_id))


def _dated(scope: Scope, created: int, created_at: int, changes: str | None) -> int:
    first = FieldChange(created, created_at)
    return latest_change(first, parse_changes(changes), scope.fields).emitted_at_ns
