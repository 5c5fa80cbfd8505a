"""Records that a word index does not know yet: an index that is made anew, slice by slice.

Rule: nobody waits for it.  Records are read and written meanwhile; a search finds what the index
knows and says how much it does not.  The newest come first.  A line whose words were counted (`wc`)
is indexed, whoever did it.
"""

from __future__ import annotations

import orjson

from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import SourceRow
from personal_server.storage.sql.source_tables import SourceTables, all_sources
from personal_server.storage.sql.statements import exists, update
from personal_server.storage.sql.word_index import marked_words

# A slice ends after so many records, or so much text.
SLICE_RECORDS = 500
SLICE_BYTES = 4_000_000
_IS_IN = exists(SourceRow, SourceRow.source, SourceRow.tables)
_SET_UNINDEXED = update(SourceRow, [SourceRow.unindexed_below], SourceRow.source)


def adopt(database: Database, subject_id: str) -> None:
    """Give sources of the first release the empty index that will be filled."""
    with database.read() as session:
        strangers = _without_index(session, subject_id)
    if not strangers:
        return
    with database.write() as session:
        for source in _without_index(session, subject_id):
            session.run(f"ALTER TABLE r{source.tables} ADD COLUMN wc BLOB")
            session.run(session.dialect.word_index(f"w{source.tables}"))


def index_slice(database: Database, subject_id: str) -> bool:
    """Index some records that wait for it; whether more may wait."""
    with database.read() as session:
        waiting = [s for s in all_sources(session, subject_id) if s.unindexed_below is not None]
        if not waiting:
            return False
        source = waiting[0]
        lines, end = _slice(session, source)
    with database.write() if end is not None else database.erase() as session:
        if _is_there(session, source):
            _index(session, source, lines)
            session.run(_SET_UNINDEXED, (end, source.source))
            if end is None:
                # the index of before leaves the file, with the words of records erased since
                session.run(f"DROP TABLE IF EXISTS f{source.tables}")
    return True


_Line = tuple[int, str, bytes]


def _without_index(session: Session, subject_id: str) -> list[SourceTables]:
    return [
        source
        for source in all_sources(session, subject_id)
        if source.unindexed_below is not None
        and session.first(session.dialect.find_table, (f"w{source.tables}",)) is None
    ]


def _slice(session: Session, source: SourceTables) -> tuple[list[_Line], int | None]:
    """(id, words, their counts) of the next records, and where to go on (`None`: at the end)."""
    number, lexical = source.tables, source.layout.lexical
    lines: list[_Line] = []
    size = 0
    waiting = session.run(
        f"SELECT r.id, h.data FROM r{number} r JOIN h{number} h ON h.id = r.id"  # noqa: S608
        " WHERE r.id < ? AND r.wc IS NULL ORDER BY r.id DESC",
        (source.unindexed_below,),
    )
    for row_id, text in waiting:
        data = orjson.loads(text)
        lines.append((row_id, *marked_words([data.get(name) for name in lexical])))
        size += len(text)
        if len(lines) == SLICE_RECORDS or size >= SLICE_BYTES:
            return lines, row_id
    return lines, None


def _index(session: Session, source: SourceTables, lines: list[_Line]) -> None:
    """Records that were written or deleted meanwhile are passed over."""
    number = source.tables
    for row_id, words, counts in reversed(lines):
        session.run(f"UPDATE r{number} SET wc = ? WHERE id = ? AND wc IS NULL", (counts, row_id))  # noqa: S608
        if words and session.changed:
            session.run(f"INSERT INTO w{number} (rowid, words) VALUES (?, ?)", (row_id, words))  # noqa: S608


def _is_there(session: Session, source: SourceTables) -> bool:
    """Whether the source still lies in these tables."""
    return session.first(_IS_IN, (source.source, source.tables)) is not None
