"""Being told of changes with real processes: a mailbox comes in, then the access ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated, Subscription

from tests.journeys.test_main_job import BIN, Home, home, served

__all__ = ["home", "served"]
SECONDS = 60.0
STREAM = "pdpp://stream/messages"
FOLLOWED = ("pdpp://grant", "pdpp://schema", STREAM)
# What is told when a field is given no more.
NARROWED = FOLLOWED


@asynccontextmanager
async def over_stdio(served: Home, **told: Any) -> AsyncGenerator[Client]:
    server = StdioServerParameters(
        command=str(BIN / "pdpp-mcp-server"),
        args=["--cache-root", str(served.cache)],
        env=dict(served.environ),
    )
    async with Client(stdio_client(server), **told) as client:
        yield client


@asynccontextmanager
async def over_http(served: Home, **told: Any) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {served.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=240) as http,
        Client(streamable_http_client(f"{served.origin}/mcp", http_client=http), **told) as client,
    ):
        yield client


def import_more(served: Home) -> None:
    more = served.mailbox("Umbrella", "Harvest", "Lantern")
    served.pdpp("import", str(more), "--connection", "Home")


def narrow(served: Home) -> None:
    [grant] = served.pdpp("grant", "list")
    left = ("--stream", "messages:id,subject,sent_at")
    served.pdpp("grant", "change", grant["id"], *left, "--yes")


def end_access(served: Home) -> None:
    [grant] = served.pdpp("grant", "list")
    served.pdpp("grant", "revoke", grant["id"])


async def next_updated(heard: Subscription) -> str:
    event = await anext(aiter(heard))
    assert isinstance(event, ResourceUpdated)
    return event.uri


# What listeners hear, `test_listeners` proves with the same client in one process.
@pytest.mark.long
@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore:resources/.*subscribe is removed")  # said of what is tested
async def test_clients_of_both_eras_hear_what_another_process_did(served: Home) -> None:
    send, noted = anyio.create_memory_object_stream[str](32)

    async def note(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            await send.send(str(message.params.uri))

    async with AsyncExitStack() as open_things:
        enter = open_things.enter_async_context
        await enter(send)
        await enter(noted)
        asked = (*FOLLOWED, "pdpp://types", "pdpp://record/x")
        listeners: list[Subscription] = []
        for door in (over_http, over_stdio):
            client = await enter(door(served, mode="auto"))
            assert client.server_capabilities.resources is not None
            assert client.server_capabilities.resources.subscribe
            listening = client.listen(resource_subscriptions=asked, tools_list_changed=True)
            heard = await enter(listening)
            assert heard.honored.resource_subscriptions == list(FOLLOWED)
            assert not heard.honored.tools_list_changed
            listeners.append(heard)
        hosted = await enter(over_http(served, mode="legacy"))
        assert hosted.server_capabilities.resources == types.ResourcesCapability(
            subscribe=False, list_changed=False
        )
        older = await enter(over_stdio(served, mode="legacy", message_handler=note))
        assert older.server_capabilities.resources is not None
        assert older.server_capabilities.resources.subscribe
        await older.session.subscribe_resource(STREAM)  # pyright: ignore[reportDeprecated]
        with anyio.fail_after(SECONDS):
            await anyio.to_thread.run_sync(import_more, served)
            assert await noted.receive() == STREAM
            for heard in listeners:
                assert await next_updated(heard) == STREAM
            await anyio.to_thread.run_sync(narrow, served)
            assert await noted.receive() == STREAM
            for heard in listeners:
                assert {await next_updated(heard) for _ in NARROWED} == set(NARROWED)
            await anyio.to_thread.run_sync(end_access, served)
            assert await noted.receive() == STREAM
            for heard in listeners:  # each stream ends by itself
                rest = {event.uri async for event in heard if isinstance(event, ResourceUpdated)}
                assert rest == set(FOLLOWED)
