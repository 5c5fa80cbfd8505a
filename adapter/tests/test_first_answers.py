"""What is answered before the library of the protocol is there equals what the library answers."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Sequence
from threading import Event, Thread
from typing import IO, Any, cast

import anyio
import pytest
from mcp.server.lowlevel import NotificationOptions
from mcp.server.stdio import stdio_server
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from pdpp_mcp_server.first_answers import (
    HANDSHAKES,
    LINES_AHEAD,
    STATELESS,
    FirstAnswers,
    LibraryNeeded,
    ServerIdentity,
    StandardStreams,
)
from pdpp_mcp_server.listeners import Listening, OfferedSubscriptions, Subscribing
from pdpp_mcp_server.sdk_server import build_server
from pdpp_mcp_server.sdk_stdio import poll_pace
from pdpp_mcp_server.tool_runs import ClientRequest

Message = dict[str, Any]

IDENTITY = ServerIdentity("tested", "1.2.3")
META = "io.modelcontextprotocol/"
CLIENT = {"name": "client", "version": "1"}
INITIALIZED: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST: Message = {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}
PING: Message = {"jsonrpc": "2.0", "id": 9, "method": "ping"}


def initialize(version: str, **changed: Any) -> Message:
    """The greeting of a client."""
    asked: Message = {
        "protocolVersion": version,
        "capabilities": {"roots": {}},
        "clientInfo": CLIENT,
    }
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked | changed}


def stateless(method: str) -> Message:
    """A request of the stateless revision."""
    meta = {
        f"{META}protocolVersion": STATELESS,
        f"{META}clientInfo": CLIENT,
        f"{META}clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 0, "method": method, "params": {"_meta": meta}}


def lines(messages: Sequence[object]) -> list[bytes]:
    """As a client writes them."""
    return [json.dumps(message).encode() + b"\n" for message in messages]


def answered_first(messages: Sequence[object]) -> list[Any]:
    """What is answered before the library is there."""
    first = FirstAnswers(IDENTITY)
    return [json.loads(found) for line in lines(messages) if (found := first.answer(line))]


async def talk(streams: StandardStreams) -> None:
    """Let the library serve until the input ends."""

    def callers(request: Any) -> ClientRequest:
        raise AssertionError(request)

    async def no_port() -> Any:
        raise AssertionError

    async with anyio.create_task_group() as tasks:
        server = build_server(
            callers,
            name=IDENTITY.name,
            version=IDENTITY.version,
            subscriptions=OfferedSubscriptions(
                Listening(lambda _: (None, no_port), poll_pace),
                Subscribing(tasks, no_port, poll_pace),
            ),
        )
        streams.hand_over()
        wrapped = [anyio.wrap_file(cast("IO[str]", s)) for s in (streams.lines, streams.answers)]
        async with stdio_server(*wrapped) as (incoming, outgoing):
            told = NotificationOptions(resources_changed=True)
            await server.run(incoming, outgoing, server.create_initialization_options(told))


class Silent(FirstAnswers):
    """Leaves everything to the library."""

    def answer(self, line: bytes) -> None:
        """Nothing."""
        del line


class Seen(FirstAnswers):
    """Knows when it looked at the last message."""

    def __init__(self, identity: ServerIdentity) -> None:
        super().__init__(identity)
        self.looked_at_all = Event()

    def answer(self, line: bytes) -> bytes | None:
        """As it would be; note the last one."""
        answer = super().answer(line)
        if json.loads(line).get("id") == PING["id"]:
            self.looked_at_all.set()
        return answer


def said(messages: Sequence[Message], first: FirstAnswers) -> list[Message]:
    """All that a client reads, which ends when it has read as many answers as it asked for."""
    asked, told = os.pipe(), os.pipe()
    heard: list[Message] = []

    def converse() -> None:
        with os.fdopen(asked[1], "wb") as client, os.fdopen(told[0], "rb") as answers:
            client.writelines(lines(messages))
            client.flush()
            for answer in answers:
                heard.append(json.loads(answer))
                if len(heard) == requests(messages):
                    client.close()

    with os.fdopen(asked[0], "rb") as incoming, os.fdopen(told[1], "wb") as outgoing:
        streams = StandardStreams(first, incoming, outgoing)
        client = Thread(target=converse)
        client.start()
        if isinstance(first, Seen):
            assert first.looked_at_all.wait(10)
        anyio.run(talk, streams)
    client.join()
    return heard


def requests(messages: Sequence[Message]) -> int:
    """How many of them ask for an answer."""
    return sum("id" in message for message in messages)


def test_the_revisions_are_those_of_the_library() -> None:
    assert set(HANDSHAKE_PROTOCOL_VERSIONS) == HANDSHAKES
    assert MODERN_PROTOCOL_VERSIONS == (STATELESS,)


SESSIONS: dict[str, list[Message]] = {
    **{version: [initialize(version), INITIALIZED, LIST] for version in sorted(HANDSHAKES)},
    "discover": [stateless("server/discover")],
    "stateless list": [stateless("tools/list")],
}


@pytest.mark.parametrize("session", SESSIONS)
def test_an_answer_is_the_very_one_that_the_library_gives(session: str) -> None:
    messages = SESSIONS[session]
    expected = said(messages, Silent(IDENTITY))
    assert len(expected) == requests(messages)
    assert answered_first(messages) == expected


@pytest.mark.parametrize("session", SESSIONS)
def test_nothing_is_answered_twice_and_all_that_follows_once(session: str) -> None:
    ping = PING if session in HANDSHAKES else stateless("server/discover") | {"id": PING["id"]}
    messages = [*SESSIONS[session], ping]
    ids = [answer["id"] for answer in said(messages, Seen(IDENTITY))]
    assert ids == [message["id"] for message in messages if "id" in message]


GREETING = initialize("2025-11-25")


UNUSUAL: list[list[Any]] = [
    [LIST],
    [GREETING | {"id": None}],
    [GREETING | {"id": True}],
    [GREETING | {"id": 'a"b'}],
    [GREETING | {"jsonrpc": "1.0"}],
    [GREETING | {"more": 1}],
    [initialize("1999-01-01")],
    [initialize(STATELESS)],
    [initialize("2025-11-25", clientInfo={"name": "client"})],
    [initialize("2025-11-25", capabilities=[])],
    [initialize("2025-11-25", capabilities={"roots": 1})],
    [GREETING | {"params": []}],
    [[GREETING]],
    ["text"],
    [stateless("resources/list")],
    [stateless("tools/list") | {"params": {"_meta": {f"{META}protocolVersion": STATELESS}}}],
    [PING],
]


@pytest.mark.parametrize("messages", UNUSUAL)
def test_what_is_unusual_is_left_to_the_library(messages: list[object]) -> None:
    assert answered_first(messages) == []


def test_tools_are_listed_only_when_the_greeting_is_over() -> None:
    early = answered_first([GREETING, LIST, INITIALIZED])
    assert [answer["id"] for answer in early] == [GREETING["id"]]


def test_what_is_no_json_is_left_to_the_library() -> None:
    assert FirstAnswers(IDENTITY).answer(b"\xff{\n") is None


def test_the_end_is_told_before_the_library_reads_it() -> None:
    told: list[object] = []

    def listener(heard: object) -> None:
        time.sleep(0.05)  # the loop that hears of it is slow
        told.append(heard)

    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as incoming:
        streams = StandardStreams(FirstAnswers(IDENTITY), incoming, io.BytesIO())
        streams.listen(listener)
        os.close(writing)
        assert streams.lines.readline() == ""
        assert told == [LibraryNeeded.NEVER]


def heard_by(messages: Sequence[Message]) -> list[object]:
    """What is told to whoever listens until the input ends, with nobody to read what waits."""
    told: list[object] = []
    ended = Event()

    def listener(heard: object) -> None:
        told.append(heard)
        if heard is LibraryNeeded.NEVER:
            ended.set()

    incoming = io.BytesIO(b"".join(lines(messages)))
    StandardStreams(FirstAnswers(IDENTITY), incoming, io.BytesIO()).listen(listener)
    assert ended.wait(10)
    return told


def test_one_who_says_it_again_and_again_fills_nothing() -> None:
    again = [INITIALIZED] * (2 * LINES_AHEAD)
    assert heard_by([GREETING, *again]) == [LibraryNeeded.NEVER]


def test_one_who_asks_in_words_of_a_notification_is_answered_by_the_library() -> None:
    asking = INITIALIZED | {"id": 3}
    assert heard_by([GREETING, asking]) == [LibraryNeeded.NOW, LibraryNeeded.NEVER]
    assert heard_by([GREETING, INITIALIZED, asking]) == [LibraryNeeded.NOW, LibraryNeeded.NEVER]
