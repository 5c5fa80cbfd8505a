from __future__ import annotations

from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer, FakeRs, Request
from adapter.tests.seed import world

FILTER = {"body": {"contains": "\U0001f602"}}
ROW = {"name": "messages", "field_capabilities": {"body": "t=text,eq,f=text,lex", "id": "eq"}}


def refusing(error: dict[str, Any], connections: tuple[str, ...], status: int = 400) -> FakeRs:
    """A server that refuses whatever is asked of it but the schema of messages."""

    def refused(request: Request) -> Answer:
        if request.path == ("v1", "schema"):
            held = [{"connection_id": name} for name in connections]
            connector = {"connector_key": "x", "streams": [ROW], "granted_connections": held}
            return Answer(200, {"object": "schema", "connectors": [connector]})
        return Answer(status, {"error": {"type": "invalid_request_error", **error}})

    rs = world()
    rs.script = refused
    return rs


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("connections", "tool", "meant"),
    [
        (("cin_a",), "query_records", {"connection_id": "cin_a", "limit": 3}),
        (
            ("cin_a", "cin_b"),
            "aggregate",
            {"metric": "count", "across": "connections", "group_by": "connection_id"},
        ),
    ],
)
async def test_signs_are_sought_by_a_filter(
    connections: tuple[str, ...], tool: str, meant: dict[str, Any]
) -> None:
    rs = refusing({"code": "invalid_request", "param": "q", "message": "no words"}, connections)
    refused = (await ask(rs, "search", {"query": " \U0001f602", "limit": 3})).structured["error"]
    assert refused["code"] == "invalid_request"
    assert (refused["next_call"]["tool"], refused["next_call"]["arguments"]) == (
        tool,
        {"stream": "messages", "filter": FILTER, **meant},
    )
    rs.requests.clear()
    await ask(rs, "search", {"query": "zebra"})
    assert ("v1", "schema") not in rs.paths


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "code", "param"),
    [
        (403, "grant_revoked", None),
        (429, "rate_limit_exceeded", None),
        (400, "invalid_request", "limit"),
    ],
)
async def test_another_refusal_has_no_filter(status: int, code: str, param: str | None) -> None:
    rs = refusing({"code": code, "param": param, "message": "no"}, ("cin_a",), status)
    refused = (await ask(rs, "search", {"query": "\U0001f602"})).structured["error"]
    assert refused["code"] == code
    assert refused.get("next_call", {}).get("tool") not in ("query_records", "aggregate")
