"""A PostgreSQL schema without records, and how a copy that a test wrote to becomes one again.

Rule: a copy serves the next test only where nothing tells it from a new one: its tables, columns,
indexes, constraints, functions and triggers are the same, each table holds what it held when it was
made, and its sequences begin again.  What a test altered beyond that is not mended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

COPIED_SCHEMA = "owner"
"""The schema of the owner in each copied database."""
_SESSION = "SET search_path TO pg_catalog; SET lock_timeout TO '2s'; SET row_security TO off"
_TABLES: LiteralString = (
    "SELECT relname FROM pg_class"
    " WHERE relkind IN ('r', 'p') AND relnamespace = 'owner'::regnamespace"
)
_LAST: LiteralString = (
    "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'owner'"
)
# What tells a schema from another, apart from rows: each line of the catalogue that says how it is.
_SHAPE: LiteralString = """
WITH own AS (SELECT * FROM pg_class WHERE relnamespace = 'owner'::regnamespace), lines AS (
  SELECT format('%s %s %s %s', relname, relkind, relpersistence, reloptions) FROM own
  UNION ALL
  SELECT format('%s.%s %s %s %s %s %s %s', relname, attname, attnum, atttypid, attnotnull,
                attisdropped, attcompression, attcollation)
    FROM pg_attribute JOIN own ON attrelid = own.oid WHERE attnum > 0
  UNION ALL
  SELECT format('%s %s', relname, pg_get_expr(adbin, adrelid))
    FROM pg_attrdef JOIN own ON adrelid = own.oid
  UNION ALL
  SELECT format('%s %s %s', conname, convalidated, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace = 'owner'::regnamespace
  UNION ALL
  SELECT format('%s %s', indisvalid, pg_get_indexdef(indexrelid))
    FROM pg_index JOIN own ON indexrelid = own.oid
  UNION ALL
  SELECT pg_get_functiondef(oid) FROM pg_proc
    WHERE pronamespace = 'owner'::regnamespace AND prokind = 'f'
  UNION ALL
  SELECT format('%s %s', tgenabled, pg_get_triggerdef(pg_trigger.oid))
    FROM pg_trigger JOIN own ON tgrelid = own.oid WHERE NOT tgisinternal
  UNION ALL
  SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'
) SELECT md5(string_agg(format, E'\\n' ORDER BY format)) FROM lines
"""


@dataclass(frozen=True, slots=True)
class EmptySchema:
    """What a schema is like that has taken every step.

    Shapes: `rows` are the tables that are not empty even so, each as `COPY` gives it; `sequences`
        the last number of each, if it gave one.
    """

    shape: str
    tables: frozenset[str]
    rows: Mapping[str, bytes]
    sequences: Mapping[str, int | None]

    @classmethod
    def of(cls, url: str) -> EmptySchema:
        """As this database has it."""
        with looking_at(url) as session:
            tables = _tables(session)
            rows = {name: _copied(session, name) for name in _filled(session, tables)}
            return cls(_shape(session), frozenset(tables), rows, _sequences(session))

    def restore(self, session: psycopg.Connection[Any]) -> bool:
        """Empty the database of a session again; whether nothing tells it from a new one.

        `session` is one of `looking_at`, in no transaction, and is so afterwards.
        Raises: psycopg.Error.
        """
        with session.transaction():
            tables = _tables(session)
            made = [name for name in tables if name not in self.tables]
            if made:
                session.execute(sql.SQL("DROP TABLE {} CASCADE").format(_named(made)))
            if _shape(session) != self.shape:
                return False
            filled = _filled(session, self.tables)
            if filled:
                session.execute(
                    sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(_named(filled))
                )
            for name, content in self.rows.items():
                _fill(session, name, content)
            for name, last in _sequences(session).items():
                if last != self.sequences[name]:
                    session.execute(sql.SQL("ALTER SEQUENCE {} RESTART").format(_named([name])))
            return _sequences(session) == self.sequences


def looking_at(url: str) -> psycopg.Connection[Any]:
    """A session whose settings no test can have changed, in no transaction."""
    session = psycopg.connect(url)
    session.execute(_SESSION)
    session.commit()
    return session


def _named(names: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(COPIED_SCHEMA, name) for name in names)


def _tables(session: psycopg.Connection[Any]) -> list[str]:
    return [name for (name,) in session.execute(_TABLES)]


def _shape(session: psycopg.Connection[Any]) -> str:
    (found,) = session.execute(_SHAPE).fetchone() or ("",)
    return found


def _filled(session: psycopg.Connection[Any], tables: list[str] | frozenset[str]) -> list[str]:
    """Which of these tables have a row."""
    asked = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})").format(name, _named([name]))
        for name in sorted(tables)
    )
    return [name for (name,) in session.execute(asked)]


def _sequences(session: psycopg.Connection[Any]) -> dict[str, int | None]:
    return dict(session.execute(_LAST).fetchall())


def _copied(session: psycopg.Connection[Any], table: str) -> bytes:
    with session.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(_named([table]))) as copy:
        return b"".join(bytes(each) for each in copy)


def _fill(session: psycopg.Connection[Any], table: str, content: bytes) -> None:
    with session.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(_named([table]))) as copy:
        copy.write(content)
