"""What several processes counted is told by one of them, and one that begins anew counts on."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from personal_server.app.connections import Connections
from personal_server.app.shared_memory import Seat, SharedMemory
from personal_server.app.tallies import Tallies
from personal_server.web.call_capacity import Capacity, Places
from personal_server.web.traffic import Traffic
from server.tests.app.http_server.served import PAYMENTS, until
from server.tests.app.http_server.several import callers_of_each, several
from server.tests.app.test_figures import values
from tests.ports import free_port

ROUTE = ("network", "GET /v1/schema")


@pytest.fixture
def descriptor() -> Generator[int]:
    made = SharedMemory.make(2)
    yield made.descriptor
    with suppress(OSError):
        os.close(made.descriptor)


class Counting:
    """A process, and what it counts by."""

    def __init__(self, descriptor: int, number: int) -> None:
        self.traffic = Traffic(lambda: 0.0)
        self.tool_calls: Counter[tuple[str, str]] = Counter()
        surface = SimpleNamespace(queues={"call": Places(Capacity())})
        server: Any = SimpleNamespace(
            traffic=self.traffic, tool_calls=self.tool_calls, surfaces={"mcp": surface}
        )
        memory = SharedMemory(descriptor, Seat(number, 2))
        self.tallies = Tallies(memory, server, Connections(16, 30))

    async def answer(self, status: int, error: str | None = None) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope["state"] |= {"route": ROUTE[1]} | ({"error": error} if error else {})
            await send({"type": "http.response.start", "status": status})

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            pass

        await self.traffic.measured(ROUTE[0], app)({"state": {}}, receive, send)


@pytest.mark.anyio
async def test_the_figures_are_sums_of_all(descriptor: int) -> None:
    first, second = Counting(descriptor, 0), Counting(descriptor, 1)
    await first.answer(200)
    for _ in range(2):
        await second.answer(200)
    await second.answer(503, "storage_unavailable")
    first.tool_calls["search", "ok"] = second.tool_calls["search", "ok"] = 4
    second.tallies.tell()
    total = first.tallies.total()
    assert total.requests == {(*ROUTE, "200"): 3, (*ROUTE, "503"): 1}
    assert sum(total.latencies[ROUTE][0]) == 4
    assert total.errors == {(ROUTE[0], "storage_unavailable"): 1}
    assert total.tool_calls == {("search", "ok"): 8}
    assert total.waiting == total.working == {("mcp", "call"): 0}
    assert (total.connections, total.most_connections) == (0, 32)


@pytest.mark.anyio
async def test_what_takes_the_seat_of_another_counts_on(descriptor: int) -> None:
    first, second = Counting(descriptor, 0), Counting(descriptor, 1)
    await second.answer(200)
    second.tallies.tell()
    again = Counting(descriptor, 1)
    await again.answer(200)
    again.tallies.tell()
    total = first.tallies.total()
    assert total.requests == {(*ROUTE, "200"): 2}
    assert total.most_connections == 32


def test_a_server_of_two_processes_tells_the_requests_of_both(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with several(tmp_path, 2, PDPP_METRICS_BIND=address) as served:
        callers = callers_of_each(served)
        for caller in callers:
            for _ in range(3):
                assert caller.ask(PAYMENTS, served.client_token)[0] == 200

        def told() -> float:
            text = httpx2.get(f"http://{address}/metrics").text
            route = "GET /v1/streams/{stream}/records"
            return sum(values(text, "pdpp_requests_total", route=route, status="200"))

        until(lambda: told() == 6)
        for caller in callers:
            caller.connection.close()
