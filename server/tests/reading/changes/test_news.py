"""Whether something may be told of a change: exactly if the feed from there has an item."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from pdpp_kernel.errors import QueryTimeout
from personal_server.domain.authority import ReadAuthority
from personal_server.reading.changes import COUNTED_NEWS, News, news_after
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    DIARY,
    ENTRIES,
    LETTERS,
    NARROW,
    client,
    furnished,
    stream_grant,
    write,
)

PLACE = (DIARY, "entries")


@pytest.fixture
def door() -> Door:
    return Door(furnished())


def horizon(door: Door) -> int:
    with door.store.snapshot() as snapshot:
        return snapshot.horizon


def news(
    door: Door,
    number: int,
    authority: ReadAuthority | None = None,
    place: tuple[str, str] = PLACE,
) -> News | None:
    with door.store.snapshot() as snapshot:
        return news_after(door.ports, snapshot, authority or client(), place, number)


def followed(door: Door, told: News) -> list[str]:
    target = f"/v1/streams/entries/records?connection_id={DIARY}&changes_since="
    return door.get(target + quote(told.bookmark), client()).keys


def test_nothing_is_told_where_nothing_changed(door: Door) -> None:
    assert news(door, horizon(door)) is None


def test_a_change_is_told_with_the_bookmark_that_leads_to_it(door: Door) -> None:
    before = horizon(door)
    write(door.store, DIARY, "entries", [ENTRIES[0] | {"title": "New"}], "2026-06-02T00:00:00Z")
    write(door.store, DIARY, "entries", ["e3"], "2026-06-03T00:00:00Z")
    told = news(door, before)
    assert told is not None
    assert told.count == 2
    assert followed(door, told) == ["e1", "e3"]


def test_what_another_account_or_stream_has_is_not_told(door: Door) -> None:
    before = horizon(door)
    write(door.store, LETTERS, "entries", [ENTRIES[0]], "2026-06-02T00:00:00Z")
    write(door.store, DIARY, "volumes", [{"id": "v2", "name": "x"}], "2026-06-02T00:00:00Z")
    assert news(door, before) is None
    assert news(door, before, place=(LETTERS, "entries")) is not None


def test_a_change_of_a_hidden_field_or_of_no_grant_is_silence(door: Door) -> None:
    before = horizon(door)
    write(door.store, DIARY, "entries", [ENTRIES[0] | {"body": "new"}], "2026-06-02T00:00:00Z")
    assert news(door, before) is not None
    assert news(door, before, client(stream_grant(fields=NARROW))) is None
    assert news(door, before, client(stream_grant("volumes", (DIARY,)))) is None
    assert news(door, before, client(stream_grant(instance_ids=(LETTERS,)))) is None


def test_after_what_was_forgotten_the_feed_begins_anew(door: Door) -> None:
    write(door.store, DIARY, "entries", ["e3"], "2026-06-03T00:00:00Z")
    door.store.prune_history(2**62)
    told = news(door, 0)
    assert told is not None
    assert told.bookmark == "beginning"
    assert followed(door, told) == ["e1", "e2"]


def test_from_the_last_change_that_is_known_the_feed_goes_on(door: Door) -> None:
    write(door.store, DIARY, "entries", ["e3"], "2026-06-03T00:00:00Z")
    door.store.prune_history(2**62)
    with door.store.snapshot() as snapshot:
        known = snapshot.retained_from
    write(door.store, DIARY, "entries", ["e2"], "2026-06-04T00:00:00Z")
    told = news(door, known)
    assert told is not None
    assert (told.count, followed(door, told)) == (1, ["e2"])


def test_much_news_is_counted_to_a_bound(door: Door) -> None:
    before = horizon(door)
    many = [ENTRIES[0] | {"id": f"n{number}"} for number in range(COUNTED_NEWS + 1)]
    write(door.store, DIARY, "entries", many, "2026-06-02T00:00:00Z")
    told = news(door, before)
    assert told is not None
    assert told.count == COUNTED_NEWS


class Slow:
    """A state of the store that never answers in time."""

    def __init__(self, snapshot: object) -> None:
        self._snapshot = snapshot

    def changes(self, *_: object) -> object:
        raise QueryTimeout("Too long.")

    def __getattr__(self, name: str) -> object:
        return getattr(self._snapshot, name)


def test_what_is_no_refusal_is_raised(door: Door) -> None:
    with door.store.snapshot() as snapshot, pytest.raises(QueryTimeout):
        news_after(door.ports, Slow(snapshot), client(), PLACE, 0)  # type: ignore[arg-type]
