"""An id that spells its connection out says where; an argument may repeat it, not change it."""

import pytest

from personal_server.mcp_adapter.errors import ToolError
from personal_server.mcp_adapter.handles import RecordRef, record_uri
from personal_server.mcp_adapter.tools.fetch import record_of

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


def test_a_legacy_id_takes_the_connection_of_the_argument_or_none() -> None:
    assert record_of({"id": "messages:m8", "connection_id": "cin_a"}) == m8
    assert record_of({"id": "messages:m8"}) == RecordRef(None, "messages", "m8")
