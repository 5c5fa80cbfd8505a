"""The change feed in stretches: where pages end, and what conditions leave out."""

from __future__ import annotations

from collections.abc import Iterator
from operator import methodcaller
from typing import Any

import pytest

from pdpp_kernel.record import TombstoneRow
from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import ChangesPlan
from personal_server.enforcement.rows import Feed
from personal_server.enforcement.scopes import Scope
from personal_server.storage.sql.reads import changes
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.sql.agreement import Stores, assert_same, stored_twice
from server.tests.storage.worlds import condition, note, scope, write

A, B = scope("cin_a"), scope("cin_b")
CALM = condition("mood", "eq", "calm")


def feed(
    store: SqlRecordStore, *scopes: Scope, since: int | None = None, limit: int = 50, **more: Any
) -> Feed:
    with store.snapshot() as snapshot:
        plan = ChangesPlan(scopes or (A, B), since, snapshot.horizon, limit=limit, **more)
        return snapshot.changes(plan)


def told(found: Feed) -> str:
    return " ".join(
        f"{'-' if isinstance(each.item, TombstoneRow) else ''}{each.item.key}@{each.sequence}"
        for each in found.items
    )


@pytest.mark.parametrize("at_once", [1, 2, 3, 200])
def test_all_stretches_are_one_feed(
    store: SqlRecordStore, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "WALKED_AT_ONCE", at_once)
    monkeypatch.setattr(changes, "WALKED_FIRST", 1)
    for number in range(4):
        write(store, "cin_a", [note(f"a{number}")])
        write(store, "cin_b", [note(f"b{number}")])
    write(store, "cin_a", ["a1", note("a2", body="new")])
    assert told(feed(store)) == "a0@1 b0@2 b1@4 b2@6 a3@7 b3@8 a2@10"
    assert told(feed(store, since=2)) == "b1@4 b2@6 a3@7 b3@8 a2@10"
    assert told(feed(store, since=3)) == "b1@4 b2@6 a3@7 b3@8 -a1@9 a2@10"
    assert told(feed(store, since=3, after=7)) == "b3@8 -a1@9 a2@10"
    assert told(feed(store, after=7)) == "b3@8 a2@10"
    assert told(feed(store, since=10)) == ""


def test_a_page_ends_before_what_is_left(store: SqlRecordStore) -> None:
    write(store, "cin_a", [note(f"a{number}") for number in range(4)])
    expected = {1: ("a0@1", True), 3: ("a0@1 a1@2 a2@3", True), 4: ("a0@1 a1@2 a2@3 a3@4", False)}
    for limit, page in expected.items():
        found = feed(store, A, limit=limit)
        assert (told(found), found.more) == page
        assert feed(store, A, limit=limit, after=4) == Feed((), False)


def test_many_that_are_passed_over_end_a_page(
    store: SqlRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_PASSED_OVER", 3)
    moods = ["calm", None, "glad", "calm", None, None, "calm"]
    write(store, "cin_a", [note(f"a{n}", mood=mood) for n, mood in enumerate(moods)])
    first = feed(store, A, conditions=(CALM,))
    assert (told(first), first.more, first.end) == ("a0@1 a3@4", True, 5)
    rest = feed(store, A, conditions=(CALM,), after=5)
    assert (told(rest), rest.more, rest.end) == ("a6@7", False, None)
    # hidden ones do not count
    few = scope("cin_a", resources=frozenset({"a0", "a1", "a2", "a6"}))
    assert told(feed(store, few, conditions=(CALM,))) == "a0@1 a6@7"


def test_what_conditions_leave_out_has_left_if_it_may_have_been_there(
    store: SqlRecordStore,
) -> None:
    write(store, "cin_a", [note("a", mood="calm"), note("b", mood="glad"), note("c", mood="calm")])
    write(store, "cin_a", [note("a", mood="glad"), note("b", mood="glad", body="new")])
    write(store, "cin_a", [note("d", mood="glad")])
    assert told(feed(store, A, conditions=(CALM,))) == "c@3"
    left = feed(store, A, since=3, conditions=(CALM,))
    # of b another field changed, and d was not there
    assert told(left) == "-a@4"
    [item] = left.items
    assert isinstance(item.item, TombstoneRow)
    assert item.item.is_filtered
    assert told(feed(store, A, since=4, conditions=(CALM,))) == ""


def test_what_a_window_lost_has_left_and_came_back(store: SqlRecordStore) -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    window = TimeConstraint("at", None, instant_ns(late))
    seen = scope("cin_a", window=window)
    write(store, "cin_a", [note("a", early), note("b", early), note("c", late)])  # 1-3
    write(store, "cin_a", [note("a", late)])  # 4
    write(store, "cin_a", [note("b", late)])  # 5
    write(store, "cin_a", [note("b", early, body="new")])  # 6
    write(store, "cin_a", [note("c", late, body="new")])  # 7
    assert told(feed(store, seen)) == "b@6"
    assert told(feed(store, seen, since=3)) == "-a@4 b@6"
    assert told(feed(store, seen, since=4)) == "b@6"
    [departed, _] = feed(store, seen, since=3).items
    assert isinstance(departed.item, TombstoneRow)
    assert not departed.item.is_filtered
    assert told(feed(store, A, since=3)) == "a@4 b@6 c@7"


def test_what_a_grant_is_limited_to_by_content_comes_and_goes(store: SqlRecordStore) -> None:
    seen = scope("cin_a", fields=("id", "at", "body"), only=(CALM,))
    write(store, "cin_a", [note("a", mood="calm"), note("b", mood="glad"), note("c", mood="calm")])
    write(store, "cin_a", [note("a", mood="glad"), note("b", mood="calm")])  # 4, 5
    write(store, "cin_a", [note("b", mood="calm", title="hidden")])  # 6
    assert told(feed(store, seen)) == "c@3 b@5"
    assert told(feed(store, seen, since=3)) == "-a@4 b@5"
    assert told(feed(store, seen, since=5)) == ""
    assert told(feed(store, seen, since=1)) == "c@3 -a@4 b@5"
    write(store, "cin_a", ["b"])  # 7
    assert told(feed(store, seen, since=5)) == "-b@7"
    assert told(feed(store, seen, since=3)) == "-a@4"


def test_the_first_change_after_an_instant(store: SqlRecordStore) -> None:
    for now in (10, 20, 20, 30, 40):
        write(store, "cin_a", [note(f"n{n}", body=str(now)) for n in range(2)], now=now)
    write(store, "cin_b", [note("b")], now=50)
    firsts = {0: 1, 9: 1, 10: 3, 19: 3, 20: 5, 29: 5, 30: 7, 39: 7, 40: None}
    with store.snapshot() as snapshot:
        assert {now: snapshot.first_change_after((A,), now) for now in firsts} == firsts
        both = {now: snapshot.first_change_after((B, A), now) for now in (39, 40, 49, 50)}
    assert both == {39: 7, 40: 9, 49: 9, 50: None}


EARLY, LATE, LATER = (f"2026-0{month}-01T00:00:00Z" for month in (1, 2, 3))
# what two accounts got, one after the other: records come, change in one field, move and go
HISTORY: tuple[tuple[str, list[Any]], ...] = (
    ("cin_a", [note("a", EARLY, mood="calm"), note("b", LATE, mood="glad"), note("c", EARLY)]),
    ("cin_b", [note("a", LATE, mood="calm", words=1), note("d", LATER, mood="calm")]),
    ("cin_a", [note("a", EARLY, mood="calm", title="hidden")]),
    ("cin_a", [note("a", LATE, mood="calm", title="hidden"), note("e", EARLY, mood="glad")]),
    ("cin_a", ["c", note("b", LATE, mood="calm")]),
    ("cin_b", ["d"]),
    ("cin_a", [note("c", LATE, mood="calm"), note("e", LATER, mood="glad")]),
    ("cin_b", [note("d", EARLY, mood="calm", words=2), note("a", LATE, mood="glad", words=1)]),
    ("cin_a", [note("b", EARLY, mood="calm", body="new"), note("e", EARLY, mood="glad")]),
    ("cin_a", ["a", note("f", LATE)]),
    ("cin_b", [note("a", LATE, mood="calm", words=3)]),
    ("cin_a", [note("a", LATE, mood="glad"), "f"]),
)
BLIND = ("id", "at", "body")
LIMITED: dict[str, dict[str, Any]] = {
    "everything": {},
    "since": {"window": TimeConstraint("at", instant_ns(LATE), None)},
    "until": {"window": TimeConstraint("at", None, instant_ns(LATE))},
    "between": {"window": TimeConstraint("at", instant_ns(LATE), instant_ns(LATER))},
    "fields": {"fields": BLIND},
    "keys": {"resources": frozenset({"a", "d", "e"})},
    "content": {"only": (CALM,)},
    "content that is hidden": {"only": (CALM,), "fields": BLIND},
    "content of a time": {
        "only": (condition("mood", "in", "calm", further=("glad",), caseless=True),),
        "window": TimeConstraint("at", None, instant_ns(LATER)),
    },
    "no such time": {"window": TimeConstraint("none", 1, None)},
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    with stored_twice(tmp_path_factory.mktemp("both"), {"cin_a": [], "cin_b": []}) as opened:
        for each in opened:
            for clock, (account, lines) in enumerate(HISTORY, 1):
                write(each, account, lines, emitted=clock * 10 % 70, now=clock * 1_000)
        yield opened


@pytest.mark.parametrize("limited", LIMITED)
@pytest.mark.parametrize("at_once", [200, 2])
def test_every_feed_is_what_the_histories_of_its_records_say(
    stores: Stores, limited: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "WALKED_AT_ONCE", at_once)
    scopes = tuple(scope(account, **LIMITED[limited]) for account in ("cin_a", "cin_b"))
    with stores[1].snapshot() as snapshot:
        newest = snapshot.horizon
    beginnings: list[int | None] = [None, *range(0, newest + 1, 1 if at_once == 200 else 5)]
    for since in beginnings:
        for met, after, limit, horizon in (
            ((), 0, 50, newest),
            ((CALM,), 0, 50, newest),
            ((), (since or 0) + 3, 2, newest),
            ((), 0, 50, newest - 2),
        ):
            if (since or 0) <= horizon:
                plan = ChangesPlan(scopes, since, horizon, after, limit, met)
                assert_same(stores, [methodcaller("changes", plan)])


def test_files_that_forgot_their_history_tell_what_is_there(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with stored_twice(tmp_path_factory.mktemp("cut"), {"cin_a": [], "cin_b": []}) as stores:
        for store in stores:
            for clock, (account, lines) in enumerate(HISTORY, 1):
                write(store, account, lines, emitted=clock, now=clock * 1_000)
            store.prune_history(8_000)
        with stores[1].snapshot() as snapshot:
            kept, newest = snapshot.retained_from, snapshot.horizon
        for more in LIMITED.values():
            scopes = tuple(scope(account, **more) for account in ("cin_a", "cin_b"))
            for since in (None, *range(kept, newest + 1)):
                assert_same(
                    stores, [methodcaller("changes", ChangesPlan(scopes, since, newest, limit=50))]
                )
