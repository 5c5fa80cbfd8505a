"""The newest matches are those of a search that finds more than it takes, however it looks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.scopes import Scope
from personal_server.storage.sql.reads import search as searching
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.ports.asking import search
from server.tests.storage.sql.agreement import Stores, stored_twice
from server.tests.storage.sql.watched_reads import seconds_given
from server.tests.storage.worlds import condition, furnish, note, scope, write

KEYS = [f"n{number}" for number in range(6)]
DAYS = (3, 1, 6, 2, 5, 4)
NEWEST_FIRST = ["n2", "n4", "n5", "n0", "n3", "n1"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlRecordStore]:
    with sqlite_store(tmp_path_factory.mktemp("records")) as opened:
        furnish(opened, "cin_a")
        notes = [
            note(key, f"2026-01-0{day}T00:00:00Z", body="rain")
            for key, day in zip(KEYS, DAYS, strict=True)
        ]
        write(opened, "cin_a", notes)
        yield opened


@pytest.mark.parametrize(
    "seen", [scope(), scope(resources=frozenset(KEYS))], ids=["by the index", "by the texts"]
)
@pytest.mark.parametrize("window", [1, 2, 5, 6, 7])
def test_the_newest_are_taken_and_it_says_whether_more_match(
    store: SqlRecordStore, seen: Scope, window: int
) -> None:
    for terms, least in ((("rain",), None), (("rain", "snow"), 1)):
        found = search(store, *terms, scopes=(seen,), least=least, window=window)
        assert [each.key for each in found.candidates] == NEWEST_FIRST[:window]
        assert bool(found.truncated) == (window < len(KEYS))


LATER = [f"2026-02-{day:02}T00:00:00Z" for day in range(1, 21)]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """Two accounts; some notes have no time that is shown, and words stand in one field or two."""
    bodies = ("rain", "rain and snow", "snow, snow", "hail", "raindrops", "", "rain rain hail")
    titles = ("Rain", "Snow", "Wind", None, "Hail")
    moods = ("calm", "glad", None)
    made = [
        note(
            f"n{n:02}",
            LATER[n * 7 % 20],
            body=bodies[n % 7],
            title=titles[n % 5],
            mood=moods[n % 3],
            words=n,
        )
        for n in range(20)
    ]
    records: dict[str, list[Any]] = {"cin_a": [], "cin_b": []}
    with stored_twice(tmp_path_factory.mktemp("both"), records) as opened:
        for each in opened:
            for n, one in enumerate(made):
                write(each, "cin_a" if n < 13 else "cin_b", [one], emitted=n * 11 % 20 * 1_000)
            # changed later, in a field that some scopes do not show
            write(each, "cin_a", [{**made[2], "words": 99}], emitted=50_000, now=60_000)
        yield opened


KEYS_SEEN = frozenset(f"n{n:02}" for n in range(0, 20, 2)) | {"n99"}
SHOWN: dict[str, dict[str, Any]] = {
    "everything": {},
    "a stretch of time": {
        "window": TimeConstraint("at", instant_ns(LATER[2]), instant_ns(LATER[15]))
    },
    "some records": {"resources": KEYS_SEEN},
    "one mood": {"only": (condition("mood", "eq", "calm", caseless=True),)},
    "no title": {"fields": ("id", "at", "body")},
    "no body": {"fields": ("id", "at", "title")},
    "no time": {"fields": ("id", "title", "body")},
    "no text": {"fields": ("id", "at")},
}
QUESTIONS = {
    "one": WordQuery((Term(("rain",)),)),
    "the beginning of one": WordQuery((Term(("rain",), prefix=True),)),
    "two": WordQuery((Term(("rain",)), Term(("snow",)))),
    "two beside each other": WordQuery((Term(("rain", "rain")),)),
    "one of two": WordQuery((Term(("rain",), others=(Term(("hail",)),)),)),
    "another form": WordQuery((Term(("raining",), inflected=True),)),
    "one without another": WordQuery((Term(("rain",)),), (Term(("snow",)), Term(("hail",)))),
    "in the title": WordQuery((Term(("rain",), fields=("title",)),)),
    "none": WordQuery((Term(("sun",)),)),
    "no word beside one": WordQuery((Term(("rain",)), Term(()))),
    "one that is enough": WordQuery((Term(("rain",)), Term(("snow",)), Term(("sun",))), least=1),
    "two that are enough": WordQuery(
        (Term(("rain",)), Term(("snow",)), Term(("hail",)), Term(("wind",))), least=2
    ),
    "a quoted one": WordQuery(
        (Term(("rain",), quoted=True), Term(("snow",)), Term(("hail",))), least=1
    ),
    "one that tells": WordQuery(
        (Term(("rain",)), Term(("snow",)), Term(("hail",))), least=1, telling=(1, 2)
    ),
    "enough without another": WordQuery(
        (Term(("rain",)), Term(("snow",))), (Term(("hail",)),), least=1
    ),
}
CONDITIONS = ((), (condition("mood", "eq", "calm"), condition("words", "lt", 15)))


@pytest.mark.parametrize(
    ("shown", "packed_from"),
    [*((shown, 200) for shown in SHOWN), ("a stretch of time", 1), ("no time", 1)],
)
def test_what_is_found_and_counted_is_what_the_texts_hold(
    stores: Stores, shown: str, packed_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "PACKED_FROM", packed_from)
    scopes = tuple(scope(account, **SHOWN[shown]) for account in ("cin_a", "cin_b"))
    with stores[0].snapshot() as slow, stores[1].snapshot() as fast:
        for words, conditions in product(QUESTIONS.values(), CONDITIONS):
            asked = {(each.connection_id, "notes"): conditions for each in scopes}
            for window, limit in ((1_000, 1_000), (3, 1_000), (1_000, 2)):
                if words.least is not None and limit < 1_000:
                    continue  # of what more records hold, not all may be looked at
                plan = SearchPlan(scopes, words, asked, window, limit)
                found, expected = fast.search(plan), slow.search(plan)
                assert sorted(found.candidates) == sorted(expected.candidates)
                # counting may stop at the limit, and may not
                counted = tuple(min(n, limit) for n in found.document_frequencies)
                assert counted == expected.document_frequencies
                assert (found.truncated, found.lost) == (expected.truncated, expected.lost)
                assert found.pending == 0
                assert fast.count_terms(plan) == slow.count_terms(plan)


def test_frequencies_stop_at_their_limit_over_all_accounts(stores: Stores) -> None:
    both = (scope("cin_a"), scope("cin_b"))
    for limit in (0, 1, 3, 8, 9, 50):
        for terms in (("rain",), ("rain", "snow"), ("rain", "-hail")):
            found = [
                search(each, *terms, scopes=both, frequency_limit=limit).document_frequencies
                for each in stores
            ]
            assert found[0] == found[1]


def test_a_source_that_takes_too_long_is_lost_whole(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store = stores
    both = (scope("cin_a"), scope("cin_b"))
    plan = SearchPlan(both, WordQuery((Term(("rain",)), Term(("snow",)))), seconds_each=8.0)
    with store.snapshot() as snapshot:
        answers: list[bool] = []
        given = seconds_given(monkeypatch, snapshot.session, answers)
        for in_time, lost in (
            ([True] * 4, set[str]()),
            ([False, True, True], {"cin_a"}),
            ([True, True, False, True], {"cin_a"}),
            ([True, False, True], {"cin_b"}),
            ([False, False], {"cin_a", "cin_b"}),
        ):
            answers[:] = in_time
            found = snapshot.search(plan)
            assert {account for account, _ in found.lost} == lost
            assert {each.connection_id for each in found.candidates}.isdisjoint(lost)
            assert answers == []
        assert set(given) == {4.0}  # it is asked twice
        answers[:], given[:] = [True], []
        assert snapshot.count_terms(plan) is not None
        assert given == [16.0]
        answers[:] = [False]
        assert snapshot.count_terms(plan) is None
        answers[:], given[:] = [True], []
        assert snapshot.count_terms(replace(plan, scopes=())) == (0, 0)
        assert given == [8.0]


def test_how_long_a_walk_takes_is_reckoned_for_records_the_index_leads_to(stores: Stores) -> None:
    with stores[1].snapshot() as snapshot:
        each = snapshot.session.dialect.looked_at_seconds
        one, picked = scope("cin_a"), scope("cin_b", resources=KEYS_SEEN)
        assert snapshot.walked_seconds([one]) == each * 13
        assert snapshot.walked_seconds([one, scope("cin_b")]) == each * 20
        assert snapshot.walked_seconds([one, picked]) == each * 13
        assert snapshot.walked_seconds([picked]) == 0


@pytest.mark.parametrize("kept", [0, 1, 20, 60, 1 << 22])
def test_texts_are_kept_up_to_a_bound_and_read_again_behind_it(
    stores: Stores, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "KEPT_CHARS", kept)
    seen = (scope("cin_a", resources=KEYS_SEEN),)
    plans = [SearchPlan(seen, words) for words in QUESTIONS.values()]
    with stores[0].snapshot() as slow, stores[1].snapshot() as fast:
        for plan in (*plans, *plans):
            assert sorted(fast.search(plan).candidates) == sorted(slow.search(plan).candidates)
            assert fast.count_terms(plan) == slow.count_terms(plan)
