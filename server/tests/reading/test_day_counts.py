"""How many records each day and year has, as the owner, in the owner's zone."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest

from personal_server.domain.authority import ReadAuthority
from personal_server.domain.declaration_document import parse_declaration
from personal_server.enforcement.authority import read_authority
from personal_server.reading import day_counts as counting
from personal_server.reading.day_counts import CountedTimes, day_counts, year_counts
from server.tests.resource_server.journal import (
    CONNECTIONS,
    DECLARATIONS,
    DIARY,
    JOURNAL_RAW,
    furnished,
    resolved,
    write,
)

UTC, BERLIN = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin")
ENTRY_TIMES = ("2024-12-31T23:30:00Z", "2025-06-01T12:00:00Z", "2025-06-01T22:30:00Z")
VOLUME_DAYS = ("2025-01-01", "2025-12-31")


def declared(change: Mapping[str, Any]) -> Any:
    raw: dict[str, Any] = copy.deepcopy(JOURNAL_RAW)
    entries, volumes, _ = raw["streams"]
    entries["query"]["range_filters"]["created_at"] = ["gte", "lt"]
    volumes["schema"]["properties"]["begun"] = {"type": "string", "format": "date"}
    volumes["consent_time_field"] = "begun"
    volumes["query"] |= {"range_filters": {"begun": ["gte", "lt"]}}
    volumes["query"]["aggregations"]["group_by_time"] = ["begun"]
    for name, value in change.items():
        changed = entries["query"][name] | value
        entries["query"][name] = {key: each for key, each in changed.items() if each is not None}
    raw["declaration_version"] = "2027"
    return parse_declaration(raw)


def counted(year: int | None, zone: ZoneInfo, **change: Any) -> CountedTimes:
    journal = declared(change)
    store = furnished()
    store.put_declaration(journal, orjson.dumps(journal.raw), 1)
    write(store, DIARY, "entries", ["e1", "e2", "e3"], declared=journal)
    entries = [{"id": f"n{n}", "created_at": at} for n, at in enumerate(ENTRY_TIMES)]
    write(store, DIARY, "entries", entries, declared=journal)
    volumes = [{"id": f"w{n}", "name": "x", "begun": day} for n, day in enumerate(VOLUME_DAYS)]
    write(store, DIARY, "volumes", volumes, declared=journal)
    owner = resolved("owner")
    declarations = {**DECLARATIONS, "journal": journal}
    authority: ReadAuthority = read_authority(owner, CONNECTIONS[:1], declarations)
    with store.snapshot() as snapshot:
        if year is None:
            return year_counts(snapshot, authority, zone)
        return day_counts(snapshot, authority, year, zone)


def days(found: CountedTimes) -> dict[str, int]:
    first = date(1970, 1, 1).toordinal()
    return {str(date.fromordinal(first + day)): count for day, count in found.counts.items()}


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        (UTC, {"2025-01-01": 1, "2025-06-01": 2, "2025-12-31": 1}),
        (BERLIN, {"2025-01-01": 2, "2025-06-01": 1, "2025-06-02": 1, "2025-12-31": 1}),
    ],
)
def test_a_year_has_the_days_of_its_zone_and_a_date_is_the_same_in_each(
    zone: ZoneInfo, expected: dict[str, int]
) -> None:
    found = counted(2025, zone)
    assert days(found) == expected
    assert found.uncounted == ()


@pytest.mark.parametrize(("zone", "expected"), [(UTC, {2024: 1, 2025: 4}), (BERLIN, {2025: 5})])
def test_years_are_those_of_the_zone_too(zone: ZoneInfo, expected: dict[int, int]) -> None:
    assert counted(None, zone).counts == expected


@pytest.mark.parametrize(
    "change",
    [
        {"aggregations": {"count": None}},
        {"aggregations": {"group_by_time": []}},
        {"range_filters": {"created_at": ["gte"]}},
    ],
)
def test_a_source_whose_times_cannot_be_counted_is_named(change: dict[str, Any]) -> None:
    found = counted(None, UTC, **change)
    assert [source.stream for source in found.uncounted] == ["entries"]
    assert found.counts == {2025: 2}


@pytest.mark.parametrize(("year", "bound"), [(2025, "MAX_GROUPS"), (None, "MOST_DAYS")])
def test_days_are_not_bounded_as_years_are(
    monkeypatch: pytest.MonkeyPatch, year: int | None, bound: str
) -> None:
    monkeypatch.setattr(counting, bound, 1)
    assert len(counted(year, UTC).counts) == (2 if year is None else 3)
