"""What no HTTP client sends, over a socket to the real server: refused, without a traceback."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from adapter.tests.loopback import LoopbackServer
from personal_server.app.server import open_server
from personal_server.settings import Settings

HOST = "Host: 127.0.0.1:7662\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
FORM = "Content-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, int]]:
    data: Path = tmp_path_factory.mktemp("raw") / "data"
    with open_server(Settings(data_dir=data)) as server:
        listening = LoopbackServer(server.app)
        yield listening.socket.getsockname()
        listening.close()


def ask(address: tuple[str, int], text: str) -> tuple[int, dict[str, str], Any]:
    """Send bytes as they are, and read until the server closes or has said all."""
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall(text.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        answered = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = answered.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
    return int(first.split(" ")[1]), headers, json.loads(body) if body else None


@pytest.mark.parametrize(
    ("request_line", "status", "code", "param"),
    [
        ("OPTIONS *", 400, "invalid_request", "path"),
        ("GET *", 400, "invalid_request", "path"),
        ("GET http://127.0.0.1:7662/healthz", 400, "invalid_request", "path"),
        ("CONNECT 127.0.0.1:7662", 405, "method_not_allowed", None),
        ("CONNECT /v1", 405, "method_not_allowed", None),
    ],
)
def test_what_is_no_request_for_a_path_is_refused(
    address: tuple[str, int],
    caplog: pytest.LogCaptureFixture,
    request_line: str,
    status: int,
    code: str,
    param: str | None,
) -> None:
    with caplog.at_level(logging.WARNING):
        found, headers, body = ask(address, f"{request_line} HTTP/1.1\r\n{HOST}\r\n")
    error = body["error"]
    assert (found, error["code"], error.get("param")) == (status, code, param)
    assert error["request_id"] == headers["request-id"]
    assert headers["content-type"].startswith("application/json")
    assert headers["connection"] == "close"
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("path", ["/oauth/token", "/v1/ingest/notes", "/mcp", "/owner/login"])
def test_a_body_that_two_headers_measure_is_refused(
    address: tuple[str, int], path: str, order: int
) -> None:
    measures = ["Content-Length: 4\r\n", CHUNKED]
    head = f"POST {path} HTTP/1.1\r\n{HOST}{FORM}{measures[order]}{measures[1 - order]}\r\n"
    status, headers, body = ask(address, f"{head}0\r\n\r\nGET /v1 HTTP/1.1\r\n{HOST}\r\n")
    assert (status, body["error"]["code"]) == (400, "invalid_request")
    assert headers["connection"] == "close"


def test_a_body_in_chunks_alone_is_read(address: tuple[str, int]) -> None:
    head = f"POST /oauth/token HTTP/1.1\r\n{HOST}{FORM}{CHUNKED}Connection: close\r\n\r\n"
    status, _, body = ask(address, f"{head}c\r\ngrant_type=x\r\n0\r\n\r\n")
    assert (status, body["error"]) == (400, "unsupported_grant_type")
