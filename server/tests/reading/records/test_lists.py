"""Lists of records."""

import copy
from dataclasses import replace

import pytest

from personal_server.domain.authority import Unavailable
from personal_server.domain.declaration_document import parse_declaration
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    BANK,
    DIARY,
    JOURNAL_RAW,
    LETTERS,
    LIST,
    NARROW,
    OWNER,
    client,
    furnished,
    grant,
    package,
    stream_grant,
    write,
)
from tests.oracle.memory import MemoryStore


def test_a_list_is_newest_first_over_all_connections(door: Door) -> None:
    reply = door.get(LIST, client())
    assert reply.keys == ["l1", "e3", "e2", "e2", "e1"]
    assert [r["connection_id"] for r in reply.data[2:4]] == [LETTERS, DIARY]
    assert reply.body["has_more"] is False
    assert "next_cursor" not in reply.body
    assert reply.body["links"] == {"self": LIST, "next": None}


def test_an_account_that_cannot_be_read_is_named_where_none_was_asked_for(door: Door) -> None:
    gone = replace(client(), unavailable=(Unavailable(BANK, "connection_revoked"),))
    [named] = door.get(LIST, gone).body["meta"]["unavailable_connections"]
    assert (named["connection_id"], named["reason"]) == (BANK, "connection_revoked")
    asked = door.get(f"{LIST}?connection_id={DIARY}", gone).body["meta"]
    assert "unavailable_connections" not in asked
    assert "unavailable_connections" not in door.get(LIST, client()).body["meta"]


def test_a_record_names_itself_and_where_it_comes_from(door: Door) -> None:
    record = door.get(f"{LIST}?connection_id={DIARY}&limit=1", client()).data[0]
    assert record["id"] == record["record_id"] == "e3"
    assert (record["connector_key"], record["display_name"]) == ("journal", "Paper diary")
    assert record["emitted_at"] == "2026-05-01T00:00:00.000Z"
    assert "grant_id" not in record


def test_records_read_with_a_package_name_their_grant(door: Door) -> None:
    reply = door.get(f"{LIST}?connection_id={DIARY}", package(grant(stream_grant())))
    assert {r["grant_id"] for r in reply.data} == {"grt_1"}


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("order=asc", ["e1", "e2", "e2", "e3", "l1"]),
        ("sort=word_count", ["e2", "e1", "e2", "e3", "l1"]),
        ("sort=-word_count", ["e2", "e1", "e2", "l1", "e3"]),
        ("filter[pinned]=true", ["e2", "e1"]),
        ("filter[title]=Rain", ["e1"]),
        ("filter[title]=rain", []),
        ("filter[word_count][gte]=10&filter[word_count][lte]=20", ["e2", "e1"]),
        ("filter[created_at][gt]=2026-02-15", ["l1", "e3"]),
        ("filter[created_at][gte]=2026-02-15", ["l1", "e3", "e2"]),
        ("filter[created_at][lte]=2026-02-01", ["e2", "e1"]),
        ("filter[created_at][lt]=2026-02-01", ["e1"]),
        ("filter[created_at]=2026-02-01T11:00:00%2B01:00", ["e2"]),
        ("filter[body]=", ["l1"]),
        (f"connection_id={LETTERS}", ["l1", "e2"]),
        (f"connector_instance_id={LETTERS}", ["l1", "e2"]),
        ("connection_id=&connector_id=&cursor=", ["l1", "e3", "e2", "e2", "e1"]),
    ],
)
def test_parameters_choose_and_order(door: Door, query: str, keys: list[str]) -> None:
    assert door.get(f"{LIST}?{query}", client()).keys == keys


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=0", (400, "invalid_request", "limit")),
        ("limit=x", (400, "invalid_request", "limit")),
        ("order=up", (400, "invalid_request", "order")),
        ("count=all", (400, "invalid_request", "count")),
        ("window=all", (400, "invalid_request", "window")),
        ("surprise=1", (400, "invalid_request", "surprise")),
        ("sort=nowhere", (400, "unknown_field", "sort")),
        ("sort=pinned", (400, "invalid_sort", "sort")),
        ("sort=-created_at&order=asc", (400, "invalid_sort", "sort")),
        ("filter=x", (400, "invalid_filter", "filter")),
        ("filter[title]=a&filter[title]=b", (400, "invalid_filter", "filter[title]")),
        ("filter[title][gte]=a", (400, "invalid_filter", "filter[title]")),
        ("filter[word_count][gt]=1", (400, "invalid_filter", "filter[word_count]")),
        ("filter[word_count]=1.5", (400, "invalid_filter", "filter[word_count]")),
        ("filter[word_count]=%2B1", (400, "invalid_filter", "filter[word_count]")),
        ("filter[word_count]=", (400, "invalid_filter", "filter[word_count]")),
        ("filter[word_count]=1e99", (400, "invalid_filter", "filter[word_count]")),
        ("filter[pinned]=yes", (400, "invalid_filter", "filter[pinned]")),
        ("filter[labels]=wet", (400, "invalid_filter", "filter[labels]")),
        ("filter[created_at]=2026-02-01", (400, "invalid_filter", "filter[created_at]")),
        (
            "filter[created_at][gte]=2026-02-01T00:00:00",
            (400, "invalid_filter", "filter[created_at]"),
        ),
        ("filter[nowhere]=1", (400, "unknown_field", "filter[nowhere]")),
        ("fields=nowhere", (400, "unknown_field", "fields")),
        ("fields=id&view=titles", (400, "invalid_request", "view")),
        ("view=nowhere", (400, "invalid_request", "view")),
        ("expand=nowhere", (400, "invalid_expand", "expand")),
        ("expand_limit[volume]=1", (400, "invalid_expand", "expand_limit[volume]")),
        (
            "expand=volume&expand_limit[attachments]=1",
            (400, "invalid_expand", "expand_limit[attachments]"),
        ),
        ("expand_limit[attachments]=0", (400, "invalid_expand", "expand_limit[attachments]")),
        ("expand_limit[attachments]=51", (400, "invalid_expand", "expand_limit[attachments]")),
        ("expand_limit[attachments]=x", (400, "invalid_expand", "expand_limit[attachments]")),
        ("expand=attachments", (403, "grant_stream_not_allowed", "expand")),
        ("cursor=x", (400, "invalid_cursor", "cursor")),
        ("connection_id=cin_nobody0000000000", (404, "connection_not_found", "connection_id")),
        ("connector_id=nothing", (404, "connection_not_found", "connector_id")),
        (
            f"connection_id={DIARY}&connector_instance_id={LETTERS}",
            (400, "invalid_request", "connector_instance_id"),
        ),
    ],
)
def test_bad_input_names_the_parameter(
    door: Door, query: str, expected: tuple[object, ...]
) -> None:
    assert door.refusal(f"{LIST}?{query}") == expected


@pytest.mark.parametrize(
    ("query", "param"),
    [("fields=body", "fields"), ("filter[body]=x", "filter[body]"), ("sort=word_count", "sort")],
)
def test_a_declared_field_outside_the_grant_is_refused(door: Door, query: str, param: str) -> None:
    authority = client(stream_grant(fields=NARROW))
    assert door.refusal(f"{LIST}?{query}", authority) == (403, "field_not_granted", param)


def test_more_than_32_conditions_are_refused(door: Door) -> None:
    many = "&".join(f"filter[f{i}]=x" for i in range(33))
    assert door.get(f"{LIST}?{many}", client()).code == "invalid_filter"


@pytest.mark.parametrize(("name", "count"), [("fields", 257), ("expand", 9)])
def test_lists_of_names_have_caps(door: Door, name: str, count: int) -> None:
    values = ",".join(f"n{i}" for i in range(count))
    assert door.get(f"{LIST}?{name}={values}", client()).status == 400


def test_a_limit_above_the_maximum_is_clamped_and_said_so(door: Door) -> None:
    reply = door.get(f"{LIST}?limit=1000", client())
    assert reply.warnings == ["limit_clamped"]
    detail = reply.body["meta"]["warnings"][0]["detail"]
    assert detail == {"requested_limit": 1000, "max_limit": 100}


def test_fields_and_views_cut_to_the_named_fields_and_the_key(door: Door) -> None:
    authority = client(stream_grant(fields=(*NARROW, "pinned")))
    cut = door.get(f"{LIST}?fields=pinned&limit=3", authority)
    assert [sorted(r["data"]) for r in cut.data] == [["id"], ["id"], ["id", "pinned"]]
    viewed = door.get(f"{LIST}?view=titles&limit=1", authority)
    assert sorted(viewed.data[0]["data"]) == ["created_at", "id", "title"]


def test_count_and_window_cover_the_whole_list(door: Door) -> None:
    reply = door.get(f"{LIST}?limit=1&count=exact&window=exact&filter[pinned]=true", client())
    assert reply.body["meta"]["count"] == {"kind": "exact", "value": 2}
    assert reply.body["meta"]["window"] == {
        "total": 2,
        "earliest_at": "2026-01-01T10:00:00Z",
        "latest_at": "2026-02-15T10:00:00Z",
    }
    estimated = door.get(f"{LIST}?count=estimated", client())
    assert estimated.body["meta"]["count"] == {"kind": "exact", "value": 5}


def test_the_window_does_not_tell_hidden_times(door: Door) -> None:
    reply = door.get(f"{LIST}?window=exact", client(stream_grant(fields=("id", "title"))))
    window = reply.body["meta"]["window"]
    assert window == {"total": 5, "earliest_at": None, "latest_at": None}


def test_without_the_cursor_field_the_order_is_that_of_the_keys(door: Door) -> None:
    authority = client(stream_grant(fields=("id", "title")))
    assert door.get(LIST, authority).keys == ["e1", "e2", "e2", "e3", "l1"]
    assert door.get(f"{LIST}?order=desc", authority).keys == ["l1", "e3", "e2", "e2", "e1"]


def test_a_time_constraint_and_resources_are_all_that_exists(door: Door) -> None:
    since = client(stream_grant(since="2026-02-01T10:00:00Z", until="2026-03-01T10:00:00Z"))
    assert door.get(f"{LIST}?count=exact", since).body["meta"]["count"]["value"] == 2
    assert door.get(f"{LIST}/e1", since).code == "not_found"
    chosen = client(stream_grant(resources=("e1", "l1")))
    assert door.get(LIST, chosen).keys == ["l1", "e1"]


def test_hidden_changes_do_not_move_emitted_at(door: Door) -> None:
    narrow = client(stream_grant(fields=("id", "title", "created_at")))
    entry = door.get(f"{LIST}/e1", client()).body["data"]
    write(door.store, DIARY, "entries", [entry | {"body": "changed"}], "2026-06-01T00:00:00Z")
    assert door.get(f"{LIST}/e1", narrow).body["emitted_at"] == "2026-05-01T00:00:00.000Z"
    assert door.get(f"{LIST}/e1", client()).body["emitted_at"] == "2026-06-01T00:00:00.000Z"


def test_a_page_ends_early_before_four_mebibytes() -> None:
    door = Door(furnished(MemoryStore()))
    huge = "x" * (1024 * 1024)
    records = [
        {"id": f"h{i}", "body": huge, "created_at": f"2027-01-0{i + 1}T00:00:00Z"} for i in range(6)
    ]
    write(door.store, DIARY, "entries", records)
    reply = door.get(f"{LIST}?limit=6&filter[created_at][gte]=2027-01-01", client())
    assert reply.keys == ["h5", "h4", "h3"]
    following = door.get(reply.body["links"]["next"], client())
    assert following.keys == ["h2", "h1", "h0"]


def test_one_record_larger_than_a_page_is_still_shown() -> None:
    door = Door(furnished(MemoryStore()))
    record = {"id": "big", "body": "x" * 5_000_000, "created_at": "2027-01-01T00:00:00Z"}
    write(door.store, DIARY, "entries", [record])
    reply = door.get(LIST, client())
    assert reply.keys == ["big"]
    assert reply.body["has_more"] is True


def test_a_package_names_its_connection_whatever_else_was_granted(door: Door) -> None:
    authority = package(
        grant(stream_grant()), grant(stream_grant("volumes", (DIARY,)), grant_id="grt_2")
    )
    reply = door.get(LIST, authority)
    assert reply.code == "ambiguous_connection"
    assert door.get(f"{LIST}?connection_id={LETTERS}", authority).keys == ["l1", "e2"]


def test_the_owner_reads_by_the_same_road(door: Door) -> None:
    assert door.get(LIST, OWNER).code == "ambiguous_connection"
    assert len(door.get(f"{LIST}?connector_id=journal", OWNER).data) == 5
    assert door.get(f"{LIST}?connection_id={BANK}", OWNER).keys == ["e1"]
    assert door.refusal("/v1/streams/nowhere/records", OWNER)[:2] == (404, "not_found")


def test_streams_outside_the_grant_are_refused(door: Door) -> None:
    assert door.refusal("/v1/streams/volumes/records")[:2] == (403, "grant_stream_not_allowed")
    assert door.refusal("/v1/streams/nowhere/records")[:2] == (403, "grant_stream_not_allowed")


def test_an_answer_names_the_sources_it_came_from(door: Door) -> None:
    reply = door.get(f"{LIST}?fields=title&limit=3", client())
    assert [(d.source.connection_id, d.fields, d.record_count) for d in reply.disclosed] == [
        (DIARY, ("id", "title"), 1),
        (LETTERS, ("id", "title"), 2),
    ]
    counted = door.get(f"{LIST}?limit=1&count=exact&filter[pinned]=true", client())
    assert [d.record_count for d in counted.disclosed] == [0, 1]


def test_a_list_says_whose_days_are_meant_and_each_record_its_clock_there(door: Door) -> None:
    plain = door.get(LIST, client()).body
    assert "time_zone" not in plain["meta"]
    there = door.get(f"{LIST}?time_zone=Europe/Berlin", client()).body
    assert there["meta"]["time_zone"] == "Europe/Berlin"
    assert [each["when"][-5:] for each in there["data"]] == [
        "12:00",
        "11:00",
        "11:00",
        "11:00",
        "11:00",
    ]
    # no clock where UTC says the same, and where the fields were chosen
    for query in ("time_zone=UTC", "time_zone=Europe/Berlin&fields=title"):
        shown = door.get(f"{LIST}?{query}", client()).body
        assert shown["meta"]["time_zone"] == query.split("&")[0].partition("=")[2]
        assert not any("when" in each for each in (*plain["data"], *shown["data"]))


def test_a_range_says_of_which_time_it_is_where_records_tell_two(door: Door) -> None:
    raw = copy.deepcopy(JOURNAL_RAW)
    entries = next(each for each in raw["streams"] if each["name"] == "entries")
    entries["schema"]["properties"]["edited_at"] = {"type": "string", "format": "date-time"}
    edited = parse_declaration(raw)

    def said(fields: tuple[str, ...], query: str) -> str | None:
        authority = client(stream_grant(fields=fields, instance_ids=(DIARY,)), declared=edited)
        return door.get(f"{LIST}?{query}", authority).body["meta"].get("ranged_by")

    both = ("id", "created_at", "edited_at")
    assert said(both, "since=2026-02-01") == said(both, "until=2026-02-01") == "created_at"
    assert said(both, "limit=1") is None
    assert said(("id", "created_at"), "since=2026-02-01") is None


@pytest.mark.parametrize(
    ("figures", "fields", "counts"),
    [
        ("", ("id", "word_count"), {DIARY: 1}),
        ("&count=exact", ("id", "word_count", "title", "pinned"), {DIARY: 1, LETTERS: 0}),
        ("&window=exact", ("id", "word_count", "title", "pinned"), {DIARY: 1, LETTERS: 0}),
    ],
)
def test_a_figure_is_read_from_the_fields_that_conditions_name_of_every_account(
    door: Door, figures: str, fields: tuple[str, ...], counts: dict[str, int]
) -> None:
    asked = f"{LIST}?fields=word_count&filter[title]=Snow&filter[pinned]=false{figures}"
    reply = door.get(asked, client())
    assert reply.status == 200, reply.text
    told = {each.source.connection_id: each for each in reply.disclosed}
    assert {account: each.record_count for account, each in told.items()} == counts
    assert {frozenset(each.fields) for each in told.values()} == {frozenset(fields)}
    assert told[DIARY].keys == ("e2",)
