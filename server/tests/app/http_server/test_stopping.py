"""How a server stops: what was answered is kept, and one file holds everything."""

from __future__ import annotations

import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from personal_server.app.owner_store import open_owner_store
from personal_server.storage.authorization_rows import TokenRow
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from server.tests.app.http_server.served import (
    CALLER,
    PAYMENTS,
    SECONDS,
    ServedProcess,
    served_process,
    until,
)

READS = 5
LISTEN = "subscriptions/listen"
HALF = (
    "POST /oauth/revoke HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 8\r\n\r\ntoke"
)


@pytest.fixture
def served(tmp_path: Path) -> Generator[ServedProcess]:
    with served_process(tmp_path) as process:
        yield process


def logged(process: ServedProcess) -> int:
    """How many entries of the disclosure log a copy of the database alone holds."""
    with open_owner_store(process.copied_database()) as store:
        return len(store.disclosures.disclosures(DisclosureQuery(100)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_every_answered_read_is_in_the_one_file_after_a_signal(
    served: ServedProcess, number: signal.Signals
) -> None:
    for _ in range(READS):
        assert served.get(PAYMENTS, served.client_token).status_code == 200
    assert served.stop(number) == 0
    journal = Path(f"{served.settings.database_path}-wal")
    assert not journal.exists() or journal.stat().st_size == 0
    assert logged(served) == READS
    assert "Traceback" not in served.log


def test_a_process_that_is_killed_has_noted_the_first_use_of_a_token(served: ServedProcess) -> None:
    def used() -> list[int | None]:
        with open_owner_store(served.settings) as store, store.authorization.read() as reader:
            rows = reader.rows(TokenRow, TokenRow.kind.equals("client"))
            return [row.last_used_at_ns for row in rows if row.last_used_at_ns is not None]

    assert used() == []
    assert served.get(PAYMENTS, served.client_token).status_code == 200
    until(used, seconds=120)
    served.stop(signal.SIGKILL)
    assert len(used()) == 1


def test_a_request_in_flight_is_answered_and_one_that_never_ends_holds_up_nothing(
    served: ServedProcess,
) -> None:
    half = HALF.format(port=served.port).encode()
    with served.connect() as caller, served.connect() as staller:
        caller.sendall(half)
        staller.sendall(half)
        assert served.get(PAYMENTS, served.client_token).status_code == 200
        served.process.send_signal(signal.SIGTERM)
        caller.sendall(b"n=xy")
        answer = caller.recv(4096)
        assert answer.startswith(b"HTTP/1.1 4")  # it names no client; that it is answered counts
        assert served.stop() == 0
    assert logged(served) == 1
    assert "Traceback" not in served.log


def test_a_listener_is_told_that_nothing_more_comes_and_holds_up_nothing(
    served: ServedProcess,
) -> None:
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    asked: dict[str, Any] = {
        "_meta": meta,
        "notifications": {"resourceSubscriptions": ["pdpp://grant"]},
    }
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscriptions/listen",
        "params": asked,
    }
    headers = {
        "Authorization": f"Bearer {served.client_token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": LISTEN,
    }
    with CALLER.stream("POST", f"{served.origin}/mcp", json=message, headers=headers) as answer:
        lines = answer.iter_lines()
        assert "acknowledged" in next(line for line in lines if line.startswith("data:"))
        served.process.send_signal(signal.SIGTERM)
        (last,) = (line for line in lines if line.startswith("data:"))
    assert '"result"' in last
    assert served.process.wait(timeout=SECONDS) == 0
    assert "graceful shutdown exceeded" not in served.log
