"""What every store does in change feeds."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pdpp_kernel.record import StoredRecord
from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import ChangesPlan, RecordsPlan
from personal_server.enforcement.scopes import Scope
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.sql.reads import changes
from server.tests.storage.plans_at_random import KEYS, TIMES
from server.tests.storage.ports.asking import BOTH, A, feed, horizon, told
from server.tests.storage.worlds import condition, note, order, scope, write


def test_the_beginning_is_every_visible_record_and_no_tombstone(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), note("n2"), "n1"])
    write(store, "cin_b", [note("n1")])
    assert told(feed(store, None)) == [("n2", False), ("n1", False)]


def test_a_feed_tells_each_record_once_at_its_last_change(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), note("n2"), note("n3")])
    since = horizon(store)
    write(store, "cin_a", [note("n1", words=1), note("n2", words=1), note("n1", words=2), "n3"])
    found = feed(store, since)
    assert told(found) == [("n2", False), ("n1", False), ("n3", True)]
    row = found.items[1].item
    assert isinstance(row, StoredRecord)
    assert row.data["words"] == 2


def test_changes_of_hidden_fields_tell_nothing(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1")])
    since = horizon(store)
    write(store, "cin_a", [note("n1", mood="calm")])
    hidden = scope("cin_a", fields=("id", "at"))
    assert told(feed(store, since, hidden)) == []
    assert told(feed(store, since, A)) == [("n1", False)]
    assert told(feed(store, None, hidden)) == [("n1", False)]


def test_moving_out_of_the_window_looks_like_a_deletion(store: RecordStore) -> None:
    window = scope("cin_a", window=TimeConstraint("at", instant_ns("2026-01-01T00:00:00Z")))
    write(store, "cin_a", [note("n1", at="2026-06-01T00:00:00Z"), note("n2", at=TIMES[8])])
    since = horizon(store)
    write(store, "cin_a", [note("n1", at=TIMES[8]), note("n2", at="2026-06-01T00:00:00Z")])
    assert told(feed(store, since, window)) == [("n1", True), ("n2", False)]


def test_what_came_and_went_between_is_not_told(store: RecordStore) -> None:
    since = horizon(store)
    write(store, "cin_a", [note("n1"), "n1", note("n2")])
    assert told(feed(store, since)) == [("n2", False)]


def test_a_feed_goes_on_after_a_number(store: RecordStore) -> None:
    write(store, "cin_a", [note(f"n{i}") for i in range(5)])
    first = feed(store, None, limit=2)
    rest = feed(store, None, after=first.items[-1].sequence)
    assert (told(first), first.more) == ([("n0", False), ("n1", False)], True)
    assert (told(rest), rest.more) == ([(f"n{i}", False) for i in (2, 3, 4)], False)


def test_forgotten_history_leaves_the_beginning_complete(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), note("n2"), note("n3")], now=10)
    write(store, "cin_a", [note("n1", words=1), note("n1", words=2), "n3"], now=20)
    write(store, "cin_a", [note("n2", words=9)], now=30)
    store.prune_history(25)
    with store.snapshot() as snapshot:
        assert snapshot.retained_from == 6
    assert told(feed(store, None)) == [("n1", False), ("n2", False)]
    assert told(feed(store, 6)) == [("n2", False)]
    store.prune_history(5)
    with store.snapshot() as snapshot:
        assert snapshot.retained_from == 6


def test_many_records_that_do_not_match_end_a_page(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOST_PASSED_OVER", 3)
    write(store, "cin_a", [note(f"n{i}", words=i) for i in range(8)])
    matching = (condition("words", "gte", 6),)
    found, after, pages = list[str](), 0, 0
    with store.snapshot() as snapshot:
        while True:
            plan = ChangesPlan(BOTH, None, snapshot.horizon, after, 10, matching)
            page = snapshot.changes(plan)
            found += [item.item.key for item in page.items]
            pages += 1
            if not page.more:
                break
            after = page.items[-1].sequence if page.end is None else page.end
    assert found == ["n6", "n7"]
    assert pages <= 3


def test_the_first_change_after_an_instant_is_found(store: RecordStore) -> None:
    for now in (10, 20, 20, 30):
        write(store, "cin_a", [note("n1", words=now), note(f"n{now}"), "n1"], now=now)
        write(store, "cin_b", [note("n1", words=now)], now=now)
    expected = {9: 1, 10: 5, 19: 5, 20: 11, 29: 11, 30: None}
    with store.snapshot() as snapshot:
        found = {now: snapshot.first_change_after(BOTH, now) for now in expected}
        assert found == expected
        assert snapshot.first_change_after(BOTH[1:], 9) == 4
        assert snapshot.first_change_after((scope("cin_nobody"),), 9) is None


def test_how_far_history_was_forgotten_is_known(store: RecordStore) -> None:
    with store.snapshot() as snapshot:
        assert snapshot.forgotten_until_ns == 0
    write(store, "cin_a", [note("n1"), "n1"], now=10)
    store.prune_history(5)
    with store.snapshot() as snapshot:
        assert snapshot.forgotten_until_ns == 0
    for before in (25, 11):
        store.prune_history(before)
        with store.snapshot() as snapshot:
            assert snapshot.forgotten_until_ns == 25


def test_history_may_be_forgotten_and_a_deleted_key_come_back(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), "n1"], now=10)
    store.prune_history(20)
    since = horizon(store)
    write(store, "cin_a", [note("n1"), "n1"], now=30)
    write(store, "cin_a", [note("n1")], now=40)
    assert told(feed(store, since)) == [("n1", False)]


@pytest.mark.parametrize("seed", range(12))
def test_a_follower_of_the_feed_has_what_the_owner_sees(store: RecordStore, seed: int) -> None:
    random = Random(seed)
    since, until = instant_ns("2026-01-01T00:00:00Z"), instant_ns("2027-01-01T00:00:00Z")
    window = TimeConstraint("at", since, until)
    mine = scope("cin_a", fields=("id", "at", "words"), window=window)
    held: dict[str, Any] = {}
    bookmark: int | None = None
    for _ in range(8):
        _write_some(store, random)
        bookmark = _follow(store, random, mine, bookmark, held)
    with store.snapshot() as snapshot:
        seen = snapshot.page(RecordsPlan((mine,), order(None), 100)).rows
    assert held == {placed.row.key: _shown(placed.row) for placed in seen}


def _write_some(store: RecordStore, random: Random) -> None:
    chosen = random.choices(KEYS, k=random.randint(0, 4))
    lines: list[Any] = [
        key
        if random.random() < 0.3
        else note(
            key, at=random.choice(TIMES), words=random.randint(0, 2), mood=str(random.random())
        )
        for key in chosen
    ]
    write(store, "cin_a", lines)


def _follow(
    store: RecordStore, random: Random, mine: Scope, since: int | None, held: dict[str, Any]
) -> int:
    """Read a feed to its end, page by page, while writes go on."""
    if since is None:
        held.clear()
    reached, after = horizon(store), 0
    while True:
        with store.snapshot() as snapshot:
            found = snapshot.changes(ChangesPlan((mine,), since, reached, after, 2))
        for change in found.items:
            after = change.sequence
            if isinstance(change.item, StoredRecord):
                held[change.item.key] = _shown(change.item)
            else:
                held.pop(change.item.key, None)
        if not found.more:
            break
        _write_some(store, random)
    if horizon(store) > reached:
        return _follow(store, random, mine, reached, held)
    return reached


def _shown(row: StoredRecord) -> dict[str, object]:
    return {name: row.data.get(name) for name in ("id", "at", "words")}


def test_what_changed_after_a_number_is_told_by_connection_and_stream(store: RecordStore) -> None:
    write(store, "cin_b", [note("n1")])
    write(store, "cin_a", [note("n1")])
    since = horizon(store)
    write(store, "cin_b", ["n1"])
    write(store, "cin_a", [note("n1")])
    with store.snapshot() as snapshot:
        told_after = {n: list(snapshot.changed_after(n)) for n in (0, since, since + 1)}
    a, b = ("cin_a", "notes"), ("cin_b", "notes")
    assert told_after == {0: [a, b], since: [b], since + 1: []}


@pytest.mark.parametrize(
    ("field", "inside", "outside"),
    [("mood", "Calm", "glad"), ("pinned", True, False), ("words", 2**62, 7), ("words", 0, None)],
)
@pytest.mark.parametrize("granted", [("id", "at"), ("id", "at", "mood", "pinned", "words")])
def test_leaving_what_a_scope_is_limited_to_looks_like_a_deletion(
    store: RecordStore, field: str, inside: Any, outside: Any, granted: tuple[str, ...]
) -> None:
    only = (condition(field, "eq", inside, caseless=field == "mood"),)
    limited = scope("cin_a", fields=granted, only=only)
    keys = ("n1", "n2", "n3", "n4", "n5")
    write(store, "cin_a", [note(key, **{field: inside}) for key in keys])
    write(store, "cin_a", [note("n2", **{field: outside}), note("n6", **{field: outside})])
    since = horizon(store)
    write(
        store,
        "cin_a",
        [
            note("n1", **{field: outside}),  # leaves
            note("n2", **{field: inside}),  # comes
            "n3",  # is deleted
            note("n4", **{field: outside}),  # leaves, and comes back
            note("n4", **{field: inside}),
            note("n5", title="hidden", **{field: inside}),
            note("n6", title="elsewhere", **{field: outside}),
            "n6",
        ],
    )
    assert told(feed(store, since, limited)) == [
        ("n1", True),
        ("n2", False),
        ("n3", True),
        ("n4", False),
    ]
    assert {key for key, _ in told(feed(store, None, limited))} == {"n2", "n4", "n5"}
    store.prune_history(horizon(store) + 10**6)
    assert {key for key, _ in told(feed(store, None, limited))} == {"n2", "n4", "n5"}


def test_a_change_between_two_values_of_a_limit_is_none_of_what_is_granted(
    store: RecordStore,
) -> None:
    two = (condition("mood", "in", "calm", further=("glad",), caseless=True),)
    write(store, "cin_a", [note("n1", mood="calm")])
    since = horizon(store)
    write(store, "cin_a", [note("n1", mood="GLAD")])
    assert told(feed(store, since, scope("cin_a", fields=("id", "at"), only=two))) == []
    seen = scope("cin_a", fields=("id", "at", "mood"), only=two)
    assert told(feed(store, since, seen)) == [("n1", False)]
