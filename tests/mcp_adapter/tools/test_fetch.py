"""An id that spells its connection out says where; an argument may repeat it, not change it."""

import pytest

from personal_server.mcp_adapter.errors import ToolError
from personal_server.mcp_adapter.handles import RecordRef, record_uri
from personal_server.mcp_adapter.tools.fetch import record_of
from tests.mcp_adapter.asking import ask
from tests.mcp_adapter.fake_rs import Answer
from tests.mcp_adapter.seed import world

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


def test_a_legacy_id_takes_the_connection_of_the_argument_or_none() -> None:
    assert record_of({"id": "messages:m8", "connection_id": "cin_a"}) == m8
    assert record_of({"id": "messages:m8"}) == RecordRef(None, "messages", "m8")
