"""Passages of texts as vectors: which there are of a source, and what writes do with them.

A passage is found by meaning.  Each field has its own, so that a grant that does not show a field
never looks at its passages; they lie by the ids of records, which stand in the order of time, so
that a limit of time is a stretch of them.  They are made behind the writes (`passage_making`) and
found by their nearness to a question (`reads/nearest`).  A record's passages go with the record,
or with the value that they were made of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, TypeVar

import orjson

from pdpp_kernel.vectors import signs_of
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.fixed_tables import (
    FactRow,
    PassageBlockRow,
    PassageIndexRow,
    PassageRow,
    PassageSignsRow,
)
from personal_server.storage.sql.records.sign_blocks import unpack
from personal_server.storage.sql.statements import delete, insert, select

FORGOTTEN_AT_ONCE = 200
MODEL = "embedding_model"
EVERY_RECORD = -(2**63)
T = TypeVar("T")

_PASSAGES = (PassageRow.table, PassageSignsRow.table)
_INDEX = select(PassageIndexRow, PassageIndexRow.tables)
_END_INDEX = delete(PassageIndexRow, PassageIndexRow.tables)
_OF_TABLES = tuple(
    f"DELETE FROM {table} WHERE tables = ?"  # noqa: S608
    for table in (*_PASSAGES, PassageBlockRow.table)
)
FORGET_FIELD = tuple(f"{condition} AND field = ?" for condition in _OF_TABLES)
*_OF_RECORD, _OF_BLOCK = (
    f"{rule} AND {key} = ?" for rule, key in zip(FORGET_FIELD, ("id", "id", "last"), strict=True)
)
_COPY = tuple(
    f"INSERT INTO {table} SELECT ?, field, ?, {columns} FROM {table}"  # noqa: S608
    " WHERE tables = ? AND field = ? AND id = ?"
    for table, columns in zip(
        _PASSAGES, ("place, start, stop, vector", "place, signs"), strict=True
    )
)
_FACT = select(FactRow, FactRow.name, columns=(FactRow.said,))
ANY_PASSAGES = (
    *(f"SELECT tables, field, id FROM {table} LIMIT ?" for table in _PASSAGES),  # noqa: S608
    f"SELECT tables, field, last FROM {PassageBlockRow.table} LIMIT ?",  # noqa: S608
)
_SOME = tuple(statement.replace(" LIMIT", " WHERE tables = ? LIMIT") for statement in ANY_PASSAGES)
FORGET_PASSAGES = (*_OF_RECORD, _OF_BLOCK)


class PassageIndexLine(NamedTuple):
    """A line of `PassageIndexRow`."""

    tables: int
    fields: tuple[str, ...]
    position: int | None
    since: int

    @property
    def is_walked(self) -> bool:
        """Whether every record was come to."""
        return self.position == EVERY_RECORD


def passage_index(session: Session, tables: int) -> PassageIndexLine | None:
    """What is embedded of a source, by the number of its tables."""
    line = session.first(_INDEX, (tables,))
    return (
        None if line is None else PassageIndexLine(line[0], tuple(orjson.loads(line[1])), *line[2:])
    )


def embedding_model(session: Session) -> str | None:
    """The model whose vectors are kept."""
    return session.value(_FACT, (MODEL,))


def embedded_fields(session: Session, tables: int) -> tuple[str, ...]:
    """The fields of a source whose passages were made."""
    line = passage_index(session, tables)
    return () if line is None else line.fields


def forget_passages(session: Session, tables: int, field_ids: Collection[tuple[str, int]]) -> None:
    """Those of fields of records, as (field, id)."""
    if field_ids:
        unpack(session, tables, field_ids)
        for statement in _OF_RECORD:
            session.many(statement, [(tables, *field_id) for field_id in field_ids])


def forget_all_passages(session: Session, tables: int) -> None:
    """Those of a source, and that they were made."""
    if embedded_fields(session, tables):
        for statement in (*_OF_TABLES, _END_INDEX):
            session.run(statement, (tables,))


def forget_some_passages(session: Session, tables: int) -> None:
    """Some of those of a source; when none are left, that they were made."""
    for forget, find in zip(FORGET_PASSAGES, _SOME, strict=True):
        fields = session.rows(find, (tables, FORGOTTEN_AT_ONCE))
        session.many(forget, set(fields))
        if fields:
            return
    session.run(_END_INDEX, (tables,))


def begin_copy(session: Session, tables: int, further: int) -> None:
    """Have the passages of a source copied with its records (`rebuilds`)."""
    line = passage_index(session, tables)
    if line is not None:
        fields = orjson.dumps(line.fields).decode()
        session.run(insert(PassageIndexRow), (further, fields, None, line.since))


def copy_passages(
    session: Session, source: tuple[int, int], target: tuple[int, int], fields: Iterable[str]
) -> None:
    """Those of one record; of both places the tables and the id."""
    fields = tuple(fields)
    unpack(session, target[0], [(field, target[1]) for field in fields])
    for field in fields:
        for statement in _COPY:
            session.run(statement, (*target, source[0], field, source[1]))


def put_signs(session: Session, vectors: Iterable[tuple[int, str, int, int, bytes]]) -> None:
    """The signs of passages, of (tables, field, id, place, vector)."""
    signs = f"INSERT INTO {PassageSignsRow.table} VALUES (?, ?, ?, ?, {session.dialect.bits('?')})"  # noqa: S608
    session.many(signs, [(*row_key, signs_of(vector)) for *row_key, vector in vectors])
