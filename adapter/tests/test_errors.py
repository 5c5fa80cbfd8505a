"""Every code of the adapter is produced, told in both faces, and its advice works."""

from typing import Any

import jsonschema_rs
import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer, FakeRs, Request
from adapter.tests.seed import declarations, world
from pdpp_mcp_server.contract import published_contract
from pdpp_mcp_server.errors import ARGUMENT_CODES, CONFLICT_CODES
from pdpp_mcp_server.handles import RecordRef
from pdpp_mcp_server.rs_client.credentials import NoCredential
from pdpp_mcp_server.rs_client.port import RsResponse, RsTimeout, RsUnreachable
from pdpp_mcp_server.window_cursors import (
    WindowCursor,
    field_key,
    render_cursor,
)

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
m8 = {"id": "cin_a/messages:m8", "field_path": "body"}
stale = render_cursor(
    WindowCursor(field_key(RecordRef(None, "messages", "m8"), "body"), 9, 9, "0123456789ab")
)
window: Json = {**m8, "q": "Lisbon", "offset_chars": 3}


def bare(rs: FakeRs) -> None:
    rs.declarations = {name: {**d, "expand": []} for name, d in declarations.items()}


def ambiguous(rs: FakeRs) -> None:
    def answer(request: Request) -> Answer | None:
        kept = tuple(pair for pair in request.query if pair[0] != "detail")
        return rs.answer(Request(request.method, request.path, kept, request.headers))

    rs.script = answer


def always(answer: Answer) -> Any:
    def script(request: Request) -> Answer | None:
        return answer

    def change(rs: FakeRs) -> None:
        rs.script = script

    return change


def nothing(rs: FakeRs) -> None:
    del rs


names = [{"name": f"stream_{n}_" + "x" * 100} for n in range(600)]
huge = Answer(200, {"detail": "compact", "connectors": [{"connector_key": "k", "streams": names}]})
cases: list[tuple[str, str, Json, Any]] = [
    ("invalid_arguments", "query_records", {"stream": "messages", "limit": 0}, nothing),
    ("invalid_filter", "query_records", {"stream": "messages", "filter": "filter[id]=m1"}, nothing),
    ("invalid_expand", "query_records", {"stream": "messages", "expand": ["x"]}, bare),
    ("invalid_id", "fetch", {"id": "a//b"}, nothing),
    ("conflicting_connection_id", "fetch", {**m8, "connection_id": "cin_b"}, nothing),
    ("invalid_request", "schema", {"detail": "full"}, nothing),
    ("invalid_field_window_selector", "read_record_field", window, nothing),
    ("invalid_cursor", "read_record_field", {**m8, "cursor": "4096"}, nothing),
    ("stale_cursor", "read_record_field", {**m8, "cursor": stale}, nothing),
    ("ambiguous_schema_detail", "schema", {"stream": "messages", "detail": "full"}, ambiguous),
    ("field_window_unsupported", "read_record_field", m8, always(Answer(404, {"detail": "no"}))),
    ("result_too_large", "schema", {}, always(huge)),
    ("rs_invalid_response", "schema", {"stream": "messages"}, always(Answer(200, ["odd"]))),
]
cases += [
    ("rs_invalid_response", tool, asked, always(Answer(200, ["odd"])))
    for tool, asked in (
        ("fetch", {"id": "cin_a/messages:m8"}),
        ("aggregate", {"stream": "messages", "metric": "count"}),
        ("search", {"query": "invoice"}),
    )
]
del cases[4][2]["field_path"]


def named(value: object) -> str:
    """A name that is the same in every process."""
    return getattr(value, "__qualname__", str(value)[:30])


@pytest.mark.parametrize(("code", "tool", "arguments", "change"), cases, ids=named)
async def test_a_refusal_is_typed_told_twice_and_its_advice_works(
    code: str, tool: str, arguments: Json, change: Any
) -> None:
    rs = world()
    change(rs)
    outcome = await ask(rs, tool, arguments)
    assert outcome.is_error
    error = outcome.structured["error"]
    assert error["code"] == code
    assert error["origin"] == "adapter"
    assert error["type"] in {"invalid_request_error", "conflict_error", "api_error"}
    schema = published_contract().tools[tool].output_schema
    jsonschema_rs.validator_for(schema).validate(outcome.structured)
    assert outcome.text.startswith(f"error {code}: {error['message']}"[:200])
    for name in ("param", "expected", "retry_with"):
        if name in error:
            assert f"{name}: {error[name]}" in outcome.text
    call = error.get("next_call")
    assert (f"next: {call['tool']} " in outcome.text) if call else "next: " not in outcome.text
    if call is not None and code not in {"rs_invalid_response", "field_window_unsupported"}:
        rs.script = None
        rs.declarations = declarations
        answered = await ask(rs, call["tool"], call["arguments"])
        assert not answered.is_error, answered.text


class Failing:
    def __init__(self, failure: type[Exception] | Exception) -> None:
        self.failure = failure

    async def get(self, path: Any, query: Any = (), *, max_bytes: int | None = None) -> RsResponse:
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (RsTimeout, "rs_timeout"),
        (RsUnreachable, "rs_unreachable"),
        (NoCredential("not_connected", "Run it again."), "not_connected"),
        (KeyError, "internal_error"),
    ],
)
async def test_failures_of_the_port_are_typed(
    failure: type[Exception] | Exception, code: str
) -> None:
    from pdpp_mcp_server.calls import ToolCall  # noqa: PLC0415
    from pdpp_mcp_server.server_offer import personal_data  # noqa: PLC0415
    from pdpp_mcp_server.tool_runs import ClientRequest, draw_nonce, guarded  # noqa: PLC0415

    port = Failing(failure)
    call = ToolCall("search", port, "https://me.example", draw_nonce)

    def open_port(name: str) -> Failing:
        return port

    caller = ClientRequest(open_port, "https://me.example", "req_9")
    outcome = await guarded(personal_data.tools["search"], call, {"query": "x"}, caller)
    assert outcome.structured["error"]["code"] == code


further_codes = {
    "field_window_unsupported",
    "result_too_large",
    "rs_timeout",
    "rs_unreachable",
    "rs_invalid_response",
    "internal_error",
    "resource_too_large",
}


def test_every_code_has_a_case() -> None:
    covered = {code for code, *_ in cases} | {"rs_timeout", "rs_unreachable", "internal_error"}
    assert covered | {"resource_too_large"} == ARGUMENT_CODES | CONFLICT_CODES | further_codes


rs_codes: list[tuple[str, int, Json, Json | None]] = [
    ("unknown_field", 400, {}, {"tool": "schema", "arguments": {"stream": "messages"}}),
    ("invalid_sort", 400, {}, {"tool": "schema", "arguments": {"stream": "messages"}}),
    (
        "invalid_cursor",
        400,
        {},
        {"tool": "query_records", "arguments": {"stream": "messages", "limit": 5}},
    ),
    (
        "cursor_expired",
        410,
        {"recovery": {"cursor": None}},
        {"tool": "query_records", "arguments": {"stream": "messages", "limit": 5}},
    ),
    ("field_not_granted", 403, {"recovery": {"fields": None}}, None),
    ("grant_stream_not_allowed", 403, {}, None),
    ("grant_revoked", 403, {}, None),
    ("quota_exceeded", 429, {}, None),
    (
        "quota_exceeded",
        429,
        {"recovery": {"limit": 2}, "remaining": 2, "resets_at": "2026-11-23T00:00:00.000Z"},
        {
            "tool": "query_records",
            "arguments": {"stream": "messages", "limit": 2, "cursor": "c"},
        },
    ),
]


@pytest.mark.parametrize(("code", "status", "members", "advice"), rs_codes)
async def test_server_codes_pass_with_the_advice_there_is(
    code: str, status: int, members: Json, advice: Json | None
) -> None:
    rs = world()
    always(Answer(status, {"error": {"code": code, "message": "No.", **members}}))(rs)
    asked = {"stream": "messages", "limit": 5, "cursor": "c"}
    error = (await ask(rs, "query_records", asked)).structured["error"]
    assert (error["code"], error["http_status"]) == (code, status)
    assert error.get("next_call") == advice


async def test_a_mode_that_is_not_there_leads_to_the_lexical_one() -> None:
    outcome = await ask(world(), "search", {"query": "invoice", "mode": "hybrid"})
    error = outcome.structured["error"]
    assert error["code"] == "unsupported_search_mode"
    assert error["next_call"]["arguments"] == {"query": "invoice", "mode": "lexical"}


async def test_modes_are_named_as_the_tool_takes_them() -> None:
    rs = world()
    refused = {"code": "unsupported_search_mode", "message": "No.", "param": "mode"}
    always(Answer(400, {"error": {**refused, "allowed_values": ["auto", "words"]}}))(rs)
    outcome = await ask(rs, "search", {"query": "invoice", "mode": "semantic"})
    assert outcome.structured["error"]["expected"] == "one of auto, lexical"
