"""What a tool answers by default fits a host that cuts at 20,000 characters, in both faces."""

from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.seed import declarations, many, world

pytestmark = pytest.mark.anyio
MOST_CHARS = 20_000
one = {"id": "cin_a/messages:m8"}
stream = {"stream": "messages", "connection_id": "cin_a"}
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("schema", {}),
    ("schema", stream),
    ("query_records", stream),
    ("aggregate", {**stream, "metric": "count", "group_by": "subject"}),
    ("search", {"query": "invoice"}),
    ("fetch", one),
    ("read_record_field", {**one, "field_path": "body"}),
)
TEXTS = ("word ", "\x01\x02", '"\\', "中", "🛫é", "<mark>", "line\n")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("tool", "arguments"), ASKED)
async def test_both_faces_of_a_default_result(
    tool: str, arguments: dict[str, Any], text: str
) -> None:
    rs = world()
    for row in rs.sources[0].streams["messages"].values():
        row["body"] = f"invoice {text * 40_000}"
        row["subject"] = f"{row['id']} {text * 40}"
    outcome = await ask(rs, tool, arguments, is_ours=True)
    assert not outcome.is_error, outcome.text[:300]
    assert max(outcome.sizes) <= MOST_CHARS


async def test_the_index_of_many_streams() -> None:
    rs = world()
    rs.sources = many(24, 4)
    names = [name for source in rs.sources for name in source.streams]
    rs.declarations = dict.fromkeys(names, declarations["messages"])
    outcome = await ask(rs, "schema", {}, is_ours=True)
    assert not outcome.is_error, outcome.text[:300]
    assert all(name in outcome.text for name in names)
    assert max(outcome.sizes) <= MOST_CHARS
