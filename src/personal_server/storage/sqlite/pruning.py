"""Forgetting old history.

Rule: of the changes before an instant only those stay that date a living record (its creation and
the last change of each field), so that a feed from the beginning is always complete.  Words of
erased records, which no search finds any more, leave the file too.
"""

from __future__ import annotations

from collections.abc import Sequence

from personal_server.storage.sqlite.database import Database
from personal_server.storage.sqlite.session import Session
from personal_server.storage.sqlite.sources import Source, all_sources

# Pages of a word index written per step of a merge: some tens of milliseconds.
PAGES_MERGED = 500


def prune(session: Session, sources: Sequence[Source], before_ns: int) -> None:
    """Forget what was written before, and remember up to which number."""
    reached = 0
    for source in sources:
        last = session.value(
            "SELECT max(sequence) FROM changes WHERE source = ? AND written_at < ?",
            (source.source, before_ns),
        )
        if last is not None:
            reached = max(reached, int(last))
            _prune(session, source, int(last))
    session.run("UPDATE store SET value = max(value, ?) WHERE name = 'retained_from'", (reached,))


def _prune(session: Session, source: Source, last: int) -> None:
    number = source.tables
    session.run(
        "DELETE FROM changes WHERE source = ? AND sequence <= ? AND NOT EXISTS ("  # noqa: S608
        f" SELECT 1 FROM r{number} r WHERE r.k = changes.key AND (r.cs = changes.sequence OR"
        " EXISTS (SELECT 1 FROM json_each(r.fc) f"
        " WHERE json_extract(f.value, '$[0]') = changes.sequence)))",
        (source.source, last),
    )
    session.run("DELETE FROM gone WHERE source = ? AND sequence <= ?", (source.source, last))


def wipe(database: Database, subject_id: str) -> None:
    """Merge the word indexes of erased records, a little per transaction."""
    with database.read() as session:
        waiting = [
            source
            for source in all_sources(session, subject_id)
            if session.first("SELECT 1 FROM erased WHERE source = ?", (source.source,))
        ]
    for source in waiting:
        pages = -PAGES_MERGED
        while source.layout.lexical and _merge(database, source, pages):
            pages = PAGES_MERGED
        with database.write() as session:
            session.run("DELETE FROM erased WHERE source = ?", (source.source,))


def _merge(database: Database, source: Source, pages: int) -> bool:
    """One step of a merge; a negative number begins to merge everything.  Whether it did work."""
    index = f"f{source.tables}"
    with database.erase() as session:
        if session.first("SELECT 1 FROM sqlite_schema WHERE name = ?", (index,)) is None:
            return False
        before = session.driver.total_changes()
        session.run(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608
        return session.driver.total_changes() - before >= 2
