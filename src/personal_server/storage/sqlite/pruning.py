"""Forgetting old history.

Rule: of the changes before an instant only those stay that date a living record (its creation and
the last change of each field), so that a feed from the beginning is always complete.
"""

from __future__ import annotations

from collections.abc import Sequence

from personal_server.storage.sqlite.session import Session
from personal_server.storage.sqlite.sources import Source


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
