"""What is answered without the library of the protocol equals, byte for byte, what it answers."""

from __future__ import annotations

import io
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from threading import Event, Thread
from threading import enumerate as threads
from typing import Any, BinaryIO, cast

import anyio
import pytest

from adapter.tests.fake_rs import FakeRs
from adapter.tests.seed import world
from adapter.tests.server.test_server import calls as every_tool
from adapter.tests.test_first_answers import (
    IDENTITY,
    INITIALIZED,
    Silent,
    initialize,
    lines,
    stateless,
)
from adapter.tests.test_questions import package, unsaid
from pdpp_mcp_server import stdio, tool_runs
from pdpp_mcp_server.call_messages import PlainCall, plain_call
from pdpp_mcp_server.first_answers import HANDSHAKES, FirstAnswers, StandardStreams
from pdpp_mcp_server.metrics import Counts
from pdpp_mcp_server.plain_calls import PlainCalls
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import FixedBearer

Message = dict[str, Any]
ORIGIN = "http://127.0.0.1:7662"
WORST: list[tuple[str, Message]] = [
    ("query_records", {"stream": "nothing"}),
    ("query_records", {"stream": 7}),
    ("query_records", {"stream": "messages", "limit": 3, "surprising": True}),
    ("search", {}),
]


def call_message(number: int, name: str, arguments: object, **params: Any) -> Message:
    """A call as clients make it."""
    asked = {"name": name, "arguments": arguments, **params}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": asked}


def talked(line: bytes) -> Any:
    """The method of what the server asks or tells, or which message it answers."""
    message = json.loads(line)
    return message.get("method", message.get("id"))


class Talk:
    """One session over pipes: a message is sent when the one before it was answered."""

    def __init__(
        self, messages: Sequence[Message], first: FirstAnswers, rs: FakeRs, *, cancels: bool = False
    ) -> None:
        self.messages, self.first, self.rs = messages, first, rs
        self.cancels = cancels
        self.heard: list[bytes] = []
        self.had_library = False

    def run(self) -> Talk:
        """Talk until all is answered."""
        asked, told = os.pipe(), os.pipe()
        client = Thread(target=self._converse, args=(asked[1], told[0]))
        with os.fdopen(asked[0], "rb") as incoming, os.fdopen(told[1], "wb") as outgoing:
            streams = StandardStreams(self.first, incoming, outgoing)
            client.start()
            anyio.run(self._serve, streams)
        client.join()
        return self

    def _converse(self, to: int, back: int) -> None:
        with os.fdopen(to, "wb") as client, os.fdopen(back, "rb") as answers:
            for message, line in zip(self.messages, lines(self.messages), strict=True):
                client.write(line)
                client.flush()
                while "id" in message:
                    self.heard.append(answers.readline())
                    is_asked = talked(self.heard[-1]) == ASK
                    if is_asked and self.cancels:
                        client.writelines(lines([cancel(message["id"])]))
                        break
                    if is_asked:
                        asked = json.loads(self.heard[-1])["id"]
                        declined = {"jsonrpc": "2.0", "id": asked, "result": {"action": "decline"}}
                        client.writelines(lines([declined]))
                        client.flush()
                    if talked(self.heard[-1]) == message["id"]:
                        break
            client.close()
            self.heard.extend(answers)

    def at_once(self, last: int | None = None) -> list[bytes]:
        """What is heard where all messages came in one go; the input ends once `last` is answered.

        Without `last` it has ended with the messages.
        """
        come, done = Event(), Event()

        class Told(io.BytesIO):
            def write(self, line: Any, /) -> int:
                if json.loads(line).get("id") == last:
                    done.set()
                return super().write(line)

        def incoming() -> Iterator[bytes]:
            yield from lines(self.messages)
            if last is not None:
                come.set()
                done.wait(60)

        told, others = Told(), set(threads())
        streams = StandardStreams(self.first, cast("BinaryIO", incoming()), told)
        if last is None:
            for reader in set(threads()) - others:
                reader.join(60)
        else:
            come.wait(60)
        anyio.run(self._serve, streams)
        return told.getvalue().splitlines()

    async def _serve(self, streams: StandardStreams) -> None:
        client = RsClient(InnerApplication(self.rs), ORIGIN, FixedBearer("tok"), "0")
        numbers = itertools.count()

        def caller() -> tool_runs.ClientRequest:
            request_id = f"req_{next(numbers)}"
            return tool_runs.ClientRequest(lambda tool: client.port(tool, request_id), ORIGIN)

        async with anyio.create_task_group() as tasks:
            calls = PlainCalls(counts=Counts())
            session = stdio.StdioSession(streams, calls, caller, IDENTITY, tasks)
            try:
                await session.serve()
            finally:
                self.had_library = session.has_library


@pytest.fixture(autouse=True)
def same_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results differ by the fence's number; here it is the same."""
    monkeypatch.setattr(tool_runs, "draw_nonce", lambda: "0123456789ab")


def both(messages: Sequence[Message], rs: Callable[[], FakeRs] = world) -> tuple[Talk, Talk]:
    """A session with plain answers, and one in which the library answers everything."""
    return tuple(Talk(messages, first(IDENTITY), rs()).run() for first in (FirstAnswers, Silent))  # type: ignore[return-value]


@pytest.mark.parametrize("version", sorted(HANDSHAKES))
def test_every_call_is_answered_as_the_library_does(version: str) -> None:
    asked = [*every_tool, *WORST]
    calls = [call_message(n, name, given) for n, (name, given) in enumerate(asked, 1)]
    ours, theirs = both([initialize(version), INITIALIZED, *calls])
    assert ours.heard[1:] == theirs.heard[1:]
    assert len(ours.heard) == 1 + len(calls)
    assert (ours.had_library, theirs.had_library) == (False, True)


def test_progress_is_told_as_the_library_tells_it() -> None:
    call = call_message(1, *every_tool[0], _meta={"progressToken": "how far"})
    ours, theirs = both([initialize("2025-11-25"), INITIALIZED, call])
    assert len(ours.heard) > 2
    assert ours.heard[1:] == theirs.heard[1:]
    assert not ours.had_library


CANCELLED = "notifications/cancelled"


def cancel(number: int) -> Message:
    """A client no longer waits for that call."""
    return {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": number}}


def test_a_call_that_is_cancelled_in_the_next_line_is_not_answered() -> None:
    calls = [call_message(n, *every_tool[0]) for n in (1, 2)]
    asked = [initialize("2025-11-25"), INITIALIZED, calls[0], cancel(1), calls[1]]
    heard = Talk(asked, FirstAnswers(IDENTITY), world()).at_once(last=2)
    assert [json.loads(line)["id"] for line in heard] == [0, 2]


def test_a_call_before_the_end_of_the_input_is_told_that_it_ended() -> None:
    asked = [initialize("2025-11-25"), INITIALIZED, call_message(1, *every_tool[0])]
    heard = Talk(asked, FirstAnswers(IDENTITY), world()).at_once()
    assert json.loads(heard[-1]) == {"jsonrpc": "2.0", "id": 1, "error": stdio.CLOSED}


ASK = "elicitation/create"
QUESTION = ("query_records", unsaid)
ELICITS = initialize("2025-11-25", capabilities={"elicitation": {}})
UNUSUAL: list[Message] = [
    {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1, "method": "resources/list"},
    call_message(1, "nothing", {}),
    call_message(1, "schema", None),
    call_message(1, "schema", {}, task={}),
    call_message(1, "schema", {}, _meta={"progressToken": True}),
    call_message(1, "schema", {}, _meta=stateless("tools/call")["params"]["_meta"]),
]


@pytest.mark.parametrize("message", UNUSUAL)
def test_what_is_unusual_is_answered_by_the_library(message: Message) -> None:
    ours, theirs = both([initialize("2025-11-25"), INITIALIZED, message])
    assert ours.had_library
    assert ours.heard[1:] == theirs.heard[1:]


def test_a_person_is_asked_by_the_library() -> None:
    ours, theirs = both([ELICITS, INITIALIZED, call_message(1, *QUESTION)], package)
    assert [talked(line) for line in ours.heard] == [0, ASK, 1]
    assert [talked(line) for line in theirs.heard] == [0, ASK, 1]


@pytest.mark.parametrize("first", [FirstAnswers, Silent])
def test_a_call_that_was_left_to_the_library_can_be_cancelled(first: type[FirstAnswers]) -> None:
    asked = [ELICITS, INITIALIZED, call_message(1, *QUESTION), call_message(2, *every_tool[0])]
    heard = Talk(asked, first(IDENTITY), package(), cancels=True).run().heard
    assert {talked(line) for line in heard} == {0, ASK, CANCELLED, 2}


def test_plain_calls_go_on_beside_the_library() -> None:
    ping: Message = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}
    calls = [call_message(n, *every_tool[0]) for n in (1, 2)]
    ours, theirs = both([initialize("2025-11-25"), INITIALIZED, calls[0], ping, calls[1]])
    assert ours.heard[1:] == theirs.heard[1:]


def test_a_second_greeting_leaves_the_session_to_the_library() -> None:
    again = initialize("2025-06-18") | {"id": "again"}
    call = call_message(1, *every_tool[0])
    ours, theirs = both([initialize("2025-11-25"), INITIALIZED, again, INITIALIZED, call])
    assert ours.had_library
    assert ours.heard[1:] == theirs.heard[1:]


@pytest.mark.parametrize(
    "params", [{}, {"arguments": {}}, {"arguments": {"a": 1}, "_meta": {"b": 2}}]
)
def test_a_call_that_is_left_to_the_library_is_the_one_that_came(params: Message) -> None:
    message = call_message(1, "schema", None)
    message["params"] = {"name": "schema", **params}
    call = plain_call(message)
    assert isinstance(call, PlainCall)
    assert call.message == message
