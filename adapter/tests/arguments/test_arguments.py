from typing import Any

import pytest

from pdpp_mcp_server.arguments import parse_arguments
from pdpp_mcp_server.errors import ToolError

query = "query_records"
search = "search"
window = "read_record_field"


def checked(tool: str, arguments: Any) -> dict[str, Any]:
    return parse_arguments(tool, arguments, lambda _: None)[0]


def refusal(tool: str, arguments: Any) -> dict[str, Any]:
    with pytest.raises(ToolError) as refused:
        checked(tool, arguments)
    assert refused.value.code == "invalid_arguments"
    return refused.value.error


def test_absent_arguments_count_as_none_given() -> None:
    assert checked("schema", None) == {}
    assert checked(query, None) == {}


def test_whole_floats_are_integers_and_nothing_else_is_coerced() -> None:
    assert checked(query, {"stream": "s", "limit": 5.0}) == {
        "stream": "s",
        "limit": 5,
    }
    wrongs: list[Any] = ["5", True, None, 5.5, [], {}]
    for wrong in wrongs:
        assert refusal(query, {"stream": "s", "limit": wrong})["param"] == "limit"


def test_limits_are_refused_and_not_clamped() -> None:
    for wrong in (0, -1, 101):
        error = refusal(query, {"stream": "s", "limit": wrong})
        assert error["expected"] == "an integer from 1 to 100"
        mended = {"stream": "s", "limit": 100} if wrong > 100 else {"stream": "s"}
        assert error["next_call"] == {"tool": "query_records", "arguments": mended}
    assert refusal(window, {"field_path": "b", "limit_chars": 16_385})["param"] == "limit_chars"


@pytest.mark.parametrize(
    ("tool", "given", "mended"),
    [
        (query, {"streams": ["s"], "limit": 5}, {"stream": "s", "limit": 5}),
        (query, {"stream": ["s"], "limit": 5}, {"stream": "s", "limit": 5}),
        (query, {"stream": "s", "fields": "id"}, {"stream": "s", "fields": ["id"]}),
        (query, {"stream": "s", "order_by": "-at"}, {"stream": "s", "sort": "-at"}),
        (query, {"stream": "s", "order_by": "at DESC"}, {"stream": "s", "sort": "-at"}),
        (query, {"limit": "5", "view": "v"}, {"limit": 5, "view": "v"}),
        (query, {"stream": "s", "filters": {"a": 1}}, {"stream": "s", "filter": {"a": 1}}),
        (query, {"connector_instance_id": "c", "limit": 1}, {"connection_id": "c", "limit": 1}),
        (search, {"query": "x", "stream": "s"}, {"query": "x", "streams": ["s"]}),
        (search, {"query": "x", "limit": 500}, {"query": "x", "limit": 100}),
        (search, {"query": "x", "streams": ["s"], "sort": "at"}, {"query": "x", "streams": ["s"]}),
        (search, {"query": "x", "sort": "-at"}, {"query": "x", "sort": "newest"}),
        (search, {"query": "x", "order_by": "newest"}, {"query": "x", "sort": "newest"}),
        ("aggregate", {"stream": "s", "metric": "count", "group_by": ["a"], "limit": 3},
         {"stream": "s", "metric": "count", "group_by": "a", "limit": 3}),
        ("aggregate", {"stream": "s", "metric": "count", "group_by": ["a", "b"], "limit": 3},
         {"stream": "s", "metric": "count", "group_by": "a", "then_by": "b", "limit": 3}),
        ("aggregate", {"stream": "s", "metric": "Average", "field": "a"},
         {"stream": "s", "metric": "avg", "field": "a"}),
        ("aggregate",
         {"stream": "s", "metric": "count", "group_by_time": "t", "granularity": "monthly"},
         {"stream": "s", "metric": "count", "group_by_time": "t", "granularity": "month"}),
    ],
)  # fmt: skip
def test_the_ready_call_mends_the_wrong_argument_and_keeps_the_others(
    tool: str, given: Any, mended: Any
) -> None:
    assert refusal(tool, given)["next_call"] == {"tool": tool, "arguments": mended}


def test_a_step_is_a_number_that_is_not_negative() -> None:
    counted = {"stream": "s", "metric": "count", "group_by": "amount"}
    for right in (0, 5, 0.5):
        assert checked("aggregate", {**counted, "bin": right})["bin"] == right
    wrongs: list[Any] = ["5", True, None, -1, float("nan"), float("inf"), []]
    for wrong in wrongs:
        assert refusal("aggregate", {**counted, "bin": wrong})["param"] == "bin"


@pytest.mark.parametrize(
    ("name", "kept"),
    [("sort", {"sort": "newest"}), ("order", {}), ("order_by", {"sort": "newest"})],
)
def test_an_order_that_search_does_not_know_is_refused_with_those_it_does(
    name: str, kept: dict[str, str]
) -> None:
    error = refusal(search, {"query": "x", "limit": 3, name: "-at"})
    assert error["param"] == name
    assert "newest" in error["message"]
    assert error["next_call"] == {"tool": search, "arguments": {"query": "x", "limit": 3, **kept}}


def test_the_nearest_legal_name_is_suggested() -> None:
    error = refusal(query, {"stream": "s", "limt": 5})
    assert error["param"] == "limt"
    assert "`limit`" in error["message"]
    assert "`connection_id`" in refusal(query, {"connector_instance_id": "x"})["message"]


def test_the_alias_stands_for_the_required_argument() -> None:
    assert checked(search, {"q": "x"}) == {"q": "x"}
    assert refusal(search, {})["param"] == "query"


def test_lists_are_never_empty_and_strings_are_bounded() -> None:
    for wrong in ([], ["a"] * 101, [""], [1], "a"):
        assert refusal(query, {"stream": "s", "fields": wrong})["param"] == "fields"
    assert refusal(query, {"stream": "s" * 2_001})["param"] == "stream"
    assert checked(query, {"stream": "s", "cursor": "c" * 8_192})["cursor"]
    assert refusal(query, {"stream": "s", "cursor": "c" * 8_193})["param"] == "cursor"


def test_names_that_cannot_be_a_path_segment_are_refused() -> None:
    for wrong in (".", "..", "a/b", "a\\b"):
        assert refusal(query, {"stream": wrong})["param"] == "stream"


def test_messages_quote_a_short_clean_value() -> None:
    error = refusal(query, {"stream": "s", "order": "\u202e" + "x" * 500})
    assert len(error["message"]) < 200
    assert "\u202e" not in error["message"]


def test_text_that_is_not_unicode_is_refused() -> None:
    assert refusal(query, {"stream": "s", "sort": "\ud800"})["param"] == "sort"
    assert refusal(query, {"stream": "s", "fields": ["\udfff"]})["param"] == "fields"
