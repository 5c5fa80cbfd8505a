"""What a backend answers to a plan."""

from __future__ import annotations

from personal_server.enforcement.rows import Neighbours, Position
from server.tests.enforcement.mailbox import row


def test_ties_are_broken_by_connection_and_stream() -> None:
    assert Position(7, "m1", "cin_a", "mails").place == ("cin_a", "mails")


def test_neighbours_are_those_that_there_are() -> None:
    before, after = row("m1"), row("m2")
    assert Neighbours(before, after).rows == (before, after)
    assert Neighbours(None, after).rows == (after,)
    assert Neighbours().rows == ()
