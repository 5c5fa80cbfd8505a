import pytest

from tests.mcp_adapter.asking import ask
from tests.mcp_adapter.fake_rs import Answer
from tests.mcp_adapter.seed import world

pytestmark = pytest.mark.anyio


async def test_fields_and_view_exclude_each_other() -> None:
    rs = world()
    asked = {"stream": "messages", "fields": ["subject"], "view": "summary"}
    error = (await ask(rs, "query_records", asked)).structured["error"]
    assert (error["code"], error["param"]) == ("invalid_arguments", "view")
    rest = {"stream": "messages", "fields": ["subject"]}
    assert error["next_call"] == {"tool": "query_records", "arguments": rest}
    assert rs.requests == []


async def test_no_records_have_no_fence_and_keep_the_bookmark() -> None:
    rs = world()
    asked = {"stream": "messages", "changes_since": "x", "filter": {"id": "none"}}
    outcome = await ask(rs, "query_records", asked)
    head = outcome.text.split("\n")[0]
    assert head == 'query_records messages: records=0; has_more=false; next_changes_since="djE6OTk"'
    assert "BEGIN" not in outcome.text


async def test_deletions_are_blocks_without_data() -> None:
    rs = world()
    row = rs.row(rs.sources[0], "messages", "m1")
    del row["data"]
    gone = {**row, "deleted": True, "deleted_at": "2026-07-02T10:00:00Z"}
    rs.script = lambda _: Answer(200, {"data": [gone], "has_more": False})
    outcome = await ask(rs, "query_records", {"stream": "messages", "changes_since": "x"})
    assert "[1] cin_a/messages:m1\ndeleted: 2026-07-02T10:00:00Z\nEND " in outcome.text
    assert outcome.structured["record_ids"] == ["cin_a/messages:m1"]


async def test_a_declaration_that_was_read_keeps_bytes_out_of_both_faces() -> None:
    rs = world()
    rs.sources[0].streams["messages"]["m9"]["photo"] = "not base64, yet declared as bytes"
    asked = {"stream": "messages", "connection_id": "cin_a", "expand": ["attachments"]}
    page = await ask(rs, "query_records", asked)
    one = await ask(rs, "fetch", {"id": "cin_a/messages:m9", "expand": ["attachments"]})
    for outcome in (page, one):
        assert "yet declared" not in outcome.text
        assert "yet declared" not in str(outcome.structured)
    assert "\nbinary: photo application/octet-stream size unknown pdpp://record/" in page.text
    assert one.structured["metadata"]["content_ladder"][0]["kind"] == "binary"


async def test_count_cursor_and_ids_stand_in_both_faces_of_every_page() -> None:
    rs = world()
    asked: dict[str, object] = {"stream": "messages", "limit": 5, "count": "exact"}
    seen: list[str] = []
    for _ in range(9):
        outcome = await ask(rs, "query_records", asked)
        head = outcome.text.split("\n")[0]
        data, ids = outcome.structured["data"], outcome.structured["record_ids"]
        assert f"query_records messages: records={len(ids)}; " in head
        assert f"count=exact:{data['meta']['count']['value']}" in head
        assert head.endswith(f"first_id={ids[0]}")
        assert [line.partition(" ")[2] for line in blocks(outcome.text)] == ids
        seen += ids
        if not outcome.structured["next"]:
            break
        assert f'next_cursor="{data["next_cursor"]}"' in head
        asked = outcome.structured["next"][0]["arguments"]
        assert asked["cursor"] == data["next_cursor"]
    assert len(seen) == len(set(seen)) == 23


def blocks(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("[")]
