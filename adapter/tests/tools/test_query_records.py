import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer
from adapter.tests.reader import ids_of
from adapter.tests.seed import world

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
    outcome = await ask(rs, "query_records", asked, is_ours=True)
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
    assert ids_of(outcome.structured) == ["cin_a/messages:m1"]
    rs.script = lambda _: Answer(200, {"data": [{**gone, "left": "filter"}], "has_more": False})
    left = await ask(rs, "query_records", {"stream": "messages", "changes_since": "x"})
    assert "\nleft the filter: 2026-07-02T10:00:00Z\nEND " in left.text


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
        data, ids = outcome.structured["data"], ids_of(outcome.structured)
        assert f"query_records messages: records={len(ids)}; " in head
        assert f"count=exact:{data['meta']['count']['value']}" in head
        is_table = "\ncolumns: " in outcome.text
        assert head.endswith(f"first_id={ids[0]}") is not is_table
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


@pytest.mark.parametrize("text", ["Invoice 7, 40 euro", ""])
async def test_a_file_says_where_its_bytes_are_and_where_its_text_is_read(text: str) -> None:
    rs = world()
    row = rs.row(rs.sources[0], "messages", "m1")
    reference = {"blob_id": "blob_1", "mime_type": "application/pdf", "size_bytes": 812}
    row["data"] = {"id": "m1", "blob_ref": reference, "text": text, "text_state": "read"}
    rs.script = lambda request: Answer(
        200, row if request.path[-1] == "m1" else {"data": [row], "has_more": False}
    )
    page = await ask(rs, "query_records", {"stream": "messages"})
    one = await ask(rs, "fetch", {"id": "cin_a/messages:m1"})
    read = {
        "tool": "read_record_field",
        "arguments": {"id": "cin_a/messages:m1", "field_path": "text"},
    }
    for ladder in (page.structured["content_ladder"], one.structured["metadata"]["content_ladder"]):
        [found] = ladder
        assert (found["kind"], found["blob_id"], found["size_bytes"]) == ("binary", "blob_1", 812)
        assert found["uri"].startswith("pdpp://blob/")
        assert found.get("read") == (read if text else None)
    [line] = [line for line in page.text.split("\n") if line.startswith("binary: blob_ref")]
    shown = ' read_record_field {"id":"cin_a/messages:m1","field_path":"text"}'
    assert line.endswith(shown) is bool(text)


async def test_what_is_cut_names_one_way_on_and_the_cursor_stands_in_no_link() -> None:
    rs = world()
    links = {"self": "/v1/x", "next": "/v1/x?cursor=c2"}
    row = rs.row(rs.sources[0], "messages", "m8")
    rs.script = lambda request: Answer(
        200,
        row
        if request.path[-1] == "m8"
        else {"data": [row], "has_more": True, "next_cursor": "c2", "links": links},
    )
    row["data"]["body"] = "word " * 8_000
    page = await ask(rs, "query_records", {"stream": "messages"})
    one = await ask(rs, "fetch", {"id": "cin_a/messages:m8"})
    for outcome in (page, one):
        found = outcome.structured.get("metadata", outcome.structured)["content_ladder"]
        cut = next(entry for entry in found if entry["field_path"] == "body")
        assert cut["read"]["tool"] == "read_record_field"
        assert "uri" not in cut
        assert any(link.uri.startswith("pdpp://field-window/") for link in outcome.links)
    assert page.structured["data"]["next_cursor"] == "c2"
    assert page.structured["data"]["links"] == {"self": "/v1/x"}


def entry(key: str, **data: str) -> dict[str, object]:
    return {
        "object": "timeline_entry",
        "id": key,
        "record_id": key,
        "stream": "messages",
        "data": {"at": "2026-01-01T10:00:00Z", **data},
        "connection_id": "cin_a",
        "connector_key": "gmail",
    }


async def test_without_a_stream_it_is_a_page_of_the_time_line() -> None:
    rs = world()
    rows = [entry("m1", title="Lunch"), entry("m2", preview="see you " * 25)]
    rs.script = lambda _: Answer(200, {"data": rows, "has_more": True, "next_cursor": "c2"})
    asked = {"since": "2026-01-01", "until": "2026-01-02", "order": "asc", "limit": 2}
    outcome = await ask(rs, "query_records", asked, is_ours=True)
    [request] = rs.requests
    assert request.path == ("v1", "timeline")
    sent = {name: value for name, value in request.query if not name.endswith("_chars")}
    days = {"since": "2026-01-01", "until": "2026-01-02", "time_zone": "owner"}
    assert sent == {**days, "order": "asc", "limit": "2"}
    head = outcome.text.split("\n")[0]
    assert head.startswith("query_records: records=2; timeline=asc; has_more=true;")
    assert "ids: cin_a/messages:<first column>" in outcome.text
    assert "Lunch" in outcome.text
    assert "see you see you" in outcome.text
    assert outcome.structured["content_ladder"] == []
    [following] = outcome.structured["next"]
    assert following["arguments"] == {**asked, "cursor": "c2"}


async def test_of_several_times_the_one_of_the_range_is_said() -> None:
    rs = world()
    meta = {"time_zone": "Europe/Rome", "ranged_by": "added_on"}
    rs.script = lambda _: Answer(200, {"data": [], "has_more": False, "meta": meta})
    outcome = await ask(rs, "query_records", {"stream": "books", "since": "2026"}, is_ours=True)
    assert "since and until: added_on" in outcome.text.split("\n")
    assert outcome.structured["data"]["meta"]["ranged_by"] == "added_on"


async def test_an_entry_that_is_cut_leads_on_by_its_id_alone() -> None:
    rs = world()
    rows = [entry("m1", preview="see you " * 5_000)]
    rs.script = lambda _: Answer(200, {"data": rows, "has_more": False})
    outcome = await ask(rs, "query_records", {}, is_ours=True)
    assert outcome.structured["content_ladder"] == []
    assert "read_record_field" not in outcome.text
    assert len(outcome.text) < 25_000


@pytest.mark.parametrize(
    "name_and_value",
    [
        ("fields", ["subject"]),
        ("view", "summary"),
        ("filter", {"a": 1}),
        ("sort", "-a"),
        ("count", "exact"),
        ("expand", ["attachments"]),
        ("expand_limit", {"attachments": 1}),
        ("changes_since", "now"),
    ],
)
async def test_what_is_of_one_stream_needs_its_name(name_and_value: tuple[str, object]) -> None:
    rs = world()
    asked = dict([name_and_value])
    error = (await ask(rs, "query_records", asked, is_ours=True)).structured["error"]
    assert (error["code"], error["param"]) == ("invalid_arguments", "stream")
    assert error["next_call"] == {"tool": "schema", "arguments": {}}
    assert rs.requests == []


@pytest.mark.parametrize(
    ("tool", "asked", "param"),
    [
        ("query_records", {}, "stream"),
        ("query_records", {"since": "2026-01-01"}, "stream"),
        ("query_records", {"stream": "messages", "since": "2026-01-01"}, "since"),
        ("query_records", {"stream": "messages", "until": "2026-01-01"}, "until"),
        ("query_records", {"stream": "messages", "changes_since": "now"}, "changes_since"),
        (
            "query_records",
            {"stream": "messages", "changes_since": "b", "filter": {"a": 1}},
            "filter",
        ),
        ("search", {"query": "words", "since": "2026-01-01"}, "since"),
        ("search", {"query": "words", "until": "2026-01-01"}, "until"),
    ],
)
async def test_what_a_server_does_not_name_is_refused_without_a_call(
    tool: str, asked: dict[str, object], param: str
) -> None:
    rs = world()
    error = (await ask(rs, tool, asked)).structured["error"]
    assert (error["code"], error["param"]) == ("invalid_arguments", param)
    assert error["next_call"]["tool"] == "schema"
    assert rs.requests == []


async def test_a_date_as_bookmark_reaches_every_server() -> None:
    rs = world()
    await ask(rs, "query_records", {"stream": "messages", "changes_since": "2026-01-01"})
    [request] = rs.requests
    assert request.values("changes_since") == ["2026-01-01"]


@pytest.mark.parametrize("tool", ["query_records", "search"])
async def test_a_range_of_time_goes_beside_a_stream(tool: str) -> None:
    rs = world()
    scope = {"stream": "messages"} if tool == "query_records" else {"query": "words"}
    times = {"since": "2026-01-01", "until": "2026-02-01"}
    await ask(rs, tool, {**scope, **times}, is_ours=True)
    [request] = rs.requests
    assert {name: request.values(name) for name in times} == {
        "since": ["2026-01-01"],
        "until": ["2026-02-01"],
    }
