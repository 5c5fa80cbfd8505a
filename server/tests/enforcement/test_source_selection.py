"""A label in the place of an id is answered with the id, of readable connections alone."""

import pytest

from pdpp_kernel.errors import PersonalServerError
from personal_server.enforcement.queries import Selectors
from personal_server.enforcement.source_selection import select_everywhere, stream_not_granted
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
