"""The same rows against the real resource server, through the real outermost application."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import httpx2
import pytest

from adapter.tests.reader import Text, hits_of
from adapter.tests.seed import long_body, photo
from pdpp_mcp_server.rs_client.json_values import is_list, is_object
from personal_server.settings import Settings
from tests.requirements.doors import HttpWire, eras
from tests.requirements.real import Real, as_json, origin, outermost, real_door, stdio_caller

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
root = Path(__file__).resolve().parents[2]
shipped = ("README.md", "docs/mcp.md")
well_known = "/.well-known/oauth-protected-resource"


@pytest.fixture
async def real(anyio_backend: str) -> Real:
    return await Real.seeded()


@pytest.fixture(params=list(eras))
def era(request: pytest.FixtureRequest) -> str:
    return request.param


def leaves(value: Any) -> set[str]:
    if is_object(value):
        return {leaf for child in value.values() for leaf in leaves(child)}
    if is_list(value):
        return {leaf for child in value for leaf in leaves(child)}
    return {json.dumps(value)}


@pytest.mark.req("4.14")
@pytest.mark.parametrize("token", ["both", "all"])
async def test_a_tool_returns_no_more_than_the_direct_read(
    real: Real, era: str, token: str
) -> None:
    one = {"connection_id": real.personal}
    record = f"{real.personal}/messages:m8"
    asks: list[tuple[str, Json, str]] = [
        ("schema", {"stream": "messages"}, "/v1/schema?view=compact&stream=messages"),
        (
            "query_records",
            {"stream": "messages", **one, "limit": 3},
            f"/v1/streams/messages/records?connection_id={real.personal}&limit=3",
        ),
        (
            "aggregate",
            {"stream": "messages", "metric": "count", "group_by": "from", **one},
            "/v1/streams/messages/aggregate?metric=count&group_by=from"
            f"&connection_id={real.personal}",
        ),
        ("search", {"query": "invoice", "limit": 4}, "/v1/search?q=invoice&limit=4"),
        ("fetch", {"id": record}, f"/v1/streams/messages/records/m8?connection_id={real.personal}"),
        (
            "read_record_field",
            {"id": record, "field_path": "body", "limit_chars": 90},
            "/v1/streams/messages/records/m8/field-window?field=body&limit_chars=90"
            f"&connection_id={real.personal}",
        ),
    ]
    async with real_door(real, token, era) as (door, _), real.read(token) as rest:
        for tool, arguments, target in asks:
            before = len(real.disclosures())
            result = await door.call(tool, arguments)
            assert not result.is_error, result.text
            entries = real.disclosures()[: len(real.disclosures()) - before]
            assert all(entry.tool == tool for entry in entries)
            assert len(entries) == len({(e.connection_id, e.stream) for e in entries})
            direct = as_json(await rest.get(target))
            shown = payload_of(tool, result.structured)
            assert leaves(shown) <= leaves(payload_of_body(tool, direct)), tool


LONG_READS: tuple[tuple[str, Json], ...] = (
    ("query_records", {"stream": "messages"}),
    ("query_records", {"stream": "messages", "limit": 40, "fields": ["subject", "body"]}),
    ("query_records", {"stream": "messages", "changes_since": "beginning", "limit": 60}),
    ("query_records", {"limit": 20}),
    ("query_records", {"since": "2020-01-01", "order": "asc", "limit": 9}),
    ("search", {"query": "invoice"}),
    ("search", {"query": "invoice", "since": "2020-01-01", "limit": 60}),
)


@pytest.mark.req("4.14")
@pytest.mark.parametrize(("tool", "arguments"), LONG_READS)
async def test_the_log_says_what_the_agent_was_shown(
    real: Real, era: str, tool: str, arguments: Json
) -> None:
    await real.write_much()
    async with real_door(real, "mine", era) as (door, _):
        result = await door.call(tool, {**arguments, "connection_id": real.personal})
        assert not result.is_error, result.text
        check_logged(real, tool, result.structured)
        assert result.structured["data"]["has_more"] is True
        following = result.structured["next"][0]["arguments"]
        before = len(real.disclosures())
        again = await door.call(tool, following)
        check_logged(real, tool, again.structured, before)


@pytest.mark.parametrize(("tool", "arguments"), LONG_READS)
async def test_the_log_says_what_an_agent_on_stdio_was_shown(
    real: Real, tool: str, arguments: Json
) -> None:
    await real.write_much()
    async with stdio_caller(real, "mine") as call:
        check_logged(real, tool, await call(tool, arguments))


def check_logged(real: Real, tool: str, structured: Json, before: int = 0) -> None:
    """One read for the page, of as many records as stand in it."""
    shown = len(structured["data"]["data"])
    entries = real.disclosures()[: len(real.disclosures()) - before]
    assert shown > 1
    assert {entry.tool for entry in entries} == {tool}
    assert len({entry.request_id for entry in entries}) == 1
    assert sum(entry.record_count for entry in entries) == shown


def payload_of(tool: str, structured: Json) -> Any:
    if tool == "fetch":
        fields = structured["metadata"]["fields"]
        return [structured["text"], structured["title"], *fields.values()]
    if tool == "read_record_field":
        return structured["window"]["text"]
    if tool == "schema":
        return structured["data"]["connectors"]
    return structured["data"]["groups"] if tool == "aggregate" else structured["data"]["data"]


def payload_of_body(tool: str, body: Json) -> Any:
    if tool == "fetch":
        return body["data"]
    return body["window"] if tool == "read_record_field" else body


@pytest.mark.req("4.41")
@pytest.mark.req("4.42")
@pytest.mark.req("4.43")
async def test_a_package_search_reads_what_each_grant_has(real: Real, era: str) -> None:
    async with real_door(real, "two", era) as (door, _):
        names = {"query": "invoice", "streams": ["messages", "transactions"], "limit": 40}
        rows: list[Json] = []
        asked: Json | None = names
        while asked:
            both = await door.call("search", asked)
            assert not both.is_error, both.text
            rows += hits_of(both.structured)
            asked = next((call["arguments"] for call in both.structured["next"]), None)
        assert {row["stream"] for row in rows} == {"messages", "transactions"}
        assert {row["connection_id"] for row in rows} == {real.personal, real.bank}
        for entry in real.disclosures():
            assert (entry.connection_id, entry.stream) in {
                (real.personal, "messages"),
                (real.bank, "transactions"),
            }
        before = len(real.disclosures())
        one = await door.call("search", {"query": "invoice", "streams": ["transactions"]})
        assert {row["connection_id"] for row in one.structured["results"]} == {real.bank}
        assert one.structured["data"]["meta"]["package"]["searched_count"] == 1
        fresh = real.disclosures()[: len(real.disclosures()) - before]
        assert {entry.connection_id for entry in fresh} == {real.bank}
        assert one.structured["data"]["meta"]["warnings"] == []


@pytest.mark.req("4.44")
async def test_a_scoped_package_search_reads_one_source(real: Real, era: str) -> None:
    async with real_door(real, "all", era) as (door, _):
        found = await door.call("search", {"query": "invoice", "connection_id": real.work})
        rows = found.structured["results"]
        assert rows
        assert {row["connection_id"] for row in rows} == {real.work}
        assert {entry.connection_id for entry in real.disclosures()} == {real.work}
        unknown = await door.call("search", {"query": "x", "connection_id": "cin_unknown000000000"})
        assert unknown.error["code"] == "connection_not_found"
        assert unknown.error["http_status"] == 404


@pytest.mark.req("0.20")
async def test_a_package_is_ambiguous_without_a_read(real: Real, era: str) -> None:
    async with real_door(real, "all", era) as (door, _):
        result = await door.call("query_records", {"stream": "transactions"})
        assert result.error["code"] == "ambiguous_connection"
        assert result.error["available_connection_count"] == 3
        served = [entry for entry in real.disclosures() if entry.outcome == "served"]
        assert served == []


@pytest.mark.req("2.6")
async def test_forged_names_get_the_direct_refusal(real: Real, era: str) -> None:
    async with real_door(real, "mine", era) as (door, _), real.read("mine") as rest:
        cases = [
            (f"{real.work}/messages:m1", f"messages/records/m1?connection_id={real.work}"),
            (f"{real.bank}/transactions:t1", f"transactions/records/t1?connection_id={real.bank}"),
            (f"{real.personal}/secrets:x", f"secrets/records/x?connection_id={real.personal}"),
            (f"{real.personal}/messages:no", f"messages/records/no?connection_id={real.personal}"),
        ]
        for shown, target in cases:
            direct = as_json(await rest.get(f"/v1/streams/{target}"))["error"]["code"]
            for tool in ("fetch", "read_record_field"):
                extra = {"field_path": "body"} if tool == "read_record_field" else {}
                result = await door.call(tool, {"id": shown, **extra})
                assert result.error["code"] == direct


@pytest.mark.req("2.2")
@pytest.mark.req("2.7")
@pytest.mark.req("2.9")
@pytest.mark.req("4.6")
async def test_windows_and_bytes_of_the_real_server(real: Real, era: str) -> None:
    async with real_door(real, "mine", era) as (door, http):
        call = {"id": f"{real.personal}/messages:m8", "field_path": "body", "limit_chars": 700}
        parts: list[str] = []
        arguments: Json | None = call
        while arguments:
            result = await door.call("read_record_field", arguments)
            assert not result.is_error, result.text
            parts.append(result.structured["window"]["text"])
            following = Text(result.text).calls()
            arguments = following[0].arguments if following else None
        assert "".join(parts) == long_body
        files = await door.call("query_records", {"stream": "attachments"})
        entry = next(e for e in files.structured["content_ladder"] if e["kind"] == "binary")
        contents = await door.read(entry["uri"])
        assert b64decode(contents[0]["blob"]) == photo
        head = {"Authorization": "Bearer mine"}
        assert (await http.get(entry["url"].removeprefix(origin), headers=head)).content == photo


@pytest.mark.req("4.31")
async def test_a_limit_alone_expands_its_relation(real: Real, era: str) -> None:
    async with real_door(real, "mine", era) as (door, _):
        asked = {"id": f"{real.personal}/messages:m1", "expand_limit": {"attachments": 3}}
        document = await door.call("fetch", asked)
        children = document.structured["metadata"]["expanded"]["attachments"]["data"]
        assert [child["id"] for child in children] == [f"{real.personal}/attachments:at1"]


async def test_further_operators_reach_the_store_by_both_doors(real: Real, era: str) -> None:
    async with real_door(real, "mine", era) as (door, _), stdio_caller(real, "mine") as call:

        async def rows(arguments: Json) -> list[Json]:
            hosted = (await door.call("query_records", arguments)).structured["data"]["data"]
            assert hosted == (await call("query_records", arguments))["data"]["data"]
            return hosted

        async def ids(**condition: Any) -> set[str]:
            found = await rows({"stream": "messages", "filter": condition})
            return {row["id"].rpartition(":")[2] for row in found}

        everything = await rows({"stream": "messages"})
        subjects = {row["id"].rpartition(":")[2]: row["data"]["subject"] for row in everything}
        one, *others = subjects
        part = subjects[one][1:8].upper()
        assert await ids(id={"in": [one, others[0], "nobody"]}) == {one, others[0]}
        assert await ids(id={"ne": one}) == set(others)
        assert one in await ids(subject={"contains": part})
        assert one in await ids(subject={"starts_with": subjects[one][:5].lower()})
        assert await ids(subject={"exists": False}) == set()


@pytest.mark.req("4.33")
@pytest.mark.parametrize("sought", ["CATEGORY 3", "categry 3", "category"])
async def test_near_values_warning_and_next_stay_short(real: Real, era: str, sought: str) -> None:
    arguments = {
        "stream": "transactions",
        "metric": "count",
        "filter": {"category": sought, "sent_at": {"gte": "2025-01-01"}},
    }
    async with real_door(real, "early", era) as (door, _):
        result = await door.call("aggregate", arguments)
        face = Text(result.text)
        assert len(result.text) < 400
        assert "\nwarning: outside_time_constraint " in result.text
        assert "empty: not_granted" in result.text
        near = result.structured["near"]
        shown = [line for line in face.fenced if line.startswith("near ")]
        assert [f"near {n}: category {json.dumps(each['value'])} ({each['count']})"
                for n, each in enumerate(near, 1)] == shown  # fmt: skip
        assert near
        assert "near" not in result.structured["data"]["meta"]
        assert all(each["value"] not in json.dumps(result.structured["next"]) for each in near)
        for call in result.structured["next"]:
            again = await door.call(call["tool"], call["arguments"])
            assert again.structured["data"]["value"] >= near[0]["count"]


async def test_pages_and_hits_offer_near_values_by_number(real: Real, era: str) -> None:
    wanted: Json = {"filter": {"category": "CATEGORY 3"}}
    async with real_door(real, "bank", era) as (door, _):
        for tool, more in (
            ("query_records", {"stream": "transactions"}),
            ("search", {"query": "invoice", "streams": ["transactions"]}),
        ):
            result = await door.call(tool, {**more, **wanted})
            assert result.structured["near"][0] == {
                "field": "category",
                "value": "category 3",
                "count": 2,
            }
            assert 'near 1: category "category 3" (2)' in Text(result.text).fenced
            (call,) = result.structured["next"]
            assert call["why"] == "matches near 1"
            assert call["arguments"] == {**more, "filter": {"category": {"contains": "CATEGORY 3"}}}
            again = await door.call(call["tool"], call["arguments"])
            assert again.structured["data"]["data"]


@pytest.mark.req("4.16")
async def test_our_compact_body_equals_its_projection(real: Real) -> None:
    async with real.read("all") as rest, real_door(real, "all") as (door, _):
        full = as_json(await rest.get("/v1/schema?stream=messages"))
        compact = as_json(await rest.get("/v1/schema?stream=messages&view=compact"))
        from pdpp_mcp_server.schema_document import compact_catalog  # noqa: PLC0415

        projected = compact_catalog(full, scoped=True)
        rows = [
            {name: value for name, value in row.items() if name != "visible"}
            for row in compact["connectors"][0]["streams"]
        ]
        assert projected["connectors"][0]["streams"] == rows
        shown = await door.call("schema", {"stream": "messages"})
        data = dict(shown.structured["data"])
        for body in (data, compact):
            body.pop("field_capability_legend", None)
            body.pop("links")
        assert data == compact


@pytest.mark.req("0.1")
async def test_the_recommended_setup_is_one_address_before_any_variant(real: Real) -> None:
    async with real_door(real, "mine") as (_, http):
        page = (await http.get("/docs", headers={"Accept": "text/html"})).text
        setup = page.partition('id="reference"')[0]
        assert f"{origin}/mcp" in setup
        documents = [setup, *((root / name).read_text("utf-8") for name in shipped)]
        for document in documents:
            address, variant = document.index("/mcp"), document.find("pdpp-mcp-server")
            assert variant == -1 or address < variant
            for word in ("profile", "toolset", "tool set", "control-plane", "owner token"):
                assert word not in document.lower()
            assert not re.search(r"\b(core|events|full)\b (tools|surface|mode)", document)


@pytest.mark.req("4.21")
async def test_the_root_document_hints_at_the_endpoint(real: Real) -> None:
    async with real_door(real, "mine") as (_, http):
        document = as_json(await http.get(well_known))
        assert document["pdpp_agent_discovery"]["mcp"]["endpoint"] == f"{origin}/mcp"
        assert document["pdpp_core_query_base"] == f"{origin}/v1"


@pytest.mark.req("4.22")
@pytest.mark.req("4.49")
@pytest.mark.req("4.12")
async def test_the_document_of_mcp_names_endpoint_and_kinds(real: Real) -> None:
    async with real_door(real, "all") as (door, http):
        challenged = await http.post("/mcp", json={})
        assert challenged.status_code == 401
        url = challenged.json()["error"]["resource_metadata"]
        document = as_json(await http.get(url))
        assert url == f"{origin}{well_known}/mcp"
        assert document["resource"] == f"{origin}/mcp"
        kinds = document["pdpp_token_kinds_supported"]
        assert set(kinds) == {"client", "mcp_package"}
        assert document["pdpp_agent_discovery"]["mcp"]["endpoint"] == f"{origin}/mcp"
        assert document["authorization_servers"] == [origin]
        assert len(await door.tools()) == 6


@pytest.mark.req("4.47")
async def test_the_document_of_mcp_has_no_logo(real: Real) -> None:
    registered = {
        "resource",
        "authorization_servers",
        "jwks_uri",
        "scopes_supported",
        "bearer_methods_supported",
        "resource_name",
        "resource_documentation",
        "resource_policy_uri",
        "resource_tos_uri",
        "authorization_details_types_supported",
        "dpop_signing_alg_values_supported",
        "dpop_bound_access_tokens_required",
    }
    async with real_door(real, "mine") as (_, http):
        document = as_json(await http.get(f"{well_known}/mcp"))
        assert "logo_uri" not in document
        assert all(name in registered or name.startswith("pdpp_") for name in document)


@pytest.mark.req("4.23")
async def test_a_trusted_proxy_sets_every_advertised_url(real: Real) -> None:
    from ipaddress import ip_network  # noqa: PLC0415

    settings = Settings(
        public_url="forwarded",
        trusted_proxies=(ip_network("10.0.0.0/8"),),
        trusted_hosts=("me.example",),
    )
    app, hosted = outermost(real, settings)
    public = "https://me.example"
    forwarded = {"X-Forwarded-Host": "me.example", "X-Forwarded-Proto": "https"}

    def client(peer: str) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=app, client=(peer, 1))
        return httpx2.AsyncClient(transport=transport, base_url="http://inner:7662")

    async with hosted.run(), client("10.1.2.3") as near, client("192.0.2.9") as far:
        document = as_json(await near.get(f"{well_known}/mcp", headers=forwarded))
        assert document["resource"] == f"{public}/mcp"
        assert document["pdpp_agent_discovery"]["mcp"]["endpoint"] == f"{public}/mcp"
        challenged = await near.post("/mcp", json={}, headers=forwarded)
        assert (
            f'resource_metadata="{public}{well_known}/mcp"'
            in (challenged.headers["www-authenticate"])
        )
        assert challenged.headers["link"].startswith(f"<{public}/icon.svg>")
        wire = HttpWire(near, "2025-11-25", "mine", headers=forwarded)
        info = (await wire.request("initialize", hello))["serverInfo"]
        assert info["icons"][0]["src"] == f"{public}/icon.svg"
        call = {"name": "search", "arguments": {"query": "invoice"}}
        found = (await wire.request("tools/call", call))["structuredContent"]
        assert all(row["url"].startswith(f"{public}/v1/") for row in found["results"])
        for http, headers in ((far, forwarded), (near, {"X-Forwarded-Host": "evil.example"})):
            for path in ("/mcp", f"{well_known}/mcp", well_known):
                refused = await http.request("GET", path, headers=headers)
                assert refused.status_code == 421
                assert refused.json()["error"]["code"] == "misdirected_request"
                assert "link" not in refused.headers


hello: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}
