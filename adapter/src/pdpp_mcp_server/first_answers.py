"""What a client asks first, answered while the library of the protocol is still being imported.

Importing it is most of a start, and every host begins with the same two questions: who are you, and
which tools are there. Rule: an answer here is the very one that the library gives, and whatever is
unusual about a question leaves it to the library, which hears all of them in any case.
Source: docs/contract/mcp-adapter.md 2.1, 2.3.
"""

from __future__ import annotations

import io
import os
import re
from dataclasses import dataclass
from queue import Queue
from threading import Lock, Thread
from typing import BinaryIO

import orjson

from pdpp_mcp_server.contract import TITLE_OF_SERVER, TTL_MS, published_contract
from pdpp_mcp_server.rs_client.json_values import Json, as_object, is_object

HANDSHAKES = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
STATELESS = "2026-07-28"
_META = "io.modelcontextprotocol/"
_PER_REQUEST = {
    f"{_META}{name}" for name in ("protocolVersion", "clientInfo", "clientCapabilities")
}
_PLAIN_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
LINES_AHEAD = 64
"""So many lines wait for the library; a client that sends more waits, too."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
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

    def answer(self, line: bytes) -> bytes | None:
        """The line that answers this one; None where nothing does, or the library has to."""
        try:
            message = as_object(orjson.loads(line))
        except orjson.JSONDecodeError:
            return None
        if message.keys() - {"params"} == {"jsonrpc", "method"}:
            if message["method"] == "notifications/initialized":
                self._initialized = self._greeted
            return None
        if (
            message.keys() - {"params"} != {"jsonrpc", "id", "method"}
            or message["jsonrpc"] != "2.0"
        ):
            return None
        params = message.get("params", {})
        message_id = message["id"]
        if not _is_plain(message_id) or not is_object(params):
            return None
        result = self._result(message["method"], params)
        if result is None:
            return None
        return orjson.dumps({"jsonrpc": "2.0", "id": message_id, "result": result}) + b"\n"

    def _result(self, method: object, params: Json) -> Json | None:
        meta = params.get("_meta", {})
        if is_object(meta) and meta.keys() & _PER_REQUEST:
            return self._stateless(method) if _is_stateless(params, meta) else None
        if method == "initialize" and _is_greeting(params):
            self._greeted = True
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
                "capabilities": _capabilities(lists_change=True),
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


def _is_plain(message_id: object) -> bool:
    """Whether an id is written in one way only, by which its second answer is known."""
    if isinstance(message_id, str):
        return _PLAIN_ID.fullmatch(message_id) is not None
    return type(message_id) is int


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


class StandardStreams:
    """Standard input and output of one client.

    Until `hand_over` its first questions are answered here.  The library reads `lines`, all there
    were, and writes `answers`, of which those that were given before are left out.
    """

    def __init__(self, first: FirstAnswers, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._first: FirstAnswers | None = first
        self._answered: set[str] = set()
        self._lock = Lock()
        self._outgoing = outgoing
        waiting: Queue[bytes] = Queue(LINES_AHEAD)
        self.lines = _Lines(waiting)
        self.answers = _Answers(self)
        reader = Thread(target=self._read, args=(incoming, waiting), name="stdin", daemon=True)
        reader.start()

    def hand_over(self) -> None:
        """From now on the library answers."""
        with self._lock:
            self._first = None

    def write(self, line: str) -> None:
        """Write what the library answers, unless it was answered before."""
        beginning, is_result, _ = line.partition(',"result":')
        if is_result and beginning in self._answered:
            self._answered.remove(beginning)
            return
        self._outgoing.write(line.encode())
        self._outgoing.flush()

    def _read(self, incoming: BinaryIO, waiting: Queue[bytes]) -> None:
        for line in incoming:
            with self._lock:
                answer = self._first and self._first.answer(line)
                if answer:
                    self._answered.add(answer.partition(b',"result":')[0].decode())
                    self._outgoing.write(answer)
                    self._outgoing.flush()
            waiting.put(line)
        waiting.put(b"")


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
