"""A table of the owner's own: what is not granted of it is not named to the client, on any road."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from adapter.tests.reader import Text
from bench.site import Site
from demo.agent import over_http
from demo.story import Story
from tests.journeys.test_sources import asked, run

pytestmark = pytest.mark.anyio

KEY = "table-clinic"
ROWS = "date,amount,hiv_status,therapist\n2024-01-05,12.50,unknown,Ann\n2024-02-07,80.00,known,Bo\n"
SECRET = ("hiv", "therapist")
PATHS = (
    "/v1/schema",
    "/v1/schema?view=full&detail=full",
    "/v1/connectors",
    "/v1/streams",
    "/v1/streams/clinic",
    "/v1/streams/clinic/records",
    "/v1/streams/clinic/records?fields=therapost",
    "/v1/streams/clinic/records?filter[hiv_statu]=x",
    "/v1/streams/clinic/records?changes_since=beginning",
    "/v1/streams/clinic/records?view=nothing",
    "/v1/streams/clinic/aggregate?metric=count&group_by=statu",
    "/v1/search?q=ann",
    "/v1/search?q=ann&streams=clinic&filter[therapis]=Ann",
)
ANSWERED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("schema", {}),
    ("schema", {"stream": "clinic", "detail": "full"}),
    ("query_records", {"stream": "clinic"}),
    ("aggregate", {"stream": "clinic", "metric": "count"}),
    ("search", {"query": "ann"}),
)
REFUSED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("query_records", {"stream": "clinic", "fields": ["therapis"]}),
    ("aggregate", {"stream": "clinic", "metric": "count", "group_by": "therapis"}),
    ("search", {"query": "ann", "streams": ["clinic"], "filter": {"therapis": "Ann"}}),
    ("read_record_field", {"field_path": "therapis"}),
)


@dataclass(frozen=True, slots=True)
class Granted:
    """A running server, and a token for two columns of a table."""

    origin: str
    token: str
    connection_id: str


@pytest.fixture(scope="module")
def granted(tmp_path_factory: pytest.TempPathFactory) -> Generator[Granted]:
    folder: Path = tmp_path_factory.mktemp("owner")
    site, table = Site(folder), folder / "clinic.csv"
    table.write_text(ROWS)
    (imported,) = json.loads(run(site, "import", str(table), "--json"))["imports"]
    request = folder / "request.json"
    streams = [{"name": "clinic", "fields": ["id", "date", "amount"]}]
    request.write_text(json.dumps([asked(KEY) | {"streams": streams}]))
    options = ["--from", str(request), "--yes", "--cache-root", str(folder / "cache")]
    run(site, "grant", "create", "--client", "Journey", *options)
    (cached,) = (folder / "cache" / "clients").glob("*.json")
    credential = json.loads(cached.read_text())["credential"]
    with site.serving():
        connection_id = imported["connection"]["connection_id"]
        yield Granted(site.origin, credential["access_token"], connection_id)


def told(text: str) -> list[str]:
    return [name for name in SECRET if name in text.lower()]


@pytest.mark.parametrize("path", PATHS)
def test_no_route_names_what_is_not_granted(granted: Granted, path: str) -> None:
    headers = {"authorization": f"Bearer {granted.token}"}
    answer = httpx2.get(granted.origin + path, headers=headers)
    shown = answer.text
    for asked_for in ("therapost", "therapis", "hiv_statu"):
        shown = shown.replace(asked_for, "")
    assert told(shown) == []


@pytest.mark.parametrize("name", ["hiv_status", "no_such_column"])
def test_a_column_that_is_not_granted_is_one_that_does_not_exist(
    granted: Granted, name: str
) -> None:
    headers = {"authorization": f"Bearer {granted.token}"}
    for query in (f"fields={name}", f"filter[{name}]=x", f"sort={name}"):
        answer = httpx2.get(f"{granted.origin}/v1/streams/clinic/records?{query}", headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown_field")


async def test_no_tool_names_what_is_not_granted(granted: Granted) -> None:
    async with over_http(f"{granted.origin}/mcp", granted.token, Story()) as agent:
        records = await agent.ask("What is there?", "query_records", {"stream": "clinic"})
        assert "amount" in records.text
        first = {"id": Text(records.text).ids[0]}
        whole = await agent.ask("What is it?", "fetch", first)
        answers = [whole]
        for tool, arguments in ANSWERED:
            answers.append(await agent.ask("What is there?", tool, arguments))
        for tool, arguments in REFUSED:
            more = first if tool == "read_record_field" else {}
            asked_for = arguments | more
            answers.append(await agent.ask("What else?", tool, asked_for, refused=True))
    for answer in answers:
        shown = answer.text + json.dumps(answer.structured, ensure_ascii=False)
        assert told(shown.replace("therapis", "")) == []
