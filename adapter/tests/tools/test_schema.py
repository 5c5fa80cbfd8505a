"""Full detail is of one source; a server that answers for several is answered for."""

from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer, FakeRs, Request
from adapter.tests.seed import world

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
full: Json = {"stream": "messages", "detail": "full"}


def without_scope() -> FakeRs:
    """A server that takes no notice of a connection or of full detail."""
    rs = world()

    def script(request: Request) -> Answer:
        kept = tuple(pair for pair in request.query if pair[0] == "stream")
        return rs.answer(Request(request.method, request.path, kept, request.headers))

    rs.script = script
    return rs


async def test_several_sources_are_refused_and_named() -> None:
    error = (await ask(without_scope(), "schema", full)).structured["error"]
    assert error["code"] == "ambiguous_schema_detail"
    named = [row["connection_id"] for row in error["available_connections"]]
    assert named == ["cin_a", "cin_b"]
    assert error["available_connection_count"] == 2


async def test_a_named_connection_or_a_single_one_is_answered() -> None:
    rs = without_scope()
    scoped = await ask(rs, "schema", {**full, "connection_id": "cin_a"})
    assert not scoped.is_error
    single = await ask(rs, "schema", {**full, "stream": "transactions"})
    assert not single.is_error
    assert "schema amount: " in single.text


async def test_full_detail_without_a_stream_reads_nothing() -> None:
    rs = world()
    error = (await ask(rs, "schema", {"detail": "full"})).structured["error"]
    assert (error["code"], error["param"]) == ("invalid_request", "detail")
    assert rs.requests == []


async def test_an_answer_that_is_no_document_is_not_an_empty_one() -> None:
    rs = world()
    rs.script = lambda _: Answer(200, ["odd"])
    for asked in ({}, {"stream": "messages"}, full):
        error = (await ask(rs, "schema", asked)).structured["error"]
        assert error["code"] == "rs_invalid_response"
        assert error["next_call"] == {"tool": "schema", "arguments": asked}


async def test_a_row_says_of_which_fields_not_all_is_found_by_meaning_yet() -> None:
    rs = world()
    search: Json = {
        "modes": ["lexical", "semantic", "hybrid"],
        "lexical_fields": ["subject", "body"],
        "semantic_fields": ["subject", "body"],
        "embedded_percent": 61,
    }
    row = {"name": "notes", "search": search, "granted_connections": [{"connection_id": "cin_a"}]}
    catalog: Json = {"detail": "compact", "connectors": [{"connector_key": "k", "streams": [row]}]}
    rs.script = lambda _: Answer(200, catalog)
    shown = (await ask(rs, "schema", {"stream": "notes"})).text
    assert "search: lexical, semantic, hybrid; semantic: 61 % of subject, body\n" in shown
    del search["embedded_percent"]
    assert "semantic: " not in (await ask(rs, "schema", {"stream": "notes"})).text


async def test_a_refusal_is_passed_on_and_names_alone_may_be_too_many() -> None:
    rs = world()
    rs.script = lambda _: Answer(403, {"error": {"code": "grant_revoked"}})
    assert (await ask(rs, "schema", {})).structured["error"]["code"] == "grant_revoked"
    names = [{"name": f"stream_{n}_" + "x" * 100} for n in range(600)]
    connectors: list[Json] = [{"connector_key": "k", "streams": names}]
    catalog: Json = {"detail": "compact", "connectors": connectors}
    rs.script = lambda _: Answer(200, catalog)
    error = (await ask(rs, "schema", {})).structured["error"]
    assert (error["code"], error["param"]) == ("result_too_large", "connection_id")
    assert "next_call" not in error
    catalog["connectors"][0]["granted_connections"] = [{"connection_id": "cin_a"}]
    error = (await ask(rs, "schema", {})).structured["error"]
    assert error["next_call"] == {"tool": "schema", "arguments": {"connection_id": "cin_a"}}


@pytest.mark.parametrize(
    ("streams", "kept"),
    [
        (20, {"name", "display_name", "granted_connections"}),
        (300, {"name", "granted_connections"}),
        (800, {"name"}),
    ],
)
async def test_an_index_loses_members_before_names(streams: int, kept: set[str]) -> None:
    rs = world()
    own = [{"connection_id": "cin_a"}]
    rows = [
        {"name": f"s{n}", "display_name": "Words " * 16, "granted_connections": own}
        for n in range(streams)
    ]
    rs.script = lambda _: Answer(200, {"detail": "compact", "connectors": [{"streams": rows}]})
    outcome = await ask(rs, "schema", {})
    shown = outcome.structured["data"]["connectors"][0]["streams"]
    assert [row["name"] for row in shown] == [f"s{n}" for n in range(streams)]
    assert set(shown[0]) == kept
    assert "; s19" in outcome.text


def described(sources: int, fields: int) -> Json:
    """One stream of so many sources, each with so many able fields."""
    flags = {
        f"field_number_{n}": "t=string,eq,r=gte|gt|lte|lt,a=group_by|max|min|sum"
        for n in range(fields)
    }
    row = {"name": "messages", "field_capabilities": flags, "count": ["none"], "views": []}
    connectors = [
        {
            "connector_key": f"mail{n}",
            "granted_connections": [{"connection_id": f"cin_{n}"}],
            "streams": [row],
        }
        for n in range(sources)
    ]
    return {"detail": "compact", "connectors": connectors}


@pytest.mark.parametrize(("sources", "fields"), [(1, 30), (1, 200), (12, 30), (60, 4), (90, 1)])
async def test_a_stream_is_told_within_its_budget_and_names_every_source(
    sources: int, fields: int
) -> None:
    rs = world()
    rs.script = lambda _: Answer(200, described(sources, fields))
    outcome = await ask(rs, "schema", {"stream": "messages"})
    assert not outcome.is_error, outcome.text
    assert len(outcome.text) <= 12_000
    lines = outcome.text.split("\n")
    assert len([line for line in lines if line.startswith("source ")]) == sources
    for n in range(sources):
        assert any(line.endswith(f"connection_id=cin_{n}") for line in lines)
    described_rows = len([line for line in lines if line.startswith("fields: ")])
    total = f"sources: shown={sources}; described={described_rows}; total={sources}"
    assert (total in lines) is (described_rows < sources)
    if (sources, fields) == (1, 30):
        assert "field_number_29[" in outcome.text
        assert "more_fields" not in outcome.text


@pytest.mark.parametrize(
    ("sources", "fields", "tool", "arguments"),
    [
        (40, 30, "schema", {"stream": "messages", "connection_id": "cin_0"}),
        (1, 900, "query_records", {"stream": "messages", "connection_id": "cin_0", "limit": 1}),
    ],
)
async def test_a_stream_over_the_ceiling_has_a_narrower_call(
    sources: int, fields: int, tool: str, arguments: Json
) -> None:
    rs = world()
    rs.script = lambda _: Answer(200, described(sources, fields))
    error = (await ask(rs, "schema", {"stream": "messages"})).structured["error"]
    assert error["code"] == "result_too_large"
    assert error["next_call"] == {"tool": tool, "arguments": arguments}


async def test_more_sources_than_can_be_named_are_counted() -> None:
    rs = world()
    rs.script = lambda _: Answer(200, described(170, 0))
    outcome = await ask(rs, "schema", {"stream": "messages"})
    assert not outcome.is_error, outcome.text
    assert len(outcome.text) <= 12_000
    assert "; total=170\nuse: " in outcome.text


async def test_an_unknown_stream_is_no_row_and_leads_to_the_index() -> None:
    rs = world()
    outcome = await ask(rs, "schema", {"stream": "unknown"})
    assert [row["code"] for row in outcome.structured["warnings"]] == ["stream_not_found"]
    assert outcome.text.split("\n")[0] == "schema unknown: sources=0; connections=0"
    assert outcome.text.endswith("\nnext: schema {}")


@pytest.mark.parametrize(("kind", "told"), [("mcp_package", True), ("client", False)])
async def test_the_index_of_a_package_says_that_reads_name_a_connection(
    kind: str, told: bool
) -> None:
    rows = [
        {"name": name, "granted_connections": [{"connection_id": f"cin_{name}"}]} for name in "ab"
    ]
    catalog = {"bearer": {"token_kind": kind}, "connectors": [{"streams": rows}]}
    rs = world()
    rs.script = lambda _: Answer(200, {"detail": "compact", **catalog})
    (use,) = [line for line in (await ask(rs, "schema", {})).text.split("\n") if "use: " in line]
    assert ("connection_id" in use) is told


async def test_several_views_are_one_value() -> None:
    rs = world()
    row = {"name": "messages", "views": [{"id": "headers"}, {"id": "traffic"}]}
    catalog = {"detail": "compact", "connectors": [{"connector_key": "k", "streams": [row]}]}
    rs.script = lambda _: Answer(200, catalog)
    lines = (await ask(rs, "schema", {"stream": "messages"})).text.split("\n")
    assert "projection: fields=any granted field; views=headers,traffic" in lines


GLANCED: Json = {
    "name": "messages",
    "granted_connections": [{"connection_id": "cin_a"}],
    "constraints": {"time_constraint": {"field": "sent_at", "since": "2024-01-01T00:00:00Z"}},
    "fields_left_out": 3,
    "visible": {
        "records": 10_000,
        "more": True,
        "time_field": "sent_at",
        "earliest": "2024-01-01T09:30:00Z",
        "latest": "2026-11-20T10:00:00 and words",
        "collected_at": "2026-11-21T08:00:00Z",
    },
    "field_capabilities": {"id": "t=string", "body": "t=text,g=false"},
}


def glanced(rows: int, detail: str = "compact") -> FakeRs:
    rs = world()
    streams = [{**GLANCED, "name": f"messages{n or ''}"} for n in range(rows)]
    body: Json = {
        "detail": detail,
        "today": {"date": "2026-11-22", "time_zone": "Europe/Rome"},
        "connectors": [{"connector_key": "gmail", "streams": streams}],
    }
    rs.script = lambda _: Answer(200, body)
    return rs


SEEN = (
    "10,000+ records; sent_at 2024-01-01 to 2026-11-20; collected 2026-11-21T08:00:00Z;"
    " 3 fields not granted"
)


async def test_an_index_says_what_is_visible_and_given() -> None:
    outcome = await ask(glanced(24), "schema", {})
    head, *lines = outcome.text.splitlines()
    assert head.endswith("; today=2026-11-22; time_zone=Europe/Rome")
    given = "limited to: sent_at since 2024-01-01T00:00:00Z"
    assert f"readable gmail messages: {SEEN}; {given}" in lines
    assert sum(line.startswith("readable ") for line in lines) == 24
    assert len(outcome.text) < 8_000
    shown = outcome.structured["data"]["connectors"][0]["streams"][0]
    assert shown == {name: GLANCED[name] for name in GLANCED if name != "field_capabilities"}
    assert outcome.structured["data"]["today"]["time_zone"] == "Europe/Rome"


async def test_a_long_index_leaves_it_to_one_stream() -> None:
    outcome = await ask(glanced(25), "schema", {})
    assert "readable " not in outcome.text
    assert set(outcome.structured["data"]["connectors"][0]["streams"][0]) == {
        "name",
        "granted_connections",
    }
    scoped = await ask(glanced(25), "schema", {"stream": "messages"})
    assert f"readable: {SEEN}" in scoped.text.splitlines()
    assert "constraints: sent_at since 2024-01-01T00:00:00Z" in scoped.text.splitlines()
    assert "body[t=text,g=false]" in scoped.text
