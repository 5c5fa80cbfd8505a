"""Refusals speak of the tools' arguments, not of queries."""

import pytest

from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.faces.refusal import render_refusal


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("For example: filter[day]=2026-01-31", 'For example: filter {"day":"2026-01-31"}'),
        ("Try filter[n][gte]=3 then", 'Try filter {"n":{"gte":"3"}} then'),
        ("Say filter.day", "Say filter.day"),
        ("A day: since=2026-01-31T09:00:00Z.", 'A day: since "2026-01-31T09:00:00Z".'),
    ],
)
def test_no_refusal_has_the_brackets_of_a_query(message: str, shown: str) -> None:
    refused = render_refusal(ToolError("invalid_filter", message, param="filter[day]"))
    error = refused.structured["error"]
    assert (error["message"], error["param"]) == (shown, "filter.day")
    assert refused.text.split("\n")[1] == "param: filter.day"
