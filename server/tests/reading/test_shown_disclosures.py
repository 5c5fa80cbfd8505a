"""The whole read log, newest first, over as many pages as it has."""

from __future__ import annotations

import msgspec

from personal_server.domain.disclosure import SERVED, AskedDetail, DisclosureEntry
from personal_server.reading.shown_disclosures import (
    PAGE,
    every_disclosure,
    render_disclosure,
)
from tests.oracle.disclosure_memory import MemoryDisclosures


def entry(number: int, detail: AskedDetail | None = None) -> DisclosureEntry:
    return DisclosureEntry(
        f"dis_{number}",
        "own_1",
        number,
        "req_1",
        SERVED,
        "client",
        "rest",
        "GET /v1/x",
        client_id="cli_1",
        grant_id="grt_1",
        package_id="gpkg_1",
        tool="search",
        error_code="not_found",
        connector_key="journal",
        connection_id="cin_1",
        stream="entries",
        fields=("id", "title"),
        record_count=2,
        size_bytes=30,
        detail=detail,
    )


def test_every_page_is_gone_through_the_newest_first() -> None:
    store = MemoryDisclosures()
    store.append_disclosures([entry(number) for number in range(PAGE + 2)])
    shown = [each.disclosure_id for each in every_disclosure(store)]
    assert shown == [f"dis_{number}" for number in reversed(range(PAGE + 2))]


def test_what_was_asked_is_shown_only_where_it_is_asked_for() -> None:
    store = MemoryDisclosures()
    detail = AskedDetail(b"", "/v1/search?q=rain", ("e1",))
    store.append_disclosures([entry(1, detail), entry(2)])
    plain = msgspec.to_builtins(list(every_disclosure(store)))
    assert not any("asked" in each or "keys" in each for each in plain)
    second, first = msgspec.to_builtins(list(every_disclosure(store, with_asked=True)))
    assert (first["asked"], first["keys"]) == ("/v1/search?q=rain", ("e1",))
    assert "asked" not in second
    assert {name: first[name] for name in plain[1]} == plain[1]


def test_an_entry_has_all_its_members_on_the_wire() -> None:
    shown = msgspec.to_builtins(render_disclosure(entry(0)))
    assert shown.pop("at").startswith("1970-01-01T00:00:00")
    assert shown == {
        "object": "disclosure",
        "disclosure_id": "dis_0",
        "request_id": "req_1",
        "outcome": "served",
        "error_code": "not_found",
        "token_kind": "client",
        "client_id": "cli_1",
        "grant_id": "grt_1",
        "grant_package_id": "gpkg_1",
        "channel": "rest",
        "tool": "search",
        "route": "GET /v1/x",
        "connector_key": "journal",
        "connection_id": "cin_1",
        "stream": "entries",
        "fields": ("id", "title"),
        "record_count": 2,
        "bytes": 30,
    }
