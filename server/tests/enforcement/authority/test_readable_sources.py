"""Selecting sources, and what is said when the choice is open or empty."""

from dataclasses import replace
from typing import cast

import pytest

from pdpp_kernel.errors import (
    AmbiguousConnection,
    ConnectionNotFound,
    GrantExpired,
    GrantRevoked,
    GrantStreamNotAllowed,
    NotFound,
    PersonalServerError,
)
from personal_server.domain.authority import ReadAuthority, Unavailable
from personal_server.domain.connection import ConnectionStatus
from personal_server.enforcement.queries import Selectors
from personal_server.enforcement.source_selection import (
    select_any,
    select_blob_sources,
    select_stream,
)
from server.tests.resource_server.journal import (
    BANK,
    DIARY,
    LETTERS,
    OWNER,
    authority_of,
    client,
    connection,
    grant,
    member,
    package,
    stream_grant,
)

ANY = Selectors()


def listed(members: object) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", members)


def refusal(authority: ReadAuthority, selectors: Selectors, stream: str) -> PersonalServerError:
    with pytest.raises(PersonalServerError) as caught:
        select_stream(authority, selectors, stream)
    return caught.value


def test_a_client_reads_all_its_connections_of_a_stream() -> None:
    found = select_stream(client(), ANY, "entries")
    assert [source.connection_id for source in found] == [DIARY, LETTERS]


@pytest.mark.parametrize("wanted", ["journal", "https://registry.pdpp.dev/connectors/journal"])
def test_a_source_is_named_by_key_or_uri(wanted: str) -> None:
    found = select_stream(OWNER, Selectors(connector_id=wanted), "entries")
    assert [source.connection_id for source in found] == [DIARY, LETTERS]


def test_connections_outside_the_grant_are_as_unknown_as_any() -> None:
    authority = client(stream_grant(instance_ids=(DIARY,)))
    hidden = refusal(authority, Selectors(LETTERS), "entries")
    unknown = refusal(authority, Selectors("cin_nobody0000000000"), "entries")
    assert isinstance(hidden, ConnectionNotFound)
    assert (hidden.message, hidden.param, hidden.members) == (
        unknown.message,
        unknown.param,
        unknown.members,
    )


def test_a_stream_nobody_granted_is_refused_before_anything_is_looked_up() -> None:
    assert isinstance(refusal(client(), ANY, "volumes"), GrantStreamNotAllowed)
    assert isinstance(refusal(client(), ANY, "nowhere"), GrantStreamNotAllowed)
    assert isinstance(refusal(OWNER, ANY, "nowhere"), NotFound)


def test_a_granted_stream_without_a_readable_connection_is_not_found_and_explained() -> None:
    revoked = connection(DIARY, status=ConnectionStatus.REVOKED)
    authority = authority_of(
        "client",
        member(grant(stream_grant(instance_ids=(DIARY,)))),
        connections=[revoked],
    )
    error = refusal(authority, ANY, "entries")
    assert isinstance(error, ConnectionNotFound)
    entries = error.members["unavailable_connections"]
    assert entries == [
        {
            "connection_id": DIARY,
            "connector_key": "journal",
            "grant_id": "grt_1",
            "reason": "connection_revoked",
            "next_step": "choose_another",
        }
    ]


@pytest.mark.parametrize(
    ("status", "expected"), [("grant_revoked", GrantRevoked), ("grant_expired", GrantExpired)]
)
def test_a_connection_of_an_ended_member_grant_says_why(
    status: str, expected: type[PersonalServerError]
) -> None:
    ended = grant(stream_grant(instance_ids=(LETTERS,)), grant_id="grt_2")
    authority = authority_of(
        "mcp_package",
        member(grant(stream_grant(instance_ids=(DIARY,)))),
        member(ended, status),
    )
    error = refusal(authority, Selectors(LETTERS), "entries")
    assert isinstance(error, expected)
    assert error.param == "connection_id"
    shown = listed(error.members["unavailable_connections"])
    assert shown[0]["next_step"] == "reapprove"
    assert [s.connection_id for s in select_stream(authority, ANY, "entries")] == [DIARY]


def test_a_package_must_name_its_connection_even_if_one_could_answer() -> None:
    authority = package(
        grant(stream_grant(instance_ids=(DIARY,))),
        grant(stream_grant("volumes", (LETTERS,)), grant_id="grt_2"),
    )
    error = refusal(authority, ANY, "entries")
    assert isinstance(error, AmbiguousConnection)
    assert error.members["available_connections"] == [
        {
            "connection_id": DIARY,
            "connector_key": "journal",
            "grant_id": "grt_1",
            "display_name": "Paper diary",
            "has_stream": True,
        },
        {
            "connection_id": LETTERS,
            "connector_key": "journal",
            "grant_id": "grt_2",
            "has_stream": False,
        },
    ]


def test_a_package_narrowed_to_one_source_with_one_connection_is_clear() -> None:
    authority = package(
        grant(stream_grant(instance_ids=(DIARY,))),
        grant(stream_grant(instance_ids=(BANK,)), grant_id="grt_2", key="banking"),
    )
    found = select_stream(authority, Selectors(connector_id="banking"), "entries")
    assert [source.connection_id for source in found] == [BANK]


def test_a_stream_of_several_sources_is_ambiguous_for_the_owner() -> None:
    error = refusal(OWNER, ANY, "entries")
    assert isinstance(error, AmbiguousConnection)
    shown = listed(error.members["available_connections"])
    assert [c["connection_id"] for c in shown] == [BANK, LETTERS, DIARY]
    assert all("grant_id" not in c for c in shown)


def many(count: int) -> ReadAuthority:
    ids = tuple(f"cin_many{n:012}" for n in range(count))
    half = ids[: count // 2]
    return authority_of(
        "mcp_package",
        member(grant(stream_grant(instance_ids=half), stream_grant("volumes", ids))),
        connections=[connection(cid, name=f"N{n}") for n, cid in enumerate(ids)],
    )


def test_one_holder_is_the_way_on_and_the_sentence_says_no_label() -> None:
    error = refusal(many(3), ANY, "entries")
    [first, *others] = listed(error.members["available_connections"])
    assert (first["display_name"], first["has_stream"]) == ("N0", True)
    assert not any(entry["has_stream"] for entry in others)
    assert "N0" not in error.message
    assert error.members["recovery"] == {"connection_id": "cin_many000000000000"}
    assert error.members["available_connection_count"] == 3


def test_several_holders_are_counted_and_only_an_aggregate_may_take_them_all() -> None:
    error = refusal(many(14), ANY, "entries")
    assert error.message.startswith("7 connections ")
    assert "recovery" not in error.members
    with pytest.raises(AmbiguousConnection) as caught:
        select_stream(many(14), ANY, "entries", may_cross=True)
    assert caught.value.members["recovery"] == {"across": "connections"}


def test_at_most_twelve_connections_are_offered_those_with_the_stream_first() -> None:
    error = refusal(many(14), ANY, "entries")
    shown = listed(error.members["available_connections"])
    assert [c["has_stream"] for c in shown] == [True] * 7 + [False] * 5
    assert error.members["available_connection_count"] == 14
    assert error.members["available_connections_truncated"] is True
    assert error.members["available_connections_omitted"] == 2
    assert error.members["discovery_hint"]


def test_a_short_list_is_not_truncated() -> None:
    error = refusal(many(3), ANY, "entries")
    assert error.members["available_connections_truncated"] is False
    assert "available_connections_omitted" not in error.members
    assert "discovery_hint" not in error.members


def test_at_most_twelve_unavailable_connections_are_named_and_then_counted() -> None:
    ids = tuple(f"cin_gone{n:012}" for n in range(14))
    authority = authority_of(
        "client", member(grant(stream_grant(instance_ids=ids))), connections=[]
    )
    error = refusal(authority, ANY, "entries")
    shown = listed(error.members["unavailable_connections"])
    assert len(shown) == 12
    assert error.members["unavailable_connection_count"] == 14


def test_reads_that_are_never_ambiguous_take_what_there_is() -> None:
    assert len(select_any(OWNER, ANY)) == 9
    assert select_any(authority_of("client", member(None, "grant_invalid")), ANY) == ()


def test_a_blob_needs_its_connection_only_in_a_package() -> None:
    authority = package(
        grant(stream_grant("attachments", (DIARY,))),
        grant(stream_grant("attachments", (LETTERS,)), grant_id="grt_2"),
    )
    with pytest.raises(AmbiguousConnection) as caught:
        select_blob_sources(authority, ANY)
    shown = listed(caught.value.members["available_connections"])
    assert all("has_stream" not in c for c in shown)
    assert len(select_blob_sources(OWNER, ANY)) == 9


def test_a_connection_that_is_gone_says_why_and_an_unknown_one_nothing() -> None:
    gone = Unavailable("cin_gone", "connection_removed")
    authority = replace(client(), unavailable=(gone,))
    error = refusal(authority, Selectors("cin_gone"), "entries")
    (entry,) = listed(error.members["unavailable_connections"])
    assert (error.code, entry["reason"]) == ("connection_not_found", "connection_removed")
    assert refusal(authority, Selectors("cin_none"), "entries").members == {}
