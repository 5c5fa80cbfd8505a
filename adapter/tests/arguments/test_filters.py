import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.tests.asking import ask
from adapter.tests.seed import world
from pdpp_kernel.operators import FURTHER_OPERATORS, RANGE_OPERATORS
from pdpp_mcp_server.arguments import encode_filter, filter_query, typed_filter
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.rs_client.json_values import as_object

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
names = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="[]"), min_size=1, max_size=12
)
bounds = st.dictionaries(st.sampled_from(RANGE_OPERATORS), texts | st.integers(), min_size=1)
legal = st.dictionaries(
    names, texts | st.integers() | st.booleans() | bounds, min_size=1, max_size=8
)


@settings(max_examples=150)
@given(legal)
def test_every_legal_object_encodes_to_exactly_its_conditions(value: dict[str, Any]) -> None:
    pairs = dict(encode_filter(value))
    expected = {
        f"filter[{name}]" + (f"[{op}]" if op else "")
        for name, condition in value.items()
        for op in (list(as_object(condition)) or [""])
    }
    assert set(pairs) == expected


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (5.0, "5"),
        (1e22, "1e+22"),
        (-0.5, "-0.5"),
        (True, "true"),
        ("", ""),
        (10**20, "1" + "0" * 20),
    ],
)
def test_scalars_are_sent_in_their_json_form(value: Any, sent: str) -> None:
    assert encode_filter({"f": value}) == (("filter[f]", sent),)


@pytest.mark.parametrize(
    ("value", "param"),
    [
        ("a=b", "filter"),
        ({}, "filter"),
        ({"f": float("nan")}, "filter.f"),
        ({"f": [1]}, "filter.f"),
        ({"f": {"gte": True}}, "filter.f"),
        ({f"f{n}": 1 for n in range(33)}, "filter"),
        ({"": 1}, "filter"),
        ({"filter[f]": 1}, "filter"),
        ({"f\n": 1}, "filter"),
        ({"f\x7f": 1}, "filter"),
        ({"f": {}}, "filter.f"),
        ({"f": None}, "filter.f"),
        ({"f": {"between": 1}}, "filter.f"),
        ({"f": {"gte": None}}, "filter.f"),
        ({"f": {"in": "a"}}, "filter.f"),
        ({"f": {"in": []}}, "filter.f"),
        ({"f": {"in": [None]}}, "filter.f"),
        ({"f": {"in": [["a"]]}}, "filter.f"),
        ({"f": {"in": [str(n) for n in range(101)]}}, "filter"),
        ({"f": {"exists": "false"}}, "filter.f"),
        ({"f": {"exists": None}}, "filter.f"),
        ({"f": {"contains": ""}}, "filter.f"),
        ({"f": {"starts_with": 1}}, "filter.f"),
        ({"f": {"ne": None}}, "filter.f"),
        ({"f": "\ud800"}, "filter.f"),
        ({"f": "x" * 2_001}, "filter.f"),
        ([], "filter"),
        (None, "filter"),
    ],
)
def test_everything_else_is_refused_with_its_place(value: Any, param: str) -> None:
    with pytest.raises(ToolError) as refused:
        encode_filter(value)
    assert refused.value.code == "invalid_filter"
    assert refused.value.error["param"] == param


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("filter[a]=b c", {"a": "b c"}),
        ("filter[a][gte]=1&filter[a][lt]=2", {"a": {"gte": "1", "lt": "2"}}),
        ('{"a":{"gte":"1"}}', {"a": {"gte": "1"}}),
        ("a>5", None),
        ("filter[a][between]=1", None),
        ('{"a":[1]}', None),
        ("filter[a]=1&filter[a][gte]=2", None),
    ],
)
def test_only_a_plainly_meant_string_becomes_advice(text: str, meant: Any) -> None:
    assert typed_filter(text) == meant


@pytest.mark.parametrize(
    ("condition", "sent"),
    [
        ({"in": ["a,b", 2, True, "a,b"]}, [("in", "a,b"), ("in", "2"), ("in", "true")]),
        ({"ne": False}, [("ne", "false")]),
        ({"contains": "net", "exists": True}, [("contains", "net"), ("exists", "true")]),
        ({"starts_with": "N", "gte": "A"}, [("starts_with", "N"), ("gte", "A")]),
    ],
)
def test_further_operators_are_sent_by_name(condition: Any, sent: Any) -> None:
    expected = tuple((f"filter[f][{name}]", text) for name, text in sent)
    assert encode_filter({"f": condition}) == expected


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["query_records", "aggregate", "search"])
@pytest.mark.parametrize("name", [each.value for each in FURTHER_OPERATORS])
async def test_operators_go_only_to_a_server_that_names_them(tool: str, name: str) -> None:
    value: Any = {"in": ["m1"], "exists": True}.get(name, "m1")
    more = {"aggregate": {"metric": "count", "stream": "messages"}, "search": {"query": "x"}}
    arguments = {
        "filter": {"id": {name: value}},
        **more.get(tool, {"stream": "messages"}),
    }
    rs = world()
    refused = as_object((await ask(rs, tool, arguments)).structured["error"])
    assert (refused["code"], refused["param"]) == ("invalid_filter", "filter.id")
    assert rs.requests == []
    taken = await ask(rs, tool, arguments, is_ours=True)
    assert not taken.is_error
    assert rs.requests[-1].values(f"filter[id][{name}]") == ["true" if name == "exists" else "m1"]


def test_a_filter_for_null_is_offered_as_one_for_what_has_no_value() -> None:
    with pytest.raises(ToolError) as caught:
        filter_query({"filter": {"paid_at": None, "kind": "bill"}})
    assert caught.value.error["code"] == "invalid_filter"
    [repair] = caught.value.repairs
    assert repair["filter"] == {"paid_at": {"exists": False}, "kind": "bill"}


@pytest.mark.parametrize(
    "value",
    [
        {"s" * 3_000_000: 1},
        {"subject": {"in": ["a"] * 200_000}},
        {f"k{number}": 1 for number in range(200_000)},
    ],
)
def test_what_is_far_too_much_is_refused_by_its_size(value: dict[str, Any]) -> None:
    begin = time.process_time()
    with pytest.raises(ToolError):
        encode_filter(value)
    assert time.process_time() - begin < 0.2
