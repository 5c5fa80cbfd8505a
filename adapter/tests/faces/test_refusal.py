"""Refusals speak of the tools' arguments, not of queries."""

import pytest

from pdpp_mcp_server.contract import ERROR_STRUCTURED, ERROR_TEXT
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.faces.refusal import LISTS, render_refusal
from pdpp_mcp_server.rs_client.json_values import Json, compact


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


def _entries(count: int, label_chars: int) -> list[Json]:
    shared = {"connector_key": "google_takeout", "grant_id": "grt_" + "g" * 24}
    shared |= {"display_name": "L" * label_chars, "reason": "connection_revoked"}
    return [{"connection_id": f"cin_{number:024}", **shared} for number in range(count)]


@pytest.mark.parametrize("label_chars", [20, 40, 80])
@pytest.mark.parametrize(("count", "gone"), [(12, 0), (12, 12), (20, 0), (20, 20)])
def test_both_faces_name_the_same_connections_however_many(
    label_chars: int, count: int, gone: int
) -> None:
    members = {
        "retry_with": "connection_id",
        "available_connections": _entries(count, label_chars),
        "available_connection_count": count,
        "unavailable_connections": _entries(gone, label_chars),
    }
    refused = render_refusal(ToolError("ambiguous_connection", "Several.", members=members))
    error, lines = refused.structured["error"], refused.text.split("\n")
    assert len(refused.text) <= ERROR_TEXT
    assert len(compact(error)) <= ERROR_STRUCTURED
    for start, name in (("connection: ", LISTS[0]), ("unavailable: ", LISTS[1])):
        named = [line.removeprefix(start) for line in lines if line.startswith(start)]
        assert [line.split(" | ")[0] for line in named] == [
            row["connection_id"] for row in error[name]
        ]
    assert len(error[LISTS[0]]) == 12
    assert f"connections: shown=12; total={count}; omitted={count - 12}" in lines
    assert error.get("available_connections_omitted", 0) == count - 12
    assert len(error[LISTS[1]]) == min(gone, 12)
    assert error.get("unavailable_connection_count", gone) == gone


def test_entries_go_when_they_fit_without_labels_neither() -> None:
    rows = [{**row, "grant_id": "g" * 600} for row in _entries(12, 80)]
    members = {"available_connections": rows, "available_connection_count": 40}
    refused = render_refusal(ToolError("ambiguous_connection", "Several.", members=members))
    error = refused.structured["error"]
    shown = len(error[LISTS[0]])
    assert 0 < shown < 12
    assert f"connections: shown={shown}; total=40; omitted={40 - shown}" in refused.text
    assert error["available_connections_omitted"] == 40 - shown
