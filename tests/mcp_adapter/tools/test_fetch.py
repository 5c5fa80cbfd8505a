"""An id that spells its connection out says where; an argument may repeat it, not change it."""

from typing import Any

import pytest

from personal_server.mcp_adapter.errors import ToolError
from personal_server.mcp_adapter.handles import RecordRef, record_uri
from personal_server.mcp_adapter.tools.fetch import record_of
from tests.mcp_adapter.asking import ask
from tests.mcp_adapter.fake_rs import Answer, FakeRs
from tests.mcp_adapter.seed import attachments_relation, declarations, world

m8 = RecordRef("cin_a", "messages", "m8")
forms = ["cin_a/messages:m8", record_uri(m8)]


@pytest.mark.parametrize("id", forms)
def test_an_id_keeps_its_connection(id: str) -> None:
    assert record_of({"id": id}) == m8
    assert record_of({"id": id, "connection_id": "cin_a"}) == m8


@pytest.mark.parametrize("id", forms)
def test_another_connection_is_a_conflict_that_names_both(id: str) -> None:
    with pytest.raises(ToolError) as refused:
        record_of({"id": id, "connection_id": "cin_b"})
    error = refused.value.error
    assert (error["code"], error["param"]) == ("conflicting_connection_id", "connection_id")
    assert "cin_a" in error["message"]
    assert "cin_b" in error["message"]
    assert refused.value.repairs == ({"id": id},)


@pytest.mark.anyio
async def test_a_document_is_named_and_dated_by_its_record_not_by_the_wrapper() -> None:
    rs = world()
    wrapper = {"title": "Wrapper", "url": "https://wrapper.example", "sent_at": "1999-01-01"}
    inner = {"title": "Inner", "sent_at": "2026-01-01", "url": "https://inner.example/1"}
    for data, title in ((inner, "Inner"), ({"sent_at": "2026-01-01"}, "2026-01-01")):
        row = {**wrapper, "record_id": "m8", "stream": "messages", "data": data}
        rs.script = lambda _, row=row: Answer(200, row)
        document = (await ask(rs, "fetch", {"id": "cin_a/messages:m8"})).structured
        assert title in document["title"]
        assert "wrapper" not in str(document).lower()


@pytest.mark.anyio
async def test_a_document_is_longer_for_a_client_that_may_have_more() -> None:
    rs = world()
    row = {"record_id": "m8", "stream": "messages", "data": {"id": "m8", "body": "w " * 80_000}}
    rs.script = lambda _: Answer(200, row)
    for chars in (20_000, 60_000, 200_000):
        shown = await ask(rs, "fetch", {"id": "cin_a/messages:m8"}, result_chars=chars)
        assert (
            chars * 9 // 10 < shown.sizes[1] <= chars or shown.structured["text"] == "w " * 80_000
        )


def test_a_legacy_id_takes_the_connection_of_the_argument_or_none() -> None:
    assert record_of({"id": "messages:m8", "connection_id": "cin_a"}) == m8
    assert record_of({"id": "messages:m8"}) == RecordRef(None, "messages", "m8")


def thread_of(document: dict[str, Any], *, has_more: bool) -> FakeRs:
    """A world whose m8 is expanded by the mails of its thread, as a schema with `thread` says."""
    rs = world()
    relation = {
        **attachments_relation,
        "name": "thread",
        "stream": "messages",
        "target_stream": "messages",
        "foreign_key": "thread_id",
        "foreign_key_on": "both",
    }
    rs.declarations = {**declarations, "messages": {**declarations["messages"]}}
    rs.declarations["messages"]["expand"] = [relation]
    mails = [
        {
            "record_id": f"m{number}",
            "stream": "messages",
            "connection_id": "cin_a",
            "data": {"subject": "Bread", "sent_at": f"2026-01-0{number}", **written},
        }
        for number, written in enumerate(
            (
                {
                    "from_name": "Ada",
                    "from_address": "ada@example.org",
                    "body": "Rye?\n\n or wheat",
                },
                {"from_address": "bo@example.org", "body": "w" * 300},
                {"body": "Bread"},
                {},
            ),
            1,
        )
    ]
    page = {"object": "list", "data": mails, "has_more": has_more}
    row = {"record_id": "m8", "stream": "messages", "connection_id": "cin_a", "data": document}
    body = {**row, "expanded": {"thread": page}}
    rs.script = lambda request: Answer(200, body) if request.path[-1] == "m8" else None
    return rs


asked = {"id": "cin_a/messages:m8", "expand": ["thread"]}


@pytest.mark.anyio
async def test_a_thread_is_who_wrote_when_and_how_each_begins() -> None:
    rs = thread_of({"thread_id": "t1", "body": "x"}, has_more=False)
    thread = (await ask(rs, "fetch", asked)).structured["metadata"]["expanded"]["thread"]
    said = [{name: row.get(name) for name in ("id", "by", "at", "line")} for row in thread["data"]]
    ids = [f"cin_a/messages:m{number}" for number in (1, 2, 3, 4)]
    assert [row["id"] for row in said] == ids
    assert [row["by"] for row in said] == ["Ada", "bo@example.org", None, None]
    assert [row["at"] for row in said] == [f"2026-01-0{number}" for number in (1, 2, 3, 4)]
    assert said[0]["line"] == "Rye? or wheat"
    assert len(said[1]["line"]) == 120
    assert [row["line"] for row in said[2:]] == [None, None]
    assert "next" not in thread


@pytest.mark.anyio
async def test_a_thread_that_goes_on_has_the_call_that_lists_it() -> None:
    rs = thread_of({"thread_id": "t1", "body": "x"}, has_more=True)
    thread = (await ask(rs, "fetch", asked)).structured["metadata"]["expanded"]["thread"]
    assert thread["next"] == {
        "tool": "query_records",
        "arguments": {
            "stream": "messages",
            "connection_id": "cin_a",
            "filter": {"thread_id": "t1"},
            "order": "asc",
        },
    }


@pytest.mark.anyio
async def test_a_call_is_not_made_of_a_value_that_is_not_shown() -> None:
    for extra, data in (
        ({}, {"body": "x"}),
        ({"fields": ["body"]}, {"thread_id": "t1", "body": "x"}),
    ):
        rs = thread_of(data, has_more=True)
        document = (await ask(rs, "fetch", {**asked, **extra})).structured
        assert document["metadata"]["expanded"]["thread"]["has_more"] is True
        assert "t1" not in str(document)
