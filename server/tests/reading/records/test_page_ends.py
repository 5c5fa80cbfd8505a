"""Where a page of a list or a feed ends, of which not every row can be shown."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson
import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import CursorExpired
from personal_server.domain.envelope import ReadResult
from personal_server.enforcement.queries import ChangesQuery, PageSize, RecordsQuery
from personal_server.reading.changes import follow
from personal_server.reading.records import read_records
from server.tests.reading.states import State
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import LIST, client

FEED = f"{LIST}?changes_since=beginning&limit=2"


def shown(found: ReadResult) -> list[str]:
    """The keys of the records of a page."""
    records: Any = found.data
    return [orjson.loads(bytes(each))["id"] for each in records]


def without_last(read: Any) -> Any:
    """The pages of a state whose third row, behind the two of a page, is damaged."""

    def page(plan: Any) -> Any:
        three = read(replace(plan, limit=3))
        return replace(three, rows=three.rows[:2], more=True, end=three.rows[2].position)

    return page


def test_a_list_goes_on_behind_damaged_rows_at_the_end_of_a_page(door: Door) -> None:
    whole = door.get(f"{LIST}?limit=5", client()).keys
    with door.store.snapshot() as snapshot:
        state: Any = State(snapshot, page=without_last(snapshot.page))
        found = read_records(door.ports, state, client(), RecordsQuery("entries", limit=2))
    following = door.get(f"{LIST}?limit=2&cursor={quote(found.next_cursor or '')}", client())
    assert following.keys == whole[3:]


def test_a_list_goes_on_with_what_had_no_room_before_the_damaged_rows(door: Door) -> None:
    whole = door.get(f"{LIST}?limit=5", client()).keys
    query = RecordsQuery("entries", limit=2, size=PageSize(chars=1))
    with door.store.snapshot() as snapshot:
        state: Any = State(snapshot, page=without_last(snapshot.page))
        found = read_records(door.ports, state, client(), query)
    assert shown(found) == whole[:1]
    following = door.get(f"{LIST}?limit=5&cursor={quote(found.next_cursor or '')}", client())
    assert following.keys == whole[1:]


def test_a_feed_goes_on_behind_damaged_changes_at_the_end_of_a_page(door: Door) -> None:
    whole = door.get(f"{LIST}?changes_since=beginning", client()).keys
    query = ChangesQuery("entries", limit=2, changes_since="beginning")

    def state_of(snapshot: Any) -> Any:
        def changes(plan: Any) -> Any:
            three = snapshot.changes(replace(plan, limit=3))
            end = three.items[2].sequence
            return replace(three, items=three.items[:2], more=True, end=end)

        return State(snapshot, changes=changes)

    with door.store.snapshot() as snapshot:
        behind = follow(door.ports, state_of(snapshot), client(), query)
        small = replace(query, size=PageSize(chars=1))
        before = follow(door.ports, state_of(snapshot), client(), small)
    assert door.get(f"{LIST}?cursor={quote(behind.next_cursor or '')}", client()).keys == whole[3:]
    assert shown(before) == whole[:1]
    assert door.get(f"{LIST}?cursor={quote(before.next_cursor or '')}", client()).keys == whole[1:]


def test_a_page_of_a_feed_holds_as_many_characters_as_were_asked_for(door: Door) -> None:
    whole = door.get(f"{LIST}?changes_since=beginning", client()).keys
    query = ChangesQuery("entries", size=PageSize(chars=500), changes_since="beginning")
    found, pages = list[str](), 0
    while pages == 0 or query.cursor is not None:
        with door.store.snapshot() as snapshot:
            page = follow(door.ports, snapshot, client(), query)
        found += shown(page)
        query, pages = replace(query, cursor=page.next_cursor, changes_since=None), pages + 1
    assert found == whole
    assert 1 < pages < len(whole)


def test_a_place_in_a_feed_ends_with_a_database_that_was_put_back(door: Door) -> None:
    cursor = door.get(FEED, client()).body["next_cursor"]
    bookmark = door.get(f"{LIST}?changes_since=now", client()).body["next_changes_since"]
    for place in ({"cursor": cursor}, {"changes_since": bookmark}):
        query = ChangesQuery("entries", **place)
        with door.store.snapshot() as snapshot:
            assert follow(door.ports, snapshot, client(), query).disclosed is not None
            earlier: Any = State(snapshot, horizon=snapshot.horizon - 1)
            with pytest.raises(CursorExpired) as caught:
                follow(door.ports, earlier, client(), query)
        way_out = {"changes_since": "beginning"} | ({"cursor": None} if "cursor" in place else {})
        assert caught.value.members["recovery"] == way_out
