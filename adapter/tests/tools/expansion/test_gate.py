"""The schema is read when something is to be expanded, each time, and decides only when it can."""

from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer, FakeRs, Request
from adapter.tests.seed import declarations, world

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
plain: Json = {"stream": "messages", "connection_id": "cin_a"}
asked: Json = {**plain, "expand": ["attachments"]}
schema = ("v1", "schema")
records = ("v1", "streams", "messages", "records")


def without_relations() -> FakeRs:
    rs = world()
    rs.declarations = {name: {**row, "expand": []} for name, row in declarations.items()}
    return rs


async def test_nothing_to_expand_is_nothing_to_ask() -> None:
    rs = world()
    assert not (await ask(rs, "query_records", plain)).is_error
    assert rs.paths == [records]


async def test_the_schema_is_read_for_every_call_that_expands() -> None:
    rs = world()
    for arguments in (asked, {**plain, "expand_limit": {"attachments": 1}}, asked):
        rs.requests.clear()
        assert not (await ask(rs, "query_records", arguments)).is_error
        assert rs.paths == [schema, records]
        assert rs.requests[0].query == (
            ("view", "compact"),
            ("stream", "messages"),
            ("connection_id", "cin_a"),
        )


async def test_a_stream_without_relations_is_not_read() -> None:
    rs = without_relations()
    outcome = await ask(rs, "query_records", asked)
    error = outcome.structured["error"]
    assert error["code"] == "invalid_expand"
    assert error["next_call"] == {"tool": "query_records", "arguments": plain}
    assert rs.paths == [schema]


@pytest.mark.parametrize("relations", [[], [[], ["attachments"]]])
async def test_a_stream_that_is_not_described_or_has_one_relation_is_read(
    relations: list[list[str]],
) -> None:
    rs = world()
    rows = [
        {"name": "messages", "expand_capabilities": [{"name": name} for name in names]}
        for names in relations
    ]

    def script(request: Request) -> Answer | None:
        return Answer(200, {"streams": rows}) if request.path == schema else None

    rs.script = script
    assert not (await ask(rs, "query_records", asked)).is_error
    assert rs.paths == [schema, records]


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_a_schema_that_cannot_be_had_lets_the_server_decide(status: int) -> None:
    rs = without_relations()

    def script(request: Request) -> Answer | None:
        return Answer(status, {"error": {"code": "no"}}) if request.path == schema else None

    rs.script = script
    assert not (await ask(rs, "query_records", asked)).is_error
    assert rs.paths[-1] == records
