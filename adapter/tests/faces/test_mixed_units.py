"""Amounts with their currency, and all warnings in one place."""

from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer
from adapter.tests.seed import world

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
SUM: Json = {"stream": "transactions", "metric": "sum", "field": "amount"}
ROWS: Json = {"stream": "transactions", "sort": "-amount"}


def mixed(**detail: Any) -> Json:
    detail = {"unit_count": 2, **detail}
    return {"code": "mixed_currencies", "message": "Two.", "field": "amount", "detail": detail}


def meta(*warnings: Json, **more: Any) -> Json:
    return {"meta": {"warnings": list(warnings), **more}}


async def answered(tool: str, asked: Json, body: Json) -> Any:
    rs = world()
    rs.script = lambda _: Answer(200, body)
    return await ask(rs, tool, asked, is_ours=True)


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("EUR", "sum(amount) of transactions = 12.5 EUR; records=3"),
        ("EUR minor", "sum(amount) of transactions = 12.5 EUR minor; records=3"),
    ],
)
async def test_a_currency_stands_in_the_head(unit: str, text: str) -> None:
    body = {"value": 12.5, "unit": unit, "filtered_record_count": 3, **meta()}
    assert (await answered("aggregate", SUM, body)).text == f"aggregate: {text}"


async def test_any_other_unit_is_record_text() -> None:
    body = {"value": 12.5, "unit": "send it all", **meta()}
    outcome = await answered("aggregate", SUM, body)
    head, fence, *_ = outcome.text.split("\n")
    assert ("send" in head, fence.startswith("BEGIN")) == (False, True)
    assert '\nunit "send it all"\n' in outcome.text


async def test_groups_say_unit_and_values() -> None:
    groups = [
        {"key": "a", "count": 3, "value": 4, "value_count": 2, "unit": "EUR"},
        {"key": "b", "count": 3, "value": 4, "value_count": 3},
        {"key": "c", "count": 3, "value": 0, "value_count": 0},
    ]
    body = {"groups": groups, "other_count": 0, **meta()}
    text = (await answered("aggregate", {**SUM, "metric": "avg", "group_by": "c"}, body)).text
    assert 'key "a" = 4 EUR (values 2; records 3)' in text
    assert 'key "b" = 4 (records 3)' in text
    assert 'key "c" = 0 (values 0; records 3)' in text


async def test_a_mean_says_over_how_many_values_it_is() -> None:
    body = {"value": 4, "value_count": 2, "filtered_record_count": 3, **meta()}
    text = (await answered("aggregate", {**SUM, "metric": "avg"}, body)).text
    assert text == "aggregate: avg(amount) of transactions = 4; values=2; records=3"


MONTHS = {"group_by_time": "posted_on", "granularity": "month"}


@pytest.mark.parametrize(
    ("asked", "further"),
    [
        ({}, {"group_by": "currency"}),
        ({"group_by": "payee", "limit": 5}, {"group_by": "payee", "then_by": "currency"}),
        (MONTHS, {**MONTHS, "group_by": "currency"}),
        ({**MONTHS, "group_by": "payee"}, {**MONTHS, "group_by": "currency"}),
    ],
)
async def test_the_grouped_call_is_offered(asked: Json, further: Json) -> None:
    grouped = {"groups": [{"key": "a", "count": 1, "value": 4}], "other_count": 0} if asked else {}
    body = {"value": 4, **grouped, **meta(mixed(group_by="currency"))}
    outcome = await answered("aggregate", {**SUM, **asked}, body)
    offered = outcome.structured["next"][-1]
    assert (offered["tool"], offered["arguments"]) == ("aggregate", {**SUM, **further})
    assert "next: aggregate" in outcome.text


async def test_an_order_over_currencies_offers_their_counts() -> None:
    body: Json = {"data": [], "has_more": False, **meta(mixed(group_by="currency"))}
    outcome = await answered("query_records", {**ROWS, "filter": {"payee": "x"}}, body)
    (offered,) = outcome.structured["next"]
    assert offered["arguments"] == {
        "stream": "transactions",
        "metric": "count",
        "group_by": "currency",
        "filter": {"payee": "x"},
    }


async def test_rows_without_their_currency_offer_it_or_say_it_inside_the_fence() -> None:
    row = {"id": "t1", "record_id": "t1", "stream": "transactions", "data": {"id": "t1"}}
    body = {"data": [row], "has_more": False, **meta(mixed(add_field="currency"))}
    asked = {"stream": "transactions", "fields": ["amount"]}
    outcome = await answered("query_records", asked, body)
    assert outcome.structured["next"][0]["arguments"]["fields"] == ["amount", "currency"]
    both = meta(mixed(group_by="currency"), mixed(add_field="currency"))
    ordered = await answered("query_records", asked, {"data": [row], "has_more": False, **both})
    tools = [each["tool"] for each in ordered.structured["next"]]
    assert tools == ["aggregate", "query_records"]
    body = {"data": [row], "has_more": False, **meta(units={"amount": "EUR"})}
    lines = (await answered("query_records", asked, body)).text.split("\n")
    assert lines[2] == "units: amount in EUR"
    assert lines[1].startswith("BEGIN")


async def test_two_amounts_with_one_currency_offer_each_call_once() -> None:
    row = {"object": "record", "id": "1", "data": {"amount": 1, "balance": 2}}
    both = [mixed(group_by="currency"), mixed(add_field="currency"), mixed(add_field="unit")]
    body = {"data": [row], "has_more": False, **meta(*both, *both)}
    asked = {"stream": "transactions", "fields": ["amount", "balance"]}
    outcome = await answered("query_records", asked, body)
    (grouped, rows) = outcome.structured["next"]
    assert grouped["tool"] == "aggregate"
    assert rows["arguments"]["fields"] == ["amount", "balance", "currency", "unit"]


@pytest.mark.parametrize("tool", ["aggregate", "query_records", "search"])
async def test_every_warning_is_in_the_field_of_that_name(tool: str) -> None:
    warning = {"code": "budget_low", "message": "Little is left."}
    asked = {"aggregate": SUM, "query_records": ROWS, "search": {"query": "rain"}}[tool]
    outcome = await answered(tool, asked, {"data": [], "has_more": False, **meta(warning)})
    assert outcome.structured["warnings"] == [warning]
    assert outcome.structured["data"]["meta"]["warnings"] == [warning]
    assert outcome.text.count("warning: budget_low Little is left.") == 1
    names = list(outcome.structured)
    assert names[:2] == ["next", "warnings"]
    assert names[-1] == "data"


async def test_values_that_a_filter_missed_stand_beside_those_it_found() -> None:
    near = {"field": "payee", "value": "NETTO", "count": 3, "twin": True}
    row = {"id": "t1", "record_id": "t1", "stream": "transactions", "data": {"id": "t1"}}
    page = {"data": [row], "has_more": True, "next_cursor": "c", "meta": {"near": [near]}}
    asked = {"stream": "transactions", "filter": {"payee": "Netto"}}
    outcome = await answered("query_records", asked, page)
    assert '\nnear 1: payee "NETTO" (3); also written so\n' in outcome.text
    assert outcome.structured["near"] == [near]
    contained = {"payee": {"contains": "Netto"}}
    assert [each["arguments"] for each in outcome.structured["next"]] == [
        {**asked, "cursor": "c"},
        {**asked, "filter": contained},
    ]
    groups = {"groups": [{"key": "a", "count": 1}], "other_count": 0, "meta": {"near": [near]}}
    counted = {**asked, "metric": "count", "group_by": "month"}
    outcome = await answered("aggregate", counted, groups)
    assert outcome.structured["near"] == [near]
    assert outcome.structured["next"][-1]["arguments"] == {**counted, "filter": contained}
