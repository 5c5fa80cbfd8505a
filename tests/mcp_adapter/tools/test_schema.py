"""Full detail is of one source; a server that answers for several is answered for."""

from typing import Any

import pytest

from tests.mcp_adapter.asking import ask
from tests.mcp_adapter.fake_rs import Answer, FakeRs, Request
from tests.mcp_adapter.seed import world

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


async def test_a_refusal_is_passed_on_and_names_alone_may_be_too_many() -> None:
    rs = world()
    rs.script = lambda _: Answer(403, {"error": {"code": "grant_revoked"}})
    assert (await ask(rs, "schema", {})).structured["error"]["code"] == "grant_revoked"
    names = [{"name": f"stream_{n}_" + "x" * 100} for n in range(600)]
    catalog = {"detail": "compact", "connectors": [{"connector_key": "k", "streams": names}]}
    rs.script = lambda _: Answer(200, catalog)
    error = (await ask(rs, "schema", {})).structured["error"]
    assert (error["code"], error["param"]) == ("result_too_large", "connection_id")


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
