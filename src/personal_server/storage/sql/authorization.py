"""The authorization store in SQLite: rows in and out of the tables of `authorization_schema`.

Rule: every statement begins its condition with the subject; names of tables and columns come from
the row classes only, values are always bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, get_type_hints

import orjson

from personal_server.storage.authorization import After, AuditRow, Before, NotNull, R, Row
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Database, Line, Session
from personal_server.storage.sql.fixed_tables import SchemaModule

# The tables of the authorization store.  Source: docs/contract/authorization-server.md 18.


TABLES = """
CREATE TABLE owner (
    subject_id TEXT NOT NULL,
    password_hash TEXT,
    created_at_ns INTEGER NOT NULL,
    password_changed_at_ns INTEGER,
    PRIMARY KEY (subject_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE owner_links (
    subject_id TEXT NOT NULL,
    link_hash BLOB NOT NULL,
    expires_at_ns INTEGER NOT NULL,
    used_at_ns INTEGER,
    PRIMARY KEY (subject_id, link_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE owner_sessions (
    subject_id TEXT NOT NULL,
    session_hash BLOB NOT NULL,
    csrf TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    last_seen_at_ns INTEGER NOT NULL,
    signed_in_at_ns INTEGER NOT NULL,
    address TEXT,
    user_agent TEXT,
    ended_at_ns INTEGER,
    PRIMARY KEY (subject_id, session_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE clients (
    subject_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    client_ref TEXT NOT NULL,
    registration TEXT NOT NULL,
    name TEXT NOT NULL,
    display TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    grant_types TEXT NOT NULL,
    auth_method TEXT NOT NULL,
    registered_at_ns INTEGER NOT NULL,
    first_approved_at_ns INTEGER,
    last_used_at_ns INTEGER,
    blocked_at_ns INTEGER,
    PRIMARY KEY (subject_id, client_id),
    UNIQUE (subject_id, client_ref)
) STRICT, WITHOUT ROWID;
CREATE TABLE client_documents (
    subject_id TEXT NOT NULL,
    url TEXT NOT NULL,
    body BLOB NOT NULL,
    digest TEXT NOT NULL,
    fetched_at_ns INTEGER NOT NULL,
    fresh_until_ns INTEGER NOT NULL,
    PRIMARY KEY (subject_id, url)
) STRICT, WITHOUT ROWID;
CREATE TABLE assertion_ids (
    subject_id TEXT NOT NULL,
    jti_hash BLOB NOT NULL,
    expires_at_ns INTEGER NOT NULL,
    PRIMARY KEY (subject_id, jti_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE introspection_clients (
    subject_id TEXT NOT NULL,
    caller_id TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    name TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    ended_at_ns INTEGER,
    PRIMARY KEY (subject_id, caller_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE auth_requests (
    subject_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    flow TEXT NOT NULL,
    client_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    resource TEXT NOT NULL,
    scope TEXT NOT NULL,
    redirect_uri TEXT,
    state TEXT,
    code_challenge TEXT,
    details TEXT,
    picker INTEGER NOT NULL,
    display TEXT,
    request_uri_hash BLOB,
    device_code_hash BLOB,
    user_code_hash BLOB,
    status TEXT NOT NULL,
    revision TEXT,
    facts TEXT,
    created_at_ns INTEGER NOT NULL,
    opened_at_ns INTEGER,
    decided_at_ns INTEGER,
    expires_at_ns INTEGER NOT NULL,
    collect_until_ns INTEGER,
    interval_seconds INTEGER NOT NULL,
    last_poll_at_ns INTEGER,
    wrong_tries INTEGER NOT NULL,
    address TEXT,
    user_agent TEXT,
    auth_method TEXT NOT NULL,
    grant_id TEXT,
    package_id TEXT,
    PRIMARY KEY (subject_id, request_id),
    UNIQUE (subject_id, request_uri_hash),
    UNIQUE (subject_id, device_code_hash),
    UNIQUE (subject_id, user_code_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE review_artifacts (
    subject_id TEXT NOT NULL,
    revision TEXT NOT NULL,
    artifact BLOB NOT NULL,
    request_id TEXT NOT NULL,
    decided_at_ns INTEGER NOT NULL,
    channel TEXT NOT NULL,
    PRIMARY KEY (subject_id, revision)
) STRICT, WITHOUT ROWID;
CREATE TABLE auth_codes (
    subject_id TEXT NOT NULL,
    code_hash BLOB NOT NULL,
    request_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    code_challenge TEXT NOT NULL,
    resource TEXT NOT NULL,
    scope TEXT NOT NULL,
    origin TEXT NOT NULL,
    expires_at_ns INTEGER NOT NULL,
    status TEXT NOT NULL,
    grant_id TEXT,
    package_id TEXT,
    redeemed_at_ns INTEGER,
    family_id TEXT,
    PRIMARY KEY (subject_id, code_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX auth_codes_by_request_id ON auth_codes (subject_id, request_id);
CREATE TABLE grants (
    subject_id TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    grant BLOB NOT NULL,
    client_id TEXT NOT NULL,
    connector_key TEXT NOT NULL,
    access_mode TEXT NOT NULL,
    issued_at_ns INTEGER NOT NULL,
    expires_at_ns INTEGER,
    consumed_at_ns INTEGER,
    revoked_at_ns INTEGER,
    reason TEXT,
    revision TEXT NOT NULL,
    PRIMARY KEY (subject_id, grant_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_by_client_id ON grants (subject_id, client_id);
CREATE INDEX grants_by_revision ON grants (subject_id, revision);
CREATE TABLE grant_packages (
    subject_id TEXT NOT NULL,
    package_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    revoked_at_ns INTEGER,
    reason TEXT,
    revision TEXT NOT NULL,
    PRIMARY KEY (subject_id, package_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX grant_packages_by_client_id ON grant_packages (subject_id, client_id);
CREATE TABLE grant_package_members (
    subject_id TEXT NOT NULL,
    package_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    grant_id TEXT NOT NULL,
    PRIMARY KEY (subject_id, package_id, position),
    UNIQUE (subject_id, grant_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE token_families (
    subject_id TEXT NOT NULL,
    family_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    client_id TEXT NOT NULL,
    grant_id TEXT,
    package_id TEXT,
    origin TEXT NOT NULL,
    resource TEXT NOT NULL,
    scope TEXT NOT NULL,
    auth_floor TEXT NOT NULL,
    generation INTEGER NOT NULL,
    last_used_at_ns INTEGER NOT NULL,
    idle_end_ns INTEGER NOT NULL,
    absolute_end_ns INTEGER,
    revoked_at_ns INTEGER,
    reason TEXT,
    PRIMARY KEY (subject_id, family_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX token_families_by_grant_id ON token_families (subject_id, grant_id);
CREATE INDEX token_families_by_package_id ON token_families (subject_id, package_id);
CREATE INDEX token_families_by_client_id ON token_families (subject_id, client_id);
CREATE TABLE refresh_tokens (
    subject_id TEXT NOT NULL,
    token_hash BLOB NOT NULL,
    family_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    superseded_at_ns INTEGER,
    overlap_used_at_ns INTEGER,
    PRIMARY KEY (subject_id, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX refresh_tokens_by_family_id ON refresh_tokens (subject_id, family_id);
CREATE TABLE tokens (
    subject_id TEXT NOT NULL,
    token_hash BLOB NOT NULL,
    kind TEXT NOT NULL,
    client_id TEXT NOT NULL,
    grant_id TEXT,
    package_id TEXT,
    family_id TEXT,
    origin TEXT NOT NULL,
    resource TEXT NOT NULL,
    scope TEXT NOT NULL,
    issued_at_ns INTEGER NOT NULL,
    expires_at_ns INTEGER NOT NULL,
    revoked_at_ns INTEGER,
    reason TEXT,
    last_used_at_ns INTEGER,
    PRIMARY KEY (subject_id, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_family_id ON tokens (subject_id, family_id);
CREATE INDEX tokens_by_grant_id ON tokens (subject_id, grant_id);
CREATE INDEX tokens_by_package_id ON tokens (subject_id, package_id);
CREATE TABLE audit_events (
    subject_id TEXT NOT NULL,
    event_id INTEGER NOT NULL,
    event TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    actor TEXT NOT NULL,
    client_id TEXT,
    grant_id TEXT,
    package_id TEXT,
    request_id TEXT,
    address TEXT,
    detail TEXT NOT NULL,
    PRIMARY KEY (subject_id, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_events_by_grant_id ON audit_events (subject_id, grant_id);
CREATE INDEX audit_events_by_package_id ON audit_events (subject_id, package_id);
"""

SHOWN_ARTIFACTS = """
ALTER TABLE auth_requests ADD COLUMN shown TEXT;
UPDATE auth_requests SET revision = NULL, facts = NULL;
"""
"""The artifact shown last stands beside the request; pages shown before are shown once more."""


SCHEMA = SchemaModule("authorization", (TABLES, SHOWN_ARTIFACTS))


class SqlAuthorizationStore:
    """The rows of one subject in an open file."""

    def __init__(self, database: Database, subject_id: str) -> None:
        self._database = database
        self.subject_id = subject_id

    @contextmanager
    def read(self) -> Generator[SqlAuthorizationTransaction]:
        """A consistent view."""
        with self._database.read() as session:
            yield SqlAuthorizationTransaction(session, self.subject_id)

    @contextmanager
    def write(self) -> Generator[SqlAuthorizationTransaction]:
        """A transaction that ends with the block."""
        with self._database.write() as session:
            yield SqlAuthorizationTransaction(session, self.subject_id)


class SqlAuthorizationTransaction:
    """Statements over the rows of one subject."""

    def __init__(self, session: Session, subject_id: str) -> None:
        self._session = session
        self._subject_id = subject_id

    def get(self, table: type[R], **key: object) -> R | None:
        """The only row that meets the conditions."""
        condition, values = self._condition(key)
        lines = self._session.rows(f"{_select(table)} WHERE {condition} LIMIT 2", values)
        if len(lines) > 1:
            raise LookupError(f"Several rows of {table.table}.")
        return _row(table, lines[0]) if lines else None

    def rows(
        self,
        table: type[R],
        *,
        order: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        **where: object,
    ) -> list[R]:
        """The rows that meet the conditions, in order."""
        condition, values = self._condition(where)
        by = (order,) if order else table.key or ("subject_id",)
        direction = " DESC" if descending else ""
        ordering = ", ".join(f"{_checked(table, column)}{direction}" for column in by)
        sql = f"{_select(table)} WHERE {condition} ORDER BY {ordering} LIMIT ?"
        lines = self._session.rows(sql, [*values, -1 if limit is None else limit])
        return [_row(table, line) for line in lines]

    def count(self, table: type[Row], **where: object) -> int:
        """How many rows meet the conditions."""
        condition, values = self._condition(where)
        sql = f"SELECT count(*) FROM {table.table} WHERE {condition}"  # noqa: S608 (our names)
        return int(self._session.value(sql, values))

    def insert(self, row: Row) -> None:
        """Add a row, once."""
        if isinstance(row, AuditRow) and not row.event_id:
            sql = "SELECT coalesce(max(event_id), 0) + 1 FROM audit_events WHERE subject_id = ?"
            number = int(self._session.value(sql, [self._subject_id]))
            row = dataclasses.replace(row, event_id=number)
        columns = _columns(type(row))
        marks = ", ".join("?" * (len(columns) + 1))
        names = ", ".join(("subject_id", *columns))
        sql = f"INSERT INTO {row.table} ({names}) VALUES ({marks})"  # noqa: S608 (our names)
        values = [_stored(row, column, getattr(row, column)) for column in columns]
        self._session.run(sql, [self._subject_id, *values])

    def change(self, table: type[Row], to: Mapping[str, object], **where: object) -> int:
        """Set columns where the conditions hold."""
        condition, values = self._condition(where)
        assignments = ", ".join(f"{_checked(table, column)} = ?" for column in to)
        sql = f"UPDATE {table.table} SET {assignments} WHERE {condition}"  # noqa: S608 (our names)
        new = [_stored(table, column, value) for column, value in to.items()]
        self._session.run(sql, [*new, *values])
        return self._session.changed

    def delete(self, table: type[Row], **where: object) -> int:
        """Remove the rows that meet the conditions."""
        condition, values = self._condition(where)
        self._session.run(f"DELETE FROM {table.table} WHERE {condition}", values)  # noqa: S608 (our names)
        return self._session.changed

    def _condition(self, where: Mapping[str, object]) -> tuple[str, list[Value]]:
        parts = ["subject_id = ?"]
        values: list[Value] = [self._subject_id]
        for column, condition in where.items():
            comparison, bound = _comparison(condition)
            parts.append(f"{column} {comparison}")
            values += bound
        return " AND ".join(parts), values


def _comparison(condition: object) -> tuple[str, list[Value]]:
    match condition:
        case None:
            return "IS NULL", []
        case NotNull():
            return "IS NOT NULL", []
        case Before(value):
            return "<= ?", [value]
        case After(value):
            return "> ?", [value]
        case bool() | int() | str() | bytes():
            return "= ?", [condition]
        case _:
            raise TypeError("Conditions compare scalars.")


@cache
def _columns(table: type[Row]) -> tuple[str, ...]:
    return tuple(column.name for column in dataclasses.fields(table))


@cache
def _json_columns(table: type[Row]) -> frozenset[str]:
    return frozenset(c.name for c in dataclasses.fields(table) if c.metadata.get("json"))


@cache
def _hints(table: type[Row]) -> Mapping[str, Any]:
    return get_type_hints(table)


def _checked(table: type[Row], column: str) -> str:
    if column != "subject_id" and column not in _columns(table):
        raise LookupError(f"{table.table} has no such column.")
    return column


@cache
def _select(table: type[Row]) -> str:
    return f"SELECT {', '.join(_columns(table))} FROM {table.table}"  # noqa: S608 (our names)


def _stored(table: type[Row] | Row, column: str, value: object) -> Value:
    kind = table if isinstance(table, type) else type(table)
    if value is None:
        return None
    if column in _json_columns(kind):
        return orjson.dumps(value).decode()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | str | bytes):
        return value
    raise TypeError(f"{kind.table}.{column} holds scalars.")


def _row(table: type[R], line: Line) -> R:
    columns = _columns(table)
    values = {c: _loaded(table, c, v) for c, v in zip(columns, line, strict=True)}
    return table(**values)


def _loaded(table: type[Row], column: str, value: object) -> object:
    if value is None:
        return None
    if column in _json_columns(table):
        loaded: object = orjson.loads(str(value))
        return _as_tuple(loaded) if str(_hints(table)[column]).startswith("tuple") else loaded
    return bool(value) if _hints(table)[column] is bool else value


def _as_tuple(loaded: object) -> object:
    return tuple(_sequence(loaded))


def _sequence(loaded: Any) -> Sequence[object]:
    return loaded
