"""The passages nearest to a question, among those that may be read.

Rule: what is looked at is visible, and nothing else; the vectors of hidden fields and records are
never compared.  Signs are looked at first (`sign_blocks`), then the vectors of the few that these
leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import orjson

from pdpp_kernel.record import FieldChange
from pdpp_kernel.vectors import DISTANCE_DECIMALS, signs_of
from personal_server.enforcement.plans import MeaningPlan
from personal_server.enforcement.rows import Nearest, NearRecord
from personal_server.enforcement.scopes import Scope
from personal_server.storage.sql.compiler import NOTHING, Statement, Where
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.fixed_tables import ChangeRow, PassageRow, PassageSignsRow
from personal_server.storage.sql.records.passages import (
    T,
    embedded_fields,
    embedding_model,
    passage_index,
)
from personal_server.storage.sql.records.sign_blocks import EVERYTHING, nearest_in_blocks
from personal_server.storage.sql.source_tables import Reader, ScopedSource
from personal_server.storage.tables import ColumnKind

# So many passages of the nearest signs are compared by their vectors, over all fields together.
COMPARED_PASSAGES = 600


_UNKNOWN = "(SELECT CAST(? AS bigint))"


_LAST_CHANGE = (
    f"SELECT max({ChangeRow.sequence}) FROM {ChangeRow.table} WHERE {ChangeRow.source} = ?"  # noqa: S608
)


def nearest(reader: Reader, plan: MeaningPlan) -> Nearest:
    """The best passage of each of the nearest records."""
    is_known = embedding_model(reader.session) == plan.model
    parts = [_NearPart(reader, scoped, plan) for scoped in reader.places(plan.scopes)]
    near: list[tuple[int, int, str, int]] = []
    lost: set[tuple[str, str]] = set()
    for number, part in enumerate(parts if is_known else ()):
        within = part.within_time(part.signs)
        if within is None:
            lost.add(part.place.name)
        else:
            near += [(apart, number, field, row_id) for apart, field, row_id in within]
    # of equal signs those of the first source, and its newest: `signs` gives them in that order
    near.sort(key=lambda record: record[0])
    chosen: dict[int, dict[str, list[int]]] = {}
    for _, number, field, row_id in near[:COMPARED_PASSAGES]:
        chosen.setdefault(number, {}).setdefault(field, []).append(row_id)
    records = [part for number, fields in chosen.items() for part in parts[number].records(fields)]
    records.sort(key=_rank)
    return Nearest(
        tuple(records[: plan.most]),
        count_unembedded(reader, plan.scopes) if is_known else _visible(reader, plan.scopes),
        frozenset(lost),
    )


def count_unembedded(reader: Reader, scopes: Sequence[Scope]) -> int:
    """How many visible records wait for their passages."""
    return sum(_waiting_in(reader, scoped) for scoped in reader.places(scopes))


def _visible(reader: Reader, scopes: Sequence[Scope]) -> int:
    sources = reader.places(scopes)
    return sum(_visible_count(reader, scoped, Where()) for scoped in sources)


def _waiting_in(reader: Reader, scoped: ScopedSource) -> int:
    index = passage_index(reader.session, scoped.source.tables)
    if index is None:
        return _visible_count(reader, scoped, Where())
    last = reader.session.value(_LAST_CHANGE, (scoped.source.source,)) or 0
    count = 0
    if not index.is_walked:
        before = Where() if index.position is None else Where(("r.id < ?",), (index.position,))
        count += _visible_count(reader, scoped, before & Where(("r.cs <= ?",), (index.since,)))
    if last > index.since:
        changed = (
            f"r.k IN (SELECT {ChangeRow.key} FROM {ChangeRow.table}"  # noqa: S608
            f" WHERE {ChangeRow.source} = ? AND {ChangeRow.sequence} > ?)"
        )
        params = (scoped.source.source, index.since)
        count += _visible_count(reader, scoped, Where((changed,), params))
    return count


def _visible_count(reader: Reader, scoped: ScopedSource, where: Where) -> int:
    return int(str(reader.value(scoped.compiler.select("count(*)", scoped.visible() & where))))


def _rank(record: NearRecord) -> tuple[object, ...]:
    candidate = record.candidate
    return (
        record.distance,
        -candidate.event_time_ns,
        candidate.connection_id,
        candidate.stream,
        candidate.key,
    )


class _NearPart:
    """What one source gives."""

    def __init__(self, reader: Reader, scoped: ScopedSource, plan: MeaningPlan) -> None:
        self._reader = reader
        self.place = scoped
        self._plan = plan
        fields_embedded = embedded_fields(reader.session, scoped.source.tables)
        scope = scoped.scope
        self._fields = [
            name
            for name in scope.stream.semantic_fields
            if name in scope.fields and name in fields_embedded
        ]

    def signs(self) -> list[tuple[int, str, int]]:
        """How far, in which field, of which record: the passages whose signs are nearest."""
        visible = self._seen()
        nearest_signs: list[tuple[int, str, int]] = []
        for field in self._fields:
            near, rest_to_walk = self._in_blocks(field, visible)
            for first, last in rest_to_walk:
                near += self._in_lines(field, visible, first, last)
            near.sort(key=lambda candidate: (candidate[0], -candidate[1]))
            nearest_signs += [
                (distance, field, row_id) for distance, row_id in near[:COMPARED_PASSAGES]
            ]
        return nearest_signs

    def _in_blocks(
        self, field: str, visible: Where | Statement
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The nearest as (how far, of which record) where everything is visible and asked for, and
        the stretches of ids that are left.
        """
        scope, compiler = self.place.scope, self.place.compiler
        if self._plan.conditions_on(scope) or not compiler.is_stretch(scope) or visible == NOTHING:
            return [], [EVERYTHING]
        block_arguments = (self.place.source.tables, field, compiler.sure(scope))
        signs = signs_of(self._plan.vector)
        return nearest_in_blocks(self._reader.session, *block_arguments, signs, COMPARED_PASSAGES)

    def _in_lines(
        self, field: str, visible: Where | Statement, first: int, last: int
    ) -> list[Line]:
        """The same of a stretch, passage by passage; of records that are picked whatever it is."""
        session, table = self._reader.session, str(PassageSignsRow.table)
        in_field = Where(("b.tables = ?", "b.field = ?"), (self.place.source.tables, field))
        if isinstance(visible, Statement):
            lines = session.dialect.of_each(visible.sql, table, " AND ".join(in_field.parts))
            params = (*visible.params, *in_field.params)
        else:
            # between bounds that it does not know a database takes few to lie: it goes by their
            # index, and never over those of other fields and sources
            between = Where((f"b.id >= {_UNKNOWN}", f"b.id <= {_UNKNOWN}"), (first, last))
            condition = in_field & visible & between
            lines, params = f"{table} b{condition.sql}", condition.params
        apart = session.dialect.sign_distance("b.signs")
        return session.rows(
            f"SELECT {apart} AS apart, b.id FROM {lines}"  # noqa: S608
            " ORDER BY apart, b.id DESC, b.place LIMIT ?",
            (signs_of(self._plan.vector), *params, COMPARED_PASSAGES),
        )

    def records(self, chosen: Mapping[str, Sequence[int]]) -> list[NearRecord]:
        """Each record with its nearest passage."""
        best: dict[int, tuple[float, str, int, int]] = {}
        for field, ids in chosen.items():
            for row_id, start, stop, apart in self._compared(field, ids):
                passage = (round(apart, DISTANCE_DECIMALS), field, start, stop)
                if row_id not in best or passage < best[row_id]:
                    best[row_id] = passage
        scoped, unit_ns = self.place, self.place.event_unit_ns
        event = "NULL" if scoped.event is None else f"r.{scoped.event.name}"
        columns = f"r.id, r.k, {event}, r.cs, r.ce, r.fc"
        where = scoped.compiler.with_ids(list(best))
        lines = self._reader.lines(scoped.source, scoped.compiler.select(columns, where))
        return [
            NearRecord(
                scoped.candidate(
                    key,
                    None if at is None else int(at) * unit_ns,
                    FieldChange(created, created_at),
                    changes,
                ),
                *best[row_id],
            )
            for row_id, key, at, created, created_at, changes in lines
        ]

    def within_time(self, read: Callable[[], T]) -> T | None:
        """What the source gives, `None` past its time."""
        seconds = self._plan.seconds_each
        return read() if seconds is None else self._reader.session.attempt(seconds, read)

    def _seen(self) -> Where | Statement:
        """Which passages are of records that are visible and satisfy the conditions: those of a
        stretch, or of the ids that a statement gives.
        """
        conditions = self._plan.conditions_on(self.place.scope)
        if not conditions and self.place.is_whole:
            return Where()
        compiler = self.place.compiler
        stretch = None if conditions else compiler.seen_stretch(self.place.scope, "b.id")
        if stretch is not None:
            return stretch
        return compiler.select("r.id", self.place.matching(conditions))

    def _compared(self, field: str, ids: Sequence[int]) -> list[Line]:
        dialect, tables = self._reader.session.dialect, self.place.source.tables
        selected, params, apart = dialect.vector_distance("p.vector", self._plan.vector)
        lines = self._reader.session.rows(
            f"SELECT p.id, p.start, p.stop, {selected}"  # noqa: S608
            f" FROM {PassageRow.table} p WHERE p.tables = ? AND p.field = ?"
            f" AND p.id IN {dialect.values('?', ColumnKind.INTEGER)}",
            (*params, tables, field, orjson.dumps(list(ids)).decode()),
        )
        return [(row_id, start, stop, apart(value)) for row_id, start, stop, value in lines]
