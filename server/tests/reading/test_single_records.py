"""The one record with a key, or why there is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from pdpp_kernel.errors import AmbiguousConnection, DamagedRecord, NotFound
from personal_server.enforcement.queries import FieldSelection, RecordQuery, Selectors
from personal_server.reading.single_records import no_such_record, read_record
from server.tests.resource_server.journal import DIARY, LETTERS, NARROW, client, furnished
from server.tests.resource_server.journal import stream_grant as granted


def read(key: str, connection_id: str | None = None, **over: Any) -> Any:
    query = RecordQuery("entries", key, Selectors(connection_id), **over)
    with furnished().snapshot() as snapshot:
        return read_record(snapshot, client(granted(fields=NARROW), granted("volumes")), query)


def test_it_is_shown_as_granted_and_what_was_disclosed_is_told() -> None:
    found = read("e1")
    assert orjson.loads(bytes(found.data.data)) == {
        "id": "e1",
        "title": "Rain",
        "created_at": "2026-01-01T10:00:00Z",
    }
    (disclosed,) = found.disclosed
    assert (disclosed.source.connection_id, disclosed.record_count) == (DIARY, 1)
    assert disclosed.keys == ("e1",)


def test_of_a_zone_it_says_when_it_was_and_what_it_is_called_but_not_beside_chosen_fields() -> None:
    found = read("e1", time_zone="Asia/Kolkata")
    assert found.data.when == "Thu 2026-01-01 15:30"
    assert (found.data.at, found.data.title) == ("2026-01-01T10:00:00Z", "Rain")
    assert found.meta == {"time_zone": "Asia/Kolkata"}
    cut = read("e1", time_zone="Asia/Kolkata", cut=FieldSelection(("id", "title"))).data
    assert (cut.when, cut.at, cut.title) == (None, None, None)
    assert not hasattr(read("e1").data, "title")


def test_one_that_two_accounts_have_is_asked_for_by_account() -> None:
    with pytest.raises(AmbiguousConnection):
        read("e2")
    assert orjson.loads(bytes(read("e2", LETTERS).data.data))["title"] == "Dear Ada"


def test_one_that_is_not_there_is_not_found_and_where_some_are_damaged_that_is_said() -> None:
    with pytest.raises(NotFound):
        read("e9")
    whole: Any = SimpleNamespace(damaged=False)
    damaged: Any = SimpleNamespace(damaged=True)
    assert isinstance(no_such_record(whole), NotFound)
    assert isinstance(no_such_record(damaged), DamagedRecord)
