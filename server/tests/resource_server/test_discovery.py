from collections.abc import Mapping

import pytest

from pdpp_kernel.read_capabilities import ReadCapability
from personal_server.resource_server.discovery import Discovery
from personal_server.resource_server.documentation import with_code
from personal_server.resource_server.openapi import openapi_document
from personal_server.web.routing import RouteTable
from server.tests.resource_server.conftest import Bench

pytestmark = pytest.mark.anyio

ORIGIN = "http://127.0.0.1:7662"


@pytest.fixture
def bench() -> Bench:
    def document() -> Mapping[str, object]:
        return openapi_document(table, "My data")

    table = RouteTable(Discovery("My data", document).routes())
    return Bench(table)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1",
        "/docs",
        "/v1/openapi.json",
        "/openapi.json",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ],
)
async def test_discovery_needs_no_token_and_may_be_kept(bench: Bench, path: str) -> None:
    async with bench.client(None) as client:
        answer = await client.get(path, headers={"Accept": "application/json"})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert "logo_uri" not in answer.text


async def test_the_origin_describes_itself_as_a_resource(bench: Bench) -> None:
    async with bench.client(None) as client:
        answer = await client.get("/.well-known/oauth-protected-resource")
    body = answer.json()
    assert body["resource"] == ORIGIN
    assert body["authorization_servers"] == [ORIGIN]
    assert body["pdpp_core_query_base"] == f"{ORIGIN}/v1"
    assert body["pdpp_agent_discovery"]["mcp"]["endpoint"] == f"{ORIGIN}/mcp"
    assert body["capabilities"]["semantic_retrieval"] == {"supported": False}
    assert body["pdpp_read_capabilities"] == [word.value for word in ReadCapability]
    assert "hybrid_pagination_supported" not in body["pdpp_discovery_hints"]
    assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    "path",
    [
        "/v1/openapi.json",
        "/openapi.json",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource/mcp/",
    ],
)
async def test_no_website_learns_the_name_of_the_server(bench: Bench, path: str) -> None:
    async with bench.client(None) as client:
        ours = [await client.get(path, headers=headers) for headers in ({}, {"Origin": ORIGIN})]
        pages = [
            await client.get(path, headers={"Origin": origin})
            for origin in ("https://evil.example", "null", "http://127.0.0.1:9999")
        ]
    assert all("My data" in answer.text for answer in ours)
    for answer in pages:
        assert (answer.status_code, "My data" in answer.text) == (200, False)
        assert "Personal server" in answer.text
        assert answer.headers["access-control-allow-origin"] == "*"
    for answer in (*ours, *pages):
        assert "Origin" in answer.headers["vary"].replace(" ", "").split(",")


async def test_the_mcp_endpoint_is_a_resource_of_its_own(bench: Bench) -> None:
    async with bench.client(None) as client:
        body = (await client.get("/.well-known/oauth-protected-resource/mcp")).json()
    assert body["resource"] == f"{ORIGIN}/mcp"
    assert body["resource_name"] == "My data (MCP)"
    assert body["pdpp_token_kinds_supported"] == ["client", "mcp_package"]
    flow = body["pdpp_agent_discovery"]["mcp"]["authorization"]["authorization_code_pkce"]
    assert flow["resource"] == f"{ORIGIN}/mcp"
    of_the_reads = {"capabilities", "pdpp_read_capabilities", "pdpp_discovery_hints"}
    assert not (of_the_reads | {"pdpp_self_export_supported"}) & set(body)


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"),
        ("application/json", "application/json; charset=utf-8"),
        ("*/*", "application/json; charset=utf-8"),
        ("text/html;q=0.2, application/json", "application/json; charset=utf-8"),
    ],
)
async def test_the_front_page_is_html_for_who_prefers_it(
    bench: Bench, accept: str, kind: str
) -> None:
    async with bench.client(None) as client:
        answer = await client.get("/", headers={"Accept": accept})
    assert answer.headers["content-type"] == kind


async def test_the_docs_show_code_as_code(bench: Bench) -> None:
    async with bench.client(None) as client:
        page = (await client.get("/docs")).text
    assert "`" not in page
    assert with_code("`sort`, not <b>") == "<code>sort</code>, not &lt;b&gt;"


async def test_the_docs_name_the_address_before_anything_else(bench: Bench) -> None:
    async with bench.client(None) as client:
        page = (await client.get("/docs")).text
    assert f"claude mcp add --transport http personal-data {ORIGIN}/mcp" in page
    assert (
        page.index(f"{ORIGIN}/mcp") < page.index("pdpp-mcp-server") < page.index("/v1/openapi.json")
    )
