"""Where hidden records lengthen lists of words, answers leave at steps that tell none of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import cast

import pytest

from pdpp_kernel.criteria import Term, WordQuery
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.scopes import Scope
from personal_server.reading.pace import doubled, leaves_at
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.postgres.dialect import PostgresDialect
from personal_server.storage.sql import source_tables
from personal_server.storage.sql.snapshot import SqlSnapshot
from personal_server.storage.sqlite.dialect import SqliteDialect
from server.tests.storage.worlds import condition, furnish, note, scope, write
from tests.properties.stores import open_store

CALM = (condition("mood", "eq", "calm"),)
TIMED = scope(window=TimeConstraint("at", 1, None))
WORD, PREFIX = WordQuery((Term(("rain",)),)), WordQuery((Term(("rain",), prefix=True),))


@pytest.mark.parametrize(
    ("shortest", "least", "step"),
    [(0.005, 0.0, 0.005), (0.02, 0.02, 0.02), (0.02, 0.021, 0.04), (0.02, 0.5, 0.64)],
)
def test_a_step_doubles_until_it_is_long_enough(shortest: float, least: float, step: float) -> None:
    assert doubled(shortest, least) == step


def test_no_step_takes_longer_than_some_seconds() -> None:
    assert doubled(0.005, 900.0) == doubled(0.02, 900.0) == 2.56


@pytest.fixture(params=["sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RecordStore]:
    monkeypatch.setattr(source_tables, "MOST_READ", 3)
    with open_store(request.param, tmp_path) as store:
        furnish(store, "cin_a")
        moods = ["calm"] * 4 + ["glad"] * 3 + ["wild"] * 9
        write(store, "cin_a", [note(f"n{n}", mood=mood) for n, mood in enumerate(moods)])
        yield store


@pytest.mark.parametrize(
    ("seen", "walked"),
    [
        (scope(), 16),
        (scope(only=CALM), 16),
        (scope(only=(condition("mood", "eq", "glad"),)), 0),
        (scope(resources=frozenset(("n1", "n9"))), 0),
        (TIMED, 16),
    ],
)
def test_all_records_count_where_an_index_is_asked(
    store: RecordStore, seen: Scope, walked: int
) -> None:
    with store.snapshot() as snapshot:
        each = cast("SqlSnapshot", snapshot).session.dialect.looked_at_seconds
        assert snapshot.walked_seconds((seen,)) == each * walked


@pytest.mark.parametrize(
    ("seen", "words", "is_relaxed", "step"),
    [
        (scope(), PREFIX, True, None),
        (scope(resources=frozenset(("n1",))), PREFIX, True, None),
        (TIMED, WORD, False, 0.005),
        (TIMED, WORD, True, 0.02),
        (TIMED, PREFIX, False, 0.32),
        (scope(only=CALM), WORD, False, 2.56),
    ],
)
def test_an_answer_leaves_at_the_end_of_a_step(
    store: RecordStore,
    monkeypatch: pytest.MonkeyPatch,
    seen: Scope,
    words: WordQuery,
    *,
    is_relaxed: bool,
    step: float | None,
) -> None:
    # of 16 records as of 1,600,000
    for dialect in (SqliteDialect, PostgresDialect):
        monkeypatch.setattr(dialect, "looked_at_seconds", 2e-1)
    begun = perf_counter()
    with store.snapshot() as snapshot:
        at = leaves_at(begun, snapshot, (seen,), words, is_relaxed=is_relaxed)
    if step is None:
        assert at is None
    else:
        assert at is not None
        assert at > begun
        assert round((at - begun) % step, 6) in (0, step)
