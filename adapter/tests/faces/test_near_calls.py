"""The call that finds near values, in the caller's own words."""

from typing import Any

import pytest

from adapter.tests.faces.test_near_values import row
from pdpp_mcp_server.faces.near_calls import near_calls


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
