from urllib.parse import quote

import pytest

from pdpp_kernel.values import instant_ns
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    DIARY,
    ENTRIES,
    LETTERS,
    client,
    furnished,
    grant,
    package,
    stream_grant,
    write,
)

LIST = "/v1/streams/entries/records"
FEED = f"{LIST}?changes_since="


@pytest.fixture
def door() -> Door:
    return Door(furnished())


def bookmark(door: Door, target: str = "", **grants: object) -> str:
    authority = client(stream_grant(**grants)) if grants else client()  # type: ignore[arg-type]
    reply = door.get(f"{FEED}beginning{target}", authority)
    return quote(reply.body["next_changes_since"])


def test_the_beginning_lists_all_visible_records(door: Door) -> None:
    reply = door.get(f"{FEED}beginning", client())
    assert sorted(reply.keys) == ["e1", "e2", "e2", "e3", "l1"]
    assert reply.body["next_changes_since"]
    assert reply.body["has_more"] is False


def test_an_empty_feed_returns_a_fresh_bookmark(door: Door) -> None:
    reply = door.get(FEED + bookmark(door), client())
    assert reply.data == []
    assert reply.body["next_changes_since"]


def test_changes_and_deletions_arrive_in_order_and_once(door: Door) -> None:
    since = bookmark(door)
    write(door.store, DIARY, "entries", ["e3"], "2026-06-01T00:00:00Z")
    write(door.store, DIARY, "entries", [ENTRIES[0] | {"title": "New"}], "2026-06-02T00:00:00Z")
    write(door.store, DIARY, "entries", [ENTRIES[0] | {"title": "Newer"}], "2026-06-03T00:00:00Z")
    reply = door.get(FEED + since, client())
    assert reply.keys == ["e3", "e1"]
    tombstone = reply.data[0]
    assert tombstone["deleted"] is True
    assert tombstone["deleted_at"] == "2026-06-01T00:00:00.000Z"
    assert "data" not in tombstone
    assert reply.data[1]["data"]["title"] == "Newer"


def test_a_change_of_a_hidden_field_is_not_heard_of(door: Door) -> None:
    authority = client(stream_grant(fields=("id", "title", "created_at")))
    since = quote(door.get(f"{FEED}beginning", authority).body["next_changes_since"])
    write(door.store, DIARY, "entries", [ENTRIES[0] | {"body": "other"}], "2026-06-01T00:00:00Z")
    assert door.get(FEED + since, authority).data == []


def test_a_departure_from_the_window_looks_like_a_deletion(door: Door) -> None:
    authority = client(stream_grant(until="2026-02-20T00:00:00Z"))
    since = quote(door.get(f"{FEED}beginning", authority).body["next_changes_since"])
    moved = ENTRIES[0] | {"created_at": "2026-07-01T00:00:00Z"}
    write(door.store, DIARY, "entries", [moved, "e2"], "2026-06-01T00:00:00Z")
    items = door.get(FEED + since, authority).data
    assert [item["id"] for item in items] == ["e1", "e2"]
    assert items[0].keys() == items[1].keys()


def test_pages_of_a_feed_carry_a_cursor_and_only_the_last_a_bookmark(door: Door) -> None:
    reply = door.get(f"{FEED}beginning&limit=2", client())
    assert "next_changes_since" not in reply.body
    assert "changes_since" not in reply.body["links"]["next"]
    seen = reply.keys
    while reply.body["has_more"]:
        reply = door.get(reply.body["links"]["next"], client())
        seen += reply.keys
    assert sorted(seen) == ["e1", "e2", "e2", "e3", "l1"]
    assert reply.body["next_changes_since"]


def test_beside_a_cursor_only_the_value_the_feed_began_with_may_stand(door: Door) -> None:
    cursor = quote(door.get(f"{FEED}beginning&limit=2", client()).body["next_cursor"])
    assert door.get(f"{FEED}beginning&cursor={cursor}", client()).status == 200
    other = door.get(f"{FEED}{bookmark(door)}&cursor={cursor}", client())
    assert (other.code, other.error["param"]) == ("invalid_cursor", "changes_since")


@pytest.mark.parametrize(
    "name",
    [
        "since",
        "until",
        "sort",
        "order",
        "count",
        "window",
        "expand",
        "expand_limit[attachments]",
    ],
)
def test_a_feed_takes_no_order_and_no_figures(door: Door, name: str) -> None:
    values = {"order": "asc", "count": "exact", "window": "exact", "expand_limit[attachments]": "1"}
    reply = door.get(f"{FEED}beginning&{name}={values.get(name, 'title')}", client())
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert reply.error["param"] == name.partition("[")[0]


def test_a_filtered_feed_tells_what_may_have_matched_that_it_left(door: Door) -> None:
    target = f"{LIST}?filter[pinned]=true&changes_since="
    first = door.get(f"{target}beginning", client())
    assert first.keys == ["e1", "e2"]
    since = quote(first.body["next_changes_since"])
    at = "2026-06-01T00:00:00Z"
    write(door.store, DIARY, "entries", [ENTRIES[0] | {"pinned": False}], at)
    write(door.store, DIARY, "entries", [ENTRIES[1] | {"title": "Never pinned"}], at)
    write(door.store, DIARY, "entries", [ENTRIES[2] | {"pinned": True}], at)
    write(door.store, DIARY, "entries", [{**ENTRIES[2], "id": "e4", "pinned": False}], at)
    reply = door.get(target + since, client())
    assert [(i["id"], i.get("deleted"), i.get("left")) for i in reply.data] == [
        ("e1", True, "filter"),
        ("e3", None, None),
    ]
    assert "data" not in reply.data[0]
    later = quote(reply.body["next_changes_since"])
    write(door.store, DIARY, "entries", ["e3"], at)
    [gone] = door.get(target + later, client()).data
    assert (gone["id"], gone["deleted"], gone.get("left")) == ("e3", True, None)


def test_a_bookmark_belongs_to_its_filter(door: Door) -> None:
    bare = bookmark(door)
    filtered = bookmark(door, "&filter[pinned]=true")
    for target in (f"{FEED}{bare}&filter[pinned]=true", f"{FEED}{filtered}"):
        assert door.get(target, client()).code == "invalid_cursor"
    assert door.get(f"{FEED}{filtered}&filter[pinned]=true", client()).status == 200


def test_a_filter_of_a_feed_is_refused_as_one_of_a_list(door: Door) -> None:
    narrow = client(stream_grant(fields=("id", "title", "created_at")))
    refused = door.refusal(f"{FEED}beginning&filter[pinned]=true", narrow)
    assert refused == (403, "field_not_granted", "filter[pinned]")
    refused = door.refusal(f"{FEED}beginning&filter[pinned]=maybe")
    assert refused == (400, "invalid_filter", "filter[pinned]")


def test_now_is_a_bookmark_in_one_call(door: Door) -> None:
    reply = door.get(f"{FEED}now", client())
    assert (reply.data, reply.body["has_more"]) == ([], False)
    write(door.store, DIARY, "entries", ["e3"], "2026-06-01T00:00:00Z")
    later = door.get(FEED + quote(reply.body["next_changes_since"]), client())
    assert (later.keys, later.data[0]["deleted"]) == (["e3"], True)


@pytest.mark.parametrize(
    ("instant", "keys"),
    [
        ("2026-04-30", ["e2", "e2", "l1", "e1"]),
        ("2026-05-01T00:00:00Z", ["e3", "e1"]),
        ("2026-06-01T00:00:00Z", ["e1"]),
        ("2026-06-01T01:59:59.999%2B02:00", ["e3", "e1"]),
        ("2026-06-02", []),
        ("2099-01-01", []),
    ],
)
def test_an_instant_is_when_changes_were_written(door: Door, instant: str, keys: list[str]) -> None:
    write(door.store, DIARY, "entries", ["e3"], "2026-06-01T00:00:00Z")
    write(door.store, DIARY, "entries", [ENTRIES[0] | {"title": "New"}], "2026-06-02T00:00:00Z")
    first = door.get(f"{FEED}{instant}&limit=1", client())
    found = first.keys
    while first.body["has_more"]:
        first = door.get(first.body["links"]["next"], client())
        found += first.keys
    assert found == keys
    assert door.get(FEED + quote(first.body["next_changes_since"]), client()).data == []


def test_an_instant_before_what_was_forgotten_starts_again(door: Door) -> None:
    write(door.store, DIARY, "entries", ["e3"], "2026-06-01T00:00:00Z")
    door.store.prune_history(instant_ns("2026-07-01T00:00:00Z") or 0)
    reply = door.get(f"{FEED}2026-06-30", client())
    assert (reply.status, reply.code) == (410, "cursor_expired")
    assert reply.error["recovery"] == {"changes_since": "beginning"}
    assert door.get(f"{FEED}2026-07-01", client()).data == []
    assert door.get(f"{FEED}now", client()).data == []


@pytest.mark.parametrize("value", ["x", "2026-01-01T00:00:00", "2026-13-01", "BEGINNING", "Now"])
def test_anything_else_is_no_bookmark(door: Door, value: str) -> None:
    reply = door.get(FEED + value, client())
    assert (reply.status, reply.code) == (400, "invalid_cursor")
    assert reply.error["param"] == "changes_since"


def test_a_list_cursor_is_no_bookmark_and_a_bookmark_no_cursor(door: Door) -> None:
    cursor = quote(door.get(f"{LIST}?limit=1", client()).body["next_cursor"])
    assert door.get(FEED + cursor, client()).code == "invalid_cursor"
    assert door.get(f"{LIST}?cursor={bookmark(door)}", client()).code == "invalid_cursor"


def test_a_bookmark_of_another_selection_is_refused(door: Door) -> None:
    reply = door.get(f"{FEED}{bookmark(door)}&connection_id={DIARY}", client())
    assert reply.code == "invalid_cursor"


@pytest.mark.parametrize(
    "changed",
    [
        stream_grant(fields=("id", "title", "created_at")),
        stream_grant(instance_ids=(LETTERS,)),
        stream_grant(since="2026-01-02T00:00:00Z"),
        stream_grant(resources=("e1",)),
        stream_grant(only={"pinned": (True,)}),
    ],
)
def test_another_projection_starts_again(door: Door, changed: object) -> None:
    reply = door.get(FEED + bookmark(door), client(changed))  # type: ignore[arg-type]
    assert (reply.status, reply.code) == (410, "cursor_expired")
    assert reply.error["param"] == reply.error["retry_with"] == "changes_since"
    assert reply.error["recovery"] == {"changes_since": "beginning"}


def test_forgotten_history_starts_again_but_the_beginning_always_works(door: Door) -> None:
    since = bookmark(door)
    write(door.store, DIARY, "entries", ["e3"], "2026-06-01T00:00:00Z")
    door.store.prune_history(2**62)
    assert door.get(FEED + since, client()).code == "cursor_expired"
    assert len(door.get(f"{FEED}beginning", client()).data) == 4


def test_a_package_follows_one_connection(door: Door) -> None:
    authority = package(grant(stream_grant()))
    assert door.get(f"{FEED}beginning", authority).code == "ambiguous_connection"
    one = door.get(f"{FEED}beginning&connection_id={DIARY}", authority)
    assert sorted(one.keys) == ["e1", "e2", "e3"]


def test_fields_cut_a_feed_without_ending_it(door: Door) -> None:
    write(door.store, DIARY, "entries", [ENTRIES[0] | {"body": "x"}], "2026-06-01T00:00:00Z")
    reply = door.get(f"{FEED}beginning&fields=title&limit=1", client())
    following = door.get(
        reply.body["links"]["next"].replace("fields=title", "view=titles"), client()
    )
    assert reply.data[0]["data"].keys() == {"id", "title"}
    assert following.data[0]["data"].keys() == {"id", "title", "created_at"}


def test_a_default_that_is_sent_is_no_conflict(door: Door) -> None:
    plain = door.get(f"{FEED}beginning", client())
    assert door.get(f"{FEED}beginning&count=none&window=none&limit=25", client()).keys == plain.keys
