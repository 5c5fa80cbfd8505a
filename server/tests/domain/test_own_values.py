"""Values of one process, kept by key, so many of them."""

from __future__ import annotations

from personal_server.domain.own_values import (
    OwnCounts,
    OwnSpace,
    OwnValues,
)


def test_the_value_that_was_put_longest_ago_gives_way() -> None:
    values = OwnValues[int](2)
    values.put("a", 1)
    values.put("b", 2)
    values.put("a", 3)
    assert values.displaced_by("c") == 2
    values.put("c", 4)
    assert [values.get(key) for key in "abc"] == [3, None, 4]
    assert len(values) == 2


def test_nothing_gives_way_to_a_key_that_is_there_or_while_there_is_room() -> None:
    values = OwnValues[int](2)
    values.put("a", 1)
    assert values.displaced_by("b") is None
    values.put("b", 2)
    assert values.displaced_by("a") is None


def test_values_can_be_removed_whether_they_are_there_or_not() -> None:
    values = OwnValues[int]()
    for number, key in enumerate("abc"):
        values.put(key, number)
    values.remove("a")
    values.remove("a")
    assert [values.get(key) for key in "abc"] == [None, 1, 2]
    values.clear()
    assert len(values) == 0


def test_ten_thousand_are_kept_unless_another_number_is_said() -> None:
    values = OwnValues[int]()
    for number in range(10_001):
        values.put(number, number)
    assert (len(values), values.get(0), values.get(1)) == (10_000, None, 1)


def test_whoever_holds_the_lock_may_enter_again() -> None:
    values, counts = OwnValues[int](1), OwnCounts()
    with values.lock, counts.lock:
        values.put("a", 1)
        counts.add("a", 1)
    assert (values.get("a"), counts.total("a")) == (1, 1)


def test_counts_add_up_by_key() -> None:
    counts = OwnCounts()
    counts.add("a", 2)
    counts.add("b", 5)
    counts.add("a", -1)
    assert [counts.total(key) for key in "abc"] == [1, 5, 0]
    counts.add("a", -1)
    counts.add("a", 3)
    assert counts.total("a") == 3


def test_each_who_asks_a_space_gets_values_of_their_own() -> None:
    space = OwnSpace()
    first, second = (space.values("group.name", int, 1, 8) for _ in range(2))
    first.put("a", 1)
    first.put("b", 2)
    assert (first.get("a"), first.get("b"), second.get("b")) == (None, 2, None)
    counts = space.counts("group.name", 1)
    counts.add("a", 1)
    assert (counts.total("a"), space.counts("group.name", 1).total("a")) == (1, 0)
