"""An owner's days in four zones: what is found, where it stands and in which bucket equals what
zoneinfo alone says, on every store.

The zones change their clocks both ways (one by half an hour), lie half an hour beside the others,
and moved over the date line.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest

from personal_server.domain.authority import ReadAuthority
from personal_server.domain.declaration_document import parse_declaration
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    CONNECTIONS,
    DIARY,
    JOURNAL_RAW,
    client,
    stream_grant,
    write,
)
from tests.properties.stores import STORES, open_store

FIRST_DAYS = {
    "America/Los_Angeles": ("2026-03-06", "2026-10-30"),
    "Australia/Lord_Howe": ("2026-04-03", "2026-10-02"),
    "Asia/Kolkata": ("2026-03-06",),
    "Pacific/Apia": ("2011-12-27", "2012-03-30"),
}
LEFT_OUT = {("Pacific/Apia", date(2011, 12, 30))}
DAYS = 6
FIELDS = ("id", "title", "body", "created_at", "ends_at", "whole")
ASKS = 25


@dataclass(frozen=True)
class Thing:
    """A record, and from when to when it lasts, as the oracle reads it."""

    stream: str
    key: str
    begins: datetime
    ends: datetime
    day: date


def declared() -> Any:
    """Entries that last, perhaps whole days, and volumes that are dated by a day."""
    raw = copy.deepcopy(JOURNAL_RAW)
    entries, volumes, _ = raw["streams"]
    moment = {"type": ["string", "null"], "format": "date-time"}
    entries["schema"]["properties"]["ends_at"] = {**moment, "x_pdpp_role": "event-end"}
    entries["schema"]["properties"]["whole"] = {"type": "boolean", "x_pdpp_role": "whole-days"}
    entries["query"]["range_filters"]["ends_at"] = ["gte", "lt"]
    volumes["schema"]["properties"]["begun"] = {"type": "string", "format": "date"}
    volumes["consent_time_field"] = "begun"
    volumes["query"]["range_filters"] = {"begun": ["gte", "lt"]}
    return parse_declaration(raw)


def midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)


def stored(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class Owner:
    """One world: records around a change of the clocks, in one zone."""

    rng: random.Random
    name: str
    first: date

    def __post_init__(self) -> None:
        self.zone = ZoneInfo(self.name)
        self.things: list[Thing] = []
        self.entries: list[dict[str, Any]] = []
        self.volumes: list[dict[str, Any]] = []
        for number in range(24):
            self._add(f"e{number:02}")
        for number in range(6):
            day = self._day()
            self.volumes.append({"id": f"v{number}", "name": "rain", "begun": day.isoformat()})
            after = midnight(day + timedelta(days=1), self.zone)
            self.things.append(Thing("volumes", f"v{number}", midnight(day, self.zone), after, day))

    def _day(self) -> date:
        while True:
            day = self.first + timedelta(days=self.rng.randrange(DAYS))
            if (self.name, day) not in LEFT_OUT:
                return day

    def _add(self, key: str) -> None:
        entry: dict[str, Any] = {"id": key, "title": "rain"}
        if self.rng.random() < 0.4:
            day = self._day()
            last = max(day, self._day()) if self.rng.random() < 0.5 else day
            ends = last + timedelta(days=1)
            entry |= {"created_at": f"{day}T00:00:00Z", "whole": True}
            if self.rng.random() < 0.8:
                entry["ends_at"] = f"{ends}T00:00:00Z"
            else:
                ends = day + timedelta(days=1)
            thing = Thing("entries", key, midnight(day, self.zone), midnight(ends, self.zone), day)
        else:
            begins = self._moment()
            ends_at = begins + timedelta(minutes=self.rng.choice((0, 30, 90, 26 * 60, 5 * 24 * 60)))
            entry |= {"created_at": stored(begins)}
            if self.rng.random() < 0.7:
                entry["ends_at"] = stored(ends_at)
            else:
                ends_at = begins
            if self.rng.random() < 0.5:
                entry["whole"] = False
            thing = Thing("entries", key, begins, ends_at, begins.astimezone(self.zone).date())
        self.entries.append(entry)
        self.things.append(thing)

    def _moment(self) -> datetime:
        begin = midnight(self.first, self.zone)
        return begin + timedelta(minutes=30 * self.rng.randrange(DAYS * 48))

    def point(self, *, last: bool) -> tuple[str, datetime]:
        """A time as somebody may write it, and which instant that is."""
        form = self.rng.randrange(3)
        if form == 0:
            day = self._day()
            return day.isoformat(), midnight(day, self.zone)
        moment = self._moment()
        if form == 1:
            return stored(moment), moment
        wall = moment.astimezone(self.zone).replace(tzinfo=None)
        both = [wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
        return f"{wall:%Y-%m-%dT%H:%M}", max(both) if last else min(both)

    def asked(self) -> tuple[dict[str, str], datetime | None, datetime | None]:
        sent, since, until = dict[str, str](), None, None
        if self.rng.random() < 0.8:
            sent["since"], since = self.point(last=False)
        if self.rng.random() < 0.8:
            sent["until"], until = self.point(last=True)
        return sent, since, until


def lies_in(thing: Thing, since: datetime | None, until: datetime | None) -> bool:
    begun = since is None or thing.begins >= since or thing.ends > since
    return begun and (until is None or thing.begins < until)


def all_keys(door: Door, target: str, authority: ReadAuthority) -> list[str]:
    reply = door.get(target, authority)
    found = reply.keys
    while reply.body["has_more"]:
        reply = door.get(reply.body["links"]["next"], authority)
        found += reply.keys
    return found


def in_order(things: list[Thing], *, down: bool) -> list[str]:
    ordered = sorted(things, key=lambda each: (each.begins, each.key, each.stream), reverse=down)
    return [each.key for each in ordered]


# A store is given instants and days alone, whatever the zone: PostgreSQL answers for the one that
# moved over the date line, and at night for the others.
ON_POSTGRESQL = "Pacific/Apia"
CASES = [
    pytest.param(
        kind,
        zone,
        marks=pytest.mark.long if kind == "postgres" and zone != ON_POSTGRESQL else (),
        id=f"{zone}-{kind}",
    )
    for zone in FIRST_DAYS
    for kind in STORES
]


@pytest.mark.parametrize(("kind", "zone"), CASES)
def test_days_of_four_zones_are_what_brute_force_says(kind: str, zone: str, tmp_path: Path) -> None:
    declaration = declared()
    streams = (
        stream_grant(instance_ids=(DIARY,), fields=FIELDS),
        stream_grant("volumes", (DIARY,), ("id", "name", "begun")),
    )
    reader = client(*streams, declared=declaration)
    for number, first in enumerate(FIRST_DAYS[zone]):
        owner = Owner(random.Random(f"{zone}/{first}"), zone, date.fromisoformat(first))
        folder = tmp_path / str(number)
        folder.mkdir()
        with open_store(kind, folder) as store:
            store.put_declaration(declaration, b"{}", 1)
            store.add_connection(CONNECTIONS[0])
            write(store, DIARY, "entries", owner.entries, declared=declaration)
            write(store, DIARY, "volumes", owner.volumes, declared=declaration)
            door = Door(store)
            for _ in range(ASKS):
                check(door, reader, owner)


def check(door: Door, reader: ReadAuthority, owner: Owner) -> None:
    sent, since, until = owner.asked()
    shared = {**sent, "time_zone": owner.name}
    expected = [each for each in owner.things if lies_in(each, since, until)]
    entries = [each for each in expected if each.stream == "entries"]
    down = owner.rng.random() < 0.5
    paged = urlencode({**shared, "limit": "3", "order": "desc" if down else "asc"})
    note = f"{owner.name} {paged}"
    line = all_keys(door, f"/v1/timeline?{paged}", reader)
    assert line == in_order(expected, down=down), note
    listed = all_keys(door, f"/v1/streams/entries/records?{paged}", reader)
    assert listed == in_order(entries, down=down), note
    counted = door.get(f"/v1/streams/entries/records?{urlencode(shared)}&count=exact", reader)
    assert counted.body["meta"]["count"]["value"] == len(entries), note
    words = urlencode({**shared, "q": "rain", "limit": "100"})
    found = door.get(f"/v1/search?{words}", reader)
    assert sorted(found.keys) == sorted(each.key for each in expected), note
    newest = all_keys(door, f"/v1/search?{words[:-3]}4&sort=newest", reader)
    assert newest == in_order(expected, down=True), note
    starts(door, reader, owner, sent, since, until)


def starts(
    door: Door,
    reader: ReadAuthority,
    owner: Owner,
    sent: dict[str, str],
    since: datetime | None,
    until: datetime | None,
) -> None:
    """What begins in a range is asked by a filter; the days of that are buckets."""
    begun = [
        each
        for each in owner.things
        if each.stream == "entries"
        and (since is None or each.begins >= since)
        and (until is None or each.begins < until)
    ]
    query = {"metric": "count", "group_by_time": "created_at", "granularity": "day"}
    query["time_zone"] = owner.name
    for name, operator in (("since", "gte"), ("until", "lt")):
        if name in sent:
            query[f"filter[created_at][{operator}]"] = sent[name]
    reply = door.get(f"/v1/streams/entries/aggregate?{urlencode(query)}", reader)
    buckets = {each["key"]: each["count"] for each in reply.body["groups"]}
    assert buckets == Counter(each.day.isoformat() for each in begun), (owner.name, query)
