"""The caller must name a connection, and is told which there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from personal_server.domain.authority import TokenKind, Unavailable
from personal_server.enforcement.ambiguity import ambiguous, ambiguous_schema, connection_count
from server.tests.enforcement.mailbox import authority, mails, notes

PACKAGE = authority(mails(), kind=TokenKind.PACKAGE)
TWO = (mails(), mails(connection_id="cin_b", display_name=None), notes(connection_id="cin_b"))


def named(members: dict[str, object]) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", members["available_connections"])


def test_connections_are_named_with_those_that_hold_the_stream_first() -> None:
    error = ambiguous(PACKAGE, TWO, "notes")
    assert (error.code, error.param) == ("ambiguous_connection", "connection_id")
    assert [(each["connection_id"], each["has_stream"]) for each in named(error.members)] == [
        ("cin_b", True),
        ("cin_a", False),
    ]
    assert error.members["recovery"] == {"connection_id": "cin_b"}
    assert error.members["available_connection_count"] == 2
    assert error.members["available_connections_truncated"] is False
    assert "discovery_hint" not in error.members


@pytest.mark.parametrize(
    ("asked", "recovery"),
    [({}, None), ({"may_cross": False}, None), ({"may_cross": True}, {"across": "connections"})],
)
def test_where_several_hold_it_a_read_that_may_cross_takes_all(
    asked: dict[str, bool], recovery: object
) -> None:
    error = ambiguous(PACKAGE, TWO, "mails", **asked)
    assert error.members.get("recovery") == recovery
    assert ("across" in error.message) == bool(recovery)


def test_without_a_stream_nothing_is_said_of_one() -> None:
    assert all("has_stream" not in each for each in named(ambiguous(PACKAGE, TWO, None).members))


@pytest.mark.parametrize(("count", "omitted"), [(12, None), (13, 1)])
def test_a_dozen_connections_are_named_and_all_counted(count: int, omitted: int | None) -> None:
    many = [mails(connection_id=f"cin_{n:02}") for n in range(count)]
    members = ambiguous_schema(PACKAGE, many, "mails").members
    assert len(named(members)) == 12
    assert members["available_connection_count"] == count
    assert members["available_connections_truncated"] is (omitted is not None)
    assert members.get("available_connections_omitted") == omitted
    assert ("discovery_hint" in members) == (omitted is not None)
    assert connection_count(many) == count


def test_connections_that_cannot_be_read_are_named_as_well() -> None:
    ended = replace(PACKAGE, unavailable=(Unavailable("cin_c", "grant_expired"),))
    assert "unavailable_connections" in ambiguous(ended, TWO, "mails").members
    assert "unavailable_connections" not in ambiguous(PACKAGE, TWO, "mails").members
