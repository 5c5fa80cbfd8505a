"""A source whose declaration stores it another way: further columns and indexes, or new tables."""

from __future__ import annotations

from zlib import crc32

import orjson

from personal_server.storage.sql.layout import Column, Layout, create_index
from personal_server.storage.sqlite.preparing import (
    WIDEST_PROBE,
    place_in_time,
    prepare_one,
    value_in,
)
from personal_server.storage.sqlite.session import Session, Value
from personal_server.storage.sqlite.sources import Source, make_tables, remove_tables

FLUSHED_AT = 2_000


def rebuild(session: Session, source: Source, layout: Layout) -> None:
    """Move all records of a source into tables of another layout."""
    number = make_tables(session, layout)
    session.run("DELETE FROM blob_references WHERE source = ?", (source.source,))
    words: list[tuple[Value, ...]] = []
    old = source.tables
    lines = session.run(
        f"SELECT k, cs, ce, e, fc, data FROM r{old} JOIN h{old} USING (id) ORDER BY id"  # noqa: S608
    )
    for key, created, created_at, latest, changes, text in lines:
        record = prepare_one(key, orjson.loads(text), created_at, layout)
        at = place_in_time(record.event_ns, created_at, layout)
        rest = (key, created, created_at, latest, *record.values, changes)
        chosen = insert_line(session, number, layout, at, rest)
        session.run(f"INSERT INTO h{number} VALUES (?, ?)", (chosen, text))  # noqa: S608
        if record.words is not None:
            words.append((chosen, *record.words))
        for field, blob_id in (record.blobs or {}).items():
            session.run(
                "INSERT INTO blob_references VALUES (?, ?, ?, ?)",
                (source.source, key, field, blob_id),
            )
        if len(words) >= FLUSHED_AT:
            insert_words(session, number, layout, words)
    insert_words(session, number, layout, words)
    remove_tables(session, source)
    session.run(
        "UPDATE sources SET tables = ?, layout = ? WHERE source = ?",
        (number, layout.render(), source.source),
    )


def alter(session: Session, source: Source, layout: Layout) -> None:
    """Give the tables of a source the columns and indexes of an adapted layout."""
    number, old = source.tables, source.layout
    known = {column.name for column in old.columns}
    for column in layout.columns:
        if column.name not in known:
            session.run(f"ALTER TABLE r{number} ADD COLUMN {column.name}")
            _fill(session, number, column)
    before, after = old.indexes(), layout.indexes()
    for name, columns in before.items():
        if after.get(name) != columns:
            session.run(f"DROP INDEX r{number}_{name}")
    for name, columns in after.items():
        if before.get(name) != columns:
            session.run(create_index(number, name, columns))
    session.run("UPDATE sources SET layout = ? WHERE source = ?", (layout.render(), source.source))


def _fill(session: Session, number: int, column: Column) -> None:
    """Values of a new column, where records hold its field."""
    lines = session.rows(
        f"SELECT id, json_extract(data, ?1, '$') FROM h{number}"  # noqa: S608
        " WHERE json_type(data, ?1) IS NOT NULL",
        (f'$."{column.field}"',),
    )
    session.many(
        f"UPDATE r{number} SET {column.name} = ? WHERE id = ?",  # noqa: S608
        [(value_in(orjson.loads(text)[0], column.kind), row_id) for row_id, text in lines],
    )


def insert_line(
    session: Session, number: int, layout: Layout, at: int, rest: tuple[Value, ...]
) -> int:
    """Store a record's line at the first free id near `at`; `rest` begins with the key."""
    columns = layout.line_columns
    places = ", ".join("?" * len(columns))
    named = ", ".join(columns)
    statement = f"INSERT OR IGNORE INTO r{number} ({named}) VALUES ({places})"  # noqa: S608
    chosen, attempt = at, 0
    session.run(statement, (chosen, *rest))
    while session.changed == 0:
        chosen = at + crc32(f"{attempt} {rest[0]}".encode()) % min(32 << attempt, WIDEST_PROBE)
        attempt += 1
        session.run(statement, (chosen, *rest))
    return chosen


def insert_words(
    session: Session, number: int, layout: Layout, words: list[tuple[Value, ...]]
) -> None:
    """Index words in the order of their ids, and forget them here."""
    if words:
        named = "".join(f", x{place}" for place in range(len(layout.lexical)))
        places = ", ".join("?" * (1 + len(layout.lexical)))
        session.many(
            f"INSERT INTO f{number} (rowid{named}) VALUES ({places})",  # noqa: S608
            sorted(words),
        )
    words.clear()
