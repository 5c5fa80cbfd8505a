"""A label in the place of an id is answered with the id, of readable connections alone."""

import dataclasses
from collections.abc import Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import PersonalServerError
from personal_server.domain.authority import ReadAuthority, TokenKind, Unavailable
from personal_server.enforcement.queries import Selectors
from personal_server.enforcement.source_selection import (
    select_any,
    select_blob_sources,
    select_everywhere,
    select_stream,
    stream_not_granted,
)
from server.tests.enforcement.mailbox import authority, mails, notes
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import BANK, DIARY, client, furnished, grant, package
from server.tests.resource_server.journal import stream_grant as named

LIST = "/v1/streams/entries/records?connection_id"
BOTH = (
    grant(named(instance_ids=(DIARY,))),
    grant(named(instance_ids=(BANK,)), grant_id="grt_2", key="banking"),
)


@pytest.mark.parametrize(
    ("label", "meant"),
    [("Paper+diary", DIARY), ("paper+DIARY", DIARY), ("banking", BANK), ("bank", BANK)],
)
def test_a_label_is_answered_with_the_id_that_it_stands_for(label: str, meant: str) -> None:
    reply = Door(furnished()).get(f"{LIST}={label}", package(*BOTH))
    assert (reply.status, reply.code) == (404, "connection_not_found")
    assert reply.error["recovery"] == {"connection_id": meant}


@pytest.mark.parametrize("label", ["Bank", "banking", "cin_nobody", "+"])
def test_what_is_not_granted_is_no_label(label: str) -> None:
    reply = Door(furnished()).get(f"{LIST}={label}", client(named()))
    assert (reply.status, reply.code) == (404, "connection_not_found")
    assert "recovery" not in reply.error


def test_a_label_of_several_connections_stands_for_none() -> None:
    reply = Door(furnished()).get(f"{LIST}=journal", client())
    assert "recovery" not in reply.error


@pytest.mark.parametrize("named_so", ["banking", BANK])
def test_a_connection_without_the_stream_is_not_offered(named_so: str) -> None:
    volumes = grant(named("volumes", instance_ids=(BANK,)), grant_id="grt_2", key="banking")
    reply = Door(furnished()).get(f"{LIST}={named_so}", package(BOTH[0], volumes))
    assert (reply.status, reply.code) == (404, "connection_not_found")
    assert "recovery" not in reply.error


def test_a_stream_outside_the_grant_is_refused_with_those_inside() -> None:
    for stream in ("volumes", "nothing"):
        refused = stream_not_granted(client(named()), stream, "stream")
        assert refused.param == "stream"
        assert refused.members["allowed_values"] == ["entries"]


def test_a_stream_is_read_everywhere_it_is_granted() -> None:
    everywhere = select_everywhere(package(*BOTH), Selectors(), "entries")
    assert [source.connection_id for source in everywhere] == [BANK, DIARY]
    one = select_everywhere(package(*BOTH), Selectors(connector_id="banking"), "entries")
    assert [source.connection_id for source in one] == [BANK]


@pytest.mark.parametrize(
    ("selectors", "stream", "code", "param"),
    [
        (Selectors(), "volumes", "grant_stream_not_allowed", "stream"),
        (Selectors(connector_id="nothing"), "entries", "connection_not_found", "connector_id"),
        (Selectors("cin_nobody"), "entries", "connection_not_found", "connection_id"),
    ],
)
def test_what_is_nowhere_is_refused(
    selectors: Selectors, stream: str, code: str, param: str
) -> None:
    with pytest.raises(PersonalServerError) as caught:
        select_everywhere(package(*BOTH), selectors, stream)
    assert (caught.value.code, caught.value.param) == (code, param)


TWO = (
    mails(),
    mails(connection_id="cin_b", display_name="Work"),
    notes(connection_id="cin_b", display_name="Work"),
)
PACKAGE = authority(*TWO, kind=TokenKind.PACKAGE)


def refusal(call: Callable[[], object]) -> PersonalServerError:
    with pytest.raises(PersonalServerError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ("kind", "selectors", "stream", "found"),
    [
        (TokenKind.CLIENT, Selectors(), "mails", ["cin_a", "cin_b"]),
        (TokenKind.OWNER, Selectors(), "mails", ["cin_a", "cin_b"]),
        (TokenKind.CLIENT, Selectors("cin_b"), "mails", ["cin_b"]),
        (TokenKind.PACKAGE, Selectors("cin_b"), "mails", ["cin_b"]),
        (TokenKind.PACKAGE, Selectors("cin_b", "mail"), "notes", ["cin_b"]),
        (TokenKind.CLIENT, Selectors(connector_id="mail"), "notes", ["cin_b"]),
        (TokenKind.CLIENT, Selectors(connector_id=TWO[0].source.id), "notes", ["cin_b"]),
    ],
)
def test_a_read_of_a_stream_is_of_the_selected_connections_that_have_it(
    kind: TokenKind, selectors: Selectors, stream: str, found: list[str]
) -> None:
    selected = select_stream(authority(*TWO, kind=kind), selectors, stream)
    assert [source.connection_id for source in selected] == found
    assert {source.stream for source in selected} == {stream}


@pytest.mark.parametrize("may_cross", [False, True])
def test_a_package_of_several_connections_leaves_none_open(may_cross: bool) -> None:
    error = refusal(lambda: select_stream(PACKAGE, Selectors(), "mails", may_cross=may_cross))
    assert (error.code, "recovery" in error.members) == ("ambiguous_connection", may_cross)
    error = refusal(lambda: select_stream(PACKAGE, Selectors(), "mails"))
    assert (error.code, "recovery" in error.members) == ("ambiguous_connection", False)
    one = authority(mails(), kind=TokenKind.PACKAGE)
    assert select_stream(one, Selectors(), "mails") == (mails(),)


def test_a_stream_of_several_sources_is_ambiguous_for_everybody() -> None:
    other = mails(connection_id="cin_c")
    other = dataclasses.replace(
        other, source=replace(other.source, id="https://other.example/mail")
    )
    several = authority(mails(), other)
    assert refusal(lambda: select_stream(several, Selectors(), "mails")).code == (
        "ambiguous_connection"
    )
    assert select_stream(several, Selectors("cin_c"), "mails") == (other,)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (TokenKind.OWNER, "not_found"),
        (TokenKind.CLIENT, "grant_stream_not_allowed"),
        (TokenKind.PACKAGE, "grant_stream_not_allowed"),
    ],
)
def test_a_stream_that_is_not_there_is_refused_as_the_token_deserves(
    kind: TokenKind, code: str
) -> None:
    holder = authority(*TWO, kind=kind)
    for select in (select_stream, select_everywhere):
        assert refusal(lambda select=select: select(holder, Selectors(), "nothing")).code == code


def test_blobs_are_of_one_connection_of_a_package_and_of_all_of_a_grant() -> None:
    assert refusal(lambda: select_blob_sources(PACKAGE, Selectors())).code == "ambiguous_connection"
    assert select_blob_sources(PACKAGE, Selectors("cin_a")) == TWO[:1]
    assert select_blob_sources(authority(*TWO), Selectors()) == TWO


def test_a_read_that_is_never_ambiguous_may_be_of_nothing() -> None:
    assert select_any(PACKAGE, Selectors()) == TWO
    assert select_any(PACKAGE, Selectors("cin_a")) == TWO[:1]
    nothing = ReadAuthority(TokenKind.CLIENT, "own_1", ())
    assert select_any(nothing, Selectors()) == ()


ENDED = [
    ("grant_revoked", "grant_revoked"),
    ("grant_expired", "grant_expired"),
    ("grant_paused", "grant_paused"),
    ("grant_invalid", "grant_invalid"),
    ("connection_revoked", "connection_not_found"),
]


@pytest.mark.parametrize(("reason", "code"), ENDED)
def test_a_connection_that_cannot_be_read_says_why_its_access_ended(reason: str, code: str) -> None:
    ended = Unavailable("cin_c", reason, stream="mails")
    holder = dataclasses.replace(PACKAGE, unavailable=(Unavailable("cin_d", "grant_paused"), ended))
    error = refusal(lambda: select_stream(holder, Selectors("cin_c"), "mails"))
    assert (error.code, error.param) == (code, "connection_id")
    [named] = cast("list[dict[str, Any]]", error.members["unavailable_connections"])
    assert (named["connection_id"], named["reason"]) == ("cin_c", reason)
    unknown = refusal(lambda: select_stream(holder, Selectors("cin_e"), "mails"))
    assert (unknown.code, unknown.members) == ("connection_not_found", {})


@pytest.mark.parametrize(
    ("selectors", "named"),
    [
        (Selectors(), ["cin_c", "cin_d"]),
        (Selectors("cin_a"), []),
        (Selectors("cin_b"), ["cin_b"]),
    ],
)
def test_of_a_stream_that_nobody_has_those_are_named_that_could_have_it(
    selectors: Selectors, named: list[str]
) -> None:
    unavailable = (
        Unavailable("cin_c", "connection_revoked", stream="files"),
        Unavailable("cin_d", "connection_revoked"),
        Unavailable("cin_e", "connection_revoked", stream="mails"),
        Unavailable("cin_b", "connection_revoked", stream="files"),
    )
    granted = frozenset({"mails", "notes", "files"})
    holder = dataclasses.replace(PACKAGE, unavailable=unavailable, granted_streams=granted)
    if selectors.connection_id is None:
        holder = dataclasses.replace(holder, unavailable=unavailable[:3])
    error = refusal(lambda: select_stream(holder, selectors, "files"))
    assert (error.code, error.param) == ("connection_not_found", "connection_id")
    entries = cast("list[dict[str, Any]]", error.members.get("unavailable_connections", []))
    assert [entry["connection_id"] for entry in entries] == named


@pytest.mark.parametrize(
    ("label", "meant"), [("Work", "cin_b"), (" wORK ", "cin_b"), ("mail", None), ("", None)]
)
def test_a_label_of_one_readable_connection_stands_for_it(label: str, meant: str | None) -> None:
    error = refusal(lambda: select_any(PACKAGE, Selectors(label)))
    recovery = None if meant is None else {"connection_id": meant}
    assert (error.code, error.members.get("recovery")) == ("connection_not_found", recovery)


def test_a_label_of_a_connection_without_the_stream_is_no_answer() -> None:
    error = refusal(lambda: select_stream(PACKAGE, Selectors("Home"), "notes"))
    assert (error.code, error.members.get("recovery")) == ("connection_not_found", None)
    error = refusal(lambda: select_stream(PACKAGE, Selectors("Work"), "notes"))
    assert error.members["recovery"] == {"connection_id": "cin_b"}
    error = refusal(lambda: select_stream(PACKAGE, Selectors("Work"), "nothing"))
    assert error.code == "grant_stream_not_allowed"
