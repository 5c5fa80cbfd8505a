"""What was plainly meant where nothing matches, in the caller's own words."""

from typing import Any

import pytest

from pdpp_mcp_server.faces.meant_calls import meant_calls

nothing: dict[str, Any] = {"meta": {"empty": {"reason": "nothing_matches"}}}


@pytest.mark.parametrize(
    ("tool", "asked", "changed"),
    [
        (
            "query_records",
            {"since": "2026-11-20", "until": "2026-11-20", "cursor": "c"},
            {"since": "2026-11-20", "until": "2026-11-21"},
        ),
        (
            "aggregate",
            {"metric": "count", "filter": {"is_reply": True, "from_name": "Ben"}},
            {"metric": "count", "filter": {"is_reply": True, "from_name": {"contains": "Ben"}}},
        ),
        (
            "query_records",
            {"stream": "s", "filter": {"subject": ""}},
            {"stream": "s", "filter": {"subject": {"exists": False}}},
        ),
        (
            "aggregate",
            {"stream": "s", "filter": {"title": {"contains": "mascara"}, "n": 3}},
            {"stream": "s", "filter": {"n": 3}, "query": "mascara"},
        ),
        (
            "query_records",
            {"stream": "s", "filter": {"amount": 1247.44, "size": 3}},
            {"stream": "s", "filter": {"amount": -1247.44, "size": 3}},
        ),
        (
            "query_records",
            {"stream": "s", "filter": {"amount": "1500.5"}},
            {"stream": "s", "filter": {"amount": -1500.5}},
        ),
        (
            "aggregate",
            {"stream": "s", "metric": "count", "filter": {"amount": {"gte": 100, "lt": 200}}},
            {"stream": "s", "metric": "count", "filter": {"amount": {"lte": -100, "gt": -200}}},
        ),
        ("search", {"query": 'from:"Ana Schmit" -x'}, {"query": "Ana Schmit -x"}),
        ("search", {"q": "to:ada", "exact": True}, {"query": "ada"}),
        (
            "search",
            {"query": "ada", "streams": ["s"], "since": "2026", "limit": 3},
            {"query": "ada", "limit": 3},
        ),
        ("search", {"query": "ada", "connection_id": "c", "filter": {"f": 1}}, {"query": "ada"}),
    ],
)
def test_what_was_plainly_meant_is_a_call_in_the_words_of_the_caller(
    tool: str, asked: dict[str, Any], changed: dict[str, Any]
) -> None:
    (call,) = meant_calls(tool, asked, nothing)
    assert (call.tool, call.arguments) == (tool, changed)


@pytest.mark.parametrize("sought", [{"lt": 100}, {"gt": -5}, {"gte": 0}, {"in": [5]}, True, 0, "0"])
def test_other_amounts_are_not_turned(sought: Any) -> None:
    assert (
        meant_calls("query_records", {"stream": "s", "filter": {"amount": sought}}, nothing) == []
    )


def test_words_that_are_part_of_no_value_are_searched_in_any_form() -> None:
    asked = {"stream": "s", "fields": ["title"], "filter": {"title": {"contains": "Mikes Firm"}}}
    (call,) = meant_calls("query_records", {**asked, "since": "2026", "limit": 3}, nothing)
    found = {"query": "Mikes Firm", "streams": ["s"], "since": "2026", "limit": 3}
    assert (call.tool, call.arguments) == ("search", found)


@pytest.mark.parametrize("asked", [{"query": "two words"}, {"query": '""'}, {"q": "ada"}])
def test_what_matches_nothing_anywhere_leads_nowhere(asked: dict[str, Any]) -> None:
    assert meant_calls("search", asked, nothing) == []


def test_what_is_in_order_of_time_is_asked_for_again_by_relevance() -> None:
    asked = {"query": "the earliest mail of Tim", "sort": "oldest", "streams": ["messages"]}
    (call,) = meant_calls("search", asked, nothing)
    assert call.arguments == {"query": "the earliest mail of Tim", "streams": ["messages"]}


def test_what_stands_nowhere_is_not_looked_for_at_other_times() -> None:
    absent: dict[str, Any] = {"relaxed": {"words": 1, "exact_count": 0, "absent": ["ada"]}}
    body = {"meta": {**nothing["meta"], **absent}}
    assert meant_calls("search", {"query": "ada", "since": "2026"}, body) == []
    (call,) = meant_calls("search", {"query": "ada", "since": "2026", "streams": ["s"]}, body)
    assert call.arguments == {"query": "ada"}
    (call,) = meant_calls("search", {"query": "ada", "since": "2026"}, nothing)
    assert call.arguments == {"query": "ada"}


def test_one_call_says_all_that_was_meant() -> None:
    body: dict[str, Any] = {"data": [], "meta": {"ignored_words": ["NOT"]}}
    asked = {"query": "linux NOT kernel before:2002-09-01"}
    (call,) = meant_calls("search", asked, body)
    assert call.arguments == {"query": "linux -kernel", "until": "2002-09-01"}


def test_a_word_behind_not_is_left_out_where_that_was_ignored() -> None:
    asked = {"query": 'perl AND razor NOT patch NOT "two words"', "cursor": "c"}
    body: dict[str, Any] = {"data": [{}], "meta": {"ignored_words": ["AND", "NOT"]}}
    (call,) = meant_calls("search", asked, body)
    assert call.arguments == {"query": 'perl AND razor -patch -"two words"'}
    assert meant_calls("search", asked, {"data": [{}], "meta": {"ignored_words": ["AND"]}}) == []
    assert meant_calls("search", {"query": "or NOT"}, body) == []


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("query_records", {"since": "2026-11-20", "until": "2026-11-21"}),
        ("query_records", {"filter": {"id": "m12", "mail": "a@b.example", "n": 3}}),
        ("query_records", {"filter": {"from_name": {"contains": "Ben"}}}),
    ],
)
def test_where_nothing_else_could_be_meant_there_is_no_call(
    tool: str, asked: dict[str, Any]
) -> None:
    assert meant_calls(tool, asked, nothing) == []


def test_what_the_grant_ends_before_is_not_asked_for_again() -> None:
    asked = {"filter": {"from_name": "Ben"}}
    for body in ({}, {"meta": {"empty": {"reason": "not_granted"}}}):
        assert meant_calls("query_records", asked, body) == []
