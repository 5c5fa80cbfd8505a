from base64 import b64encode
from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer
from adapter.tests.seed import world

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
base: Json = {"stream": "transactions", "metric": "count"}


@pytest.mark.parametrize(
    ("extra", "param"),
    [
        ({"metric": "sum"}, "field"),
        ({"group_by": "a", "then_by": "c", "group_by_time": "b", "granularity": "day"}, "then_by"),
        ({"group_by": "a", "then_by": "a"}, "then_by"),
        ({"then_by": "a"}, "then_by"),
        ({"bin": 5}, "bin"),
        ({"group_by": "a", "bin": "5"}, "bin"),
        ({"group_by": "a", "bin": -1}, "bin"),
        ({"group_by": "a", "bin": float("nan")}, "bin"),
        ({"sort": "key"}, "sort"),
        ({"across": "connections", "connection_id": "cin_a"}, "across"),
        ({"query": "  "}, "query"),
        ({"metric": "p90"}, "field"),
        ({"group_by_time": "b"}, "granularity"),
        ({"granularity": "day"}, "granularity"),
        ({"group_by": "a", "time_zone": 5}, "time_zone"),
    ],
)
async def test_contradictions_are_refused_before_a_read(extra: Json, param: str) -> None:
    rs = world()
    error = (await ask(rs, "aggregate", {**base, **extra}, is_ours=True)).structured["error"]
    assert (error["code"], error["param"]) == ("invalid_arguments", param)
    assert rs.requests == []


further: list[tuple[Json, str]] = [
    ({"metric": "median", "field": "amount"}, "metric"),
    ({"group_by_time": "b", "granularity": "weekday"}, "granularity"),
    ({"group_by": "a", "group_by_time": "b", "granularity": "day"}, "group_by_time"),
    ({"group_by": "a", "then_by": "b"}, "then_by"),
    ({"group_by": "a", "bin": 0.25}, "bin"),
    ({"group_by": "a", "sort": "-key"}, "sort"),
    ({"query": "rain"}, "query"),
    ({"across": "connections"}, "across"),
]


@pytest.mark.parametrize(("extra", "param"), further)
async def test_what_a_server_does_not_name_is_refused_without_a_call(
    extra: Json, param: str
) -> None:
    rs = world()
    error = (await ask(rs, "aggregate", {**base, **extra})).structured["error"]
    assert (error["code"], error["param"]) == ("invalid_arguments", param)
    assert error["next_call"] == {"tool": "schema", "arguments": {"stream": "transactions"}}
    assert rs.requests == []


@pytest.mark.parametrize(("extra", "param"), further)
async def test_what_a_server_names_is_sent(extra: Json, param: str) -> None:
    rs = world()
    rs.script = lambda _: Answer(200, {"value": 1})
    await ask(rs, "aggregate", {**base, **extra}, is_ours=True)
    (request,) = rs.requests
    sent = {"query": "q"}.get(param, param)
    assert request.values(sent) == [str(extra[param])]


async def test_groups_have_two_sides_labels_and_steps_behind_the_fence() -> None:
    rs = world()
    pair = {"key": "U7", "label": "Ada", "then": "monday", "then_label": "x" * 130, "count": 5}
    step = {"key": 0, "until": 50, "count": 2, "value": 7}
    rs.script = lambda _: Answer(200, {"groups": [pair], "time_zone": "UTC", "other_count": 0})
    asked = {**base, "group_by": "who", "group_by_time": "at", "granularity": "weekday"}
    lines = (await ask(rs, "aggregate", asked, is_ours=True)).text.split("\n")
    assert " of transactions by who and at per weekday (UTC): " in lines[0]
    assert f'key "U7" label "Ada", "monday" label "{"x" * 120}…" = 5' in lines
    rs.script = lambda _: Answer(200, {"groups": [step], "bin": 50, "other_count": 0})
    asked = {**base, "metric": "sum", "field": "n", "group_by": "amount", "bin": 50}
    lines = (await ask(rs, "aggregate", asked, is_ours=True)).text.split("\n")
    assert " of transactions by amount in steps of 50: " in lines[0]
    assert "key 0 until 50 = 7 (records 2)" in lines


async def test_the_rest_of_groups_has_its_unit_and_a_warning_the_label_of_its_account() -> None:
    rs = world()
    left_out = {"code": "source_skipped_not_applicable", "message": "It has no such field."}
    left_out |= {"connection_id": "cin_b", "display_name": "Work", "detail": {"stream": "payments"}}
    group = {"key": "Rent", "count": 2, "value": 7, "unit": "ms"}
    body = {"groups": [group], "other_count": 3, "other_value": 12, "unit": "ms"}
    rs.script = lambda _: Answer(200, {**body, "meta": {"warnings": [left_out]}})
    asked = {**base, "metric": "sum", "field": "n", "group_by": "who"}
    found = await ask(rs, "aggregate", asked, is_ours=True)
    assert "other_count = 3 (in groups beyond limit); other_value = 12 ms" in found.text
    assert "(stream=payments; connection_id=cin_b; label=Work)" in found.text
    assert found.structured["warnings"] == [left_out]


async def test_time_groups_name_their_unit() -> None:
    rs = world()
    group = {"key": "2026-01-01", "start": "2026-01-01T00:00:00Z", "count": 3}
    rs.script = lambda _: Answer(200, {"groups": [group], "time_zone": "UTC", "other_count": 0})
    asked = {**base, "group_by_time": "sent_at", "granularity": "month"}
    lines = (await ask(rs, "aggregate", asked)).text.split("\n")
    assert lines[0].startswith("aggregate: count of transactions by sent_at per month (UTC): ")
    assert 'key "2026-01-01" = 3' in lines


@pytest.mark.parametrize(
    ("zone", "key", "start", "shown"),
    [
        ("Europe/Rome", "2026-10-25", "2026-10-25T00:00:00+02:00", ""),
        ("UTC", "2026-10-25T02:00", "2026-10-25T02:00:00+00:00", ""),
        ("UTC", "2026-10-25T02:07", "2026-10-25T02:07:00Z", ""),
        ("UTC", "2026-10-25", "2026-10-24T22:00:00Z", " (start 2026-10-24T22:00:00Z)"),
        (None, "W43", "2026-10-19T00:00:00Z", " (start 2026-10-19T00:00:00Z)"),
        *(
            ("Europe/Rome", "2026-10-25T02:00", start, f" (start {start})")
            for start in ("2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00")
        ),
    ],
)
async def test_a_time_group_says_its_start_where_its_key_does_not(
    zone: str | None, key: str, start: str, shown: str
) -> None:
    rs = world()
    asked = {**base, "group_by_time": "sent_at", "granularity": "hour"}
    for group in ({"key": key}, {"key": "Ada", "then": key}):
        body = {"groups": [{**group, "start": start, "count": 3}], "time_zone": zone}
        rs.script = lambda _, body=body: Answer(200, body)
        line = (await ask(rs, "aggregate", asked)).text.split("\n")[2]
        assert line.endswith(f'"{key}" = 3{shown}')


async def test_a_text_extreme_stands_behind_the_fence() -> None:
    rs = world()
    rs.script = lambda _: Answer(200, {"value": "words of " + "others " * 60})
    asked = {**base, "metric": "max", "field": "note"}
    outcome = await ask(rs, "aggregate", asked)
    assert "words" not in outcome.text.split("\n")[0]
    assert 'value "words of' in outcome.text
    assert outcome.structured["notice"]
    rs.script = lambda _: Answer(200, {"value": "2026-01-01T00:00:00Z", "approximate": True})
    head = (await ask(rs, "aggregate", asked)).text.split("\n")[0]
    assert head.endswith("max(note) of transactions = 2026-01-01T00:00:00Z; approximate=true")


async def test_groups_of_a_server_that_ignores_limits_are_refused_when_they_never_fit() -> None:
    rs = world()
    groups = [{"key": f"{n} " + "x" * 200, "count": 1} for n in range(100)]
    rs.script = lambda _: Answer(200, {"groups": groups, "group_count": 100, "other_count": 0})
    outcome = await ask(rs, "aggregate", {**base, "group_by": "category"})
    error = outcome.structured["error"]
    assert error["code"] == "result_too_large"
    assert error["next_call"] == {"tool": "aggregate", "arguments": base}
    assert [request.values("limit") for request in rs.requests][-1] == ["1"]


async def test_a_key_of_encoded_bytes_is_described() -> None:
    rs = world()
    group = {"key": b64encode(bytes(range(256))).decode(), "count": 1}
    rs.script = lambda _: Answer(200, {"groups": [group], "group_count": 1, "other_count": 0})
    text = (await ask(rs, "aggregate", {**base, "group_by": "category"})).text
    assert '\nkey "[binary 256 bytes application/octet-stream]" = 1\n' in text
