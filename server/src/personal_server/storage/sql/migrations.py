"""How tables come into being: steps, each a file of SQL that is applied to a file once.

Rule: a step that has landed never changes and never goes, since databases exist that took it.  Row
classes (`storage/tables`) say what the newest layout is, steps how a file gets there; a test fails
where the two differ.  Steps are known by their names and applied in the order of these, so that two
of them which were written at the same time need not know each other.

Shapes: a step names types as `{text}`, `{integer}`, `{flag}`, `{bytes}`, `{bits}`, `{scalar}`,
    `{json}` (those of `ColumnKind`), `{numbered}`, ends a table with `{by_key}` or `{by_number}`,
    and takes bits of the bytes `signs` with `{signs_as_bits}`.
Raises: DatabaseTooNew, DatabaseTooOld.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec

from pdpp_kernel.errors import StorageUnavailable
from personal_server.storage.sql.dialect import Dialect
from personal_server.storage.sql.driver import Session
from personal_server.storage.tables import ColumnKind

BeforeMigration = Callable[[Sequence[str]], None]
"""Called with the names of the steps that an older file lacks, before it is touched."""


class DatabaseTooNew(StorageUnavailable):
    """The file was written by a newer version of this program."""


class DatabaseTooOld(StorageUnavailable):
    """The file was written before the first release."""


class Step(msgspec.Struct, frozen=True):
    """One change of the layout."""

    name: str
    sql: str


@cache
def known_steps() -> tuple[Step, ...]:
    """The steps of this version, in their order."""
    folder = files("personal_server.storage.sql") / "steps"
    scripts = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    steps = [Step(file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in scripts]
    return tuple(sorted(steps, key=lambda step: step.name))


# The table that notes steps began as one of version numbers.  A file of that time has these rows,
# and a program of that time refuses a file with any other name in it, as it should.
_RELEASED = "001_released"
_NUMBERED = {"records": 18, "authorization": 2, "disclosures": 1}
_NOTES = "schema_version"
_MADE = re.compile(r"^(CREATE|DROP) TABLE (\w+)", re.MULTILINE)
_NOTE = f"INSERT INTO {_NOTES} VALUES (?, 1)"  # noqa: S608
_NOTED = f"SELECT module, version FROM {_NOTES}"  # noqa: S608
_BEGIN = (
    f"CREATE TABLE {_NOTES} (module {{text}} PRIMARY KEY, version {{integer}} NOT NULL) {{by_key}}"
)


class MissingSteps(msgspec.Struct, frozen=True):
    """The steps that a file lacks; `is_new` if it has nothing yet."""

    steps: tuple[Step, ...]
    is_new: bool


def missing_steps(session: Session, steps: Sequence[Step]) -> MissingSteps:
    """What a file lacks.  Raises as the module says."""
    if session.first(session.dialect.find_table, (_NOTES,)) is None:
        return MissingSteps(tuple(steps), is_new=True)
    taken_steps = _taken(dict(session.rows(_NOTED)))
    if taken_steps - {step.name for step in steps}:
        raise DatabaseTooNew("A newer version of pdpp wrote this database. Install that version.")
    return MissingSteps(tuple(step for step in steps if step.name not in taken_steps), is_new=False)


def take_steps(session: Session, steps: Sequence[Step]) -> None:
    """Apply what the file lacks, and note it, in an open transaction."""
    missing = missing_steps(session, steps)
    words = types_of(session.dialect)
    if missing.is_new:
        session.run(_BEGIN.format(**words))
    for step in missing.steps:
        session.run(step.sql.format(**words))
        session.run(_NOTE, (step.name,))


def tables_of(steps: Sequence[Step]) -> set[str]:
    """The tables that are there when these were taken."""
    tables = set[str]()
    for step in steps:
        for verb, name in _MADE.findall(step.sql):
            (tables.add if verb == "CREATE" else tables.discard)(name)
    return tables


def _taken(versions: Mapping[str, int]) -> set[str]:
    numbered = {name: version for name, version in versions.items() if name in _NUMBERED}
    if not numbered:
        return set(versions)
    if numbered != _NUMBERED:
        raise DatabaseTooOld("This database is older than the first release of pdpp.")
    return {_RELEASED, *(versions.keys() - numbered.keys())}


def types_of(dialect: Dialect) -> dict[str, str]:
    """What stands for the words in braces of a step."""
    return {
        **{kind.value: dialect.column_type(kind) for kind in ColumnKind},
        "numbered": dialect.numbered_key,
        "by_key": dialect.table_options(rowid=False),
        "by_number": dialect.table_options(rowid=True),
        "signs_as_bits": dialect.bits("signs"),
    }
