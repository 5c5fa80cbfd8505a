"""New tables for a source whose declaration stores it another way: columns, indexes, words."""

from __future__ import annotations

from zlib import crc32

import orjson

from personal_server.storage.sql.layout import Layout
from personal_server.storage.sqlite.preparing import WIDEST_PROBE, place_in_time, prepare_one
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
        chosen = insert_line(session, number, at, rest)
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


def insert_line(session: Session, number: int, at: int, rest: tuple[Value, ...]) -> int:
    """Store a record's line at the first free id near `at`; `rest` begins with the key."""
    places = ", ".join("?" * (1 + len(rest)))
    statement = f"INSERT OR IGNORE INTO r{number} VALUES ({places})"  # noqa: S608
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
