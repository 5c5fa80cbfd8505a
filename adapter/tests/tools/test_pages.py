"""Pages that fit, laid end to end, are the list; foreign servers are read as they are."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer, FakeRs, Request
from adapter.tests.reader import ids_of
from adapter.tests.seed import world

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
sizes = st.lists(st.sampled_from([10, 400, 3_000, 9_000, 40_000]), min_size=1, max_size=40)


def rows_of(lengths: list[int]) -> list[Json]:
    return [
        {
            "object": "record",
            "id": f"m{n}",
            "record_id": f"m{n}",
            "stream": "messages",
            "connection_id": "cin_a",
            "data": {"id": f"m{n}", "body": "w" * length, "note": '\u4e2d"\\' * (length // 40)},
        }
        for n, length in enumerate(lengths)
    ]


def serving(rows: list[Json], **members: Any) -> FakeRs:
    rs = world()

    def answer(request: Request) -> Answer | None:
        start = int((request.values("cursor") or ["0"])[0])
        end = start + int((request.values("limit") or ["25"])[0])
        if request.values("page_chars"):
            most = int(request.values("member_chars")[0])
            end = min(end, start + held(rows[start:], int(request.values("page_chars")[0]), most))
        body: Json = {"object": "list", "data": rows[start:end], "has_more": end < len(rows)}
        if body["has_more"]:
            body["next_cursor"] = str(end)
        return Answer(200, {**body, **members})

    rs.script = answer
    return rs


def held(rows: list[Json], page: int, most: int) -> int:
    """How many rows count at most that many characters; one at least."""
    counted = 0
    for number, row in enumerate(rows):
        values = (json.dumps(value, ensure_ascii=False) for value in row["data"].values())
        counted += 100 + sum(min(most, len(value)) + 10 for value in values)
        if number and counted > page:
            return number
    return len(rows)


@settings(max_examples=40, deadline=None)
@given(sizes, st.integers(1, 100), st.booleans())
async def test_pages_end_to_end_are_the_list(lengths: list[int], limit: int, is_ours: bool) -> None:
    rs = serving(rows_of(lengths))
    arguments: Json = {"stream": "messages", "limit": limit}
    seen: list[str] = []
    for _ in range(len(lengths) + 1):
        rs.requests.clear()
        outcome = await ask(rs, "query_records", arguments, is_ours=is_ours)
        assert not outcome.is_error
        assert len(rs.requests) <= (1 if is_ours else 3)
        assert len(outcome.text) <= 12_000
        seen += ids_of(outcome.structured)
        following = outcome.structured["next"]
        if not following:
            break
        arguments = following[0]["arguments"]
    assert seen == [f"cin_a/messages:m{n}" for n in range(len(lengths))]


@pytest.mark.parametrize("is_ours", [True, False])
async def test_a_client_that_may_have_more_is_shown_more(is_ours: bool) -> None:
    rs = serving(rows_of([2_400] * 40))
    sizes: list[tuple[int, int]] = []
    for chars in (20_000, 60_000, 200_000):
        arguments = {"stream": "messages", "limit": 40}
        shown = await ask(rs, "query_records", arguments, is_ours=is_ours, result_chars=chars)
        text, structured = shown.sizes
        assert text <= chars * 3 // 5
        assert structured <= chars
        sizes.append((text, structured))
    assert sizes == sorted(sizes)
    assert sizes[2][1] > 45_000


async def test_a_page_that_the_server_ended_is_shown_whole_in_one_read() -> None:
    rs = serving(rows_of([9_000] * 25))
    outcome = await ask(rs, "query_records", {"stream": "messages"}, is_ours=True)
    assert [request.values("page_chars") for request in rs.requests] == [["10800"]]
    assert [warning["code"] for warning in outcome.structured["warnings"]] == ["page_shortened"]
    assert 5 < len(ids_of(outcome.structured)) == len(outcome.structured["data"]["data"])
    assert outcome.structured["data"]["next_cursor"] in outcome.text.split("\n")[0]


async def test_rows_that_count_less_than_they_need_are_shown_in_less_of_each() -> None:
    rs = world()
    rows = [
        {**row, "data": {f"f{n}": row["id"] + "w" * 200 for n in range(40)}}
        for row in rows_of([1] * 12)
    ]
    rs.script = lambda _: Answer(200, {"data": rows, "has_more": True, "next_cursor": "c"})
    outcome = await ask(rs, "query_records", {"stream": "messages"}, is_ours=True)
    assert len(rs.requests) == 1
    assert len(ids_of(outcome.structured)) == 12
    assert outcome.structured["content_ladder"]
    assert len(outcome.text) <= 12_000


async def test_a_shortened_page_says_so_in_both_faces() -> None:
    outcome = await ask(serving(rows_of([9_000] * 25)), "query_records", {"stream": "messages"})
    warning = outcome.structured["warnings"][0]
    assert warning["code"] == "page_shortened"
    assert f"warning: page_shortened {warning['message']}" in outcome.text
    assert len(ids_of(outcome.structured)) < 25
    assert outcome.structured["data"]["next_cursor"] in outcome.text.split("\n")[0]


async def test_a_cursor_may_come_in_a_link() -> None:
    rs = world()
    links = {"next": "/v1/streams/messages/records?cursor=c7"}
    body = {"data": rows_of([10]), "has_more": True, "links": links}
    rs.script = lambda _: Answer(200, body)
    outcome = await ask(rs, "query_records", {"stream": "messages"})
    assert outcome.structured["next"][0]["arguments"]["cursor"] == "c7"


async def test_more_without_a_cursor_is_told() -> None:
    rs = world()
    rs.script = lambda _: Answer(200, {"data": rows_of([10] * 3), "has_more": True})
    outcome = await ask(rs, "query_records", {"stream": "messages"})
    assert [warning["code"] for warning in outcome.structured["warnings"]] == ["no_cursor"]
    assert "has_more=true" in outcome.text.split("\n")[0]
    assert outcome.structured["next"] == []


async def test_a_server_that_ignores_the_limit_is_cut_here() -> None:
    rs = world()
    rs.script = lambda _: Answer(200, {"data": rows_of([10] * 9), "next_cursor": "c"})
    outcome = await ask(rs, "query_records", {"stream": "messages", "limit": 4})
    assert len(ids_of(outcome.structured)) == 4
    assert "page_cut" in [warning["code"] for warning in outcome.structured["warnings"]]
    assert "next_cursor" not in outcome.structured["data"]


async def test_one_record_of_any_shape_fits() -> None:
    for data in (
        {"id": "m0", **{f"f{n}": "x" * 900 for n in range(900)}},
        {"id": "m0", "deep": [[[["x" * 90_000] * 4] * 4] * 4]},
        {"id": "m0", "wide": list(range(60_000))},
    ):
        row = {"record_id": "m0", "stream": "messages", "connection_id": "cin_a", "data": data}
        outcome = await ask(serving([row]), "query_records", {"stream": "messages"})
        assert not outcome.is_error, outcome.text[:200]
        assert ids_of(outcome.structured) == ["cin_a/messages:m0"]
        assert outcome.structured["content_ladder"]
        assert "cut: " in outcome.text


async def test_a_page_that_cannot_be_read_is_asked_for_once_more_with_one_row() -> None:
    rs = serving(rows_of([10] * 9))
    whole = rs.script

    def broken(request: Request) -> Answer | None:
        one = request.values("limit") == ["1"]
        return whole(request) if one and whole else Answer(200, None, content=b"{")

    rs.script = broken
    outcome = await ask(rs, "query_records", {"stream": "messages", "limit": 9})
    assert ids_of(outcome.structured) == ["cin_a/messages:m0"]
    assert outcome.structured["warnings"][0]["code"] == "page_shortened"
    assert outcome.structured["next"][0]["arguments"]["cursor"] == "1"
    assert len(rs.requests) == 2
    rs.requests.clear()
    rs.script = lambda _: Answer(200, None, content=b"{")
    refused = await ask(rs, "query_records", {"stream": "messages"})
    assert refused.structured["error"]["code"] == "rs_invalid_response"
    assert len(rs.requests) == 2


async def test_rows_without_identity_take_the_connection_of_the_request() -> None:
    rs = world()
    rs.script = lambda _: Answer(200, {"records": [{"id": "m1", "subject": "flat"}]})
    scoped = {"stream": "messages", "connection_id": "cin_a"}
    assert ids_of((await ask(rs, "query_records", scoped)).structured) == ["cin_a/messages:m1"]
    legacy = await ask(rs, "query_records", {"stream": "messages"})
    assert ids_of(legacy.structured) == ["messages:m1"]


async def test_only_an_unusable_answer_is_asked_for_again_with_one_row() -> None:
    rs = world()
    rs.script = lambda _: Answer(500, {"error": {"code": "broken"}})
    await ask(rs, "query_records", {"stream": "messages"})
    assert len(rs.requests) == 1
    rs = serving(rows_of([10] * 3))
    usable = rs.script
    assert usable is not None
    rs.script = lambda request: usable(request) if request.values("limit") else Answer(200, ["odd"])
    outcome = await ask(rs, "query_records", {"stream": "messages"})
    assert [request.values("limit") for request in rs.requests] == [[], ["1"]]
    assert ids_of(outcome.structured) == ["cin_a/messages:m0"]
