"""What a backend answers to a plan."""

from __future__ import annotations

from personal_server.enforcement.rows import Aggregation, Nearest, Neighbours, Position
from server.tests.enforcement.mailbox import row


def test_ties_are_broken_by_connection_and_stream() -> None:
    assert Position(7, "m1", "cin_a", "mails").place == ("cin_a", "mails")


def test_neighbours_are_those_that_there_are() -> None:
    before, after = row("m1"), row("m2")
    assert Neighbours(before, after).rows == (before, after)
    assert Neighbours(None, after).rows == (after,)
    assert Neighbours().rows == ()


def test_what_is_not_grouped_has_no_groups_and_no_others() -> None:
    found = Aggregation(3)
    assert (found.record_count, found.groups) == (3, ())
    assert (found.group_count, found.other_count, found.other_value) == (0, 0, None)


def test_nothing_waits_and_nothing_is_lost_unless_told_otherwise() -> None:
    found = Nearest(())
    assert (found.pending, found.lost) == (0, frozenset())
