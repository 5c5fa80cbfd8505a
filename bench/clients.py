"""The three doors as thin clients, so that what is measured is the server.

Rule: one object is one caller with one connection; every call returns the decoded answer and
raises on anything but success, so that no error is ever counted as fast.
"""

from __future__ import annotations

import gzip
import itertools
import subprocess
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urlencode, urlsplit

import orjson

PROTOCOL = "2025-11-25"
Headers = Mapping[str, str]


class Refused(Exception):
    """The server answered with an error where a measurement expected data."""


def _answer(
    connection: HTTPConnection, method: str, target: str, body: bytes | None, headers: Headers
) -> HTTPResponse:
    """What is answered, over another connection where the server ended this one as idle."""
    try:
        connection.request(method, target, body, headers)
        return connection.getresponse()
    except RemoteDisconnected:
        connection.close()
        connection.request(method, target, body, headers)
        return connection.getresponse()


class RestCaller:
    """`GET` under `/v1` over one kept connection."""

    def __init__(self, origin: str, token: str, encoding: str = "identity") -> None:
        parts = urlsplit(origin)
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "Accept-Encoding": encoding,
        }

    def get(self, path: str, query: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
        """The decoded body."""
        target = f"{path}?{urlencode(query)}" if query else path
        response = _answer(self._connection, "GET", target, None, self._headers)
        body = response.read()
        if response.status != 200:
            raise Refused(f"{response.status} {path} {body[:300]!r}")
        is_packed = response.getheader("Content-Encoding") == "gzip"
        return orjson.loads(gzip.decompress(body) if is_packed else body)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


class ToolCaller(Protocol):
    """Whoever can call a tool."""

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The tool's result."""
        ...


class HostedCaller:
    """Tool calls at `/mcp`, stateless, over one kept connection."""

    def __init__(self, origin: str, token: str) -> None:
        parts = urlsplit(origin)
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": PROTOCOL,
        }
        self._ids = itertools.count(1)

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """One JSON-RPC request and its result."""
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        response = _answer(self._connection, "POST", "/mcp", orjson.dumps(message), self._headers)
        body = response.read()
        if response.status != 200:
            raise Refused(f"{response.status} {method} {body[:300]!r}")
        return _result(orjson.loads(body))

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool call."""
        return _success(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


class StdioCaller:
    """The stdio adapter as a process, spoken to line by line."""

    def __init__(
        self, command: Sequence[str | Path], environ: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
        )
        self._ids = itertools.count(1)
        client = {"name": "bench", "version": "1"}
        hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}
        self.request("initialize", hello)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    @property
    def pid(self) -> int:
        """The adapter's process."""
        return self._process.pid

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """One JSON-RPC request and its result."""
        self._write({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        if self._process.stdout is None:
            raise Refused("the adapter has no standard output")
        line = self._process.stdout.readline()
        if not line:
            raise Refused(f"the adapter ended with {self._process.wait()}")
        return _result(orjson.loads(line))

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool call."""
        return _success(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def close(self) -> None:
        """End the input, then wait for the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=20)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        """Return the caller."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        if self._process.stdin is None:
            raise Refused("the adapter has no standard input")
        self._process.stdin.write(orjson.dumps(message) + b"\n")
        self._process.stdin.flush()


def _result(message: dict[str, Any]) -> dict[str, Any]:
    if "error" in message:
        raise Refused(str(message["error"]))
    return message["result"]


def _success(result: dict[str, Any]) -> dict[str, Any]:
    if result.get("isError"):
        raise Refused(str(result["content"])[:400])
    return result
