"""What other programs' search boxes take becomes arguments of the next call."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_wire import Answer, Request
from adapter.tests.seed import world
from pdpp_mcp_server.faces.mail_operators import MailFiles, said_as_arguments
from pdpp_mcp_server.faces.meant_calls import meant_calls


@pytest.mark.parametrize(
    ("query", "changed"),
    [
        ("rent before:2024-01-01", {"query": "rent", "until": "2024-01-01"}),
        ("After:2024/3/1 rent", {"query": "rent", "since": "2024-03-01"}),
        ("rent on:2024-03", {"query": "rent", "since": "2024-03-01", "until": "2024-04-01"}),
        ("rent since 2024-03-05", {"query": "rent", "since": "2024-03-05"}),
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
    found = said_as_arguments({"query": query, "limit": 5}, MailFiles())
    assert found is not None
    assert (found.tool, found.arguments) == ("search", {**changed, "limit": 5})


def test_without_another_word_it_is_a_list() -> None:
    asked = {"query": "has:attachments after:2024-01-01", "mode": "auto"}
    found = said_as_arguments(asked, MailFiles("cin_a"))
    assert found is not None
    assert found.tool == "query_records"
    assert found.arguments == {
        "stream": "messages",
        "connection_id": "cin_a",
        "since": "2024-01-01",
        "filter": {"attachment_count": {"gte": 1}},
    }


@pytest.mark.parametrize(
    "query",
    [
        "rent",
        "rent since 2024",
        "before: 2024-01-01",
        "before:noon",
        "on:2024-13-41 rent",
        "from:ada rent",
    ],
)
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


def _counting(*connections: str) -> Answer:
    """A schema whose mails count what is attached to them, on these connections."""
    row = {"name": "messages", "field_capabilities": {"attachment_count": "t=integer,eq,f=text"}}
    held = [{"connection_id": each} for each in connections]
    connector = {"connector_key": "mail", "streams": [row], "granted_connections": held}
    return Answer(200, {"object": "schema", "connectors": [connector]})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("connections", "meant"),
    [
        ((), None),
        (("cin_a",), {"connection_id": "cin_a"}),
        (("cin_a", "cin_b"), {}),
    ],
)
async def test_attachments_are_asked_for_only_where_mails_count_them(
    connections: tuple[str, ...], meant: dict[str, Any] | None
) -> None:
    def schema(request: Request) -> Answer | None:
        return _counting(*connections) if request.path == ("v1", "schema") and connections else None

    rs = world()
    rs.script = schema
    structured = (await ask(rs, "search", {"query": "zebra has:attachment"})).structured
    filtered = {"streams": ["messages"], "filter": {"attachment_count": {"gte": 1}}}
    wanted = [] if meant is None else [{"query": "zebra", **filtered, **meant}]
    assert [each["arguments"] for each in structured["next"] if "filter" in each["arguments"]] == (
        wanted
    )
    rs.requests.clear()
    await ask(rs, "search", {"query": "zebra"})
    assert ("v1", "schema") not in rs.paths
