"""What other programs' search boxes take becomes arguments of the next call."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_mcp_server.faces.mail_operators import said_as_arguments
from pdpp_mcp_server.faces.near_values import meant_calls


@pytest.mark.parametrize(
    ("query", "changed"),
    [
        ("rent before:2024-01-01", {"query": "rent", "until": "2024-01-01"}),
        ("After:2024/3/1 rent", {"query": "rent", "since": "2024-03-01"}),
        ("rent on:2024-03", {"query": "rent", "since": "2024-03-01", "until": "2024-04-01"}),
        (
            "rent since:2023 before:2024",
            {"query": "rent", "since": "2023-01-01", "until": "2024-01-01"},
        ),
        (
            "rent has:attachment",
            {
                "query": "rent",
                "streams": ["messages"],
                "filter": {"attachment_count": {"gte": 1}},
            },
        ),
    ],
)
def test_times_and_attachments_become_arguments(query: str, changed: dict[str, Any]) -> None:
    found = said_as_arguments({"query": query, "limit": 5})
    assert found is not None
    assert (found.tool, found.arguments) == ("search", {**changed, "limit": 5})


def test_without_another_word_it_is_a_list() -> None:
    found = said_as_arguments({"query": "has:attachments after:2024-01-01", "mode": "auto"})
    assert found is not None
    assert found.tool == "query_records"
    assert found.arguments == {
        "stream": "messages",
        "since": "2024-01-01",
        "filter": {"attachment_count": {"gte": 1}},
    }


@pytest.mark.parametrize("query", ["rent", "before:noon", "on:2024-13-41 rent", "from:ada rent"])
def test_what_says_no_time_changes_nothing(query: str) -> None:
    assert said_as_arguments({"query": query}) is None


def test_the_call_is_offered_whatever_matches() -> None:
    bodies: list[dict[str, Any]] = [
        {"data": [{}]},
        {"data": [], "meta": {"empty": {"reason": "nothing_matches"}}},
    ]
    for body in bodies:
        (call,) = meant_calls("search", {"q": "rent before:2024-01-01"}, body)
        assert call.arguments == {"query": "rent", "until": "2024-01-01"}
