"""The work of whoever embeds (`semantics/`): which texts wait for vectors, and where these are put.

A few records at a time: first what changed, as the change feed names it, then all records, the
newest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import orjson

from pdpp_kernel.vectors import Passage
from personal_server.domain.stored import EmbeddingProgress, Unembedded, WaitingRecord
from personal_server.storage.sql.compiler import Compiler, Where
from personal_server.storage.sql.driver import Line, Session
from personal_server.storage.sql.fixed_tables import (
    ChangeRow,
    FactRow,
    PassageIndexRow,
    PassageRow,
    SourceRow,
    StoreRow,
)
from personal_server.storage.sql.records.passages import (
    ANY_PASSAGES,
    EVERY_RECORD,
    FORGET_FIELD,
    FORGET_PASSAGES,
    FORGOTTEN_AT_ONCE,
    MODEL,
    PassageIndexLine,
    embedding_model,
    forget_passages,
    passage_index,
    put_signs,
)
from personal_server.storage.sql.records.sign_blocks import can_pack, pack, unpacked
from personal_server.storage.sql.source_tables import Reader, SourceTables, find_source
from personal_server.storage.sql.statements import delete, insert, update
from personal_server.storage.sql.store_part import StorePart
from personal_server.storage.tables import ColumnKind

# So many records are looked at before whoever asked for work is told how far it got.
LOOKED_AT_ONCE = 500


_NOTE = update(
    PassageIndexRow, [PassageIndexRow.position, PassageIndexRow.since], PassageIndexRow.tables
)
_ANEW = update(
    PassageIndexRow, [PassageIndexRow.fields, PassageIndexRow.position], PassageIndexRow.tables
)


_FIELDS = f"SELECT tables, fields FROM {PassageIndexRow.table} ORDER BY tables"  # noqa: S608
_HAS = f"SELECT 1 FROM {PassageRow.table} WHERE tables = ? AND field = ? AND id = ? LIMIT 1"  # noqa: S608


_CHANGED = (
    f"SELECT {ChangeRow.sequence}, {ChangeRow.key} FROM {ChangeRow.table}"  # noqa: S608
    f" WHERE {ChangeRow.source} = ? AND {ChangeRow.sequence} > ?"
    f" ORDER BY {ChangeRow.sequence} LIMIT ?"
)


_FORGET_FACT = delete(FactRow, FactRow.name)
_SEQUENCE = f"SELECT {StoreRow.value} FROM {StoreRow.table} WHERE {StoreRow.name} = 'sequence'"  # noqa: S608


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
                fields_left = session.rows(find, (FORGOTTEN_AT_ONCE,))
                session.many(forget, set(fields_left))
                if fields_left:
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
        self, work: Unembedded, passages: Mapping[tuple[int, str], Sequence[Passage]]
    ) -> None:
        """What changed since it was read is passed over: its change is followed."""
        with self._database.write_soon() as session:
            if passage_index(session, work.tables) is None:
                return
            for record in work.records:
                total = session.value(f"SELECT sum FROM h{work.tables} WHERE id = ?", (record.id,))  # noqa: S608
                if total == record.sum:
                    _put(session, work.tables, record, passages)
            session.run(_NOTE, (work.position, work.since, work.tables))

    def pack_passages(self) -> bool:
        """One block in each transaction."""
        with self._database.read() as session:
            if not can_pack(session) or not _unpacked(session):
                return False
        with self._database.write_soon() as session:
            for row in _unpacked(session):
                pack(session, *row)
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

    def _begun(
        self, connection_id: str, stream: str, fields: Sequence[str]
    ) -> PassageIndexLine | None:
        """The index of a source that has none, or one of other fields."""
        with self._database.write_soon() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is None:
                return None
            index, text = passage_index(session, source.tables), orjson.dumps(list(fields)).decode()
            if index is None:
                since = int(session.value(_SEQUENCE))
                session.run(insert(PassageIndexRow), (source.tables, text, None, since))
            else:
                for field in set(index.fields) - set(fields):
                    for statement in FORGET_FIELD:
                        session.run(statement, (source.tables, field))
                session.run(_ANEW, (text, None, source.tables))
            return passage_index(session, source.tables)

    def _waiting(
        self, session: Session, source: SourceTables, index: PassageIndexLine, limit: int
    ) -> Unembedded | None:
        reader = Reader(session, self.subject_id, self._database.damage)
        compiler = Compiler(source.layout, source.tables, session.dialect)
        position, since = index.position, index.since
        waiting: dict[int, WaitingRecord] = {}  # one that changed is met by the walk, too
        looked_at = 0
        while len(waiting) < limit and looked_at < LOOKED_AT_ONCE:
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
            waiting |= {record.id: record for record in lacking}
        if (position, since) == index[2:]:
            return None
        return Unembedded(source.tables, position, since, tuple(waiting.values()))


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
    records: list[WaitingRecord] = []
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
            records.append(WaitingRecord(line[0], line[5], texts))
    return records


def _put(
    session: Session,
    tables: int,
    record: WaitingRecord,
    passages_of: Mapping[tuple[int, str], Sequence[Passage]],
) -> None:
    forget_passages(session, tables, [(field, record.id) for field in record.texts])
    for field in record.texts:
        row_key = (tables, field, record.id)
        passages = list(enumerate(passages_of.get((record.id, field), ())))
        session.many(
            insert(PassageRow),
            [
                (*row_key, n, passage.start_chars, passage.end_chars, passage.vector)
                for n, passage in passages
            ],
        )
        put_signs(session, [(*row_key, n, passage.vector) for n, passage in passages])


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
