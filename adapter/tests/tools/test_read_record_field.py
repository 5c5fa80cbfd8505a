"""One record, one window: every other combination is refused before any read."""

from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer, FakeRs, Request, error_answer
from adapter.tests.legality import insist_on_legal
from adapter.tests.seed import long_body, world
from pdpp_mcp_server.handles import RecordRef
from pdpp_mcp_server.window_cursors import (
    WindowCursor,
    field_key,
    render_cursor,
)

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
m8: Json = {"id": "cin_a/messages:m8", "field_path": "body"}
parts: Json = {"connection_id": "cin_a", "stream": "messages", "record_id": "m8"}
by_parts: Json = {**parts, "field_path": "body"}


def cursor(offset: int = 9, key: str = "m8", field: str = "body", digest: str = "") -> str:
    bound = field_key(RecordRef(None, "messages", key), field)
    return render_cursor(WindowCursor(bound, offset, 40, digest))


def less(arguments: Json, *names: str) -> Json:
    return {name: value for name, value in arguments.items() if name not in names}


first: Json = {**m8, "offset_chars": 0}
second: Json = {**m8, "offset_chars": 1}
continued: Json = {**m8, "cursor": cursor()}
choices: list[Json] = [{"offset_chars": 1}, {"q": "a"}, {"before_chars": 1}, {"after_chars": 1}]
by_legacy_id: Json = {"id": "messages:m8", "field_path": "body"}
selector = "invalid_field_window_selector"
refused: list[tuple[Json, str, str, Json | None]] = [
    ({"field_path": "body"}, "invalid_arguments", "id", None),
    (less(by_parts, "connection_id"), "invalid_arguments", "connection_id", by_legacy_id),
    (less(by_parts, "record_id"), "invalid_arguments", "record_id", None),
    (less(by_parts, "stream"), "invalid_arguments", "stream", None),
    ({**m8, "stream": "messages"}, "invalid_arguments", "stream", m8),
    ({**m8, "record_id": "m8"}, "invalid_arguments", "record_id", m8),
    ({**m8, "connection_id": "cin_b"}, "conflicting_connection_id", "connection_id", m8),
    ({**by_parts, "stream": "a/b"}, "invalid_arguments", "stream", None),
    ({**m8, "q": "a", "offset_chars": 1}, selector, "offset_chars", {**m8, "q": "a"}),
    ({**m8, "before_chars": 1}, selector, "before_chars", m8),
    (
        {**m8, "offset_chars": 1, "after_chars": 1},
        selector,
        "after_chars",
        m8 | {"offset_chars": 1},
    ),
    *(
        (
            {**m8, "cursor": cursor(), **chosen},
            selector,
            next(iter(chosen)),
            {**m8, "cursor": cursor()},
        )
        for chosen in ({"offset_chars": 1}, {"q": "a"}, {"before_chars": 1}, {"after_chars": 1})
    ),
    ({**m8, "cursor": "damaged", "q": "a"}, selector, "q", {**m8, "q": "a"}),
    ({**m8, "cursor": "4096"}, "invalid_cursor", "cursor", {**m8, "offset_chars": 4096}),
    ({**m8, "cursor": cursor(key="m9")}, "invalid_cursor", "cursor", {**m8, "offset_chars": 0}),
    (
        {**m8, "cursor": cursor(field="subject")},
        "invalid_cursor",
        "cursor",
        m8 | {"offset_chars": 0},
    ),
]


@pytest.mark.parametrize(("asked", "code", "param", "advice"), refused)
async def test_a_wrong_choice_is_refused_with_the_call_that_was_meant(
    asked: Json, code: str, param: str, advice: Json | None
) -> None:
    rs = world()
    error = (await ask(rs, "read_record_field", asked)).structured["error"]
    assert (error["code"], error["param"]) == (code, param)
    assert rs.requests == []
    call = error.get("next_call")
    assert (call and call["arguments"]) == advice
    if call is not None:
        insist_on_legal(call)


def sent(rs: FakeRs) -> list[tuple[str, str]]:
    return [pair for pair in rs.requests[-1].query if pair[0] not in {"connection_id", "field"}]


async def test_only_what_was_given_is_sent() -> None:
    rs = world()
    windows: list[tuple[Json, list[tuple[str, str]]]] = [
        (m8, []),
        (by_parts, []),
        (
            {**m8, "offset_chars": 5, "limit_chars": 7},
            [("offset_chars", "5"), ("limit_chars", "7")],
        ),
        ({**m8, "q": "Lisbon", "before_chars": 3}, [("q", "Lisbon"), ("before_chars", "3")]),
        ({**m8, "cursor": cursor(9)}, [("offset_chars", "9"), ("limit_chars", "40")]),
        (
            {**m8, "cursor": cursor(9), "limit_chars": 8},
            [("offset_chars", "9"), ("limit_chars", "8")],
        ),
    ]
    for asked, pairs in windows:
        outcome = await ask(rs, "read_record_field", asked)
        assert not outcome.is_error, outcome.text
        assert sent(rs) == pairs
        assert rs.requests[-1].path[-1] == "field-window"


async def test_a_field_that_changed_since_is_told_and_not_shown() -> None:
    rs = world()
    start = await ask(rs, "read_record_field", {**m8, "limit_chars": 20})
    following = {**m8, "cursor": start.structured["window"]["next_cursor"]}
    again = await ask(rs, "read_record_field", following)
    assert again.structured["window"]["text"] == long_body[20:40]
    rs.sources[0].streams["messages"]["m8"]["body"] = "Changed. " * 40
    changed = await ask(rs, "read_record_field", following)
    error = changed.structured["error"]
    assert error["code"] == "stale_cursor"
    assert error["next_call"]["arguments"] == first
    assert "Changed" not in changed.text


async def test_a_cursor_without_a_digest_continues_whatever_the_field_holds() -> None:
    outcome = await ask(world(), "read_record_field", {**m8, "cursor": cursor(9)})
    assert outcome.structured["window"]["text"] == long_body[9:49]


async def test_an_answer_without_a_window_is_not_made_up() -> None:
    rs = world()
    rs.script = lambda _: error_answer(403, "field_not_granted")
    error = (await ask(rs, "read_record_field", m8)).structured["error"]
    assert error["code"] == "field_not_granted"
    odd: list[Any] = [["odd"], {"window": {}}, {"window": {"text": 7}}, {}]
    for body in odd:
        rs.script = always(Answer(200, body))
        error = (await ask(rs, "read_record_field", m8)).structured["error"]
        assert error["code"] == "rs_invalid_response"
        assert error["next_call"] == {"tool": "read_record_field", "arguments": m8}


@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ({"limit_chars": 7}, 7),
        ({"q": "Paragraph", "before_chars": 2, "after_chars": 3}, 14),
        ({}, 4_096),
    ],
)
async def test_a_window_is_never_longer_than_asked_for(asked: dict[str, Any], most: int) -> None:
    rs = world()
    window = {"text": "w" * 9_000, "start_chars": 0, "limit_chars": 9_000}
    rs.script = always(Answer(200, {"field": {"size_chars": 20_000}, "window": window}))
    shown = (await ask(rs, "read_record_field", {**m8, **asked})).structured["window"]
    assert shown["limit_chars"] == len(shown["text"]) == most
    assert shown["next_cursor"]


async def test_the_last_window_says_that_the_field_ends() -> None:
    rs = world()
    last = await ask(rs, "read_record_field", {**m8, "offset_chars": len(long_body) - 9})
    assert last.structured["window"]["complete"] is False
    assert last.text.split("\n")[1] == "end of field"
    for asked in ({"offset_chars": 0, "limit_chars": 9}, {"limit_chars": 16_384}):
        assert "end of field" not in (await ask(rs, "read_record_field", {**m8, **asked})).text


def always(answer: Answer) -> Any:
    def script(request: Request) -> Answer:
        return answer

    return script
