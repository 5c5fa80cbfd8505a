"""Which fields are logged of a hit: those that it may show, and no others."""

from __future__ import annotations

import copy
from typing import Any

from personal_server.domain.declaration_document import parse_declaration
from personal_server.reading.shown_hits import found_nothing
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    CONNECTIONS,
    DIARY,
    JOURNAL_RAW,
    client,
    grant,
    package,
    stream_grant,
    write,
)
from tests.oracle.memory import MemoryStore

LASTS = ("id", "title", "created_at", "ends_at", "pinned", "word_count")


def declared() -> Any:
    """Entries that last until another time, or whole days."""
    raw = copy.deepcopy(JOURNAL_RAW)
    properties = raw["streams"][0]["schema"]["properties"]
    properties["ends_at"] = {"type": "string", "format": "date-time", "x_pdpp_role": "event-end"}
    properties["pinned"]["x_pdpp_role"] = "whole-days"
    return parse_declaration(raw)


def test_what_a_hit_says_of_its_time_is_logged_with_it() -> None:
    declaration, store = declared(), MemoryStore()
    store.put_declaration(declaration, b"{}", 1)
    store.add_connection(CONNECTIONS[0])
    times = {"created_at": "2026-01-01T10:00:00Z", "ends_at": "2026-01-01T12:00:00Z"}
    entry = {"id": "n1", "title": "Rain", "body": "", "pinned": False, "word_count": 7, **times}
    write(store, DIARY, "entries", [entry], declared=declaration)
    for fields in (LASTS, ("id", "title", "ends_at", "word_count")):
        granted = stream_grant(instance_ids=(DIARY,), fields=fields)
        reader = client(granted, declared=declaration)
        [told] = Door(store).get("/v1/search?q=rain", reader).disclosed
        shown = ("title", "created_at", "ends_at", "pinned")
        assert set(told.fields) == set(fields) & set(shown)
        assert (told.record_count, told.keys) == (1, ("n1",))


def test_a_search_that_finds_nothing_is_logged_once_for_each_grant() -> None:
    [one] = found_nothing(client(stream_grant(), stream_grant("volumes")).sources)
    assert (one.fields, one.record_count) == ((), 0)
    both = package(
        grant(stream_grant()), grant(stream_grant("volumes"), grant_id="grt_2", issued="2026-01-02")
    )
    told = found_nothing(both.sources)
    assert {each.source.grant_id for each in told} == {"grt_1", "grt_2"}
    assert len(told) == 2
