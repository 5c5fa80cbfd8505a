"""What a client asks first, answered without the library of the protocol.

Importing it is most of a start, and every host begins with the same two questions: who are you, and
which tools are there. Rule: an answer here is the very one that the library gives, and whatever is
unusual about a question leaves it to the library, which hears the greeting in any case.
Source: docs/contract/mcp-adapter.md 2.1, 2.3.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from enum import Enum, auto
from queue import Queue
from threading import Lock, Thread
from typing import BinaryIO

import msgspec
import orjson

from pdpp_mcp_server.call_messages import (
    ClientSeen,
    PlainCall,
    client_seen,
    is_plain_id,
    plain_call,
)
from pdpp_mcp_server.contract import TITLE_OF_SERVER, TTL_MS, published_contract
from pdpp_mcp_server.rs_client.json_values import Json, as_object, is_object, parse_quickly
from pdpp_mcp_server.shipped_skills import EXTENSION

INITIALIZED = "notifications/initialized"
HANDSHAKES = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
STATELESS = "2026-07-28"
_META = "io.modelcontextprotocol/"
_PER_REQUEST = {
    f"{_META}{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities")
}
LINES_AHEAD = 64
"""So many lines wait for the library; a client that sends more waits, too."""


class ServerIdentity(msgspec.Struct, frozen=True):
    """What clients are told this server is."""

    name: str
    version: str


class FirstAnswers:
    """The answers to `initialize`, `server/discover` and `tools/list`."""

    def __init__(self, server: ServerIdentity) -> None:
        self._server = {"name": server.name, "title": TITLE_OF_SERVER, "version": server.version}
        self._instructions = published_contract().instructions
        self._tools = [tool.published for tool in published_contract().tools.values()]
        self._greeted = self._initialized = False
        self._is_left = False
        self._client = ClientSeen()

    def answer(self, line: bytes) -> bytes | None:
        """The line that answers this one; None where nothing does, or the library has to."""
        message = {} if self._is_left else message_of(line)
        if message.keys() - {"params"} == {"jsonrpc", "method"}:
            if message["method"] == INITIALIZED:
                self._initialized = self._greeted
            return None
        if (
            message.keys() - {"params"} != {"jsonrpc", "id", "method"}
            or message["jsonrpc"] != "2.0"
        ):
            return None
        params = message.get("params", {})
        message_id = message["id"]
        if not is_plain_id(message_id) or not is_object(params):
            return None
        result = self._result(message["method"], params)
        if result is None:
            return None
        return orjson.dumps({"jsonrpc": "2.0", "id": message_id, "result": result}) + b"\n"

    @property
    def has_greeted(self) -> bool:
        """Whether a client has begun a session with these answers."""
        return self._greeted

    @property
    def client(self) -> ClientSeen:
        """Who it is."""
        return self._client

    def is_said_again(self, message: Json) -> bool:
        """Whether a client repeats that it has read the greeting, which changes nothing."""
        return self._initialized and is_initialized(message)

    def leave(self) -> None:
        """Leave the session to the library, which hears something that changes it."""
        self._is_left, self._initialized = True, False

    def plain_call(self, message: Json) -> PlainCall | None:
        """The call that a message of an open session is, if the library is not needed for it."""
        if not self._initialized:
            return None
        return plain_call(message)

    def _result(self, method: object, params: Json) -> Json | None:
        meta = params.get("_meta", {})
        if is_object(meta) and meta.keys() & _PER_REQUEST:
            return self._stateless(method) if _is_stateless(params, meta) else None
        if method == "initialize" and _is_greeting(params):
            self._greeted = True
            self._client = client_seen(params["clientInfo"], params["capabilities"])
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": _capabilities(lists_change=False),
                "serverInfo": self._server,
                "instructions": self._instructions,
            }
        if method == "tools/list" and self._initialized and not params:
            return {"tools": self._tools}
        return None

    def _stateless(self, method: object) -> Json | None:
        members: Json | None = None
        if method == "server/discover":
            members = {
                "supportedVersions": [STATELESS],
                "capabilities": {**_capabilities(lists_change=True), "extensions": {EXTENSION: {}}},
                "instructions": self._instructions,
            }
        elif method == "tools/list":
            members = {"tools": self._tools}
        return members and {
            **members,
            "resultType": "complete",
            "ttlMs": TTL_MS,
            "cacheScope": "public",
            "_meta": {f"{_META}serverInfo": self._server},
        }


def is_initialized(message: Json) -> bool:
    """Whether a client says that it has read the greeting; one that has an id asks something."""
    return message.keys() - {"params"} == {"jsonrpc", "method"} and message["method"] == INITIALIZED


def message_of(line: bytes) -> Json:
    """The message that a line is; an empty one where it is none."""
    return as_object(parse_quickly(line))


def _capabilities(*, lists_change: bool) -> Json:
    return {
        "completions": {},
        "prompts": {"listChanged": lists_change},
        "resources": {"listChanged": True, "subscribe": True},
        "tools": {"listChanged": lists_change},
    }


def _is_greeting(params: Json) -> bool:
    is_known = params.get("protocolVersion") in HANDSHAKES
    return is_known and _is_client(params.get("clientInfo"), params.get("capabilities"))


def _is_stateless(params: Json, meta: Json) -> bool:
    """Whether a request says who asks, and nothing else."""
    return (
        params.keys() == {"_meta"}
        and meta.keys() == _PER_REQUEST
        and meta[f"{_META}protocolVersion"] == STATELESS
        and _is_client(meta[f"{_META}clientInfo"], meta[f"{_META}clientCapabilities"])
    )


def _is_client(info: object, capabilities: object) -> bool:
    return (
        is_object(info)
        and all(isinstance(info.get(name), str) for name in ("name", "version"))
        and is_object(capabilities)
        and all(is_object(value) for value in capabilities.values())
    )


class Cancelled(msgspec.Struct, frozen=True):
    """A client no longer waits for one of its calls."""

    message_id: object


class LibraryNeeded(Enum):
    """A line came that only the library can answer, or no line will come any more."""

    NOW = auto()
    NEVER = auto()


Heard = PlainCall | Cancelled | LibraryNeeded


class StandardStreams:
    """Standard input and output of one client.

    Until `hand_over` its first questions are answered here.  Its plain calls, and when the library
    is needed, are told to whoever listens.  The library reads `lines`, which are the greeting and
    all that it has to answer, and writes `answers`, of which those that were given before are left
    out.
    """

    def __init__(self, first: FirstAnswers, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._session = first
        self._first: FirstAnswers | None = first
        self._answered: set[str] = set()
        self._lock = Lock()
        self._outgoing = outgoing
        self._waiting: Queue[bytes] = Queue(LINES_AHEAD)
        self._heard: list[Heard] = []
        self._listener: Callable[[Heard], object] | None = None
        self._is_needed = False
        self.lines = _Lines(self._waiting)
        self.answers = _Answers(self)
        reader = Thread(target=self._read, args=(incoming,), name="stdin", daemon=True)
        reader.start()

    @property
    def client(self) -> ClientSeen:
        """Who began the session."""
        return self._session.client

    def hand_over(self) -> None:
        """From now on the library answers all but plain calls."""
        with self._lock:
            self._first = None

    def listen(self, listener: Callable[[Heard], object]) -> None:
        """Tell this listener, from the thread that reads, what is heard; what was, at once."""
        with self._lock:
            self._listener = listener
            for heard in self._heard:
                listener(heard)
            self._heard.clear()

    def leave(self, call: PlainCall) -> None:
        """Leave a call to the library after all.  It waits where the library is behind."""
        self._is_needed = True
        self._waiting.put(orjson.dumps(call.message) + b"\n")
        self._tell(LibraryNeeded.NOW)

    def write(self, line: str) -> None:
        """Write what the library answers, unless it was answered before."""
        beginning, is_result, _ = line.partition(',"result":')
        if is_result and beginning in self._answered:
            self._answered.remove(beginning)
            return
        self.send(line.encode())

    def send(self, line: bytes) -> None:
        """Write one line."""
        with self._lock:
            self._outgoing.write(line)
            self._outgoing.flush()

    def _tell(self, heard: Heard) -> None:
        with self._lock:
            if self._listener is None:
                self._heard.append(heard)
            else:
                self._listener(heard)

    def _read(self, incoming: BinaryIO) -> None:
        for line in incoming:
            if not self._is_settled(line):
                self._waiting.put(line)
        # whoever reads the end closes what hears of it
        self._tell(LibraryNeeded.NEVER)
        self._waiting.put(b"")

    def _is_settled(self, line: bytes) -> bool:
        """Whether the library need not hear of a line."""
        session, method = self._session, None
        was_open, is_initialized_now = session.has_greeted, False
        if was_open:
            message = message_of(line)
            method = message.get("method")
            call = session.plain_call(message) if method == "tools/call" else None
            if call is not None:
                self._tell(call)
                return True
            if method == "notifications/cancelled":
                self._tell(Cancelled(as_object(message.get("params")).get("requestId")))
                return not self._is_needed
            if session.is_said_again(message):
                return not self._is_needed  # nobody reads what waits while it is not needed
            is_initialized_now = is_initialized(message)
            if method == "initialize":
                session.leave()
        if self._is_answered(line, told_again=not was_open):
            if was_open:
                return True
            self._is_needed = self._is_needed or not session.has_greeted
        else:
            self._is_needed = self._is_needed or not is_initialized_now
        if self._is_needed:
            self._tell(LibraryNeeded.NOW)
        return False

    def _is_answered(self, line: bytes, *, told_again: bool) -> bool:
        with self._lock:
            answer = self._first and self._first.answer(line)
            if not answer:
                return False
            if told_again:
                self._answered.add(answer.partition(b',"result":')[0].decode())
            self._outgoing.write(answer)
            self._outgoing.flush()
            return True


class _Lines(io.TextIOBase):
    """What the library reads."""

    def __init__(self, waiting: Queue[bytes]) -> None:
        self._waiting = waiting

    def readline(self, size: int = -1, /) -> str:
        """Wait for the next line; nothing at the end of all."""
        del size
        return self._waiting.get().decode("utf-8", "replace")


class _Answers(io.TextIOBase):
    """What the library writes."""

    def __init__(self, streams: StandardStreams) -> None:
        self._streams = streams

    def write(self, s: str, /) -> int:
        """Write one line."""
        self._streams.write(s)
        return len(s)


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output, from now on for messages only.

    What else in this process, or one that it starts, reads from it finds the end; what it writes
    goes to standard error.
    """
    # Never closed: a thread may wait in the one until the process ends.
    incoming = os.fdopen(os.dup(0), "rb", closefd=False)
    outgoing = os.fdopen(os.dup(1), "wb", closefd=False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing
