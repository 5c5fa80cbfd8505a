"""Many connections, and slow ones, at a real socket: the service goes on."""

from __future__ import annotations

import resource
import socket
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from personal_server.app.connections import CallerProtocol, Connections, connections_within
from server.tests.app.http_server.served import PAYMENTS, ServedProcess, served_process

MOST = 16
HEAD = "POST /oauth/revoke HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
BODY = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 8\r\n\r\ntoke"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedProcess]:
    folder = tmp_path_factory.mktemp("served")
    with served_process(folder, PDPP_MAX_CONNECTIONS=str(MOST), PDPP_STALLED_SECONDS="2") as made:
        yield made


def sent(served: ServedProcess, text: str) -> socket.socket:
    """A connection that has sent so much of a request."""
    caller = served.connect()
    caller.sendall(text.format(port=served.port).encode())
    return caller


def said(caller: socket.socket) -> bytes:
    """Everything that comes until the server ends the connection."""
    with caller:
        parts: list[bytes] = []
        try:
            while part := caller.recv(65_536):
                parts.append(part)
        except ConnectionResetError:
            parts.append(b"")
        return b"".join(parts)


def test_silent_connections_do_not_end_the_service(served: ServedProcess) -> None:
    with ExitStack() as held:
        for _ in range(10 * MOST):
            held.enter_context(served.connect())
        assert served.get(PAYMENTS, served.client_token).status_code == 200
        health = served.health()
    assert health["status"] == "degraded"
    assert [fault["code"] for fault in health["faults"]] == ["too_many_connections"]
    assert sum("connections are open" in line for line in served.said) == 1
    assert "Traceback" not in served.log


def test_a_connection_that_says_nothing_is_closed(served: ServedProcess) -> None:
    assert said(served.connect()) == b""


def test_half_a_head_is_refused_in_time(served: ServedProcess) -> None:
    assert said(sent(served, HEAD)).startswith(b"HTTP/1.1 408 ")


def test_half_a_body_is_cut_in_time(served: ServedProcess) -> None:
    assert b"200 OK" not in said(sent(served, HEAD + BODY))


def test_a_head_without_end_is_refused(served: ServedProcess) -> None:
    endless = HEAD + "X: " + "x" * 66_000
    assert said(sent(served, endless)).startswith(b"HTTP/1.1 400 ")


def test_half_requests_do_not_end_the_service(served: ServedProcess) -> None:
    with ExitStack() as held:
        for _ in range(2 * MOST):
            caller = held.enter_context(sent(served, HEAD + "Expect: 100-continue\r\n" + BODY[:-4]))
            assert caller.recv(4096).startswith(b"HTTP/1.1 100 ")  # it is being read
        assert served.get(PAYMENTS, served.client_token).status_code == 200


@dataclass(frozen=True)
class Caller:
    has_request: bool = True
    is_awaited: bool = False
    moved_at: float = 0.0


def test_who_is_served_gives_way_to_nobody() -> None:
    connections = Connections(most=2, stalled_seconds=30)
    callers = [cast("CallerProtocol", Caller(moved_at=float(n))) for n in range(3)]
    assert [connections.admit(caller) for caller in callers] == [True, True, False]
    assert list(connections.open) == callers[:2]
    assert [fault.code for fault in connections.faults()] == ["too_many_connections"]


def test_the_process_takes_every_descriptor_it_may(served: ServedProcess) -> None:
    limits = Path(f"/proc/{served.process.pid}/limits").read_text(encoding="utf-8")
    (line,) = (line for line in limits.splitlines() if line.startswith("Max open files"))
    soft, hard = line.split()[3:5]
    assert soft == hard


def test_the_bound_leaves_descriptors_for_everything_else() -> None:
    assert connections_within(1_000, 1_024) < 1_024 - 300
    assert connections_within(1_000, 100_000) == 1_000
    assert connections_within(1_000, resource.RLIM_INFINITY) == 1_000
    assert connections_within(1_000, 256) > 0
