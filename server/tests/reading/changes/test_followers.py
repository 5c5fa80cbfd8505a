"""A follower and a store that went back: it is told to start over, and ends with what is there."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import DIARY, ENTRIES, client, furnished, write
from server.tests.storage.conftest import sqlite_store

PUT_BACK = pytest.mark.of_files("a copy of the file is put back")
FEED = "/v1/streams/entries/records?changes_since="
LATER = "2026-06-01T00:00:00Z"


def extra(*names: str) -> list[dict[str, Any]]:
    return [ENTRIES[0] | {"id": name} for name in names]


class Follower:
    """Keeps a copy by the feed, as the contract tells it to."""

    def __init__(self) -> None:
        self.copy: set[tuple[str, str]] = set()
        self.bookmark = "beginning"
        self.began = 0

    def follow(self, door: Door, target: str = "") -> None:
        reply = door.get(target or FEED + quote(self.bookmark), client())
        if reply.status == 410:
            self.copy, self.bookmark = set(), "beginning"
            self.began += 1
            self.follow(door)
            return
        assert reply.status == 200, reply.body
        for item in reply.data:
            change = self.copy.discard if item.get("deleted") else self.copy.add
            change((item["connection_id"], item["id"]))
        if reply.body["has_more"]:
            self.follow(door, reply.body["links"]["next"])
        else:
            self.bookmark = reply.body["next_changes_since"]


def there(door: Door) -> set[tuple[str, str]]:
    found = door.get("/v1/streams/entries/records?limit=100", client()).data
    return {(item["connection_id"], item["id"]) for item in found}


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A store with records, and a copy of its files beside it."""
    with sqlite_store(tmp_path / "live") as store:
        furnished(store)
    shutil.copytree(tmp_path / "live", tmp_path / "copy")
    return tmp_path


def put_back(folder: Path) -> None:
    shutil.rmtree(folder / "live")
    shutil.copytree(folder / "copy", folder / "live")


def written(folder: Path, lines: Sequence[dict[str, Any]], follower: Follower) -> None:
    with sqlite_store(folder / "live") as store:
        write(store, DIARY, "entries", lines, LATER)
        follower.follow(Door(store))


@PUT_BACK
def test_a_bookmark_past_the_end_of_a_copy_put_back_is_gone_at_once(begun: Path) -> None:
    follower = Follower()
    written(begun, extra("lost1", "lost2"), follower)
    put_back(begun)
    with sqlite_store(begun / "live") as store:
        follower.follow(Door(store))
        assert follower.began == 1
        assert follower.copy == there(Door(store))


@PUT_BACK
@pytest.mark.parametrize("more", [1, 2, 3, 9])
def test_it_is_gone_too_when_the_numbers_have_grown_past_it(begun: Path, more: int) -> None:
    follower = Follower()
    written(begun, extra("lost1", "lost2"), follower)
    put_back(begun)
    with sqlite_store(begun / "live") as store:
        write(store, DIARY, "entries", extra(*(f"new{n}" for n in range(more))), LATER)
        follower.follow(Door(store))
        assert follower.began == 1
        assert follower.copy == there(Door(store))


@PUT_BACK
def test_a_page_of_a_feed_that_began_in_the_lost_history_is_gone(begun: Path) -> None:
    with sqlite_store(begun / "live") as store:
        write(store, DIARY, "entries", extra("lost1", "lost2"), LATER)
        page = Door(store).get(f"{FEED}beginning&limit=2", client())
    put_back(begun)
    with sqlite_store(begun / "live") as store:
        door = Door(store)
        assert door.get(page.body["links"]["next"], client()).status == 410
        write(store, DIARY, "entries", extra("new1", "new2", "new3"), LATER)
        assert door.get(page.body["links"]["next"], client()).status == 410


@PUT_BACK
def test_what_was_followed_before_the_copy_was_made_goes_on(begun: Path) -> None:
    follower = Follower()
    with sqlite_store(begun / "live") as store:
        follower.follow(Door(store))
    put_back(begun)
    written(begun, extra("new1"), follower)
    assert follower.began == 0
    assert (DIARY, "new1") in follower.copy


def test_starts_and_writers_beside_each_other_end_no_bookmark(begun: Path) -> None:
    follower = Follower()
    for round_ in range(3):
        with sqlite_store(begun / "live") as first, sqlite_store(begun / "live") as second:
            for store, name in ((first, "a"), (second, "b"), (first, "c")):
                write(store, DIARY, "entries", extra(f"{name}{round_}"), LATER)
                follower.follow(Door(store))
    assert follower.began == 0
    with sqlite_store(begun / "live") as store:
        assert follower.copy == there(Door(store))
