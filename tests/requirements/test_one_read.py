"""What a call costs: no read for what can be refused unread, one read for all else, one bearer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from adapter.tests.fake_rs import Answer, Request, error_answer
from pdpp_mcp_server.contract import published_contract
from pdpp_mcp_server.handles import (
    BlobRef,
    RecordRef,
    WindowRef,
    blob_uri,
    record_uri,
    window_uri,
)
from pdpp_mcp_server.rs_client.json_values import as_object
from tests.requirements.doors import Door, RpcError, token

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
schema, records = "v1/schema", "v1/streams/messages/records"
m1, aggregated = f"{records}/m1", "v1/streams/transactions/aggregate"
mails: Json = {"stream": "messages"}
mail = RecordRef("cin_a", "messages", "m1")
opened: Json = {"id": "cin_a/messages:m1"}
body: Json = {**opened, "field_path": "body"}
money: Json = {"stream": "transactions", "metric": "count"}
legal: dict[str, Json] = {
    "schema": {},
    "query_records": mails,
    "aggregate": money,
    "search": {"query": "invoice"},
    "fetch": opened,
    "read_record_field": body,
}


@dataclass(frozen=True)
class Cost:
    """A call, and the paths it reads in their order."""

    tool: str
    arguments: Any
    paths: list[str] = field(default_factory=list[str])


def malformed() -> Iterator[Cost]:
    """Every argument of every tool in every wrong form, one at a time."""
    for name, tool in published_contract().tools.items():
        yield Cost(name, {**legal[name], "nonsense": 1})
        yield Cost(name, {**legal[name], "connector_instance_id": "cin_a"})
        for required in tool.required:
            yield Cost(name, {k: v for k, v in legal[name].items() if k != required})
        for argument, rule in tool.properties.items():
            for value in wrong(as_object(rule)):
                yield Cost(name, {**legal[name], argument: value})


def wrong(rule: Json) -> list[Any]:
    common: list[Any] = [None, True, [], {}, [1], {"a": []}]
    match rule["type"]:
        case "integer":
            above = [rule["maximum"] + 1] if "maximum" in rule else []
            return [*common, "5", 1.5, rule["minimum"] - 1, *above]
        case "array":
            return [*common, "subject", 5, [""], ["x"] * 101]
        case "object":
            return [*common, "", "a=1", "filter[a]=1", 5, {"": 1}, {"a[": 1}, {"a": None}]
        case _:
            return [*common, "", 5, "x" * 9_000, *(["other"] if "enum" in rule else [])]


bad_ids = [
    "x", "a/", "/s:r", "a/s", "a/s:", "a/b/s:r", "a/s:../x", "../a/s:r", "a/..:r", "a\\b:r",
    "%2e%2e%2fa/s:r", "a/s:%2e%2e%2f", "a\n/s:r", "pdpp://record/", "pdpp://record/!!",
    "pdpp://record/" + "A" * 8_100, "pdpp://blob/e30",
]  # fmt: skip
unread = [
    Cost("schema", {"detail": "full"}),
    Cost("schema", {"detail": "full", "connection_id": "cin_a"}),
    Cost("query_records", {**mails, "fields": ["subject"], "view": "summary"}),
    Cost("query_records", {**mails, "expand": ["a"], "expand_limit": {"b": 1}}),
    Cost("query_records", {"stream": ".."}),
    Cost("aggregate", {**money, "metric": "sum"}),
    Cost("aggregate", {**money, "group_by": "category", "group_by_time": "sent_at"}),
    Cost("aggregate", {**money, "granularity": "day"}),
    Cost("aggregate", {**money, "time_zone": "UTC"}),
    Cost("search", {"query": "a", "q": "b"}),
    Cost("search", {"query": "  "}),
    Cost("fetch", {**opened, "connection_id": "cin_b"}),
    Cost("read_record_field", {**body, "connection_id": "cin_b"}),
    Cost("read_record_field", {**body, "stream": "messages"}),
    Cost("read_record_field", {**body, "cursor": "7"}),
    Cost("read_record_field", {**body, "cursor": "c", "q": "x"}),
    Cost("read_record_field", {**body, "offset_chars": 1, "q": "x"}),
    Cost("read_record_field", {**body, "before_chars": 1}),
    Cost("read_record_field", {"field_path": "body", "stream": "messages", "record_id": "m1"}),
    *[Cost("fetch", {"id": bad}) for bad in bad_ids],
    *[Cost("read_record_field", {"id": bad, "field_path": "body"}) for bad in bad_ids],
]
read_once = [
    Cost("schema", {}, [schema]),
    Cost("schema", None, [schema]),
    Cost("schema", {"connection_id": "cin_a"}, [schema]),
    Cost("schema", mails, [schema]),
    Cost("schema", {"stream": "nothing"}, [schema]),
    Cost("schema", {**mails, "detail": "full"}, [schema]),
    Cost("schema", {**mails, "detail": "full", "connection_id": "cin_a"}, [schema]),
    Cost("query_records", {**mails, "limit": 2, "count": "exact"}, [records]),
    Cost("query_records", {**mails, "filter": {"id": "m1"}, "sort": "-sent_at"}, [records]),
    Cost("query_records", {**mails, "changes_since": "beginning"}, [records]),
    Cost("query_records", {**mails, "cursor": "broken"}, [records]),
    Cost("query_records", {"stream": "secrets"}, ["v1/streams/secrets/records"]),
    Cost("aggregate", money, [aggregated]),
    Cost("aggregate", {**money, "group_by": "category", "limit": 3}, [aggregated]),
    Cost("search", {"query": "invoice", "limit": 9}, ["v1/search"]),
    Cost("search", {"query": "invoice", "streams": ["messages"], "limit": 1}, ["v1/search"]),
    Cost("search", {"query": "invoice", "mode": "semantic"}, ["v1/search/semantic"]),
    Cost("search", {"query": "invoice", "mode": "hybrid"}, ["v1/search/hybrid"]),
    Cost("fetch", opened, [m1]),
    Cost("fetch", {"id": "messages:m1"}, [m1]),
    Cost("fetch", {"id": "messages:m1", "connection_id": "cin_b"}, [m1]),
    Cost("fetch", {**opened, "fields": ["subject"]}, [m1]),
    Cost("fetch", {"id": record_uri(mail)}, [m1]),
    Cost("read_record_field", body, [f"{m1}/field-window"]),
    Cost("read_record_field", {**body, "q": "invoice"}, [f"{m1}/field-window"]),
    Cost("read_record_field", {**body, "field_path": "nothing"}, [f"{m1}/field-window"]),
]
gated = [
    Cost("query_records", {**mails, "expand": ["attachments"]}, [schema, records]),
    Cost("query_records", {**mails, "expand_limit": {"attachments": 2}}, [schema, records]),
    Cost("fetch", {**opened, "expand": ["attachments"]}, [schema, m1]),
]
kept_out = [
    Cost("query_records", {"stream": "attachments", "expand": ["messages"]}, [schema]),
    Cost("fetch", {"id": "cin_a/attachments:at1", "expand_limit": {"messages": 1}}, [schema]),
]


async def check(door: Door, cost: Cost) -> None:
    """The call reads just these paths, with the one bearer, under one request id."""
    door.requests.clear()
    params: Json = {"name": cost.tool, "arguments": cost.arguments}
    result = await door.wire.request("tools/call", params)
    assert cost.paths or result["isError"], cost
    assert door.paths == cost.paths, cost
    assert {request.bearer for request in door.requests} <= {f"Bearer {token}"}
    assert {request.method for request in door.requests} <= {"GET"}
    assert {request.headers["pdpp-tool"] for request in door.requests} <= {cost.tool}
    numbers = [request.headers["request-id"].rpartition(".") for request in door.requests]
    assert [number for *_, number in numbers] == [str(n + 1) for n in range(len(numbers))]
    assert len({made for made, *_ in numbers}) <= 1


async def test_what_is_malformed_is_refused_unread(door: Door) -> None:
    costs = [*malformed(), *unread]
    assert len(costs) > 400
    for cost in costs:
        await check(door, cost)


@pytest.mark.req("0.5")
async def test_everything_else_is_one_read_and_a_gate_is_one_more(door: Door) -> None:
    for cost in [*read_once, *gated, *kept_out]:
        await check(door, cost)


async def test_a_page_that_does_not_fit_is_read_again_and_only_shorter(door: Door) -> None:
    for record in door.world.rs.sources[0].streams["messages"].values():
        record["body"] = '"\\\n' * 5_000
    for tool, arguments in (("query_records", mails), ("search", {"query": "invoice", "limit": 9})):
        await door.fresh(tool, arguments)
        assert len(door.requests) <= 3
        first, *again = door.requests
        limits = [int(request.values("limit")[0]) for request in again]
        assert limits == sorted(limits, reverse=True)
        for request in again:
            assert request.path == first.path
            assert [pair for pair in request.query if pair[0] != "limit"] == list(first.query)


@pytest.mark.req("0.5")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422, 429, 500])
async def test_a_refusal_is_never_tried_another_way(door: Door, status: int) -> None:
    def refuse(request: Request) -> Answer | None:
        return error_answer(status, "refused", param="elsewhere")

    door.world.rs.script = refuse
    for cost in read_once:
        await check(door, cost)
    for cost in gated:
        again = [schema] if status == 400 else []
        await check(door, Cost(cost.tool, cost.arguments, [*again, *cost.paths]))


resources: list[tuple[str, list[str]]] = [
    ("pdpp://schema", [schema]),
    ("pdpp://grant", [schema]),
    ("pdpp://types", []),
    ("pdpp://stream/messages", [schema]),
    (record_uri(mail), [m1]),
    (window_uri(WindowRef(mail, "body", 0, 9)), [f"{m1}/field-window"]),
    (blob_uri(BlobRef("cin_a", "blob_1")), ["v1/blobs/blob_1"]),
    ("pdpp://stream/nothing", [schema]),
    ("pdpp://nothing", []),
    ("pdpp://record/e30", []),
    ("pdpp://record/x?y=1", []),
    ("pdpp://blob/x/y", []),
    ("https://me.example/", []),
]


async def test_a_resource_is_one_read_with_the_same_bearer(door: Door) -> None:
    for uri, paths in resources:
        door.requests.clear()
        with suppress(RpcError):
            await door.read(uri)
        assert door.paths == paths, uri
        assert {request.bearer for request in door.requests} <= {f"Bearer {token}"}
        assert {request.headers["pdpp-tool"] for request in door.requests} <= {"resource"}
