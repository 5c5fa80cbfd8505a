"""What listeners hear: exactly what a read with their own token would show, and nobody is left."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from pdpp_kernel.errors import GrantRevoked
from pdpp_kernel.values import instant_ns
from pdpp_mcp_server.change_bell import Bell, Pace
from pdpp_mcp_server.followers import GRANT_URI, SCHEMA_URI, Follower, is_followed, stream_uri
from pdpp_mcp_server.listeners import (
    MOST_URIS,
    ListenerPlaces,
    Listening,
    OfferedSubscriptions,
    Subscribing,
)
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import FixedBearer, RsPort
from pdpp_mcp_server.sdk_server import build_server
from pdpp_mcp_server.tool_runs import ClientRequest
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.grant import StreamGrant
from tests.requirements.real import Real, mail, origin, registry

pytestmark = pytest.mark.anyio
MESSAGES = stream_uri("messages")
STEPS = 60
UNTIL = "2026-01-06T00:00:00Z"


def port_of(real: Real, token: str) -> RsPort:
    inner = InnerApplication(real.living.app)
    return RsClient(inner, origin, FixedBearer(token), "0").port("subscription")


async def told(follower: Follower, port: RsPort) -> list[str]:
    return [
        event.uri if isinstance(event, ResourceUpdated) else "names"
        for event in await follower.look(port)
    ]


@pytest.fixture
async def real(anyio_backend: str) -> Real:
    real = await Real.seeded()
    lean = StreamGrant("messages", (real.personal,), ("id", "sent_at"))
    real.living.grant("lean", lean, connector="gmail", uri=f"{registry}gmail")
    window = TimeConstraint("sent_at", None, instant_ns(UNTIL), None, UNTIL)
    early = StreamGrant("messages", (real.personal,), ("id", "subject", "sent_at"), window)
    real.living.grant("first_days", early, connector="gmail", uri=f"{registry}gmail")
    return real


async def feed(real: Real, token: str, places: Sequence[str | None], since: str) -> list[Any]:
    """The bodies of a feed of each place, read without the adapter."""
    async with real.read(token) as http:
        bodies: list[Any] = []
        for place in places:
            query = {"changes_since": since} | ({"connection_id": place} if place else {})
            answer = await http.get("/v1/streams/messages/records", params=query)
            assert answer.status_code == 200, answer.text
            bodies.append(answer.json())
    return bodies


async def write_something(real: Real, dice: random.Random) -> None:
    """A new mail, another value of a field, the same again, or a mail that goes."""
    connection = dice.choice((real.personal, real.work))
    row = dict(dice.choice(mail("Again", 9)))
    match dice.randrange(4):
        case 0:
            row["subject"] = f"Another {dice.random()}"
        case 1:
            row["sent_at"] = f"2026-01-{dice.randrange(1, 20):02d}T10:00:00Z"
        case 2:
            row["body"] = f"Only the text {dice.random()}"
        case _:
            async with real.read("owner") as owner:
                path = f"/v1/streams/messages/records/{row['id']}"
                gone = await owner.delete(path, params={"connection_id": connection})
                assert gone.status_code in {200, 204, 404}, gone.text
            return
    await real.living.ingest(connection, "messages", [row])


async def test_a_stream_is_told_exactly_if_its_feed_has_an_item(real: Real) -> None:
    dice = random.Random(19)
    places: dict[str, list[str | None]] = {
        "mine": [None],
        "both": [None],
        "lean": [None],
        "first_days": [None],
        "all": [real.personal, real.work],
    }
    followers = {token: Follower(frozenset({MESSAGES})) for token in places}
    for token, follower in followers.items():
        assert await told(follower, port_of(real, token)) == []
    heard: set[tuple[str, bool]] = set()
    for _ in range(STEPS):
        before = {
            token: [body["next_changes_since"] for body in await feed(real, token, where, "now")]
            for token, where in places.items()
        }
        await write_something(real, dice)
        for token, where in places.items():
            shown = [
                (await feed(real, token, [place], bookmark))[0]["data"]
                for place, bookmark in zip(where, before[token], strict=True)
            ]
            expected = [MESSAGES] if any(shown) else []
            assert await told(followers[token], port_of(real, token)) == expected
            heard.add((token, bool(expected)))
    assert len(heard) == 2 * len(places)  # each of them heard something, and each did not


async def test_documents_are_told_when_the_access_changes_and_not_when_records_do(
    real: Real,
) -> None:
    uris = frozenset({SCHEMA_URI, GRANT_URI, stream_uri("attachments")})
    follower, port = Follower(uris, names=True), port_of(real, "mine")
    assert await told(follower, port) == []
    await real.living.ingest(real.personal, "messages", mail("Later", 3))
    assert await told(follower, port) == []
    real.living.resolved["mine"] = real.living.resolved["lean"]
    assert await told(follower, port) == [*sorted(uris), "names"]
    assert await told(follower, port) == []


async def test_the_end_of_the_access_is_told_once_of_everything(real: Real) -> None:
    follower = Follower(frozenset({SCHEMA_URI, MESSAGES}), names=True)
    port = port_of(real, "mine")
    await follower.look(port)
    real.living.ended["mine"] = GrantRevoked("The owner ended this access.")
    assert await told(follower, port) == [SCHEMA_URI, MESSAGES, "names"]
    assert follower.over


async def test_reads_for_news_disclose_keys_only_and_nothing_while_there_are_none(
    real: Real,
) -> None:
    follower, port = Follower(frozenset({MESSAGES})), port_of(real, "mine")
    await follower.look(port)
    await follower.look(port)
    assert [entry for entry in real.disclosures() if entry.tool == "subscription"] == []
    await real.living.ingest(real.personal, "messages", mail("Later", 3))
    assert await told(follower, port) == [MESSAGES]
    (entry,) = [entry for entry in real.disclosures() if entry.tool == "subscription"]
    assert (tuple(entry.fields), entry.record_count) == (("id",), 1)


def test_only_these_resources_are_followed() -> None:
    followed = ["pdpp://schema", "pdpp://grant", "pdpp://stream/a%20b"]
    others = ["pdpp://types", "pdpp://record/x", "pdpp://stream/", "pdpp://stream/a/b", "x"]
    assert [uri for uri in [*followed, *others] if is_followed(uri)] == followed


# Listening -------------------------------------------------------------------------------------
@dataclass
class Hand:
    """A signal that a test gives."""

    count: int = 0

    def wait(self, last_seen: int, timeout_seconds: float) -> int:
        del last_seen, timeout_seconds
        return self.count


@dataclass
class Stand:
    """One server, and whoever listens to it."""

    real: Real
    listeners: ListenerPlaces = field(default_factory=lambda: ListenerPlaces(most_of_access=2))

    @asynccontextmanager
    async def client(self, mode: Any, **told: Any) -> AsyncGenerator[Client]:
        async def open_port() -> RsPort:
            return port_of(self.real, "mine")

        def callers(request: Any) -> ClientRequest:
            del request
            return ClientRequest(lambda _: port_of(self.real, "mine"), origin)

        async with anyio.create_task_group() as tasks:
            server = build_server(
                callers,
                name="pdpp-mcp-server",
                version="0",
                subscriptions=OfferedSubscriptions(
                    Listening(lambda _: ("mine", open_port), at_once, self.listeners),
                    Subscribing(tasks, open_port, at_once),
                ),
            )
            async with Client(server, mode=mode, **told) as client:
                yield client
            tasks.cancel_scope.cancel()


class AtOnce:
    async def wait(self) -> bool:
        await anyio.sleep(0.01)
        return True


async def at_once() -> Pace:
    return AtOnce()


async def test_a_client_that_hangs_up_leaves_nothing_and_makes_room(real: Real) -> None:
    stand = Stand(real)
    async with stand.client("auto") as client:
        for _ in range(3):
            async with (
                client.listen(resource_subscriptions=[MESSAGES]),
                client.listen(resources_list_changed=True),
            ):
                assert stand.listeners.count == 2
                with pytest.raises(MCPError) as refused:
                    async with client.listen(resource_subscriptions=[MESSAGES]):
                        pass
                assert refused.value.data["error"]["code"] == "rate_limit_exceeded"
            with anyio.fail_after(10):
                while stand.listeners.count:
                    await anyio.sleep(0.01)
        many = [stream_uri(f"s{n}") for n in range(MOST_URIS + 1)]
        with pytest.raises(MCPError) as refused:
            async with client.listen(resource_subscriptions=many):
                pass
        assert refused.value.data["error"]["code"] == "rate_limit_exceeded"


async def test_names_of_streams_that_come_or_go_are_a_changed_list(real: Real) -> None:
    stand = Stand(real)
    async with (
        stand.client("auto") as client,
        client.listen(resources_list_changed=True) as heard,
    ):
        real.living.resolved["mine"] = real.living.resolved["lean"]
        with anyio.fail_after(10):
            assert await anext(aiter(heard)) == ResourcesListChanged()


async def test_a_signal_between_two_looks_is_not_missed() -> None:
    hand = Hand(count=7)
    bell = Bell(hand, rest_seconds=0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bell.ring)
        pace = await bell.pace()
        hand.count = 8
        with anyio.fail_after(10):
            assert await pace.wait()
        with anyio.move_on_after(0.2) as waited:
            await pace.wait()
        assert waited.cancelled_caught
        tasks.cancel_scope.cancel()


async def test_progress_is_told_over_stdio_to_who_asks(real: Real) -> None:
    for mode in ("legacy", "auto"):
        steps: list[float] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)  # noqa: B023 (called within this turn)

        async with Stand(real).client(mode) as client:
            await client.call_tool("schema", {}, progress_callback=note)
        assert steps == [1.0]
