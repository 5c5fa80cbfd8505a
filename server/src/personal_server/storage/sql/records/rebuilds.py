"""Sources that are stored another way: their records move into new tables, a slice at a time.

A declaration, or a newer version of the program, may want other columns, indexes or words than the
tables of a source have (`storage/sql/layout`).  New tables are then filled beside the old ones, in
transactions of some hundredths of a second between which others write; reads and writes go to the
old tables meanwhile, and read fields without a column from the text.  When every line is copied,
what changed since is copied again, as the change feed names it, and the new tables take the place
of the old ones, which are emptied in slices too.  Each slice notes how far it came in its own
transaction, so that a crash costs at most one.

Rule: whatever a record held that was erased is overwritten in both (`record_copies.erase_copies`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from personal_server.domain.stored import Rebuild
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import RebuildRow, SourceRow, StoreRow
from personal_server.storage.sql.layout import Layout
from personal_server.storage.sql.records.copy_slices import copy_slice, empty_slice
from personal_server.storage.sql.records.passages import begin_copy, forget_all_passages
from personal_server.storage.sql.records.record_copies import (
    BEGIN_EMPTYING,
    END_COPY,
    FIND_COPY,
    Copying,
    copy_under_way,
)
from personal_server.storage.sql.source_tables import SourceTables, make_tables, remove_tables
from personal_server.storage.sql.statements import insert

# A source of at most so many records is rebuilt where it is asked for: nobody notices.
AT_ONCE = 100
SLICE_SECONDS = 0.05

# what is emptied comes first: it frees the room that copies need
_NEXT = f"{FIND_COPY} ORDER BY {RebuildRow.emptying} DESC, {RebuildRow.source} LIMIT 1"
LAST_SEQUENCE = f"SELECT {StoreRow.value} FROM {StoreRow.table} WHERE {StoreRow.name} = 'sequence'"  # noqa: S608
_PROGRESS = (
    f"SELECT s.{SourceRow.connection_id}, s.{SourceRow.stream}, b.{RebuildRow.copied},"  # noqa: S608
    f" s.{SourceRow.records} FROM {RebuildRow.table} b JOIN {SourceRow.table} s"
    f" USING ({RebuildRow.source}) WHERE s.{SourceRow.subject_id} = ?"
    f" AND b.{RebuildRow.emptying} = 0 ORDER BY 1, 2"
)


def want(session: Session, source: SourceTables, layout: Layout) -> None:
    """Have a source laid out so, now if it is small, else in slices that follow."""
    under_way = copy_under_way(session, source.source)
    text = layout.render()
    if under_way is not None and under_way.layout == text:
        return
    if under_way is not None:
        session.run(BEGIN_EMPTYING, (1, *under_way[:2]))
    if source.layout == layout:
        return
    _begin(session, source, layout)


def make_anew(session: Session, source: SourceTables) -> None:
    """Have a source stored as it is laid out once more, from its texts."""
    if copy_under_way(session, source.source) is None:
        _begin(session, source, source.layout)


def _begin(session: Session, source: SourceTables, layout: Layout) -> None:
    copying = Copying(
        source.source,
        make_tables(session, layout),
        layout.render(),
        None,
        int(session.value(LAST_SEQUENCE)),
        0,
        emptying=False,
    )
    session.run(insert(RebuildRow), copying)
    begin_copy(session, source.tables, copying.tables)
    if source.records <= AT_ONCE:
        copy_slice(session, copying, lambda: False)
        remove_tables(session, source)
        forget_all_passages(session, source.tables)
        session.run(END_COPY, (source.source, source.tables))


def progress(session: Session, subject_id: str) -> tuple[Rebuild, ...]:
    """Every copy that is under way."""
    return tuple(Rebuild(*line) for line in session.rows(_PROGRESS, (subject_id,)))


def slice_once(database: Database, monotonic: Callable[[], float] = time.monotonic) -> bool:
    """One transaction of work; whether more is left."""
    with database.read() as session:
        line = session.first(_NEXT)
    if line is None:
        return False
    # what is emptied may hold words of erased records
    begin = database.erase if Copying(*line).emptying else database.write_soon
    with begin() as session:
        line = session.first(_NEXT)
        if line is not None:
            copying, end = Copying(*line), monotonic() + SLICE_SECONDS
            work = empty_slice if copying.emptying else copy_slice
            work(session, copying, lambda: monotonic() >= end)
    return line is not None
