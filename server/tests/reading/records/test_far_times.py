"""Dates that no 64 bits of nanoseconds hold, such as those of mails with a wrong year, are read."""

from __future__ import annotations

import pytest

from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import DIARY, LIST, client, furnished, write

FAR = {
    "f1": "3609-06-30T09:33:50Z",
    "f2": "9999-12-31T23:59:59Z",
    "f3": "2262-04-12T00:00:00Z",
    "f4": "0969-02-14T10:00:00Z",
    "f5": "0001-01-01T00:00:00Z",
}


@pytest.fixture
def dated(any_store: RecordStore) -> Door:
    door = Door(furnished(any_store))
    rows = [{"id": key, "created_at": at, "title": "far", "body": "x"} for key, at in FAR.items()]
    write(door.store, DIARY, "entries", rows)
    return door


@pytest.mark.parametrize(
    "path",
    [
        f"{LIST}?connection_id={DIARY}&sort=created_at",
        f"{LIST}?connection_id={DIARY}&sort=-created_at",
        "/v1/timeline?order=asc",
        "/v1/timeline?order=desc",
        "/v1/search?q=far&sort=oldest",
        "/v1/search?q=far&sort=newest",
        "/v1/search?q=far",
    ],
)
def test_pages_of_one_go_past_them(dated: Door, path: str) -> None:
    asked = f"{path}{'&' if '?' in path else '?'}limit=1"
    keys: list[str] = []
    while asked:
        reply = dated.get(asked, client())
        assert reply.status == 200, reply.body
        keys += [each["record_id"] for each in reply.data]
        asked = reply.body["links"].get("next") if reply.body["has_more"] else None
    far = [key for key in keys if key in FAR]
    assert sorted(far) == sorted(FAR)
    if path != "/v1/search?q=far":
        in_time = sorted(FAR, key=FAR.__getitem__)
        assert far in (in_time, in_time[::-1])
