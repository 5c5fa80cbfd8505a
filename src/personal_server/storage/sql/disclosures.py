"""The disclosure log in SQLite: one table that is only appended to."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from personal_server.domain.disclosure import SERVED, DisclosureEntry
from personal_server.storage.ports import DisclosureQuery
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Database, Line
from personal_server.storage.sql.fixed_tables import SchemaModule

_TABLE = """
CREATE TABLE disclosures (
    subject_id TEXT NOT NULL, number INTEGER NOT NULL, disclosure_id TEXT NOT NULL,
    at_ns INTEGER NOT NULL, request_id TEXT NOT NULL, outcome TEXT NOT NULL, error_code TEXT,
    token_kind TEXT NOT NULL, client_id TEXT, grant_id TEXT, package_id TEXT,
    channel TEXT NOT NULL, tool TEXT, route TEXT NOT NULL, connector_key TEXT,
    connection_id TEXT, stream TEXT, fields TEXT NOT NULL, record_count INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL, PRIMARY KEY (subject_id, number)) STRICT, WITHOUT ROWID;
CREATE INDEX disclosures_by_time ON disclosures (subject_id, at_ns);
CREATE INDEX disclosures_by_grant ON disclosures (subject_id, grant_id, at_ns);
"""
_COLUMNS = (
    "disclosure_id",
    "at_ns",
    "request_id",
    "outcome",
    "error_code",
    "token_kind",
    "client_id",
    "grant_id",
    "package_id",
    "channel",
    "tool",
    "route",
    "connector_key",
    "connection_id",
    "stream",
    "fields",
    "record_count",
    "size_bytes",
)
_MARKS = ", ".join("?" * (len(_COLUMNS) + 2))
_INSERT = f"INSERT INTO disclosures (subject_id, number, {', '.join(_COLUMNS)}) VALUES ({_MARKS})"  # noqa: S608 (constant names)
_SELECT = f"SELECT number, {', '.join(_COLUMNS)} FROM disclosures WHERE subject_id = ?"  # noqa: S608 (constant names)

SCHEMA = SchemaModule("disclosures", (_TABLE,))


class SqlDisclosures:
    """The log of one subject in an open file."""

    def __init__(self, database: Database, subject_id: str) -> None:
        self._database = database
        self._subject_id = subject_id

    def append_disclosures(self, entries: Sequence[DisclosureEntry]) -> None:
        """Write entries, in order, in one transaction."""
        with self._database.write() as session:
            newest = session.value(
                "SELECT max(number) FROM disclosures WHERE subject_id = ?", [self._subject_id]
            )
            numbered = enumerate(entries, start=1 + int(newest or 0))
            session.many(_INSERT, [[self._subject_id, n, *_values(e)] for n, e in numbered])

    def disclosures(self, query: DisclosureQuery) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries with their numbers, newest first."""
        conditions, values = _conditions(query)
        sql = f"{_SELECT}{conditions} ORDER BY number DESC LIMIT ?"
        with self._database.read() as session:
            lines = session.rows(sql, [self._subject_id, *values, query.limit])
        return tuple((line[0], _entry(self._subject_id, line[1:])) for line in lines)

    def disclosed_since(self, grant_id: str, since_ns: int) -> tuple[int, int]:
        """Records and bytes served for a grant since an instant."""
        sql = (
            "SELECT coalesce(sum(record_count), 0), coalesce(sum(size_bytes), 0) FROM disclosures"
            " WHERE subject_id = ? AND grant_id = ? AND at_ns >= ? AND outcome = ?"
        )
        with self._database.read() as session:
            line = session.first(sql, [self._subject_id, grant_id, since_ns, SERVED])
        return (0, 0) if line is None else (line[0], line[1])

    def forget_disclosures(self, before_ns: int) -> None:
        """Remove entries older than the time they are kept."""
        with self._database.write() as session:
            session.rows(
                "DELETE FROM disclosures WHERE subject_id = ? AND at_ns < ?",
                [self._subject_id, before_ns],
            )


def _conditions(query: DisclosureQuery) -> tuple[str, list[Value]]:
    sql, values = "", list[Value]()
    for member, value in query.equal:
        if member not in _COLUMNS:
            raise ValueError(f"no such column: {member}")
        sql += f" AND {member} = ?"
        values.append(value)
    for comparison, bound in (
        ("at_ns >= ?", query.since_ns),
        ("at_ns < ?", query.until_ns),
        ("number < ?", query.below),
    ):
        if bound is not None:
            sql += f" AND {comparison}"
            values.append(bound)
    return sql, values


def _values(entry: DisclosureEntry) -> list[Value]:
    return [
        orjson.dumps(entry.fields).decode() if name == "fields" else getattr(entry, name)
        for name in _COLUMNS
    ]


def _entry(subject_id: str, line: Line) -> DisclosureEntry:
    members = dict(zip(_COLUMNS, line, strict=True))
    members["fields"] = tuple(orjson.loads(members["fields"]))
    return DisclosureEntry(subject_id=subject_id, **members)
