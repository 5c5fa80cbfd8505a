"""The sources of a snapshot or write: where the records of a (connection, stream) are stored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from personal_server.storage.sql.layout import Layout, create_tables, drop_tables, parse_layout
from personal_server.storage.sqlite.session import Line, Session

_COLUMNS = "source, connection_id, stream, tables, records, layout"


@dataclass(frozen=True, slots=True)
class Source:
    """One (connection, stream) with its tables `r<tables>`, `h<tables>`, `f<tables>`."""

    source: int
    connection_id: str
    stream: str
    tables: int
    records: int
    layout: Layout


def find_source(
    session: Session, subject_id: str, connection_id: str, stream: str
) -> Source | None:
    """The source, if anything was ever stored there."""
    line = session.first(
        f"SELECT {_COLUMNS} FROM sources"  # noqa: S608  # fixed names only
        " WHERE subject_id = ? AND connection_id = ? AND stream = ?",
        (subject_id, connection_id, stream),
    )
    return None if line is None else _source(line)


def all_sources(
    session: Session, subject_id: str, connection_id: str | None = None
) -> list[Source]:
    """All sources, of one connection if asked, by (connection, stream)."""
    lines = session.rows(
        f"SELECT {_COLUMNS} FROM sources"  # noqa: S608  # fixed names only
        " WHERE subject_id = ?1 AND (?2 IS NULL OR connection_id = ?2)"
        " ORDER BY connection_id, stream",
        (subject_id, connection_id),
    )
    return [_source(line) for line in lines]


def add_source(
    session: Session, subject_id: str, connection_id: str, stream: str, layout: Layout
) -> Source:
    """Make the tables of a source that has none."""
    number = make_tables(session, layout)
    session.run(
        "INSERT INTO sources (subject_id, connection_id, stream, tables, records, layout)"
        " VALUES (?, ?, ?, ?, 0, ?)",
        (subject_id, connection_id, stream, number, layout.render()),
    )
    found = find_source(session, subject_id, connection_id, stream)
    assert found is not None  # noqa: S101  # it was just inserted
    return found


def layout_now(session: Session, subject_id: str, connector_key: str, stream: str) -> Layout | None:
    """How the current declaration of a source stores a stream."""
    text = session.value(
        "SELECT layout FROM layouts WHERE subject_id = ? AND connector_key = ? AND stream = ?",
        (subject_id, connector_key, stream),
    )
    return None if text is None else _layout(text)


def make_tables(session: Session, layout: Layout) -> int:
    """New tables, with a number that was never used before."""
    number = int(
        session.value("UPDATE store SET value = value + 1 WHERE name = 'tables' RETURNING value")
    )
    for statement in create_tables(layout, number):
        session.run(statement)
    return number


def remove_tables(session: Session, source: Source) -> None:
    """Drop the records of a source with everything made from them."""
    for statement in drop_tables(source.layout, source.tables):
        session.run(statement)


def _source(line: Line) -> Source:
    source, connection_id, stream, tables, records, layout = line
    return Source(source, connection_id, stream, tables, records, _layout(layout))


@lru_cache(maxsize=512)
def _layout(text: str) -> Layout:
    return parse_layout(text)
