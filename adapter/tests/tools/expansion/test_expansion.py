"""Related records are asked for by plain names and whole numbers; anything else is refused."""

from typing import Any

import pytest

from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.tools.expansion import encode_expand

Json = dict[str, Any]
legal: list[tuple[Json, tuple[tuple[str, str], ...]]] = [
    ({}, ()),
    ({"expand": ["a", "b"]}, (("expand", "a"), ("expand", "b"))),
    ({"expand": ["a"], "expand_limit": {"a": 3}}, (("expand", "a"), ("expand_limit[a]", "3"))),
    ({"expand_limit": {"a": 1, "b": 2.0}}, (("expand_limit[a]", "1"), ("expand_limit[b]", "2"))),
]
names: list[Any] = ["a", [], {}, None, [1], [""], ["a,b"], ["a[b]"], ["a\n"], ["\ud800"]]
limits: list[Any] = [3, {}, [], None, {"a[b]": 1}]
refused: list[tuple[Json, str]] = [
    *(({"expand": value}, "expand") for value in names),
    ({"expand": ["a"] * 101}, "expand"),
    ({"expand": ["x" * 2_001]}, "expand"),
    *(({"expand_limit": value}, "expand_limit") for value in limits),
    *(({"expand_limit": {"a": value}}, "expand_limit") for value in (0, -1, "3", True, 1.5, None)),
    ({"expand": ["a"], "expand_limit": {"b": 1}}, "expand_limit"),
]


@pytest.mark.parametrize(("asked", "sent"), legal)
def test_names_and_limits_are_sent_one_by_one(asked: Json, sent: Any) -> None:
    assert encode_expand(asked) == sent


@pytest.mark.parametrize(("asked", "param"), refused)
def test_any_other_shape_is_refused_with_its_place(asked: Json, param: str) -> None:
    with pytest.raises(ToolError) as error:
        encode_expand(asked)
    assert (error.value.code, error.value.error["param"]) == ("invalid_expand", param)
