"""What is refused to listeners, and what ends them: each check alone, without a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from pdpp_mcp_server.change_bell import Pace
from pdpp_mcp_server.followers import GRANT_URI, SCHEMA_URI, Follower, Unanswered, stream_uri
from pdpp_mcp_server.listeners import MOST_URIS, ListenerPlaces, Listening, Subscribing, begin
from pdpp_mcp_server.rs_client.port import RsPort, RsResponse

pytestmark = pytest.mark.anyio


@dataclass
class Answering:
    """A port that always answers the same."""

    status: int
    code: str = "some_code"

    async def get(
        self, path: Sequence[str], query: object = (), *, max_bytes: int | None = None
    ) -> RsResponse:
        del path, query, max_bytes
        return RsResponse(self.status, {"error": {"code": self.code, "message": "no"}})


def opened(port: Answering) -> Any:
    async def open_port() -> RsPort:
        return cast("RsPort", port)

    return open_port


class Patient:
    """Never looks again."""

    async def wait(self) -> bool:
        await anyio.sleep_forever()
        return True


async def patient() -> Pace:
    return Patient()


CONTEXT = cast("Any", SimpleNamespace(protocol_version="2025-11-25", session=None, request=None))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("status", [429, 503])
async def test_who_could_not_be_asked_is_asked_again(status: int) -> None:
    follower = Follower(frozenset({GRANT_URI}))
    with pytest.raises(Unanswered):
        await follower.look(cast("RsPort", Answering(status)))
    assert not follower.over


@pytest.mark.parametrize(("status", "code"), [(401, "invalid_token"), (403, "grant_revoked")])
async def test_an_access_that_ended_ends_its_listener(status: int, code: str) -> None:
    follower = Follower(frozenset({GRANT_URI}))
    told = await follower.look(cast("RsPort", Answering(status, code)))
    assert follower.over
    assert [getattr(event, "uri", None) for event in told] == [GRANT_URI]


async def test_another_refusal_is_news_only_when_it_changes() -> None:
    follower = Follower(frozenset({GRANT_URI}))
    port = cast("RsPort", Answering(403, "grant_paused"))
    assert await follower.look(port) == []
    assert await follower.look(port) == []
    assert not follower.over


async def test_nobody_begins_to_listen_without_an_access() -> None:
    with pytest.raises(MCPError) as refused:
        await begin(Follower(frozenset({GRANT_URI})), opened(Answering(401)), GRANT_URI)
    assert refused.value.data["error"]["code"] == "invalid_token"


async def test_so_many_listen_by_one_access_and_in_all() -> None:
    places = ListenerPlaces(most_of_access=1, most=2)
    with places.place("a", GRANT_URI):
        with pytest.raises(MCPError), places.place("a", GRANT_URI):
            pass
        with places.place("b", GRANT_URI), pytest.raises(MCPError), places.place("c", GRANT_URI):
            pass
    assert places.count == 0


async def test_so_many_resources_are_followed_at_once() -> None:
    many = [stream_uri(f"s{number}") for number in range(MOST_URIS + 1)]
    asked = types.SubscriptionsListenRequestParams(
        notifications=types.SubscriptionFilter(resource_subscriptions=many)
    )
    listening = Listening(lambda _: ("a", opened(Answering(503))), patient)
    with pytest.raises(MCPError) as refused:
        await listening(CONTEXT, asked)
    assert refused.value.data["error"]["code"] == "rate_limit_exceeded"


async def test_only_what_can_change_is_subscribed_to_and_so_much_of_it() -> None:
    async with anyio.create_task_group() as tasks:
        subscribing = Subscribing(tasks, opened(Answering(403, "grant_paused")), patient)

        async def subscribe(uri: str) -> None:
            await subscribing.subscribe(CONTEXT, types.SubscribeRequestParams(uri=uri))

        with pytest.raises(MCPError) as refused:
            await subscribe("pdpp://nothing")
        assert refused.value.data["error"]["code"] == "not_found"
        await subscribe(SCHEMA_URI)
        for number in range(1, MOST_URIS):
            await subscribe(stream_uri(f"s{number}"))
        with pytest.raises(MCPError) as refused:
            await subscribe(GRANT_URI)
        assert refused.value.data["error"]["code"] == "rate_limit_exceeded"
        tasks.cancel_scope.cancel()
