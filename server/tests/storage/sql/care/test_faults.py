"""What checks find is counted, and the first of it shown."""

from __future__ import annotations

import pytest

from personal_server.storage.sql.care.faults import SHOWN_KEYS, Faulty, StreamCheck


def test_all_are_counted_and_the_first_keys_are_kept() -> None:
    found = Faulty()
    for number in range(SHOWN_KEYS + 2):
        found.add(f"n{number}")
    assert (found.count, found.keys) == (5, ["n0", "n1", "n2"])
    assert Faulty() == Faulty(0, [])


@pytest.mark.parametrize(
    ("words", "values", "expected"),
    [(False, False, False), (True, False, True), (False, True, True), (True, True, True)],
)
def test_what_can_be_read_can_be_made_anew(words: bool, values: bool, expected: bool) -> None:
    check = StreamCheck("cin_a", "notes", words_differ=words, values_differ=values)
    assert check.can_be_made_anew is expected
    check.damaged.add("n1")
    assert check.can_be_made_anew is False
