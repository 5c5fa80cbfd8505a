"""The newest and the oldest time of a stream are those of records which whoever reads may see."""

from __future__ import annotations

import pytest

from personal_server.enforcement.filter_texts import FilterText
from personal_server.reading.newest_times import newest_time, oldest_time
from personal_server.reading.owner import OwnerReads, ProspectiveReads
from personal_server.storage.known_declarations import KnownDeclarations
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    DIARY,
    NARROW,
    furnished,
    grant,
    member,
    resolved,
    stream_grant,
)

JANUARY = "2026-01-01T10:00:00Z"
FEBRUARY, MARCH = "2026-02-01T10:00:00Z", "2026-03-01T10:00:00Z"


def newest(reads: OwnerReads | ProspectiveReads, stream: str, *filters: FilterText) -> str | None:
    with reads.open(1.0) as (snapshot, authority):
        (source,) = (each for each in authority.sources if each.order == (DIARY, stream))
        return newest_time(reads.ports, snapshot, authority, source, filters)


def oldest(reads: OwnerReads | ProspectiveReads, stream: str) -> str | None:
    with reads.open(1.0) as (snapshot, authority):
        (source,) = (each for each in authority.sources if each.order == (DIARY, stream))
        return oldest_time(reads.ports, snapshot, authority, source)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((), MARCH),
        ((FilterText("title", None, "Snow"),), FEBRUARY),
        ((FilterText("title", None, "nowhere"),), None),
    ],
)
def test_it_is_the_latest_of_what_the_filters_let_through(
    filters: tuple[FilterText, ...], expected: str | None
) -> None:
    reads = OwnerReads(Door(furnished()).ports, KnownDeclarations())
    assert newest(reads, "entries", *filters) == expected


def test_a_stream_without_a_time_has_none() -> None:
    reads = OwnerReads(Door(furnished()).ports, KnownDeclarations())
    assert (oldest(reads, "volumes"), newest(reads, "volumes")) == (None, None)


def test_the_oldest_is_the_other_end() -> None:
    reads = OwnerReads(Door(furnished()).ports, KnownDeclarations())
    assert oldest(reads, "entries") == JANUARY


@pytest.mark.parametrize(
    ("fields", "until", "expected"),
    [(NARROW, None, MARCH), (NARROW, MARCH, FEBRUARY), (("id", "title"), None, None)],
)
def test_a_record_or_a_field_that_is_not_granted_tells_no_time(
    fields: tuple[str, ...], until: str | None, expected: str | None
) -> None:
    granted = grant(stream_grant(instance_ids=(DIARY,), fields=fields, until=until))
    prospective = resolved("client", member(granted))
    reads = ProspectiveReads(Door(furnished()).ports, KnownDeclarations(), prospective)
    assert newest(reads, "entries") == expected
