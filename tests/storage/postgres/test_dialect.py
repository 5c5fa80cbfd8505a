"""How lines are read follows from what is visible, not from what the planner knows of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from personal_server.domain.authority import TimeConstraint
from personal_server.domain.values import instant_ns
from personal_server.domain.vectors import Passage
from personal_server.enforcement.plans import MeaningPlan, Scope
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.store import SqlRecordStore
from tests.postgresql import schema, server
from tests.semantics.tiny import vector_of
from tests.storage.worlds import condition, furnish, note, scope, write

RECORDS = 2_000
SINCE = instant_ns("2026-02-01T00:00:00Z")
LIMITS = {
    "keys": scope(resources=frozenset(f"n{number}" for number in range(30))),
    "content": scope(only=(condition("mood", "eq", "calm"),)),
}
SEEN = {
    "fields": scope(fields=("id", "at", "body")),
    "time": scope(window=TimeConstraint("at", SINCE, None)),
    **LIMITS,
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlRecordStore]:
    """Notes, of which the planner knows what is frequent: a fiftieth is calm."""
    with (
        schema() as name,
        closing(PostgresDatabase(server().url(), tmp_path, name)) as database,
    ):
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        write(store, "cin_a", map(_note, range(RECORDS)))
        while store.use_embedding_model("tiny"):
            pass
        while (work := store.unembedded("cin_a", "notes", ("title", "body"), 500)) is not None:
            texts = [(each.id, *more) for each in work.records for more in each.texts.items()]
            made = {(n, f): [Passage(0, len(text), vector_of(text))] for n, f, text in texts}
            store.put_passages(work, made)
        with psycopg.connect(server().url(), autocommit=True) as connection:
            for table in ("r1", "passages", "passage_signs"):
                connection.execute(f"ANALYZE {name}.{table}".encode())
        yield store


def _note(number: int) -> dict[str, Any]:
    mood, words = ("wild", 1) if number % 50 else ("calm", 2)
    # three hidden ones, which an index would find sooner than the calm ones
    words = 3 if number in (41, 42, 43) else words
    at = f"2026-{number // 27 % 12 + 1:02}-{number % 27 + 1:02}T00:00:00Z"
    title = "my puppy" if number < 30 else None
    return note(f"n{number}", at, mood=mood, words=words, title=title, body=f"rain {number}")


@pytest.mark.parametrize("name", LIMITS)
def test_a_value_of_hidden_records_changes_no_plan(store: SqlRecordStore, name: str) -> None:
    """The planner knows which values are frequent, in hidden records too."""
    plans = set[str]()
    with store.snapshot() as snapshot:
        [place] = snapshot.places((LIMITS[name],))
        for words in (1, 2, 3, 4):
            where = place.matching((condition("words", "eq", words),))
            asked = place.compiler.select("1", where)
            lines = snapshot.session.rows(f"EXPLAIN (COSTS OFF) {asked.sql}", asked.params)
            plans.add("\n".join(line[0] for line in lines).replace(f"'{words}'", "WORDS"))
    assert len(plans) == 1
    assert {"keys": "r1_k", "content": "mood"}[name] in plans.pop().replace("c3", "mood")


@pytest.mark.parametrize(("name", "seen"), SEEN.items())
def test_passages_are_looked_up_where_visible_records_stand(
    store: SqlRecordStore, name: str, seen: Scope
) -> None:
    """Never all of a table, and of few records never all of a field."""
    with store.snapshot() as snapshot:
        explained = _explaining(snapshot.session)
        found = snapshot.nearest(MeaningPlan((seen,), vector_of("dog"), "tiny", {}))
    assert found.records
    plans = [plan for sql, plan in explained if " passage_signs b" in sql]
    assert len(plans) == (1 if name == "fields" else 2)
    for plan in plans:
        assert "Seq Scan" not in plan
        assert "Rows Removed" not in plan
        looked_up = plan.split("on passage_signs b")[1]
        assert ("(id = r.id)" in looked_up) == (name in LIMITS)


def _explaining(session: Any) -> list[tuple[str, str]]:
    """Each statement that a session is asked from now on, with how it was answered."""
    explained, rows = list[tuple[str, str]](), session.rows

    def noted(sql: str, params: Any = ()) -> Any:
        lines = rows(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}", params)
        explained.append((sql, "\n".join(line[0] for line in lines)))
        return rows(sql, params)

    session.rows = noted
    return explained
