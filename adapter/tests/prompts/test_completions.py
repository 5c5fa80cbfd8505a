import pytest

from adapter.tests.asking import call_over
from adapter.tests.fake_rs import FakeRs, error_answer
from adapter.tests.seed import world
from pdpp_mcp_server.prompts import complete, matching

pytestmark = pytest.mark.anyio


async def values(
    rs: FakeRs, prompt: str | None, name: str, typed: str = "", **chosen: str
) -> list[str]:
    uri = None if prompt else "pdpp://stream/{name}"
    call = call_over(rs, "completion")
    found = await complete(call, prompt=prompt, uri=uri, name=name, typed=typed, chosen=chosen)
    return found.values


async def test_streams_connections_and_fields_come_from_the_live_schema() -> None:
    rs = world()
    assert await values(rs, None, "name") == ["attachments", "messages", "transactions"]
    assert await values(rs, "timeline", "stream", "M") == ["messages", "attachments"]
    assert await values(rs, "timeline", "connection_id") == ["cin_a", "cin_b", "cin_c"]
    narrowed = await values(rs, "timeline", "connection_id", stream="transactions")
    assert narrowed == ["cin_c"]
    fields = await values(rs, "stream_overview", "field", "am", stream="transactions")
    assert fields == ["amount"]
    assert all(request.headers["pdpp-tool"] == "completion" for request in rs.requests)
    assert len(rs.requests) == 5


async def test_anything_else_is_an_empty_list_without_a_read() -> None:
    rs = world()
    assert await values(rs, "timeline", "topic", "x") == []
    assert await values(rs, "no_such_prompt", "stream") == []
    assert await values(rs, None, "handle") == []
    assert await values(rs, "stream_overview", "field") == []
    assert rs.requests == []
    rs.script = lambda _: error_answer(500, "internal_error")
    assert await values(rs, "timeline", "stream") == []


def test_prefixes_come_first_then_substrings() -> None:
    found = matching({"beta", "Alpha", "alphabet", "a-beta"}, "AL")
    assert found.values == ["Alpha", "alphabet"]
    assert matching({"beta", "a-beta"}, "be").values == ["beta", "a-beta"]
    many = matching({f"s{n}" for n in range(300)}, "s")
    assert (len(many.values), many.total) == (100, 300)
