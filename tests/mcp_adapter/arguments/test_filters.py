from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from personal_server.mcp_adapter.arguments import OPERATORS, encode_filter, typed_filter
from personal_server.mcp_adapter.errors import ToolError
from personal_server.rs_client.json_values import as_object

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
names = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="[]"), min_size=1, max_size=12
)
bounds = st.dictionaries(st.sampled_from(OPERATORS), texts | st.integers(), min_size=1)
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
