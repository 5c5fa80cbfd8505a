"""Counts, spans and summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pdpp_kernel.criteria import Condition, WordQuery
from pdpp_kernel.record import FieldChange, StoredRecord
from pdpp_kernel.values import Comparable, ValueKind, instant_text, render_day
from personal_server.enforcement.named_fields import conditions_in, words_in
from personal_server.enforcement.plans import RecordsPlan
from personal_server.enforcement.rows import Span, Summary
from personal_server.enforcement.scopes import Scope
from personal_server.storage.group_rules import plain_value
from personal_server.storage.record_changes import latest_change
from personal_server.storage.row_rules import (
    granted_lexical_fields,
    holds_words,
    stored_text,
    words_of,
)
from personal_server.storage.sql.compiler import Statement, Where
from personal_server.storage.sql.layout import Column
from personal_server.storage.sql.reads.summary_segments import days_of
from personal_server.storage.sql.source_tables import Reader, ScopedSource, parse_changes

WALKED_AT_ONCE = 200
# No text of an instant is farther away than year 9999.
FARTHEST_NS = 2.5e20


def count(reader: Reader, plan: RecordsPlan) -> int:
    """How many, over all sources."""
    total = 0
    for scoped in reader.places(plan.scopes):
        rest = None if plan.most is None else plan.most - total
        total += count_place(reader, scoped, plan.conditions, rest)
    return total


def count_place(
    reader: Reader,
    scoped: ScopedSource,
    conditions: Sequence[Condition],
    most: int | None = None,
) -> int:
    """How many of one source, with those that are known to be damaged, which it notes.

    A whole source has its number at hand, and each of its days.  Elsewhere no line beyond `most`
    is met.
    """
    reader.recall(scoped, conditions)
    if scoped.is_whole and not conditions:
        records = scoped.source.records
        return records if most is None else min(records, most)
    if (days := days_of(reader, scoped, conditions)) is not None:
        return days.count() if most is None else min(days.count(), most)
    tail = "" if most is None else f" LIMIT {most}"
    met = scoped.compiler.select("1", scoped.matching(conditions), tail)
    counted = f"SELECT count(*) FROM ({met.sql}) AS met"  # noqa: S608
    count: Any = reader.value(Statement(counted, met.params))
    return int(count)


def lines_with(reader: Reader, scoped: ScopedSource, words: WordQuery) -> Where:
    """Visible lines of a source whose granted searchable fields hold what is sought.

    By the word index, where that knows all of them; else, and where only a few keys are visible,
    by their texts, since the index knows the hidden ones too.
    """
    scope, compiler = scoped.scope, scoped.compiler
    fields = granted_lexical_fields(scope)
    conditions = conditions_in(words, scope.stream, scope.fields)
    words = words_in(words, scope.stream, scope.fields)
    met = scoped.matching(conditions) if conditions else Where()
    lexical = compiler.layout.lexical
    is_known = compiler.is_indexed and set(fields) <= set(lexical)
    if is_known and fields and not scoped.is_read(reader):
        indexes = {name: lexical.index(name) for name in fields}
        return met & compiler.with_words(scope, words, indexes)
    ids: list[int] = []
    for line in reader.each_line(scoped.source, compiler.rows(scoped.visible())):
        reader.session.check()
        row = reader.whole(scoped.source, line)
        if row is not None and holds_words(words_of(row.data, fields), words):
            ids.append(line[0])
    return met & compiler.with_ids(ids)


def span(reader: Reader, plan: RecordsPlan) -> Span:
    """How many, and the stored extremes of a time field; those of whole sources once a state."""
    sources = reader.places(plan.scopes)
    total = count(reader, plan)
    if plan.span_field is None:
        return Span(total, None, None)
    key = ("ends", reader.subject_id, plan.span_field, *(scoped.name for scoped in sources))
    # what is made of other records is another thing for whoever sees others of these
    is_whole = all(scoped.is_whole and scoped.scope.made_of is None for scoped in sources)
    is_whole = is_whole and not plan.conditions
    if is_whole and key in reader.derived:
        return Span(total, *reader.derived[key])
    ends = _stored_ends(reader, sources, plan.span_field, plan.conditions)
    earliest, latest = (None if end is None else stored_text(end) for end in ends)
    # what was met of damaged records is told each time
    if is_whole and not reader.damaged:
        reader.derived[key] = (earliest, latest)
    return Span(total, earliest, latest)


def _stored_ends(
    reader: Reader, sources: Sequence[ScopedSource], field: str, conditions: Sequence[Condition]
) -> list[object]:
    """The stored values of the lowest and the highest record: of equal ones the first by (key,
    connection).
    """
    timed = [
        (scoped, column) for scoped in sources if (column := scoped.compiler.layout.column(field))
    ]
    statements = [
        (
            scoped.source,
            scoped.compiler.extreme(column, scoped.matching(conditions), highest=highest),
        )
        for highest in (False, True)
        for scoped, column in timed
    ]
    values = (next((line[0] for line in lines), None) for lines in reader.lines_of_each(statements))
    ends = [
        [(value, *timed_source) for timed_source in timed if (value := next(values)) is not None]
        for _ in range(2)
    ]
    points: list[Any] = [
        best((value for value, *_ in end), default=None)
        for best, end in zip((min, max), ends, strict=True)
    ]
    equal = [
        (number, scoped, _first_with(scoped, conditions, column, value))
        for number, end in enumerate(ends)
        for value, scoped, column in end
        if value == points[number]
    ]
    answers = reader.lines_of_each([(scoped.source, first) for _, scoped, first in equal])
    firsts: tuple[list[StoredRecord], ...] = [], []
    for (number, scoped, _), lines in zip(equal, answers, strict=True):
        firsts[number].extend(reader.whole_by_id(scoped.source, lines).values())
    return [
        _stored_in(rows, field) if rows else plain_point(point, end[0][2].kind) if end else None
        for rows, point, end in zip(firsts, points, ends, strict=True)
    ]


def _stored_in(rows: Sequence[StoredRecord], field: str) -> object:
    return min(rows, key=lambda row: (row.key, row.connection_id)).data[field]


def plain_point(point: Comparable, kind: ValueKind) -> object:
    """A comparable as a JSON value, where no stored one is at hand."""
    if kind is ValueKind.DATE and isinstance(point, int):
        return render_day(point)
    if kind is ValueKind.INSTANT and isinstance(point, int | float):
        return instant_text(int(point)) if abs(point) < FARTHEST_NS else None
    if kind is ValueKind.BOOLEAN:
        return bool(point)
    return plain_value(point, point, kind)


def _first_with(
    scoped: ScopedSource, conditions: Sequence[Condition], column: Column, value: Any
) -> Statement:
    """The first record by key with a value; none if that is damaged."""
    where = scoped.matching(conditions) & scoped.compiler.equal(column, value)
    return scoped.compiler.rows(where, " ORDER BY r.k LIMIT 1")


def summary(reader: Reader, scope: Scope) -> Summary:
    """How many, and the newest date of a granted change."""
    for scoped in reader.places([scope]):
        total = count_place(reader, scoped, ())
        return Summary(total, _newest(reader, scoped) if total else None)
    return Summary(0, None)


def _newest(reader: Reader, scoped: ScopedSource) -> int | None:
    """Lines by their newest date of any field; the walk ends where none can be newer."""
    newest: int | None = None
    where = scoped.visible()
    while True:
        tail = f" ORDER BY r.e DESC, r.id DESC LIMIT {WALKED_AT_ONCE}"
        lines = reader.lines(
            scoped.source, scoped.compiler.select("r.e, r.cs, r.ce, r.fc, r.id", where, tail)
        )
        for latest, created, created_at, changes, _ in lines:
            if newest is not None and latest <= newest:
                return newest
            dated = _dated(scoped.scope, created, created_at, changes)
            newest = dated if newest is None else max(newest, dated)
        if len(lines) < WALKED_AT_ONCE:
            return newest
        last, *_, last_id = lines[-1]
        where = scoped.visible() & Where(("(r.e, r.id) < (?, ?)",), (last, last_id))


def _dated(scope: Scope, created: int, created_at: int, changes: str | None) -> int:
    first = FieldChange(created, created_at)
    return latest_change(first, parse_changes(changes), scope.fields).emitted_at_ns
