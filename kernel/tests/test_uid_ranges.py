"""Ranges of UIDs: read, joined, asked for by number, and cut into stretches."""

from __future__ import annotations

import pytest

from pdpp_kernel.uid_ranges import LARGEST_UID, UidSet, packed_ranges, ranges_of


def test_a_sequence_set_is_read_in_either_direction() -> None:
    assert ranges_of(b"1:5,9,7:6") == [(1, 5), (9, 9), (6, 7)]


@pytest.mark.parametrize("text", [b"", b"1,", b"1:*", b"a", b"-1", b"1:2:3", b"12345678901"])
def test_what_is_no_sequence_set_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (it carries no text)
        ranges_of(text)


def test_ranges_that_touch_or_overlap_are_one() -> None:
    assert list(UidSet(packed_ranges([(5, 9), (1, 4), (2, 3)])).ranges()) == [(1, 9)]
    assert list(UidSet(packed_ranges([(1, 4), (6, 9)])).ranges()) == [(1, 4), (6, 9)]


def test_what_is_no_uid_is_left_out() -> None:
    pairs = [(0, 3), (4, 2), (1, LARGEST_UID + 1), (LARGEST_UID, LARGEST_UID)]
    assert list(UidSet(packed_ranges(pairs)).ranges()) == [(LARGEST_UID, LARGEST_UID)]


def test_the_ends_of_a_range_are_in_it_and_their_neighbours_are_not() -> None:
    uids = UidSet(packed_ranges([(2, 4), (8, 9)]))
    assert [uid for uid in range(12) if uid in uids] == [2, 3, 4, 8, 9]
    assert len(uids) == 5
    assert 1 not in UidSet(b"")


@pytest.mark.parametrize(
    ("most", "below", "stretches"),
    [
        (4, 9, [(1, 8)]),
        (2, 9, [(1, 2), (3, 8)]),
        (1, 4, [(1, 1), (2, 2), (3, 3)]),
        (10, 1, []),
        (5, 100, [(1, 9)]),
        (3, 8, [(1, 3)]),
    ],
)
def test_a_stretch_holds_at_most_so_many(
    most: int, below: int, stretches: list[tuple[int, int]]
) -> None:
    assert list(UidSet(packed_ranges([(1, 3), (8, 9)])).stretches(most, below)) == stretches
