"""The time line, and searches in a range of time."""

from __future__ import annotations

import copy
from typing import Any
from urllib.parse import quote

import pytest

from pdpp_kernel.values import instant_ns
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.stored import (
    Batch,
    RecordWrite,
)
from server.tests.resource_server.door import Door, Reply
from server.tests.resource_server.journal import (
    BANK,
    CONNECTIONS,
    DIARY,
    JOURNAL_RAW,
    LETTERS,
    OWNER,
    client,
    grant,
    package,
    stream_grant,
)
from tests.oracle.memory import MemoryStore

LINE = "/v1/timeline"
BANKED = stream_grant(instance_ids=(BANK,))


def places(reply: Reply) -> list[tuple[str, str]]:
    return [(each["connection_id"], each["id"]) for each in reply.data]


def test_all_grants_of_a_package_stand_on_one_line_newest_first(door: Door) -> None:
    both = package(grant(stream_grant()), grant(BANKED, grant_id="grt_2", key="banking"))
    reply = door.get(LINE, both)
    assert places(reply) == [
        (LETTERS, "l1"),
        (DIARY, "e3"),
        (LETTERS, "e2"),
        (DIARY, "e2"),
        (DIARY, "e1"),
        (BANK, "e1"),
    ]
    assert {each["grant_id"] for each in reply.data} == {"grt_1", "grt_2"}
    assert [(d.source.connection_id, d.record_count) for d in reply.disclosed] == [
        (BANK, 1),
        (DIARY, 3),
        (LETTERS, 2),
    ]


def test_an_entry_says_when_and_what_it_is_called_or_how_its_text_begins(door: Door) -> None:
    found = door.get(f"{LINE}?order=asc&connection_id={DIARY}", client()).data
    assert [each["data"] for each in found] == [
        {"at": "2026-01-01T10:00:00Z", "title": "Rain"},
        {"at": "2026-02-01T10:00:00Z", "title": "Snow"},
        {"at": "2026-03-01T10:00:00Z", "preview": "Nothing."},
    ]
    assert found[0] | {"data": {}} == {
        "object": "timeline_entry",
        "id": "e1",
        "record_id": "e1",
        "stream": "entries",
        "data": {},
        "connection_id": DIARY,
        "connector_key": "journal",
        "display_name": "Paper diary",
    }


@pytest.mark.parametrize(
    ("range_", "keys"),
    [
        ("since=2026-02-01T10:00:00Z&until=2026-03-01T10:00:00Z", ["e2"]),
        ("since=2026-02-01&until=2026-03-02", ["e3", "e2"]),
        ("since=2026-02-01T11:00:00%2B01:00", ["e3", "e2"]),
        ("until=2026-01-01", []),
        ("since=2026-03-01&until=2026-01-01", []),
    ],
)
def test_since_is_inclusive_and_until_is_not(door: Door, range_: str, keys: list[str]) -> None:
    assert door.get(f"{LINE}?{range_}&connection_id={DIARY}", client()).keys == keys


@pytest.mark.parametrize("name", ["since", "until"])
@pytest.mark.parametrize("text", ["yesterday", "2026", "2026-02-30", "2026-01-01T10:00:00", "now"])
def test_a_bound_is_an_instant_or_a_day(door: Door, name: str, text: str) -> None:
    for target in (f"{LINE}?{name}={text}", f"/v1/search?q=rain&{name}={text}"):
        assert door.refusal(target) == (400, "invalid_request", name)


def test_a_grant_of_some_time_shows_no_more_of_the_line(door: Door) -> None:
    narrow = client(stream_grant(until="2026-02-10T00:00:00Z"))
    assert places(door.get(LINE, narrow)) == [(DIARY, "e2"), (DIARY, "e1")]


def test_a_stream_whose_time_is_not_granted_is_named_and_left_out(door: Door) -> None:
    timeless = client(stream_grant(fields=("id", "title")), stream_grant("volumes", (DIARY,)))
    reply = door.get(LINE, timeless)
    assert reply.data == []
    [warning] = reply.body["meta"]["warnings"]
    assert warning["code"] == "source_skipped_not_applicable"
    assert warning["detail"] == {"streams": ["entries", "volumes"], "reason": "no_event_time"}
    named = door.get(f"{LINE}?streams=volumes", timeless)
    [warning] = named.body["meta"]["warnings"]
    assert warning["connection_id"] == DIARY
    assert warning["detail"] == {"stream": "volumes", "reason": "no_event_time"}


def test_a_hidden_title_and_a_hidden_text_show_nothing(door: Door) -> None:
    found = door.get(LINE, client(stream_grant(fields=("id", "created_at")))).data
    assert found
    assert all(each["data"].keys() == {"at"} for each in found)


def test_a_stream_outside_the_grant_is_refused(door: Door) -> None:
    assert door.refusal(f"{LINE}?streams=absent") == (403, "grant_stream_not_allowed", "streams")
    assert door.refusal(f"{LINE}?streams=absent", OWNER) == (404, "not_found", "streams")
    assert door.refusal(f"{LINE}?connection_id=cin_x") == (
        404,
        "connection_not_found",
        "connection_id",
    )


def test_pages_laid_end_to_end_are_the_line(door: Door) -> None:
    whole = places(door.get(LINE, OWNER))
    for size in ("limit=1", "limit=2", "page_chars=1"):
        reply = door.get(f"{LINE}?{size}", OWNER)
        found = places(reply)
        while reply.body["has_more"]:
            reply = door.get(reply.body["links"]["next"], OWNER)
            found += places(reply)
        assert found == whole


def test_a_cursor_of_the_line_belongs_to_its_request(door: Door) -> None:
    cursor = quote(door.get(f"{LINE}?limit=1", client()).body["next_cursor"])
    for other in ("&order=asc", "&since=2026-01-01", "&streams=entries"):
        refused = door.refusal(f"{LINE}?cursor={cursor}{other}")
        assert refused == (400, "invalid_cursor", "cursor")
    reply = door.get(f"{LINE}?cursor={cursor}", client(stream_grant(until="2026-12-31T00:00:00Z")))
    assert (reply.code, reply.error["recovery"]) == ("invalid_cursor", {"cursor": None})


def dated_by_days() -> dict[str, Any]:
    """The journal, with volumes that have a day, and entries whose event is another time."""
    raw = copy.deepcopy(JOURNAL_RAW)
    entries, volumes, _ = raw["streams"]
    properties = entries["schema"]["properties"]
    properties["created_at"].pop("x_pdpp_role")
    properties["sent_at"] = {"type": "string", "format": "date-time", "x_pdpp_role": "event-time"}
    entries["query"]["range_filters"]["sent_at"] = ["gte", "lt"]
    volumes["schema"]["properties"]["begun"] = {"type": "string", "format": "date"}
    volumes["consent_time_field"] = "begun"
    return raw


def test_days_stand_among_instants_and_the_event_time_before_the_consent_time() -> None:
    declared = parse_declaration(dated_by_days())
    store = MemoryStore()
    store.put_declaration(declared, b"{}", 1)
    store.add_connection(CONNECTIONS[0])
    at = "2026-01-01T00:00:00Z"
    entries = [
        {"id": "late", "title": "L", "created_at": at, "sent_at": "2026-05-02T00:00:00.5Z"},
        {"id": "early", "title": "E", "created_at": at, "sent_at": "2026-05-01T23:59:59Z"},
        {"id": "never", "title": "N", "created_at": at},
    ]
    volumes = [{"id": f"v{n}", "name": str(n), "begun": f"2026-05-0{n}"} for n in (1, 2, 3)]
    for stream, records in (("entries", entries), ("volumes", volumes)):
        writes = [RecordWrite(each["id"], each, instant_ns(at) or 0) for each in records]
        store.commit(Batch(DIARY, declared.streams[stream], writes, 1))
    door = Door(store)

    def line(query: str, *fields: str) -> list[str]:
        granted = client_of(declared, fields)
        reply = door.get(f"{LINE}?limit=1{query}", granted)
        found = reply.keys
        while reply.body["has_more"]:
            reply = door.get(reply.body["links"]["next"], granted)
            found += reply.keys
        return found

    def client_of(declaration: Any, fields: tuple[str, ...]) -> Any:
        return client(
            stream_grant(instance_ids=(DIARY,), fields=fields),
            stream_grant("volumes", (DIARY,), ("id", "name", "begun")),
            declared=declaration,
        )

    both = ("id", "title", "created_at", "sent_at")
    assert line("", *both) == ["v3", "late", "v2", "early", "v1"]
    noon = "2026-05-01T12:00:00Z"  # the day that it lies in lasts
    assert line(f"&order=asc&since={noon}", *both) == ["v1", "early", "v2", "late", "v3"]
    assert line(f"&order=asc&until={noon}", *both) == ["v1"]
    assert line("&until=2026-05-02", *both) == ["early", "v1"]
    assert line("", *both[:-1]) == ["v3", "v2", "v1", "never", "late", "early"]


def test_a_list_takes_a_range_of_time(door: Door) -> None:
    list_ = "/v1/streams/entries/records"
    assert door.get(f"{list_}?since=2026-02-01&until=2026-03-01T10:00:00Z", client()).keys == [
        "e2",
        "e2",
    ]
    timeless = client(stream_grant(fields=("id", "title")))
    for name in ("since", "until"):
        refused = door.refusal(f"{list_}?{name}=2026-02-01", timeless)
        assert refused == (400, "invalid_request", name)
    cursor = quote(door.get(f"{list_}?limit=1&since=2026-01-01", client()).body["next_cursor"])
    assert door.refusal(f"{list_}?cursor={cursor}") == (400, "invalid_cursor", "cursor")


def test_a_search_finds_what_was_in_a_range_of_time(door: Door) -> None:
    reply = door.get("/v1/search?q=rain&since=2026-01-15&until=2026-04-01", client())
    assert reply.keys == ["e2"]
    assert reply.body["meta"]["count"] == {"kind": "exact", "value": 1}


def test_a_search_in_time_says_which_streams_have_none(door: Door) -> None:
    granted = client(stream_grant(), stream_grant("volumes", (DIARY,)))
    reply = door.get("/v1/search?q=winter&since=2020-01-01", granted)
    assert (reply.keys, reply.warnings) == ([], ["source_skipped_not_applicable"])
    assert door.get("/v1/search?q=winter", granted).keys == ["v1"]


def test_a_cursor_of_a_search_belongs_to_its_range(door: Door) -> None:
    target = "/v1/search?q=rain&limit=1&since=2026-01-01"
    cursor = quote(door.get(target, client()).body["next_cursor"])
    assert door.get(f"{target}&cursor={cursor}", client()).status == 200
    other = f"/v1/search?q=rain&limit=1&since=2026-01-02&cursor={cursor}"
    assert door.refusal(other) == (400, "invalid_cursor", "cursor")
