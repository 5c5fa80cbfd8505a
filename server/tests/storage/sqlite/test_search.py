"""A search does the same work whether something hidden meets it or not, and so do other reads.

Two stores are alike but for records or fields that the scope does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import Grouping, Term, WordQuery
from pdpp_kernel.values import NANOSECONDS, ValueKind
from personal_server.domain.grant import TimeConstraint
from personal_server.domain.spelling import near_spellings
from personal_server.enforcement.plans import (
    AggregatePlan,
    BlobPlan,
    RecordsPlan,
    SearchPlan,
    TimelinePlan,
)
from personal_server.enforcement.scopes import Scope, TimedScope
from personal_server.storage.sql.reads import search
from personal_server.storage.sql.snapshot import SqlSnapshot
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.ports.asking import receive
from server.tests.storage.sqlite.work import Counters, Work, counted_store, work_of
from server.tests.storage.worlds import condition, note, order, scope, write

Read = Callable[[SqlSnapshot], object]

# what it takes to look at one line that a time constraint leaves out
ROW_STEPS = 6
# and at most to look up one more word in the index
LOOKUP_STEPS = 40
SHOWN_KEYS = frozenset({"n1", "n2", "n3", "absent"})
BLIND = ("id", "at", "title")
CALM = (condition("mood", "eq", "Calm", caseless=True),)
TWO_MOODS = (condition("mood", "in", "calm", further=("glad",), caseless=True),)
WINDOW_DAYS = ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z")


def _ns(text: str) -> int:
    return int(datetime.fromisoformat(text).astimezone(UTC).timestamp()) * NANOSECONDS


def _window(since: str | None, until: str | None) -> TimeConstraint:
    return TimeConstraint("at", _ns(since) if since else None, _ns(until) if until else None)


SCOPES: dict[str, Scope] = {
    "fields": scope(fields=BLIND),
    "resources": scope(resources=SHOWN_KEYS),
    "since": scope(window=_window(WINDOW_DAYS[0], None)),
    "until": scope(window=_window(None, WINDOW_DAYS[1])),
    "window": scope(window=_window(*WINDOW_DAYS)),
    "resources in a window": scope(resources=SHOWN_KEYS, window=_window(*WINDOW_DAYS)),
    "content": scope(only=CALM),
    "content, not shown": scope(fields=BLIND, only=CALM),
    "content in a window": scope(only=TWO_MOODS, window=_window(*WINDOW_DAYS)),
}
# by keys or by content, whatever stands between
PICKED = ["resources", "resources in a window", "content", "content, not shown"]
# where the walk of an index ends at the first line behind a stretch
WALKED = ("since", "until", "window", "content in a window")
TERMS: dict[str, tuple[Term, ...]] = {
    "a word": (Term(("zebra",)),),
    "a prefix": (Term(("zebra",), prefix=True),),
    "a phrase": (Term(("grey", "zebra")),),
    "a word beside a visible one": (Term(("rain",)), Term(("zebra",))),
    "many words": tuple(Term((f"zebra{n}",)) for n in range(30)),
}
# in both worlds there is as much of it, in one of them other words
HIDDEN_TEXT = "grey zebra " + " ".join(f"zebra{n}" for n in range(30))
OTHER_TEXT = HIDDEN_TEXT.replace("zebra", "zebro")


def _visible(number: int) -> dict[str, Any]:
    at = f"2026-02-{number % 27 + 1:02}T10:00:00Z"
    body = "rain and wind " * (number % 5 + 1)
    return note(
        f"n{number}", at, title=f"Rain {number}", body=body, mood="calm", words=number, cost=2.5
    )


def _hidden_records(name: str, body: str, mood: str) -> list[dict[str, Any]]:
    """Records the scope leaves out: by their key, or by standing before or behind its time."""
    inside = "2026-02-10T10:00:00Z"
    days = {
        "resources": (inside,),
        "since": ("2025-01-01T00:00:00Z", "2026-01-31T23:59:59Z"),
        "until": ("2026-03-01T00:00:00Z", "2026-03-01T00:00:30Z", "2026-09-01T00:00:00Z"),
        "window": ("2026-01-31T23:59:59Z", "2026-03-01T00:00:00Z", "2026-03-01T00:00:59Z"),
        "resources in a window": (inside, "2026-03-01T00:00:00Z"),
        "content": (inside,),
        "content, not shown": (inside,),
        "content in a window": (inside,),
    }
    return [
        note(f"h{n}", at, title="Rain", body=body, mood=mood, words=7, cost=2.5)
        for n, at in enumerate(days[name] * 20)
    ]


class Worlds:
    """Two stores that look alike through a scope; only one holds what is asked for."""

    def __init__(self, name: str, stores: Sequence[tuple[SqlRecordStore, Counters]]) -> None:
        self.name = name
        self.scope = SCOPES[name]
        self._stores = stores

    @property
    def stores(self) -> list[SqlRecordStore]:
        return [store for store, _ in self._stores]

    def work(self, read: Read) -> tuple[Work, Work]:
        """What a read costs without and with something hidden that meets it."""
        (one, answer), (other, found) = (work_of(*each, read) for each in self._stores)
        assert answer == found
        return one, other


@contextmanager
def opened(name: str, folder: Path) -> Generator[Worlds]:
    with counted_store(folder / "without") as without, counted_store(folder / "with") as other:
        for (store, _), body, mood in ((without, OTHER_TEXT, "dull"), (other, HIDDEN_TEXT, "wild")):
            records = [_visible(number) for number in range(1, 60)]
            if name == "fields":
                records = [{**r, "body": f"{r['body']} {body}", "mood": mood} for r in records]
            else:
                records += _hidden_records(name, body, mood)
            write(store, "cin_a", records)
        yield Worlds(name, (without, other))


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS.keys())
@pytest.mark.parametrize("name", ["fields", *PICKED])
def test_a_search_costs_the_same_with_and_without_hidden_words(
    tmp_path: Path, name: str, terms: tuple[Term, ...]
) -> None:
    with opened(name, tmp_path) as worlds:
        plan = SearchPlan((worlds.scope,), WordQuery(terms))
        without, other = worlds.work(lambda snapshot: snapshot.search(plan))
        assert without == other


@pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS.keys())
@pytest.mark.parametrize("name", WALKED)
def test_a_search_in_a_time_constraint_costs_next_to_the_same(
    tmp_path: Path, name: str, terms: tuple[Term, ...]
) -> None:
    """The index ends a walk at the first record behind the stretch that it was given."""
    with opened(name, tmp_path) as worlds:
        plan = SearchPlan((worlds.scope,), WordQuery(terms))
        without, other = worlds.work(lambda snapshot: snapshot.search(plan))
        assert abs(other.steps - without.steps) <= 3 * ROW_STEPS
        if terms == TERMS["a word"] and name in ("since", "until", "window"):
            assert without == other


def test_words_are_looked_up_in_few_places_once_an_index_is_merged(tmp_path: Path) -> None:
    """What many writes left in many parts; every spelling is looked up in each of them."""
    near = tuple(Term((word,)) for word in near_spellings("umbrolla"))
    plan = SearchPlan((scope(),), WordQuery(near))
    with counted_store(tmp_path) as (store, counters):
        for batch in range(15):
            write(store, "cin_a", [note(f"n{batch}-{n}", body=f"umbrella {n}") for n in range(5)])
        many, found = work_of(store, counters, lambda snapshot: snapshot.count_terms(plan))
        while store.merge_slice():
            pass
        few, same = work_of(store, counters, lambda snapshot: snapshot.count_terms(plan))
        assert found == same == tuple(75 * (each.tokens == ("umbrella",)) for each in near)
        assert few.pages < many.pages / 2
        with store.snapshot() as snapshot:
            before = snapshot.session.value("PRAGMA data_version")
        assert not store.merge_slice()
        with store.snapshot() as snapshot:
            assert snapshot.session.value("PRAGMA data_version") == before


@pytest.mark.parametrize("down", [True, False])
def test_a_page_in_the_order_of_time_meets_no_more_than_it_has_room_for(
    tmp_path: Path, down: bool
) -> None:
    """Of few matches and of many; every other record holds the word."""
    timed = TimedScope(scope(), order("at", down=down))
    plan = TimelinePlan((timed,), down, 5, words=WordQuery((Term(("rain",)),)))
    steps: list[int] = []
    for size in (40, 400):
        with counted_store(tmp_path / str(size)) as (store, counters):
            days = [f"2026-{n // 27 % 12 + 1:02}-{n % 27 + 1:02}" for n in range(size)]
            bodies = ["rain" if n % 2 else "wind" for n in range(size)]
            each = zip(days, bodies, strict=True)
            records = [
                note(f"n{n}", f"{day}T{n % 24:02}:{n // 24:02}:00Z", body=body)
                for n, (day, body) in enumerate(each)
            ]
            write(store, "cin_a", records)
            work, keys = work_of(
                store, counters, lambda snapshot: [r.row.key for r in snapshot.timeline(plan).rows]
            )
            times = {record["id"]: record["at"] for record in records if record["body"] == "rain"}
            assert keys == sorted(times, key=lambda key: times[key], reverse=down)[:5]
            steps.append(work.steps)
    assert steps[1] <= 1.5 * steps[0]


@pytest.mark.parametrize("name", ["fields", "since", "until", "window"])
def test_a_search_that_finds_nothing_counts_no_term(tmp_path: Path, name: str) -> None:
    """Each term that is counted adds what its hidden places cost, thirty terms thirty times."""
    with opened(name, tmp_path) as worlds:
        steps: list[int] = []
        for terms in (TERMS["a word"], TERMS["many words"]):
            plan = SearchPlan((worlds.scope,), WordQuery(terms))
            _, other = worlds.work(lambda snapshot, plan=plan: snapshot.search(plan))
            steps.append(other.steps)
        assert steps[1] <= steps[0] + 29 * LOOKUP_STEPS


# what hidden words of one record are near, and a question that holds some of them
NEAR = tuple(Term((word,)) for word in near_spellings("zebrra"))
QUESTION = (Term(("rain",)), Term(("wind",)), Term(("hail",)), *TERMS["many words"][:3])


@pytest.mark.parametrize("name", SCOPES)
def test_near_spellings_cost_the_same_with_and_without_hidden_words(
    tmp_path: Path, name: str
) -> None:
    with opened(name, tmp_path) as worlds:
        plan = SearchPlan((worlds.scope,), WordQuery(NEAR), frequency_limit=1_000)
        without, other = worlds.work(lambda snapshot: snapshot.count_terms(plan))
        is_walked = name in WALKED
        assert abs(other.steps - without.steps) <= (3 * ROW_STEPS if is_walked else 0)


@pytest.mark.parametrize("name", SCOPES)
def test_most_words_cost_the_same_with_and_without_hidden_words(tmp_path: Path, name: str) -> None:
    with opened(name, tmp_path) as worlds:
        plan = SearchPlan((worlds.scope,), WordQuery(QUESTION, least=2))
        without, other = worlds.work(lambda snapshot: snapshot.search(plan))
        counted = worlds.work(lambda snapshot: snapshot.count_terms(plan))
        is_walked = name in WALKED
        most = 3 * len(QUESTION) * ROW_STEPS if is_walked else 0
        assert abs(other.steps - without.steps) <= most
        assert abs(counted[0].steps - counted[1].steps) <= most


@pytest.mark.parametrize("name", PICKED)
def test_texts_are_read_once_for_all_steps_of_a_search(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless they are many: then some are read again, and the answers are the same."""
    plan = SearchPlan((SCOPES[name],), WordQuery(QUESTION))
    wider = replace(plan, words=WordQuery(QUESTION, least=2))

    def asked(snapshot: SqlSnapshot) -> tuple[object, ...]:
        return (snapshot.search(plan), *(snapshot.count_terms(plan) or ()), snapshot.search(wider))

    def answer(store: SqlRecordStore) -> tuple[object, ...]:
        with store.snapshot() as snapshot:
            return asked(snapshot)

    with opened(name, tmp_path) as worlds:
        first, _ = worlds.work(lambda snapshot: snapshot.search(plan))
        whole, _ = worlds.work(asked)
        assert whole.steps < 2 * first.steps
        [store, _] = worlds.stores
        found = answer(store)
        assert any(isinstance(each, int) and each > 0 for each in found)
        monkeypatch.setattr(search, "KEPT_CHARS", 300)
        assert answer(store) == found


@pytest.mark.parametrize(
    ("field", "caseless"),
    [("mood", False), ("mood", True), ("body", False), ("body", True), ("words", False)],
)
@pytest.mark.parametrize("name", [*PICKED, "content in a window"])
def test_other_reads_cost_the_same_with_and_without_hidden_values(
    tmp_path: Path, name: str, field: str, *, caseless: bool
) -> None:
    value = {"mood": "wild", "body": HIDDEN_TEXT, "words": 7}[field]
    met = (condition(field, "eq" if field != "words" else "gte", value, caseless=caseless),)
    with opened(name, tmp_path) as worlds:
        shown = (worlds.scope,)
        page = RecordsPlan(shown, order("at"), conditions=met)
        span = RecordsPlan(shown, conditions=met, span_field="at")
        total = AggregatePlan(shown, Metric.SUM, "words", ValueKind.INTEGER, met)
        moods = AggregatePlan(shown, Metric.COUNT, groupings=(Grouping("mood", ValueKind.STRING),))
        reads: list[Read] = [
            lambda snapshot: snapshot.count(page),
            lambda snapshot: [each.row.key for each in snapshot.page(page).rows],
            lambda snapshot: snapshot.span(span),
            lambda snapshot: snapshot.aggregate(total),
            lambda snapshot: snapshot.aggregate(moods),
        ]
        for read in reads:
            without, other = worlds.work(read)
            assert abs(without.steps - other.steps) <= (ROW_STEPS if name in WALKED else 0)


@pytest.mark.parametrize("name", SCOPES)
def test_a_glance_costs_the_same_with_and_without_hidden_records(tmp_path: Path, name: str) -> None:
    with opened(name, tmp_path) as worlds:
        glance = RecordsPlan((worlds.scope,), span_field="at", most=3)
        without, other = worlds.work(lambda snapshot: snapshot.span(glance))
        assert abs(other.steps - without.steps) <= ROW_STEPS


@pytest.mark.parametrize(
    "shown",
    [
        scope(fields=("id", "at")),
        scope(fields=BLIND),
        scope(resources=SHOWN_KEYS),
        scope(only=CALM),
    ],
    ids=["no blob field", "other fields", "other records", "other content"],
)
def test_a_blob_that_is_not_granted_costs_what_none_costs(tmp_path: Path, shown: Scope) -> None:
    with counted_store(tmp_path) as (store, counters):
        held = receive(store, b"a known file")
        unreferenced = receive(store, b"another one")
        for key in ("h1", "h2", "h3"):
            write(
                store, "cin_a", [note(key, blob_ref={"blob_id": held, "mime_type": "text/plain"})]
            )
        absent = "blob_sha256_" + "0" * 64
        works = {
            work_of(store, counters, _looking_for(shown, blob_id))
            for blob_id in (absent, held, unreferenced)
        }
        assert len({work.steps for work, _ in works}) == 1
        assert {answer for _, answer in works} == {()}


def _looking_for(shown: Scope, blob_id: str) -> Read:
    return lambda snapshot: snapshot.blob(BlobPlan((shown,), blob_id))
