"""One write transaction's changes to the records of one source.

Rule: every change takes the next number of the store; a record's line, text, words, references and
change are written together or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from personal_server.domain.record import FieldChange
from personal_server.domain.values import DAY_NANOSECONDS, ValueKind
from personal_server.storage.meaning import changed_fields
from personal_server.storage.sqlite.preparing import Prepared, consent_instant, place_in_time
from personal_server.storage.sqlite.rebuilding import insert_line, insert_words
from personal_server.storage.sqlite.session import Session, Value
from personal_server.storage.sqlite.sources import Source
from personal_server.storage.stored import WriteOutcome

FLUSHED_AT = 2_000


@dataclass(frozen=True, slots=True)
class Stored:
    """A record's line as it stands."""

    id: int
    created: FieldChange
    latest_ns: int
    changes: Mapping[str, FieldChange]

    @property
    def sequence(self) -> int:
        """The number of its last change."""
        return max((self.created.sequence, *(each.sequence for each in self.changes.values())))


def parse_changes(text: str | None) -> dict[str, FieldChange]:
    """The dates of changed fields as a line holds them."""
    if text is None:
        return {}
    return {name: FieldChange(*pair) for name, pair in orjson.loads(text).items()}


def render_changes(changes: Mapping[str, FieldChange]) -> str | None:
    """The opposite; `None` for a record that never changed."""
    if not changes:
        return None
    pairs = {name: (c.sequence, c.emitted_at_ns) for name, c in changes.items()}
    return orjson.dumps(pairs).decode()


class SourceWriter:
    """Writes to one source inside an open write transaction; `close` ends them."""

    def __init__(self, session: Session, source: Source, now_ns: int) -> None:
        self._session = session
        self._source = source
        self._now_ns = now_ns
        self._sequence = int(session.value("SELECT value FROM store WHERE name = 'sequence'"))
        self._records = source.records
        self._has_gone = session.first(
            "SELECT 1 FROM gone WHERE source = ? LIMIT 1", (source.source,)
        )
        self._texts: list[tuple[Value, ...]] = []
        self._words: list[tuple[Value, ...]] = []
        self._changes: list[tuple[Value, ...]] = []
        self._pending: set[str] = set()
        self.released: set[str] = set()
        self._compose(source)

    def _compose(self, source: Source) -> None:
        number = source.tables
        self._find = f"SELECT id, cs, ce, e, fc FROM r{number} WHERE k = ?"  # noqa: S608
        self._text = f"SELECT data FROM h{number} WHERE id = ?"  # noqa: S608
        self._add_text = f"INSERT INTO h{number} VALUES (?, ?)"  # noqa: S608
        self._remove = [f"DELETE FROM {table}{number} WHERE id = ?" for table in "rh"]  # noqa: S608
        self._forget = f"DELETE FROM f{number} WHERE rowid = ?"  # noqa: S608

    def upsert(self, write: Prepared, *, fixed: bool) -> WriteOutcome:
        """Replace a record; `fixed` records only come into being."""
        assert write.text is not None  # noqa: S101  # deletes have their own method
        stored = self._stored(write.key)
        if stored is None:
            self._create(write)
            return WriteOutcome.CHANGED
        old_text: str = self._session.value(self._text, (stored.id,))
        if old_text == write.text:
            return WriteOutcome.UNCHANGED
        old: dict[str, Any] = orjson.loads(old_text)
        changed = changed_fields(old, orjson.loads(write.text))
        if not changed:
            return WriteOutcome.UNCHANGED
        if fixed:
            return WriteOutcome.CONFLICT
        self._replace(write, stored, old, changed)
        return WriteOutcome.CHANGED

    def delete(self, key: str, emitted_at_ns: int) -> bool:
        """Remove a record; whether it was there."""
        stored = self._stored(key)
        if stored is None:
            return False
        self._flush()
        old: dict[str, Any] = orjson.loads(self._session.value(self._text, (stored.id,)))
        self._erase(stored.id)
        self._refer(key, {})
        self._records -= 1
        was_at = consent_instant(old, self._source.layout)
        self._record(key, emitted_at_ns, (1, was_at), (0, None), None, stored.sequence)
        self._gone(key)
        return True

    def _gone(self, key: str) -> None:
        self._session.run(
            "INSERT INTO gone VALUES (?, ?, ?)", (self._source.source, key, self._sequence)
        )
        self._has_gone = (1,)

    def delete_all(self, emitted_at_ns: int) -> int:
        """Note the deletion of every record; its tables are dropped by the caller."""
        self._flush()
        number, layout = self._source.tables, self._source.layout
        consent = layout.column(layout.consent)
        dated = "NULL" if consent is None else consent.name
        lines = self._session.run(
            f"SELECT k, cs, fc, {dated} FROM r{number} ORDER BY k"  # noqa: S608
        )
        is_day = consent is not None and consent.kind is ValueKind.DATE
        for key, created, changes, value in lines:
            numbers = (each.sequence for each in parse_changes(changes).values())
            was_at = value * DAY_NANOSECONDS if is_day and value is not None else value
            self._refer(key, {})
            previous = max((created, *numbers))
            self._record(key, emitted_at_ns, (1, was_at), (0, None), None, previous)
            self._gone(key)
            if len(self._changes) >= FLUSHED_AT:
                self._flush()
        count, self._records = self._records, 0
        return count

    def close(self) -> None:
        """Write what is pending, the counters, and drop blobs nobody refers to any more."""
        self._flush()
        self._session.run("UPDATE store SET value = ? WHERE name = 'sequence'", (self._sequence,))
        self._session.run(
            "UPDATE sources SET records = ? WHERE source = ?",
            (self._records, self._source.source),
        )

    def _stored(self, key: str) -> Stored | None:
        if key in self._pending or len(self._changes) >= FLUSHED_AT:
            self._flush()
        line = self._session.first(self._find, (key,))
        if line is None:
            return None
        created = FieldChange(line[1], line[2])
        return Stored(line[0], created, line[3], parse_changes(line[4]))

    def _create(self, write: Prepared) -> None:
        previous = self._come_back(write.key)
        self._record(
            write.key, write.emitted_at_ns, (0, None), (1, write.consent_at), None, previous
        )
        created = FieldChange(self._sequence, write.emitted_at_ns)
        self._insert(write, self._place(write, created), created, write.emitted_at_ns, {})
        self._refer(write.key, write.blobs)
        self._records += 1

    def _replace(
        self, write: Prepared, stored: Stored, old: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        layout = self._source.layout
        self._flush()
        self._erase(stored.id)
        was_at = consent_instant(old, layout)
        self._record(
            write.key,
            write.emitted_at_ns,
            (1, was_at),
            (1, write.consent_at),
            orjson.dumps(sorted(changed)).decode(),
            stored.sequence,
        )
        now = FieldChange(self._sequence, write.emitted_at_ns)
        changes = {**stored.changes, **dict.fromkeys(changed, now)}
        moved = layout.event in changed
        at = self._place(write, stored.created) if moved else stored.id
        latest = max(stored.latest_ns, write.emitted_at_ns)
        self._insert(write, at, stored.created, latest, changes)
        self._refer(write.key, write.blobs)

    def _place(self, write: Prepared, created: FieldChange) -> int:
        return place_in_time(write.event_ns, created.emitted_at_ns, self._source.layout)

    def _insert(
        self,
        write: Prepared,
        at: int,
        created: FieldChange,
        latest_ns: int,
        changes: Mapping[str, FieldChange],
    ) -> None:
        rest = (
            write.key,
            created.sequence,
            created.emitted_at_ns,
            latest_ns,
            *write.values,
            render_changes(changes),
        )
        chosen = insert_line(self._session, self._source.tables, self._source.layout, at, rest)
        self._texts.append((chosen, write.text))
        if write.words is not None:
            self._words.append((chosen, *write.words))

    def _erase(self, row_id: int) -> None:
        for statement in self._remove:
            self._session.run(statement, (row_id,))
        if self._source.layout.lexical:
            self._session.run(self._forget, (row_id,))

    def _record(
        self,
        key: str,
        emitted_at_ns: int,
        before: tuple[int, Value],
        after: tuple[int, Value],
        fields: str | None,
        previous: int | None,
    ) -> None:
        self._sequence += 1
        self._pending.add(key)
        source = self._source.source
        self._changes.append(
            (
                source,
                self._sequence,
                key,
                *before,
                *after,
                fields,
                emitted_at_ns,
                self._now_ns,
                previous,
            )
        )
        if previous is not None:
            self._session.run(
                "UPDATE changes SET next = ? WHERE source = ? AND sequence = ?",
                (self._sequence, source, previous),
            )

    def _come_back(self, key: str) -> int | None:
        """The number of the deletion that a new record follows."""
        if self._has_gone is None:
            return None
        return self._session.value(
            "DELETE FROM gone WHERE source = ? AND key = ? RETURNING sequence",
            (self._source.source, key),
        )

    def _refer(self, key: str, blobs: Mapping[str, str] | None) -> None:
        """Replace the blob references of a record."""
        if not self._source.layout.blobs:
            return
        source = self._source.source
        old = self._session.rows(
            "DELETE FROM blob_references WHERE source = ? AND key = ? RETURNING blob_id",
            (source, key),
        )
        kept = blobs or {}
        self.released |= {blob_id for (blob_id,) in old} - set(kept.values())
        lines = [(source, key, field, blob_id) for field, blob_id in kept.items()]
        self._session.many("INSERT INTO blob_references VALUES (?, ?, ?, ?)", lines)

    def _flush(self) -> None:
        """Texts, words in the order of their ids, changes."""
        self._session.many(self._add_text, self._texts)
        insert_words(self._session, self._source.tables, self._source.layout, self._words)
        self._session.many(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)", self._changes
        )
        for pending in (self._texts, self._changes, self._pending):
            pending.clear()
