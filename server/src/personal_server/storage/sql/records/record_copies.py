"""Further tables of a source while it is rebuilt: what writes and erasures do to them.

Rule: whatever a record held that was erased is overwritten in them too (`erase_copies`).
"""

from __future__ import annotations

from typing import NamedTuple

from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.fixed_tables import RebuildRow
from personal_server.storage.sql.layout import Layout
from personal_server.storage.sql.records.passages import (
    embedded_fields,
    forget_all_passages,
    forget_passages,
)
from personal_server.storage.sql.records.summaries import uncount_lines
from personal_server.storage.sql.records.written_rows import put_mentions
from personal_server.storage.sql.statements import delete, update
from personal_server.storage.sql.stored_layouts import parse_layout

FIND_COPY = (
    f"SELECT {RebuildRow.source}, {RebuildRow.tables}, {RebuildRow.layout}, {RebuildRow.position},"  # noqa: S608
    f" {RebuildRow.since}, {RebuildRow.copied}, {RebuildRow.emptying} FROM {RebuildRow.table}"
)
ONE_COPY = (RebuildRow.source, RebuildRow.tables)
_OF_SOURCE = f"{FIND_COPY} WHERE {RebuildRow.source} = ? AND {RebuildRow.emptying} = ?"


BEGIN_EMPTYING = update(RebuildRow, [RebuildRow.emptying], *ONE_COPY)
END_COPY = delete(RebuildRow, *ONE_COPY)


class Copying(NamedTuple):
    """A line of `FIND_COPY`."""

    source: int
    tables: int
    layout: str
    position: int | None
    since: int
    copied: int
    emptying: bool


class CopyTables(NamedTuple):
    """Tables of records, and how they are laid out."""

    number: int
    layout: Layout


def copy_under_way(session: Session, source: int) -> Copying | None:
    """The copy of a source, which needs the changes that it has not seen."""
    line = session.first(_OF_SOURCE, (source, 0))
    return None if line is None else Copying(*line)


def erase_copies(session: Session, source: int, key: str) -> None:
    """Remove a record from every further table that holds it."""
    for copying in _all_of_source(session, source):
        tables = tables_of_copy(copying)
        if not copying.emptying:
            remove_copied(session, tables, copied_place(session, tables, key))
            put_mentions(session, source, tables.layout, {key: ()})
            continue
        if session.first(session.dialect.find_table, (f"r{copying.tables}",)):
            record_id = copied_place(session, tables, key)
            if record_id is not None:
                embedded = embedded_fields(session, copying.tables)
                forget_passages(session, copying.tables, [(field, record_id) for field in embedded])
        if session.first(session.dialect.find_table, (f"h{copying.tables}",)):
            session.run(_text_of(tables), (key,))


def drop_copies(session: Session, source: int) -> None:
    """Remove further tables whole, where the whole source is erased."""
    for copying in _all_of_source(session, source):
        for name in (*summaries_of_copy(copying), *names_of_tables(tables_of_copy(copying))):
            drop_table(session, name)
        forget_all_passages(session, copying.tables)
        session.run(END_COPY, copying[:2])


def copied_index(session: Session, source: int) -> str | None:
    """The further word index of a source, which may hold words of erased records."""
    copying = copy_under_way(session, source)
    return (
        None
        if copying is None or not tables_of_copy(copying).layout.lexical
        else f"w{copying.tables}"
    )


def _all_of_source(session: Session, source: int) -> list[Copying]:
    lines = [line for phase in (0, 1) for line in session.rows(_OF_SOURCE, (source, phase))]
    return [Copying(*line) for line in lines]


def tables_of_copy(copying: Copying) -> CopyTables:
    """A copy's tables, with their layout."""
    return CopyTables(copying.tables, parse_layout(copying.layout))


def _text_of(tables: CopyTables) -> str:
    number = tables.number
    return f"DELETE FROM h{number} WHERE id IN (SELECT id FROM r{number} WHERE k = ?)"  # noqa: S608


def copied_place(session: Session, tables: CopyTables, key: str) -> int | None:
    """Where the record of a key stands, if it does."""
    return session.value(f"SELECT id FROM r{tables.number} WHERE k = ?", (key,))  # noqa: S608


def remove_copied(session: Session, tables: CopyTables, at: int | None) -> None:
    """Remove the record of a place, if there is one."""
    number = tables.number
    if at is None:
        return
    uncount_lines(session, tables.layout, number, [at])
    for table in "hr":
        session.run(f"DELETE FROM {table}{number} WHERE id = ?", (at,))  # noqa: S608
    forget_passages(session, number, [(n, at) for n in embedded_fields(session, number)])
    if tables.layout.lexical:
        session.run(f"DELETE FROM w{number} WHERE rowid = ?", (at,))  # noqa: S608


def drop_table(session: Session, name: str) -> None:
    """Drop a table, or what words are posted in."""
    plain = [f"DROP TABLE IF EXISTS {name}"]
    for statement in session.dialect.drop_words(name) if name.startswith("w") else plain:
        session.run(statement)


def summaries_of_copy(copying: Copying) -> list[str]:
    """The tables of summaries."""
    return [f"{kind}{copying.tables}" for kind in "dg"]


def names_of_tables(tables: CopyTables) -> list[str]:
    """The tables, texts first and lines last."""
    # `f` is the word index of the first release
    return [f"{kind}{tables.number}" for kind in "hwfr"]
