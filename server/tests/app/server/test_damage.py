"""Bytes that changed on the disk, asked for over the wire: the rest goes on, and it is told."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing
from typing import Any

import apsw
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent

from server.tests.app.http_server.served import ServedProcess, served_process
from tests.browser.site import CHECKING

pytestmark = pytest.mark.of_files("bytes of the file are changed behind the database")
PAYMENTS = "/v1/streams/transactions/records"
LETTERS, BYTES = "p003", "p005"
DAMAGE = {
    LETTERS: "UPDATE h# SET data = replace(data, 'Pharmacy', 'Phormacy') WHERE id = @",
    BYTES: "UPDATE h# SET data = CAST(x'7b2261223aff7d' AS TEXT) WHERE id = @",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedProcess]:
    """Two of the thirty payments are damaged while the server runs."""
    with served_process(tmp_path_factory.mktemp("damage")) as process:
        whole = process.get(f"{PAYMENTS}?limit=100", process.client_token).json()
        assert (len(whole["data"]), whole["meta"]["warnings"]) == (30, [])
        damage(process)
        yield process


def damage(process: ServedProcess) -> None:
    with closing(apsw.Connection(str(process.settings.database_path))) as driver:
        file: Any = driver  # the driver's own stub names a type that Python 3.11 lacks
        file.set_busy_timeout(30_000)  # the server may be writing what was just read
        number = file.execute("SELECT tables FROM sources WHERE stream = 'transactions'").get
        for key, statement in DAMAGE.items():
            statement = statement.replace("@", "(SELECT id FROM r# WHERE k = ?)")
            file.execute(statement.replace("#", str(number)), (key,))


def rest(served: ServedProcess, path: str) -> Any:
    answer = served.get(path, served.client_token)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(served: ServedProcess, path: str) -> tuple[int, str]:
    answer = served.get(path, served.client_token)
    return answer.status_code, answer.json()["error"]["code"]


def left_out(body: Any) -> list[str]:
    """The records that the one warning names."""
    (warning,) = body["meta"]["warnings"]
    assert (warning["code"], warning["connection_id"]) == ("damaged_record", CHECKING)
    assert warning["detail"]["stream"] == "transactions"
    return warning["detail"]["record_ids"]


@asynccontextmanager
async def hosted(served: ServedProcess) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {served.client_token}"}
    url = f"{served.origin}/mcp"
    async with (
        httpx2.AsyncClient(headers=headers, timeout=240) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


def test_lists_and_feeds_go_on_and_name_what_they_leave_out(served: ServedProcess) -> None:
    for query in ("limit=100&count=exact", "changes_since=beginning&limit=100"):
        page = rest(served, f"{PAYMENTS}?{query}")
        assert {row["id"] for row in page["data"]}.isdisjoint(DAMAGE)
        assert len(page["data"]) == 28
        assert sorted(left_out(page)) == [LETTERS, BYTES]
    found: list[str] = []
    following = f"{PAYMENTS}?limit=1"
    while following is not None:
        page = rest(served, following)
        found += [row["id"] for row in page["data"]]
        following = page["links"]["next"]
    assert len(found) == len(set(found)) == 28


def test_the_record_itself_is_an_error_that_says_what_to_do(served: ServedProcess) -> None:
    for key in DAMAGE:
        for path in (f"{PAYMENTS}/{key}", f"{PAYMENTS}/{key}/field-window?field=payee"):
            assert refused(served, path) == (422, "damaged_record")


def test_figures_include_it_and_say_so(served: ServedProcess) -> None:
    rest(served, f"{PAYMENTS}?limit=100")
    asked = "/v1/streams/transactions/aggregate?metric=count"
    counted = rest(served, asked)
    assert (counted["value"], sorted(left_out(counted))) == (30, [LETTERS, BYTES])


def test_an_export_names_what_it_lacks(served: ServedProcess) -> None:
    lines = served.get("/v1/owner/export?stream=transactions", served.owner_token).text.splitlines()
    end = json.loads(lines[-1])
    assert (len(lines), end["record_count"]) == (30, 28)
    place = {"connection_id": CHECKING, "stream": "transactions"}
    assert end["damaged_records"] == [{**place, "record_id": key} for key in sorted(DAMAGE)]


@pytest.mark.anyio
async def test_both_faces_of_a_tool_say_it(served: ServedProcess) -> None:
    async with hosted(served) as client:
        for tool, arguments in (
            ("query_records", {"stream": "transactions", "limit": 25}),
            ("aggregate", {"stream": "transactions", "metric": "count"}),
        ):
            answer = await client.call_tool(tool, arguments)
            text = answer.content[0]
            assert not answer.is_error
            assert isinstance(text, TextContent)
            assert answer.structured_content is not None
            (warned,) = [x for x in text.text.splitlines() if x.startswith("warning: damaged_rec")]
            named = left_out(answer.structured_content["data"])
            assert sorted(named) == [LETTERS, BYTES]
            assert all(key in warned for key in (*named, "transactions", CHECKING))
        for tool, more in (("fetch", {}), ("read_record_field", {"field_path": "payee"})):
            result = await client.call_tool(tool, {"id": f"{CHECKING}/transactions:{BYTES}"} | more)
            assert result.is_error
            assert result.structured_content is not None
            assert result.structured_content["error"]["code"] == "damaged_record"


def test_health_and_the_log_say_damaged_and_no_value(served: ServedProcess) -> None:
    rest(served, f"{PAYMENTS}?limit=100")
    health = served.health()
    assert health["status"] == "degraded"
    faults = [(fault["part"], fault["code"]) for fault in health["faults"]]
    assert faults == [("records", "damaged_record")]
    assert "damaged bytes in transactions of cin_checking" in served.log
    assert "Phormacy" not in served.log


def test_a_write_heals_it(served: ServedProcess) -> None:
    line = {
        "key": LETTERS,
        "data": {"id": LETTERS, "account_id": "a1", "posted_on": "2026-11-01", "currency": "EUR"},
        "emitted_at": "2026-11-20T00:00:00Z",
    }
    answer = httpx2.post(
        f"{served.origin}/v1/ingest/transactions?connection_id={CHECKING}",
        content=json.dumps(line) + "\n",
        headers={
            "Authorization": f"Bearer {served.owner_token}",
            "Content-Type": "application/x-ndjson",
        },
    )
    assert answer.json()["records_changed"] == 1, answer.text
    gone = httpx2.delete(
        f"{served.origin}{PAYMENTS}/{BYTES}?connection_id={CHECKING}",
        headers={"Authorization": f"Bearer {served.owner_token}"},
    )
    assert gone.status_code == 204
    page = rest(served, f"{PAYMENTS}?limit=100&count=exact")
    assert (len(page["data"]), page["meta"]["warnings"]) == (29, [])
    assert page["meta"]["count"]["value"] == 29
