"""What another resource server may do, and what an agent sees of it; through every door."""

from __future__ import annotations

import json

import pytest

from adapter.tests.reader import Text, ids_of
from adapter.tests.seed import long_body
from tests.requirements.doors import Door, Result
from tests.requirements.recorded import RecordedRs

pytestmark = pytest.mark.anyio
published, viewless, early = "as_published", "without_views", "early_compact"
m8 = {"id": "cin_a/messages:m8", "field_path": "body"}
two = {"stream": "messages", "connection_id": "cin_a", "limit": 2, "count": "exact"}


def behind(door: Door, name: str) -> Door:
    door.world.rs = RecordedRs(name)
    return door


def warnings_of(result: Result) -> list[str]:
    return [warning["code"] for warning in result.structured["warnings"]]


def rows_in(result: Result) -> list[dict[str, object]]:
    return [row for item in result.structured["data"]["connectors"] for row in item["streams"]]


@pytest.mark.req("4.16")
async def test_a_refused_view_is_asked_for_once_more_without_it(door: Door) -> None:
    behind(door, viewless)
    result = await door.fresh("schema", {"stream": "messages"})
    assert [request.names for request in door.requests] == [{"view", "stream"}, {"stream"}]
    row = result.structured["data"]["streams"][0]
    assert row["field_capabilities"]["sent_at"] == "t=timestamp,eq,r=gte|lt"
    assert "schema" not in row
    await door.fresh("query_records", {"stream": "messages", "expand": ["attachments"]})
    assert [request.path for request in door.requests] == [("v1", "schema")] * 2


@pytest.mark.req("4.16")
async def test_an_ignored_view_is_made_here(door: Door) -> None:
    behind(door, published)
    result = await door.fresh("schema", {"stream": "messages"})
    assert len(door.requests) == 1
    data = result.structured["data"]
    assert data["detail"] == "compact"
    assert [row["name"] for row in rows_in(result)] == ["messages"]
    assert rows_in(result)[0]["field_capabilities"] == {
        "id": "t=string,eq",
        "subject": "t=string,eq,lex,a=group_by",
        "body": "t=string,lex",
        "sent_at": "t=timestamp,eq,r=gte|lt",
        "from": "t=string,eq,a=group_by",
    }
    assert len(data["connectors"][0]["granted_connections"]) == 2
    assert "granted_connections" not in rows_in(result)[0]


async def test_rows_that_were_not_asked_for_are_dropped(door: Door) -> None:
    behind(door, published)
    scoped = await door.call("schema", {"connection_id": "cin_c"})
    assert [row["name"] for row in rows_in(scoped)] == ["transactions"]
    assert "cin_a" not in json.dumps(scoped.structured) + scoped.text
    full = {"stream": "messages", "detail": "full", "connection_id": "cin_b"}
    shown = await door.call("schema", full)
    assert [row["name"] for row in rows_in(shown)] == ["messages"]
    assert "cin_a" not in json.dumps(shown.structured) + shown.text


async def test_what_a_row_lacks_is_not_stated(door: Door) -> None:
    behind(door, early)
    result = await door.call("schema", {"stream": "messages"})
    lines = result.text.split("\n")
    for name in ("sort", "count", "search", "aggregations"):
        assert f"{name}: not stated" in lines
    assert "projection: fields=any granted field; views=not stated" in lines


async def test_the_older_spelling_is_read_and_never_shown_in_a_schema(door: Door) -> None:
    behind(door, published)
    for arguments in ({}, {"stream": "messages"}):
        result = await door.call("schema", arguments)
        assert "connector_instance_id" not in json.dumps(result.structured) + result.text
        assert "cin_a" in result.text
    page = await door.call("query_records", {"stream": "messages"})
    assert ids_of(page.structured)[-1] == "cin_b/messages:m1"
    ambiguous = await door.call("fetch", {"id": "messages:m1"})
    offered = ambiguous.error["available_connections"]
    assert [entry["connection_id"] for entry in offered] == ["cin_a", "cin_b"]
    assert ambiguous.error["retry_with"] == "connection_id"
    assert ambiguous.error["guidance"]


@pytest.mark.parametrize("recording", [published, viewless, early])
async def test_connector_addresses_are_shown_by_their_last_segment(
    door: Door, recording: str
) -> None:
    behind(door, recording)
    lines = (await door.call("schema", {})).text.split("\n")
    assert any(line.startswith("streams gmail [cin_a") for line in lines)
    assert "streams chase [cin_c]: transactions" in lines
    assert "connection cin_c: connector_key=chase; label=Chase" in lines
    assert "https" not in "".join(lines)


async def test_records_without_identity_get_it_from_the_request(door: Door) -> None:
    behind(door, viewless)
    scoped = await door.call("query_records", two)
    assert ids_of(scoped.structured) == ["cin_a/messages:m9", "cin_a/messages:m8"]
    plain = await door.call("query_records", {"stream": "messages"})
    assert ids_of(plain.structured)[0] == "messages:m9"
    opened = await door.call("fetch", {"id": "messages:m1"})
    assert opened.structured["title"] == "Personal invoice 1 for garden tools"


@pytest.mark.req("4.41")
@pytest.mark.parametrize("recording", [published, viewless, early])
async def test_rows_are_found_where_they_stand_and_data_stays_as_sent(
    door: Door, recording: str
) -> None:
    behind(door, recording)
    body = door.world.rs.answer
    for tool, arguments in (
        ("search", {"query": "invoice"}),
        ("query_records", {"stream": "messages"}),
    ):
        result = await door.fresh(tool, arguments)
        assert len(Text(result.text).ids) >= 4
        sent = body(door.requests[0]).body
        assert set(result.structured["data"]) == set(sent)
        assert type(result.structured["data"].get("data")) is type(sent.get("data"))


async def test_a_cursor_that_stands_in_a_link_continues(door: Door) -> None:
    behind(door, published)
    first = await door.call("query_records", two)
    assert Text(first.text).fact("next_cursor") == "b2Zmc2V0LTI"
    following = Text(first.text).following("query_records", two)
    assert following is not None
    second = await door.call(following.tool, following.arguments)
    ids = ids_of(first.structured) + ids_of(second.structured)
    assert ids == [f"cin_a/messages:m{n}" for n in (9, 8, 7, 1)]


async def test_more_without_a_cursor_is_warned_about(door: Door) -> None:
    behind(door, viewless)
    result = await door.call("query_records", {"stream": "messages"})
    assert warnings_of(result) == ["no_cursor"]
    assert Text(result.text).fact("has_more") == "true"
    assert result.structured["next"] == []


async def test_counts_are_told_alike(door: Door) -> None:
    for recording, count in ((published, "exact:4"), (viewless, "estimated:40")):
        behind(door, recording)
        result = await door.call("query_records", two)
        assert Text(result.text).fact("count") == count


@pytest.mark.req("0.15")
async def test_no_more_rows_are_shown_than_were_asked_for(door: Door) -> None:
    behind(door, viewless)
    result = await door.call("query_records", two)
    assert len(ids_of(result.structured)) == len(Text(result.text).ids) == 2
    assert len(result.structured["data"]["data"]["records"]) == 2
    assert "page_cut" in warnings_of(result)
    assert Text(result.text).fact("next_cursor") is None


@pytest.mark.req("2.7")
@pytest.mark.parametrize("recording", [published, early])
async def test_a_server_without_windows_is_never_sliced_for(door: Door, recording: str) -> None:
    behind(door, recording)
    refused = await door.fresh("read_record_field", m8)
    assert refused.error["code"] == "field_window_unsupported"
    assert [request.path[-1] for request in door.requests] == ["field-window"]
    advised = refused.error["next_call"]
    assert advised == {"tool": "fetch", "arguments": {"id": m8["id"], "fields": ["body"]}}


async def test_windows_in_other_units_are_walked_by_code_points(door: Door) -> None:
    behind(door, viewless)
    first = await door.call("read_record_field", m8)
    window = first.structured["window"]
    assert window["end_chars"] == len(window["text"]) < 4_096
    assert long_body.startswith(window["text"])
    following = Text(first.text).calls()[0]
    second = await door.fresh(following.tool, following.arguments)
    asked = dict(door.requests[0].query)
    assert int(asked["offset_chars"]) == window["end_chars"]
    assert not second.is_error
    assert "digest" not in first.structured["field"]


@pytest.mark.parametrize("recording", [published, viewless, early])
async def test_a_mode_that_is_not_there_leads_to_the_words(door: Door, recording: str) -> None:
    behind(door, recording)
    refused = await door.call("search", {"query": "invoice", "mode": "semantic"})
    assert refused.error["http_status"] == 404
    advised = refused.error["next_call"]
    assert advised["arguments"] == {"query": "invoice", "mode": "lexical"}


async def test_failures_of_any_shape_are_typed_and_never_html(door: Door) -> None:
    behind(door, viewless)
    count = {"stream": "transactions", "metric": "count"}
    cases = [
        ("query_records", {"stream": "secrets"}, "http_403"),
        ("aggregate", count, "http_501"),
        ("aggregate", {**count, "group_by": "category"}, "busy"),
        ("query_records", {"stream": "messages", "cursor": "nonsense"}, "invalid_cursor"),
        ("fetch", {"id": "cin_a/messages:none"}, "http_404"),
    ]
    for tool, arguments, code in cases:
        result = await door.call(tool, arguments)
        assert result.error["code"] == code
        assert result.error["message"]
        assert "<" not in result.text + json.dumps(result.structured)
    assert (await door.call(*cases[2][:2])).error["retry_after_seconds"] == 7
    behind(door, published)
    denied = await door.call("query_records", {"stream": "secrets"})
    assert denied.error["request_id"] == "req_01JQXA3N9Y"
