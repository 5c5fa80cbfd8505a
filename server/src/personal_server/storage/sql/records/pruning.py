"""The history that is let go: old changes, and what erased records held."""

from __future__ import annotations

from collections.abc import Sequence

from pdpp_kernel.values import MAX_INTEGER
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import ChangeRow, EraRow, ErasedRow, GoneRow, StoreRow
from personal_server.storage.sql.records.record_copies import copied_index
from personal_server.storage.sql.source_tables import SourceTables, all_sources
from personal_server.storage.sql.statements import delete, exists, ignoring, insert

STORE_VALUE = f"UPDATE {StoreRow.table} SET {StoreRow.value} ="  # noqa: S608
FIND_STORE_VALUE = f"SELECT {StoreRow.value} FROM {StoreRow.table} WHERE {StoreRow.name} ="  # noqa: S608


_RETAINED_FROM = f"{FIND_STORE_VALUE} 'retained_from'"


_GROW = f"{STORE_VALUE} ?1 WHERE {StoreRow.value} < ?1 AND {StoreRow.name}"
_RETAIN_FROM, _FORGOTTEN_UNTIL = f"{_GROW} = 'retained_from'", f"{_GROW} = 'forgotten_until'"
# the era of the newest change that was forgotten stays: it may be the era of later ones
_FORGET_ERAS = (
    f"DELETE FROM {EraRow.table} WHERE {EraRow.start} <"  # noqa: S608
    f" (SELECT max({EraRow.start}) FROM {EraRow.table} WHERE {EraRow.start} < ?)"
)


_FORGET_GONE = f"{delete(GoneRow, GoneRow.source)} AND {GoneRow.sequence} <= ?"


# what was forgotten up to is not walked again, nor what is younger than the first that stays
_FIRST_KEPT = (
    f"SELECT {ChangeRow.sequence} FROM {ChangeRow.table} WHERE {ChangeRow.source} = ?"  # noqa: S608
    f" AND {ChangeRow.sequence} > ? AND {ChangeRow.written_at} >= ?"
    f" ORDER BY {ChangeRow.sequence} LIMIT 1"
)
_LAST_BELOW = (
    f"SELECT max({ChangeRow.sequence}) FROM {ChangeRow.table} WHERE {ChangeRow.source} = ?"  # noqa: S608
    f" AND {ChangeRow.sequence} < ?"
)


_IS_ERASED = exists(ErasedRow, ErasedRow.source)
_FORGET_ERASED = delete(ErasedRow, ErasedRow.source)


def prune(session: Session, sources: Sequence[SourceTables], before_ns: int) -> None:
    """Forget what was written before, and remember up to which number."""
    reached = 0
    forgotten = int(session.value(_RETAINED_FROM))
    for source in sources:
        if source.wanted is not None:
            continue  # the copy that is under way needs to know what changed
        first_kept = session.value(_FIRST_KEPT, (source.source, forgotten, before_ns))
        last = session.value(
            _LAST_BELOW, (source.source, MAX_INTEGER if first_kept is None else first_kept)
        )
        if last is not None:
            reached = max(reached, int(last))
            _prune(session, source, int(last))
    if reached:
        session.run(ignoring(insert(StoreRow)), ("forgotten_until", 0))
        session.run(_FORGOTTEN_UNTIL, (before_ns,))
    session.run(_RETAIN_FROM, (reached,))
    session.run(_FORGET_ERAS, (reached,))


def _prune(session: Session, source: SourceTables, last: int) -> None:
    number = source.tables
    changes, change = ChangeRow.table, ChangeRow.sequence
    dated = f"CASE WHEN {session.dialect.is_json('r.fc')} THEN r.fc END"
    session.run(
        f"{delete(ChangeRow, ChangeRow.source)} AND {change} <= ?"  # noqa: S608
        # most are the newest of a record that is there, and are not looked up among records
        f" AND ({ChangeRow.next} IS NOT NULL OR {ChangeRow.now} = 0) AND NOT EXISTS ("
        f" SELECT 1 FROM r{number} r WHERE r.k = {changes}.{ChangeRow.key}"
        f" AND (r.cs = {changes}.{change} OR"
        f" {session.dialect.is_dated(dated, f'{changes}.{change}')}))",
        (source.source, last),
    )
    session.run(_FORGET_GONE, (source.source, last))


def wipe(database: Database, subject_id: str) -> None:
    """Words of erased records, which no search finds any more, leave the file too."""
    with database.read() as session:
        waiting = [
            source
            for source in all_sources(session, subject_id)
            if session.first(_IS_ERASED, (source.source,))
        ]
    for source in waiting:
        with database.read() as session:
            copied = copied_index(session, source.source)
        for index in (f"w{source.tables}" if source.layout.lexical else None, copied):
            if index is not None:
                database.wipe_words(index)
        with database.write() as session:
            session.run(_FORGET_ERASED, (source.source,))
