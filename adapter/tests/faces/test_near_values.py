"""Near values in both faces: by number."""

from typing import Any

from pdpp_mcp_server.faces.near_values import near_in, near_lines, without_near


def row(value: str, count: int = 1, field: str = "payee") -> dict[str, Any]:
    return {"field": field, "value": value, "count": count}


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
