"""How lines are read follows from what is visible, not from what the planner knows of the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.values import instant_ns
from pdpp_kernel.vectors import Passage
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import MeaningPlan, SearchPlan, TimelinePlan
from personal_server.enforcement.scopes import Scope, TimedScope
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.postgres.session import translated_sql
from personal_server.storage.sql import source_tables
from personal_server.storage.sql.declared_layouts import layout_of
from personal_server.storage.sql.snapshot import SqlSnapshot
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.semantics.tiny import vector_of
from server.tests.storage.worlds import NOTES_STREAM, condition, furnish, note, order, scope, write
from tests.postgresql import schema, server

RECORDS = 2_000
MOOD = layout_of(NOTES_STREAM).by_field["mood"].name
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


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlRecordStore]:
    """Notes, of which the planner knows what is frequent: a fiftieth is calm.  Nobody writes."""
    tmp_path = tmp_path_factory.mktemp("dialect")
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
    assert {"keys": "r1_k", "content": "mood"}[name] in plans.pop().replace(MOOD, "mood")


@pytest.mark.parametrize(("name", "seen"), SEEN.items())
def test_passages_are_looked_up_where_visible_records_stand(
    store: SqlRecordStore, monkeypatch: pytest.MonkeyPatch, name: str, seen: Scope
) -> None:
    """Never all of a table, and of few records never all of a field."""
    with store.snapshot() as snapshot:
        explained = _explaining(snapshot.session, monkeypatch)
        found = snapshot.nearest(MeaningPlan((seen,), vector_of("dog"), "tiny", {}))
    assert found.records
    plans = [plan for sql, plan in explained if " passage_signs b" in sql]
    assert len(plans) == (1 if name == "fields" else 2)
    for plan in plans:
        assert "Seq Scan" not in plan
        assert "Rows Removed" not in plan
        looked_up = plan.split("on passage_signs b")[1]
        assert ("(id = r.id)" in looked_up) == (name in LIMITS)


WORDS = WordQuery((Term(("rain",)), Term(("wind",)), Term(("hail",), prefix=True)))
ASKED: dict[str, Callable[[SqlSnapshot, Scope], object]] = {
    "all": lambda snapshot, seen: snapshot.search(SearchPlan((seen,), WORDS)),
    "phrase": lambda snapshot, seen: snapshot.search(
        SearchPlan((seen,), WordQuery((Term(("rain", "7")),)))
    ),
    "one": lambda snapshot, seen: snapshot.search(SearchPlan((seen,), WordQuery(WORDS.terms[:1]))),
    "most": lambda snapshot, seen: snapshot.search(SearchPlan((seen,), replace(WORDS, least=2))),
    "each": lambda snapshot, seen: snapshot.count_terms(SearchPlan((seen,), WORDS)),
    "in time": lambda snapshot, seen: snapshot.timeline(
        TimelinePlan((TimedScope(seen, order("at", down=True)),), True, 5, words=WORDS)
    ),
}


@pytest.mark.parametrize("name", ["content", "time"])
@pytest.mark.parametrize("asked", ASKED)
def test_lines_are_looked_up_for_what_holds_words(
    store: SqlRecordStore, monkeypatch: pytest.MonkeyPatch, name: str, asked: str
) -> None:
    """By plans that know no value, too, as statements have that stay prepared."""
    monkeypatch.setattr(source_tables, "MOST_READ", 3)
    with store.snapshot() as snapshot:
        found = _noted(snapshot.session, monkeypatch)
        ASKED[asked](snapshot, SEEN[name])
        plans = [_general_plan(snapshot.session, sql) for sql in found if " f " in sql]
    assert plans
    for plan in plans:
        for before, after in pairwise(plan.split(" on r1 r")):
            is_by_limit = before.endswith(f"r1_{MOOD}")
            is_end = name == "time" and "Index Cond: (id >= " in after.split("->")[0]
            assert is_by_limit or is_end or "Index Cond: (id = " in after.split("->")[0], plan


def _noted(session: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that a session is asked from now on."""
    noted, rows, several = list[str](), session.rows, session.several

    def one(sql: str, params: Any = ()) -> Any:
        noted.append(sql)
        return rows(sql, params)

    def all_of_them(asked: Any) -> Any:
        noted.extend(sql for sql, _ in asked)
        return several(asked)

    monkeypatch.setattr(session, "rows", one)
    monkeypatch.setattr(session, "several", all_of_them)
    return noted


def _general_plan(session: Any, sql: str) -> str:
    connection = session._connection
    translated = translated_sql(sql)
    count = len(set(re.findall(rb"\$\d+", translated)))
    name = f"general_{abs(hash(sql))}".encode()
    nulls = b"" if not count else b"(" + b", ".join([b"NULL"] * count) + b")"
    connection.execute(b"SET LOCAL plan_cache_mode TO force_generic_plan")
    connection.execute(b"PREPARE " + name + b" AS " + translated)
    lines = connection.execute(b"EXPLAIN (COSTS OFF) EXECUTE " + name + nulls).fetchall()
    connection.execute(b"DEALLOCATE " + name)  # a later test may be given this connection
    return "\n".join(line[0] for line in lines)


def _explaining(session: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Each statement that a session is asked from now on, with how it was answered."""
    explained, rows = list[tuple[str, str]](), session.rows

    def noted(sql: str, params: Any = ()) -> Any:
        lines = rows(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {sql}", params)
        explained.append((sql, "\n".join(line[0] for line in lines)))
        return rows(sql, params)

    monkeypatch.setattr(session, "rows", noted)
    return explained
