from urllib.parse import quote

import pytest

from personal_server.domain.authority import ReadAuthority
from personal_server.storage.memory import MemoryStore
from tests.resource_server.door import Door
from tests.resource_server.journal import (
    BANK,
    DIARY,
    LETTERS,
    OWNER,
    client,
    furnished,
    grant,
    package,
    stream_grant,
    write,
)

LIST = "/v1/streams/entries/records"
NARROW = ("id", "title", "created_at")


@pytest.fixture
def door() -> Door:
    return Door(furnished())


def refusal(door: Door, target: str, authority: ReadAuthority | None = None) -> tuple[object, ...]:
    reply = door.get(target, authority or client())
    return (reply.status, reply.code, reply.error.get("param"))


def test_a_list_is_newest_first_over_all_connections(door: Door) -> None:
    reply = door.get(LIST, client())
    assert reply.keys == ["l1", "e3", "e2", "e2", "e1"]
    assert [r["connection_id"] for r in reply.data[2:4]] == [LETTERS, DIARY]
    assert reply.body["has_more"] is False
    assert "next_cursor" not in reply.body
    assert reply.body["links"] == {"self": LIST, "next": None}


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
    assert refusal(door, f"{LIST}?{query}") == expected


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("fields=body", "fields"),
        ("filter[body]=x", "filter[body]"),
        ("sort=word_count", "sort"),
    ],
)
def test_a_declared_field_outside_the_grant_is_refused(door: Door, query: str, param: str) -> None:
    authority = client(stream_grant(fields=NARROW))
    assert refusal(door, f"{LIST}?{query}", authority) == (403, "field_not_granted", param)


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


def test_expansion_reads_children_through_their_own_grant(door: Door) -> None:
    authority = client(stream_grant(), stream_grant("attachments", fields=("id", "entry_id")))
    reply = door.get(f"{LIST}?expand=attachments&connection_id={DIARY}", authority)
    children = reply.data[-1]["expanded"]["attachments"]
    assert [c["id"] for c in children["data"]][:3] == ["a1", "a10", "a11"]
    assert all(sorted(c["data"]) == ["entry_id", "id"] for c in children["data"])
    assert (len(children["data"]), children["has_more"]) == (10, True)
    more = door.get(children["url"], authority)
    assert len(more.data) == 12
    assert reply.data[0]["expanded"]["attachments"] == {
        "object": "list",
        "data": [],
        "has_more": False,
    }


def test_a_limit_asks_for_its_relation(door: Door) -> None:
    authority = client(stream_grant(), stream_grant("attachments"))
    reply = door.get(f"{LIST}/e1?expand_limit[attachments]=3", authority)
    assert len(reply.body["expanded"]["attachments"]["data"]) == 3


def test_a_has_one_relation_gives_a_record_or_null(door: Door) -> None:
    authority = client(stream_grant(), stream_grant("volumes"))
    reply = door.get(f"{LIST}?expand=volume&connection_id={DIARY}", authority)
    assert [r["expanded"]["volume"] and r["expanded"]["volume"]["id"] for r in reply.data] == [
        None,
        "v1",
        "v1",
    ]


def test_the_key_that_joins_must_be_granted(door: Door) -> None:
    authority = client(stream_grant(fields=NARROW), stream_grant("volumes"))
    assert refusal(door, f"{LIST}?expand=volume", authority) == (
        403,
        "field_not_granted",
        "expand",
    )


def test_connections_without_the_related_stream_are_said_to_be_skipped(door: Door) -> None:
    authority = client(stream_grant(), stream_grant("volumes", (DIARY,)))
    reply = door.get(f"{LIST}?expand=volume", authority)
    assert reply.warnings == ["source_skipped_not_applicable"]
    warning = reply.body["meta"]["warnings"][0]
    assert warning["connection_id"] == LETTERS
    assert warning["detail"]["stream"] == "volumes"


def test_blob_references_get_a_fetch_url(door: Door) -> None:
    place = f"/v1/streams/attachments/records/a1?connection_id={DIARY}"
    reply = door.get(place, client(stream_grant("attachments")))
    url = reply.body["data"]["blob_ref"]["fetch_url"]
    assert url == f"/v1/blobs/blob_sha256_{'0' * 64}?connection_id={DIARY}"


def test_one_record_is_flat(door: Door) -> None:
    reply = door.get(f"{LIST}/e1?fields=title", client())
    assert reply.body["data"] == {"id": "e1", "title": "Rain"}
    assert reply.body["links"] == {"self": f"{LIST}/e1?fields=title"}
    assert reply.body["meta"] == {"count": {"kind": "none"}, "warnings": []}


def test_hidden_and_absent_records_give_the_identical_answer(door: Door) -> None:
    hidden = door.get(f"{LIST}/e1", client(stream_grant(resources=("e2",))))
    absent = door.get(f"{LIST}/e9", client(stream_grant(resources=("e2",))))
    assert hidden.status == 404
    assert hidden.text == absent.text


def test_a_key_on_several_connections_names_exactly_those(door: Door) -> None:
    reply = door.get(f"{LIST}/e2", client())
    assert (reply.status, reply.code) == (409, "ambiguous_connection")
    assert {c["connection_id"] for c in reply.error["available_connections"]} == {DIARY, LETTERS}
    assert reply.error["retry_with"] == "connection_id"
    assert door.get(f"{LIST}/e2?connection_id={DIARY}", client()).status == 200


@pytest.mark.parametrize("key", ["a/b", "..", ".", "~b64.x", 'q"uote', "ä ö", "[1]"])
def test_any_key_can_be_read_by_its_segment(door: Door, key: str) -> None:
    record = {"id": key, "title": "odd marvel", "created_at": "2026-01-01T00:00:00Z"}
    write(door.store, DIARY, "entries", [record])
    place = door.get("/v1/search?q=marvel", client()).data[0]["record_url"]
    reply = door.get(place, client())
    assert reply.body["record_id"] == key


def test_an_undecodable_key_is_refused(door: Door) -> None:
    assert refusal(door, f"{LIST}/~b64.!!") == (400, "invalid_request", "record_key")


@pytest.mark.parametrize(
    ("query", "window"),
    [
        ("", ("We walked home in heavy rain & wind <b>until</b> dark.", 0, True, None, None)),
        ("&limit_chars=6", ("We wal", 0, False, 6, None)),
        ("&offset_chars=6&limit_chars=6", ("ked ho", 6, False, 12, 0)),
        ("&offset_chars=999", ("", 54, False, None, 0)),
        ("&q=RAIN&before_chars=3&after_chars=2", ("vy rain &", 21, False, 30, 12)),
        ("&q=rain&after_chars=2", ("rain &", 24, False, 30, 18)),
        ("&q=rain&limit_chars=8", ("y rain &", 22, False, 30, 14)),
        ("&q=rain&limit_chars=2", ("ra", 24, False, 26, 22)),
    ],
)
def test_a_field_window_is_a_stretch_of_the_text(
    door: Door, query: str, window: tuple[object, ...]
) -> None:
    reply = door.get(f"{LIST}/e1/field-window?field=body{query}", client())
    found = reply.body["window"]
    shown = (
        found["text"],
        found["start_chars"],
        found["complete"],
        found["next_offset_chars"],
        found["previous_offset_chars"],
    )
    assert shown == window
    assert reply.body["field"]["mime_type"] == "text/markdown"
    assert found["end_chars"] - found["start_chars"] == len(found["text"])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", (400, "invalid_field_path", "field")),
        ("field=a.b", (400, "invalid_field_path", "field")),
        ("field=body&limit_chars=0", (400, "invalid_window", "limit_chars")),
        ("field=body&offset_chars=-1", (400, "invalid_window", "offset_chars")),
        ("field=body&q=a&offset_chars=1", (400, "invalid_window", "offset_chars")),
        ("field=body&before_chars=1", (400, "invalid_window", "before_chars")),
        ("field=body&q=a&after_chars=8193", (400, "invalid_window", "after_chars")),
        (f"field=body&q={'a' * 257}", (400, "invalid_window", "q")),
        ("field=nowhere", (400, "unknown_field", "field")),
        ("field=pinned", (422, "field_not_text", "field")),
        ("field=body&q=sunshine", (404, "query_not_found", "q")),
    ],
)
def test_windows_that_cannot_be_cut_say_why(
    door: Door, query: str, expected: tuple[object, ...]
) -> None:
    assert refusal(door, f"{LIST}/e1/field-window?{query}") == expected


def test_a_window_of_a_hidden_field_or_a_missing_value_is_refused(door: Door) -> None:
    narrow = client(stream_grant(fields=NARROW))
    place = f"{LIST}/e1/field-window?field=body"
    assert refusal(door, place, narrow) == (403, "field_not_granted", "field")
    place = f"{LIST}/e3/field-window?field=title"
    assert refusal(door, place) == (404, "field_not_found", "field")
    assert refusal(door, f"{LIST}/e2/field-window?field=body")[1] == "ambiguous_connection"
    clamped = door.get(f"{LIST}/e1/field-window?field=body&limit_chars=99999", client())
    assert clamped.warnings == ["limit_clamped"]
    assert clamped.body["window"]["limit_chars"] == 16_384


def test_windows_laid_end_to_end_are_the_field(door: Door) -> None:
    text, target = "", f"{LIST}/e1/field-window?field=body&limit_chars=7&offset_chars=0"
    while True:
        window = door.get(target, client()).body["window"]
        text += window["text"]
        if window["next_offset_chars"] is None:
            break
        target = target.rsplit("=", 1)[0] + f"={window['next_offset_chars']}"
    assert text == "We walked home in heavy rain & wind <b>until</b> dark."


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
    assert refusal(door, "/v1/streams/nowhere/records", OWNER)[:2] == (404, "not_found")


def test_streams_outside_the_grant_are_refused(door: Door) -> None:
    assert refusal(door, "/v1/streams/volumes/records")[:2] == (403, "grant_stream_not_allowed")
    assert refusal(door, "/v1/streams/nowhere/records")[:2] == (403, "grant_stream_not_allowed")


def test_an_answer_names_the_sources_it_came_from(door: Door) -> None:
    reply = door.get(f"{LIST}?fields=title&limit=3", client())
    assert [(d.source.connection_id, d.fields, d.record_count) for d in reply.disclosed] == [
        (DIARY, ("id", "title"), 1),
        (LETTERS, ("id", "title"), 2),
    ]
    counted = door.get(f"{LIST}?limit=1&count=exact&filter[pinned]=true", client())
    assert [d.record_count for d in counted.disclosed] == [0, 1]


def test_a_cursor_belongs_to_its_request_and_its_holder(door: Door) -> None:
    reply = door.get(f"{LIST}?limit=1", client())
    cursor = quote(reply.body["next_cursor"])
    others = [
        f"{LIST}?cursor={cursor}&order=asc",
        f"{LIST}?cursor={cursor}&filter[pinned]=true",
        f"{LIST}?cursor={cursor}&connection_id={DIARY}",
    ]
    for target in others:
        assert refusal(door, target) == (400, "invalid_cursor", "cursor")
    assert refusal(door, f"{LIST}?cursor={cursor}", OWNER)[0] in (400, 409)
    assert door.get(f"{LIST}?cursor={cursor}&limit=2&fields=title&count=exact", client()).keys == [
        "e3",
        "e2",
    ]


def test_the_same_request_in_other_words_continues(door: Door) -> None:
    first = door.get(f"{LIST}?limit=1&filter[pinned]=true&filter[word_count][gte]=1", client())
    cursor = quote(first.body["next_cursor"])
    again = "filter[word_count][gte]=1&filter[pinned]=true&order=desc&sort=-created_at"
    assert door.get(f"{LIST}?{again}&cursor={cursor}", client()).keys == ["e1"]


def test_a_cursor_ends_when_the_readable_sources_change(door: Door) -> None:
    cursor = quote(door.get(f"{LIST}?limit=1", client()).body["next_cursor"])
    reply = door.get(f"{LIST}?cursor={cursor}", client(stream_grant(fields=NARROW)))
    assert reply.code == "invalid_cursor"
    assert reply.error["recovery"] == {"cursor": None}


def test_any_changed_character_of_a_cursor_is_refused(door: Door) -> None:
    cursor = door.get(f"{LIST}?limit=1", client()).body["next_cursor"]
    for place in range(len(cursor)):
        other = "A" if cursor[place] != "A" else "B"
        changed = cursor[:place] + other + cursor[place + 1 :]
        assert door.get(f"{LIST}?cursor={changed}", client()).code == "invalid_cursor"
    for changed in (cursor[:-1], cursor + "A", cursor + "=", "é" * 20, "A" * 9_000):
        assert door.get(f"{LIST}?cursor={quote(changed)}", client()).code == "invalid_cursor"
