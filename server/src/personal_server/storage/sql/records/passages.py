"""Passages of texts as vectors: how they are made behind the writes, and the nearest of them.

A passage is found by meaning.  Each field has its own, so that a grant that does not show a field
never looks at its passages; they lie by the ids of records, which stand in the order of time, so
that a limit of time is a stretch of them.  They are made by whoever embeds (`semantics/`), a few
records at a time: first what changed, as the change feed names it, then all records, the newest
first.  A record's passages go with the record, or with the value that they were made of.

Rule: what is looked at is visible, and nothing else; the vectors of hidden fields and records are
never compared.  Signs are looked at first (`sign_blocks`), then the vectors of the few that these
leave.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import orjson

from pdpp_kernel.record import FieldChange
from pdpp_kernel.vectors import DISTANCE_DECIMALS, Passage, signs_of
from personal_server.domain.stored import (
    EmbeddingProgress,
    Unembedded,
    WaitingRecord,
)
from personal_server.enforcement.plans import MeaningPlan
from personal_server.enforcement.rows import Nearest, NearRecord
from personal_server.enforcement.scopes import Scope
from personal_server.storage.sql.compiler import NOTHING, Compiler, Statement, Where
from personal_server.storage.sql.driver import Line, Session
from personal_server.storage.sql.fixed_tables import (
    ChangeRow,
    FactRow,
    PassageBlockRow,
    PassageIndexRow,
    PassageRow,
    PassageSignsRow,
    SourceRow,
    StoreRow,
)
from personal_server.storage.sql.records.sign_blocks import (
    EVERYTHING,
    can_pack,
    nearest_in_blocks,
    pack,
    unpack,
    unpacked,
)
from personal_server.storage.sql.source_tables import (
    Reader,
    ScopedSource,
    SourceTables,
    StorePart,
    find_source,
)
from personal_server.storage.sql.statements import delete, insert, select, update
from personal_server.storage.tables import ColumnKind

# So many passages of the nearest signs are compared by their vectors, over all fields together.
COMPARED_PASSAGES = 600
# So many records are looked at before whoever asked for work is told how far it got.
LOOKED_AT_ONCE = 500
FORGOTTEN_AT_ONCE = 200
MODEL = "embedding_model"
EVERY_RECORD = -(2**63)
T = TypeVar("T")

_UNKNOWN = "(SELECT CAST(? AS bigint))"
_PASSAGES = (PassageRow.table, PassageSignsRow.table)
_INDEX = select(PassageIndexRow, PassageIndexRow.tables)
_NOTE = update(
    PassageIndexRow, [PassageIndexRow.position, PassageIndexRow.since], PassageIndexRow.tables
)
_ANEW = update(
    PassageIndexRow, [PassageIndexRow.fields, PassageIndexRow.position], PassageIndexRow.tables
)
_END_INDEX = delete(PassageIndexRow, PassageIndexRow.tables)
_OF_TABLES = tuple(
    f"DELETE FROM {each} WHERE tables = ?"  # noqa: S608
    for each in (*_PASSAGES, PassageBlockRow.table)
)
FORGET_FIELD = tuple(f"{each} AND field = ?" for each in _OF_TABLES)
*_OF_RECORD, _OF_BLOCK = (
    f"{each} AND {key} = ?" for each, key in zip(FORGET_FIELD, ("id", "id", "last"), strict=True)
)
_COPY = tuple(
    f"INSERT INTO {each} SELECT ?, field, ?, {rest} FROM {each}"  # noqa: S608
    " WHERE tables = ? AND field = ? AND id = ?"
    for each, rest in zip(_PASSAGES, ("place, start, stop, vector", "place, signs"), strict=True)
)
_FIELDS = f"SELECT tables, fields FROM {PassageIndexRow.table} ORDER BY tables"  # noqa: S608
_HAS = f"SELECT 1 FROM {PassageRow.table} WHERE tables = ? AND field = ? AND id = ? LIMIT 1"  # noqa: S608
_LAST_CHANGE = (
    f"SELECT max({ChangeRow.sequence}) FROM {ChangeRow.table} WHERE {ChangeRow.source} = ?"  # noqa: S608
)
_CHANGED = (
    f"SELECT {ChangeRow.sequence}, {ChangeRow.key} FROM {ChangeRow.table}"  # noqa: S608
    f" WHERE {ChangeRow.source} = ? AND {ChangeRow.sequence} > ?"
    f" ORDER BY {ChangeRow.sequence} LIMIT ?"
)
_FACT = select(FactRow, FactRow.name, columns=(FactRow.said,))
_FORGET_FACT = delete(FactRow, FactRow.name)
_SEQUENCE = f"SELECT {StoreRow.value} FROM {StoreRow.table} WHERE {StoreRow.name} = 'sequence'"  # noqa: S608
ANY_PASSAGES = (
    *(f"SELECT tables, field, id FROM {each} LIMIT ?" for each in _PASSAGES),  # noqa: S608
    f"SELECT tables, field, last FROM {PassageBlockRow.table} LIMIT ?",  # noqa: S608
)
_SOME = tuple(each.replace(" LIMIT", " WHERE tables = ? LIMIT") for each in ANY_PASSAGES)
FORGET_PASSAGES = (*_OF_RECORD, _OF_BLOCK)


class PassageIndex(NamedTuple):
    """A line of `PassageIndexRow`."""

    tables: int
    fields: tuple[str, ...]
    position: int | None
    since: int

    @property
    def is_walked(self) -> bool:
        """Whether every record was come to."""
        return self.position == EVERY_RECORD


def passage_index(session: Session, tables: int) -> PassageIndex | None:
    """What is embedded of a source, by the number of its tables."""
    line = session.first(_INDEX, (tables,))
    return None if line is None else PassageIndex(line[0], tuple(orjson.loads(line[1])), *line[2:])


def embedding_model(session: Session) -> str | None:
    """The model whose vectors are kept."""
    return session.value(_FACT, (MODEL,))


# What writes do --------------------------------------------------------------------------------
def embedded_fields(session: Session, tables: int) -> tuple[str, ...]:
    """The fields of a source whose passages were made."""
    found = passage_index(session, tables)
    return () if found is None else found.fields


def forget_passages(session: Session, tables: int, places: Collection[tuple[str, int]]) -> None:
    """Those of fields of records, as (field, id)."""
    if places:
        unpack(session, tables, places)
        for statement in _OF_RECORD:
            session.many(statement, [(tables, *place) for place in places])


def forget_all_passages(session: Session, tables: int) -> None:
    """Those of a source, and that they were made."""
    if embedded_fields(session, tables):
        for statement in (*_OF_TABLES, _END_INDEX):
            session.run(statement, (tables,))


def forget_some_passages(session: Session, tables: int) -> None:
    """Some of those of a source; when none are left, that they were made."""
    for forget, find in zip(FORGET_PASSAGES, _SOME, strict=True):
        found = session.rows(find, (tables, FORGOTTEN_AT_ONCE))
        session.many(forget, set(found))
        if found:
            return
    session.run(_END_INDEX, (tables,))


def begin_copy(session: Session, tables: int, further: int) -> None:
    """Have the passages of a source copied with its records (`rebuilds`)."""
    found = passage_index(session, tables)
    if found is not None:
        fields = orjson.dumps(found.fields).decode()
        session.run(insert(PassageIndexRow), (further, fields, None, found.since))


def copy_passages(
    session: Session, source: tuple[int, int], target: tuple[int, int], fields: Iterable[str]
) -> None:
    """Those of one record; of both places the tables and the id."""
    fields = tuple(fields)
    unpack(session, target[0], [(field, target[1]) for field in fields])
    for field in fields:
        for statement in _COPY:
            session.run(statement, (*target, source[0], field, source[1]))


# Whoever embeds --------------------------------------------------------------------------------
class PassagesPart(StorePart):
    """Passages of a subject."""

    def embedding_model(self) -> str | None:
        """The one whose vectors are kept."""
        with self._database.read() as session:
            return embedding_model(session)

    def use_embedding_model(self, identity: str | None) -> bool:
        """A few passages in each transaction; the name of the model goes before the first."""
        with self._database.read() as session:
            is_clean = identity is not None or not session.first(ANY_PASSAGES[0], (1,))
            if embedding_model(session) == identity and is_clean:
                return False
        with self._database.write_soon() as session:
            session.run(_FORGET_FACT, (MODEL,))
            session.run(f"DELETE FROM {PassageIndexRow.table}")  # noqa: S608
            for forget, find in zip(FORGET_PASSAGES, ANY_PASSAGES, strict=True):
                found = session.rows(find, (FORGOTTEN_AT_ONCE,))
                session.many(forget, set(found))
                if found:
                    return True
            if identity is not None:
                session.run(insert(FactRow), (MODEL, identity))
        return False

    def unembedded(
        self, connection_id: str, stream: str, fields: Sequence[str], limit: int
    ) -> Unembedded | None:
        """By the change feed, then from the newest record to the oldest."""
        with self._database.read() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is None:
                return None
            index = passage_index(session, source.tables)
        if index is None or set(index.fields) != set(fields):
            index = self._begun(connection_id, stream, fields)
        if index is None:
            return None
        with self._database.read() as session:
            now = find_source(session, self.subject_id, connection_id, stream)
            if now is None or now.tables != index.tables:
                return None
            return self._waiting(session, now, index, limit)

    def put_passages(
        self, work: Unembedded, made: Mapping[tuple[int, str], Sequence[Passage]]
    ) -> None:
        """What changed since it was read is passed over: its change is followed."""
        with self._database.write_soon() as session:
            if passage_index(session, work.tables) is None:
                return
            for record in work.records:
                held = session.value(f"SELECT sum FROM h{work.tables} WHERE id = ?", (record.id,))  # noqa: S608
                if held == record.sum:
                    _put(session, work.tables, record, made)
            session.run(_NOTE, (work.position, work.since, work.tables))

    def pack_passages(self) -> bool:
        """One block in each transaction."""
        with self._database.read() as session:
            if not can_pack(session) or not _unpacked(session):
                return False
        with self._database.write_soon() as session:
            for place in _unpacked(session):
                pack(session, *place)
        return True

    def embedding_progress(self) -> tuple[EmbeddingProgress, ...]:
        """By what is left to be walked and followed."""
        with self._database.read() as session:
            lines = session.rows(
                f"SELECT {SourceRow.connection_id}, {SourceRow.stream}, {SourceRow.source},"  # noqa: S608
                f" s.{SourceRow.tables}, {SourceRow.records}, {PassageIndexRow.fields}"
                f" FROM {SourceRow.table} s"
                f" JOIN {PassageIndexRow.table} USING (tables) WHERE {SourceRow.subject_id} = ?"
                " ORDER BY 1, 2",
                (self.subject_id,),
            )
            return tuple(
                EmbeddingProgress(
                    connection_id,
                    stream,
                    tuple(orjson.loads(fields)),
                    records,
                    _left(session, source, tables),
                )
                for connection_id, stream, source, tables, records, fields in lines
            )

    def _begun(self, connection_id: str, stream: str, fields: Sequence[str]) -> PassageIndex | None:
        """The index of a source that has none, or one of other fields."""
        with self._database.write_soon() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is None:
                return None
            known, text = passage_index(session, source.tables), orjson.dumps(list(fields)).decode()
            if known is None:
                since = int(session.value(_SEQUENCE))
                session.run(insert(PassageIndexRow), (source.tables, text, None, since))
            else:
                for field in set(known.fields) - set(fields):
                    for statement in FORGET_FIELD:
                        session.run(statement, (source.tables, field))
                session.run(_ANEW, (text, None, source.tables))
            return passage_index(session, source.tables)

    def _waiting(
        self, session: Session, source: SourceTables, index: PassageIndex, limit: int
    ) -> Unembedded | None:
        reader = Reader(session, self.subject_id, self._database.damage)
        compiler = Compiler(source.layout, source.tables, session.dialect)
        position, since = index.position, index.since
        found: dict[int, WaitingRecord] = {}  # one that changed is met by the walk, too
        looked_at = 0
        while len(found) < limit and looked_at < LOOKED_AT_ONCE:
            changed = session.rows(_CHANGED, (source.source, since, limit))
            if changed:
                keys = orjson.dumps([key for _, key in changed]).decode()
                listed = session.dialect.values("?", ColumnKind.TEXT)
                where, tail = Where((f"r.k IN {listed}",), (keys,)), ""
                since = changed[-1][0]
            elif position != EVERY_RECORD:
                where = Where() if position is None else Where(("r.id < ?",), (position,))
                tail = f" ORDER BY r.id DESC LIMIT {limit}"
            else:
                break
            lines = reader.lines(source, compiler.rows(where, tail))
            if not changed:
                position = lines[-1][0] if lines else EVERY_RECORD
            looked_at += max(1, len(lines))
            lacking = _lacking(reader, source, index.fields, lines)
            found |= {each.id: each for each in lacking}
        if (position, since) == index[2:]:
            return None
        return Unembedded(source.tables, position, since, tuple(found.values()))


def _unpacked(session: Session) -> list[tuple[int, str, tuple[int, int]]]:
    """A stretch of passages that are in no block, as (tables, field, first and last id)."""
    for tables, fields in session.rows(_FIELDS):
        for field in orjson.loads(fields):
            stretch = unpacked(session, tables, field)
            if stretch is not None:
                return [(tables, field, stretch)]
    return []


def _lacking(
    reader: Reader, source: SourceTables, fields: Sequence[str], lines: Iterable[Line]
) -> list[WaitingRecord]:
    found: list[WaitingRecord] = []
    for line in lines:
        row = reader.whole(source, line)
        if row is None:
            continue
        texts = {
            field: text
            for field in fields
            if isinstance(text := row.data.get(field), str) and text.strip()
            if not reader.session.first(_HAS, (source.tables, field, line[0]))
        }
        if texts:
            found.append(WaitingRecord(line[0], line[5], texts))
    return found


def _put(
    session: Session,
    tables: int,
    record: WaitingRecord,
    made: Mapping[tuple[int, str], Sequence[Passage]],
) -> None:
    forget_passages(session, tables, [(field, record.id) for field in record.texts])
    for field in record.texts:
        place = (tables, field, record.id)
        passages = list(enumerate(made.get((record.id, field), ())))
        session.many(
            insert(PassageRow),
            [(*place, n, each.start_chars, each.end_chars, each.vector) for n, each in passages],
        )
        put_signs(session, [(*place, n, each.vector) for n, each in passages])


def put_signs(session: Session, vectors: Iterable[tuple[int, str, int, int, bytes]]) -> None:
    """The signs of passages, of (tables, field, id, place, vector)."""
    signs = f"INSERT INTO {PassageSignsRow.table} VALUES (?, ?, ?, ?, {session.dialect.bits('?')})"  # noqa: S608
    session.many(signs, [(*place, signs_of(vector)) for *place, vector in vectors])


def _left(session: Session, source: int, tables: int) -> int:
    """How many records were not come to: those before the walk, and changes."""
    index = passage_index(session, tables)
    if index is None:
        return 0
    where = Where() if index.position is None else Where(("id < ?",), (index.position,))
    walked = 0
    if not index.is_walked:
        walked = int(session.value(f"SELECT count(*) FROM r{tables}{where.sql}", where.params))  # noqa: S608
    followed = session.value(
        f"SELECT count(*) FROM {ChangeRow.table} WHERE {ChangeRow.source} = ?"  # noqa: S608
        f" AND {ChangeRow.sequence} > ?",
        (source, index.since),
    )
    return walked + int(followed)


# The nearest -----------------------------------------------------------------------------------
def nearest(reader: Reader, plan: MeaningPlan) -> Nearest:
    """The best passage of each of the nearest records."""
    is_known = embedding_model(reader.session) == plan.model
    parts = [_NearPart(reader, place, plan) for place in reader.places(plan.scopes)]
    near: list[tuple[int, int, str, int]] = []
    lost: set[tuple[str, str]] = set()
    for number, part in enumerate(parts if is_known else ()):
        found = part.within_time(part.signs)
        if found is None:
            lost.add(part.place.name)
        else:
            near += [(apart, number, field, row_id) for apart, field, row_id in found]
    # of equal signs those of the first source, and its newest: `signs` gives them in that order
    near.sort(key=lambda each: each[0])
    chosen: dict[int, dict[str, list[int]]] = {}
    for _, number, field, row_id in near[:COMPARED_PASSAGES]:
        chosen.setdefault(number, {}).setdefault(field, []).append(row_id)
    records = [each for number, fields in chosen.items() for each in parts[number].records(fields)]
    records.sort(key=_rank)
    return Nearest(
        tuple(records[: plan.most]),
        count_unembedded(reader, plan.scopes) if is_known else _visible(reader, plan.scopes),
        frozenset(lost),
    )


def count_unembedded(reader: Reader, scopes: Sequence[Scope]) -> int:
    """How many visible records wait for their passages."""
    return sum(_waiting_in(reader, place) for place in reader.places(scopes))


def _visible(reader: Reader, scopes: Sequence[Scope]) -> int:
    places = reader.places(scopes)
    return sum(_visible_count(reader, place, Where()) for place in places)


def _waiting_in(reader: Reader, place: ScopedSource) -> int:
    index = passage_index(reader.session, place.source.tables)
    if index is None:
        return _visible_count(reader, place, Where())
    last = reader.session.value(_LAST_CHANGE, (place.source.source,)) or 0
    count = 0
    if not index.is_walked:
        before = Where() if index.position is None else Where(("r.id < ?",), (index.position,))
        count += _visible_count(reader, place, before & Where(("r.cs <= ?",), (index.since,)))
    if last > index.since:
        changed = (
            f"r.k IN (SELECT {ChangeRow.key} FROM {ChangeRow.table}"  # noqa: S608
            f" WHERE {ChangeRow.source} = ? AND {ChangeRow.sequence} > ?)"
        )
        params = (place.source.source, index.since)
        count += _visible_count(reader, place, Where((changed,), params))
    return count


def _visible_count(reader: Reader, place: ScopedSource, where: Where) -> int:
    return int(str(reader.value(place.compiler.select("count(*)", place.visible() & where))))


def _rank(found: NearRecord) -> tuple[object, ...]:
    candidate = found.candidate
    return (
        found.distance,
        -candidate.event_time_ns,
        candidate.connection_id,
        candidate.stream,
        candidate.key,
    )


class _NearPart:
    """What one source gives."""

    def __init__(self, reader: Reader, place: ScopedSource, plan: MeaningPlan) -> None:
        self._reader = reader
        self.place = place
        self._plan = plan
        made = embedded_fields(reader.session, place.source.tables)
        scope = place.scope
        self._fields = [
            name for name in scope.stream.semantic_fields if name in scope.fields and name in made
        ]

    def signs(self) -> list[tuple[int, str, int]]:
        """How far, in which field, of which record: the passages whose signs are nearest."""
        seen = self._seen()
        found: list[tuple[int, str, int]] = []
        for field in self._fields:
            near, left = self._in_blocks(field, seen)
            for first, last in left:
                near += self._in_lines(field, seen, first, last)
            near.sort(key=lambda each: (each[0], -each[1]))
            found += [(distance, field, row_id) for distance, row_id in near[:COMPARED_PASSAGES]]
        return found

    def _in_blocks(
        self, field: str, seen: Where | Statement
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The nearest as (how far, of which record) where everything is visible and asked for, and
        the stretches of ids that are left.
        """
        scope, compiler = self.place.scope, self.place.compiler
        if self._plan.conditions_on(scope) or not compiler.is_stretch(scope) or seen == NOTHING:
            return [], [EVERYTHING]
        asked = (self.place.source.tables, field, compiler.sure(scope))
        signs = signs_of(self._plan.vector)
        return nearest_in_blocks(self._reader.session, *asked, signs, COMPARED_PASSAGES)

    def _in_lines(self, field: str, seen: Where | Statement, first: int, last: int) -> list[Line]:
        """The same of a stretch, passage by passage; of records that are picked whatever it is."""
        session, table = self._reader.session, str(PassageSignsRow.table)
        held = Where(("b.tables = ?", "b.field = ?"), (self.place.source.tables, field))
        if isinstance(seen, Statement):
            lines = session.dialect.of_each(seen.sql, table, " AND ".join(held.parts))
            params = (*seen.params, *held.params)
        else:
            # between bounds that it does not know a database takes few to lie: it goes by their
            # index, and never over those of other fields and sources
            between = Where((f"b.id >= {_UNKNOWN}", f"b.id <= {_UNKNOWN}"), (first, last))
            asked = held & seen & between
            lines, params = f"{table} b{asked.sql}", asked.params
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
                found = (round(apart, DISTANCE_DECIMALS), field, start, stop)
                if row_id not in best or found < best[row_id]:
                    best[row_id] = found
        place, unit_ns = self.place, self.place.event_unit_ns
        event = "NULL" if place.event is None else f"r.{place.event.name}"
        columns = f"r.id, r.k, {event}, r.cs, r.ce, r.fc"
        where = place.compiler.with_ids(list(best))
        lines = self._reader.lines(place.source, place.compiler.select(columns, where))
        return [
            NearRecord(
                place.candidate(
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
