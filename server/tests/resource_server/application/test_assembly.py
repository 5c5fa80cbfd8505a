"""What holds on every route of the table, and that the table is the contract's."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from personal_server.resource_server.openapi import errors_of
from personal_server.web.parameters import Parameters
from personal_server.web.routes import Route, Tokens
from server.tests.resource_server.living import Living

pytestmark = pytest.mark.anyio

# docs/contract/resource-server.md 20, one line per row: tokens, methods, paths.
CONTRACT = """
none  GET  / /v1 /docs /v1/openapi.json /openapi.json
none  GET  /.well-known/oauth-protected-resource /.well-known/oauth-protected-resource/mcp
none  GET  /.well-known/oauth-protected-resource/mcp/
any   GET  /v1/connectors /v1/schema /v1/streams /v1/streams/{stream}
any   GET  /v1/streams/{stream}/records /v1/streams/{stream}/records/{record_key}
any   GET  /v1/streams/{stream}/records/{record_key}/field-window /v1/streams/{stream}/aggregate
any   GET  /v1/timeline /v1/search /v1/search/semantic /v1/search/hybrid
any   GET  /v1/blobs/{blob_id}
collector POST /v1/blobs /v1/ingest/{stream}
collector GET,PUT /v1/state/{connector_key}
collector GET /v1/rejections
owner DELETE /v1/streams/{stream}/records /v1/streams/{stream}/records/{record_key}
owner GET,POST /v1/owner/declarations /v1/owner/connections
owner GET,DELETE /v1/owner/declarations/{connector_key}
owner GET,PATCH,DELETE /v1/owner/connections/{id}
owner POST /v1/owner/connections/{id}/pause /v1/owner/connections/{id}/resume
owner POST /v1/owner/connections/{id}/revoke /v1/owner/connections/{id}/reactivate
owner POST /v1/owner/connections/{id}/runs
owner GET  /v1/feeds
owner POST /v1/feeds/{id}/run
owner GET  /v1/owner/connections/{id}/rejections /v1/owner/disclosures /v1/owner/export
any   GET,POST /v1/event-subscriptions
any   GET,PATCH,DELETE /v1/event-subscriptions/{id}
any   POST /v1/event-subscriptions/{id}/test-event
"""


def contract() -> set[tuple[str, str, str]]:
    rows = [line.split() for line in CONTRACT.strip().splitlines()]
    return {
        (tokens, method, path)
        for tokens, methods, *paths in rows
        for method in methods.split(",")
        for path in paths
    }


@cache
def living() -> Living:
    return Living()


ROUTES = living().table.routes
PROTECTED = [route for route in ROUTES if route.tokens is not Tokens.NONE]


def by_name(route: Route) -> str:
    return route.name


def path_of(route: Route) -> str:
    return re.sub(r"\{[a-z_]+\}", "x", route.pattern)


async def call(route: Route, token: str | None, suffix: str = "", **more: Any) -> Any:
    async with living().client(token) as client:
        return await client.request(route.method, path_of(route) + suffix, **more)


def test_the_table_and_the_contract_list_the_same_routes() -> None:
    assert {(r.tokens.value, r.method, r.pattern) for r in ROUTES} == contract()


@pytest.mark.parametrize("route", ROUTES, ids=by_name)
async def test_an_unknown_parameter_is_refused(route: Route) -> None:
    answer = await call(route, "owner", "?colour=red")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_request", "colour")


@pytest.mark.parametrize("route", PROTECTED, ids=by_name)
async def test_no_bearer_is_challenged_before_anything_else(route: Route) -> None:
    answer = await call(route, None, "?colour=red", headers={"Cookie": "session=owner"})
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "authentication_error"
    assert "error=" not in answer.headers["www-authenticate"]


@pytest.mark.parametrize("route", PROTECTED, ids=by_name)
async def test_credentials_in_the_query_are_not_credentials(route: Route) -> None:
    answer = await call(route, None, "?access_token=owner")
    assert answer.status_code == 401


@pytest.mark.parametrize("route", ROUTES, ids=by_name)
async def test_another_protocol_version_is_refused(route: Route) -> None:
    answer = await call(route, None, headers={"PDPP-Version": "2027-01-01"})
    assert answer.json()["error"]["code"] == "unsupported_version"


@pytest.mark.parametrize("route", ROUTES, ids=by_name)
async def test_an_unused_method_is_refused_with_those_allowed(route: Route) -> None:
    async with living().client() as client:
        answer = await client.request("PROPFIND", path_of(route))
    assert answer.json()["error"]["code"] == "method_not_allowed"
    assert route.method in answer.headers["allow"].split(", ")


@pytest.mark.parametrize("route", ROUTES, ids=by_name)
async def test_other_origins_may_read_and_never_write(route: Route) -> None:
    answer = await call(route, None)
    open_to_browsers = "access-control-allow-origin" in answer.headers
    reads = route.tokens is Tokens.ANY or "." in route.pattern
    assert open_to_browsers == reads
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("route", PROTECTED, ids=by_name)
async def test_private_answers_are_not_stored(route: Route) -> None:
    answer = await call(route, "owner")
    assert answer.headers["cache-control"] in ("private, no-store", "private, no-cache")
    assert "Authorization" in answer.headers["vary"]


@pytest.mark.parametrize("route", ROUTES, ids=by_name)
def test_each_route_names_its_errors(route: Route) -> None:
    codes = {error.code for error in errors_of(route)}
    assert {"invalid_request", "unsupported_version", "internal_error"} <= codes


@pytest.mark.parametrize(
    "path", ["/v1/nothing", "/v1/schema/", "/register", "/v1/streams//records"]
)
async def test_an_unknown_route_is_not_found(path: str) -> None:
    async with living().client(None) as client:
        answer = await client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


# docs/contract/resource-server.md 19: the largest bodies, in bytes.
BODY_LIMITS = {
    "POST /v1/ingest/{stream}": 50 * 2**20,
    "POST /v1/blobs": 50 * 2**20,
    "PUT /v1/state/{connector_key}": 256 * 2**10,
    "POST /v1/owner/declarations": 4 * 2**20,
    "POST /v1/owner/connections": 2**20,
    "PATCH /v1/owner/connections/{id}": 2**20,
    "POST /v1/owner/connections/{id}/runs": 2**20,
    "POST /v1/event-subscriptions": 2**20,
    "PATCH /v1/event-subscriptions/{id}": 2**20,
}


def test_each_body_has_the_limit_of_the_contract() -> None:
    limits = {r.name: r.body.limit_bytes for r in ROUTES if r.body is not None}
    assert limits == BODY_LIMITS


@pytest.mark.parametrize("route", [r for r in ROUTES if r.body is not None], ids=by_name)
async def test_a_body_that_says_it_is_too_large_is_refused_unread(route: Route) -> None:
    assert route.body is not None
    content_type = next(iter(route.body.media_types), "image/png")
    sizes = {"Content-Type": content_type, "Content-Length": str(route.body.limit_bytes + 1)}
    query = "?connection_id=x&stream=x&record_key=x" if route.pattern == "/v1/blobs" else ""
    answer = await call(route, "owner", query, content=b"", headers=sizes)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "resource_limit")


# docs/contract/resource-server.md 16: cost units of reads with these parameters.
COSTS = {
    "GET /v1/streams/{stream}/records": 1,
    "GET /v1/streams/{stream}/aggregate": 3,
    "GET /v1/timeline": 3,
    "GET /v1/search": 3,
    "GET /v1/search/semantic": 3,
    "GET /v1/search/hybrid": 3,
    "GET /v1/schema": 1,
}


@pytest.mark.parametrize("name", COSTS)
def test_reads_cost_what_the_contract_says(name: str) -> None:
    route = next(route for route in ROUTES if route.name == name)
    assert route.cost(Parameters()) == COSTS[name]
    if name.endswith("/records"):
        assert route.cost(Parameters({"count": "exact"})) == 2
        assert route.cost(Parameters({"window": "exact"})) == 2
        assert route.cost(Parameters({"count": "none", "window": "none"})) == 1
