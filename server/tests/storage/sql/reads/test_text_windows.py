"""A window of a text is the same where the database cuts it and where it cannot."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from personal_server.enforcement.plans import FieldWindowPlan
from personal_server.enforcement.rows import FieldWindow, WindowOutcome
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite import database
from personal_server.storage.sqlite.dialect import SqliteDialect
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import furnish, note, scope, write

TEXT = "Wind and RAIN, heavy"


class CutsNothing(SqliteDialect):
    """A database that hands over each text as a whole."""

    def window(
        self,
        texts: str,
        params: Sequence[Value],
        plan: FieldWindowPlan,
    ) -> tuple[str, tuple[Value, ...]]:
        return f"SELECT 'json', NULL, 0, 0, data, '' FROM ({texts})", (*params,)  # noqa: S608


@pytest.fixture(params=["cuts", "cuts nothing"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SqlRecordStore]:
    if request.param == "cuts nothing":
        monkeypatch.setattr(database, "DIALECT", CutsNothing())
    with sqlite_store(tmp_path) as opened:
        furnish(opened, "cin_a")
        write(opened, "cin_a", [note("n1", body=TEXT, title=None, words=3)])
        yield opened


def window(store: SqlRecordStore, field: str, key: str = "n1", **more: Any) -> list[FieldWindow]:
    plan = FieldWindowPlan((scope(),), key, field, 9, before_chars=4, **more)
    with store.snapshot() as snapshot:
        return list(snapshot.field_window(plan))


@pytest.mark.parametrize(
    ("asked", "begun", "match"),
    [
        ({}, 0, None),
        ({"offset_chars": 5}, 5, None),
        ({"offset_chars": 15}, 15, None),
        ({"offset_chars": 99}, len(TEXT), None),
        ({"match": "rain"}, 5, 9),
        ({"match": "WIND", "offset_chars": 7}, 0, 0),
    ],
)
def test_a_stretch_of_a_text(
    store: SqlRecordStore, asked: dict[str, Any], begun: int, match: int | None
) -> None:
    (found,) = window(store, "body", **asked)
    assert found == FieldWindow(
        "cin_a",
        WindowOutcome.FOUND,
        TEXT[begun : begun + 9],
        begun,
        len(TEXT),
        hashlib.sha256(TEXT.encode()).hexdigest(),
        match,
        None if match is None else match + 4,
    )


def test_what_is_no_text_or_is_not_in_it(store: SqlRecordStore) -> None:
    asked: list[tuple[str, dict[str, Any]]]
    asked = [("title", {}), ("mood", {}), ("words", {}), ("body", {"match": "snow"})]
    outcomes = [each.outcome for field, more in asked for each in window(store, field, **more)]
    assert outcomes == [
        WindowOutcome.NO_VALUE,
        WindowOutcome.NO_VALUE,
        WindowOutcome.NOT_TEXT,
        WindowOutcome.NO_MATCH,
    ]
    assert window(store, "body", "n2") == []
