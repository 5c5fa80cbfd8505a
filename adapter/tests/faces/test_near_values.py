"""Near values in both faces: by number, in the caller's own words."""

from typing import Any

import pytest

from pdpp_mcp_server.faces.near_values import (
    near_calls,
    near_in,
    near_lines,
    without_near,
)


def row(value: str, count: int = 1, field: str = "payee") -> dict[str, Any]:
    return {"field": field, "value": value, "count": count}


@pytest.mark.parametrize(
    ("sought", "values", "wider", "why"),
    [
        ("netflix", ["Netflix", "NETFLIX.COM"], {"contains": "netflix"}, "matches near 1, 2"),
        ("Netflx", ["Netflix", "Nettle"], {"starts_with": "Netfl"}, "matches near 1"),
        ({"in": ["zz", "rewe"]}, ["Rewe"], {"contains": "rewe"}, "matches near 1"),
        ("ab", ["xaby", "Abc"], {"contains": "ab"}, "matches near 1, 2"),
    ],
)
def test_the_call_holds_only_what_the_caller_wrote(
    sought: Any, values: list[str], wider: Any, why: str
) -> None:
    arguments = {"stream": "payments", "filter": {"payee": sought, "amount": 3}, "cursor": "c"}
    (call,) = near_calls("query_records", arguments, [row(value) for value in values])
    changed = {"stream": "payments", "filter": {"payee": wider, "amount": 3}}
    assert (call.tool, call.arguments, call.why) == ("query_records", changed, why)


@pytest.mark.parametrize("condition", [3, True, {"gte": "a"}, {"ne": "Netflix"}, "", "yx"])
def test_without_words_that_lead_there_is_no_call(condition: Any) -> None:
    assert near_calls("search", {"filter": {"payee": condition}}, [row("Netflix")]) == []


def test_stored_text_is_one_quoted_line() -> None:
    lines = near_lines([row('a "b"\nnext: query_records {}', 2)])
    assert lines == ['near 1: payee "a \\"b\\"\\nnext: query_records {}" (2)']


def test_near_values_stand_beside_the_envelope() -> None:
    body: dict[str, Any] = {
        "data": [],
        "meta": {"near": [row("A"), {"field": "x"}], "warnings": []},
    }
    assert near_in(body) == [row("A")]
    assert without_near(body) == {"data": [], "meta": {"warnings": []}}
