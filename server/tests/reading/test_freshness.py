from typing import Any

import msgspec
import pytest

from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.authority import ReadableSource
from personal_server.domain.stored import Collection, CollectionRun, RunStatus
from personal_server.reading.freshness import (
    Freshness,
    connection_freshness,
    freshness_of,
    least_of,
)
from server.tests.resource_server.journal import client, stream_grant

SOURCE = client().sources[0]  # declared: at most 86 400 seconds old
NOW_NS = 2_000_000_000 * NANOSECONDS
HOUR_NS = 3_600 * NANOSECONDS


def succeeded(at_ns: int) -> Collection:
    return Collection(CollectionRun("r1", RunStatus.SUCCEEDED, at_ns), at_ns)


@pytest.mark.parametrize(
    ("collection", "newest", "status"),
    [
        (None, None, "unknown"),
        (None, NOW_NS - HOUR_NS, "current"),
        (None, NOW_NS - 25 * HOUR_NS, "stale"),
        (succeeded(NOW_NS - HOUR_NS), None, "current"),
        (succeeded(NOW_NS - 24 * HOUR_NS), None, "current"),
        (succeeded(NOW_NS - 25 * HOUR_NS), NOW_NS, "stale"),
        (
            Collection(CollectionRun("r2", RunStatus.FAILED, NOW_NS), NOW_NS - HOUR_NS),
            None,
            "stale",
        ),
        (
            Collection(CollectionRun("r2", RunStatus.CANCELLED, NOW_NS), NOW_NS - HOUR_NS),
            None,
            "stale",
        ),
        (
            Collection(CollectionRun("r2", RunStatus.RUNNING, NOW_NS), NOW_NS - HOUR_NS),
            None,
            "current",
        ),
    ],
)
def test_freshness_follows_the_limit_and_the_last_attempt(
    collection: Collection | None, newest: int | None, status: str
) -> None:
    assert freshness_of(SOURCE, collection, newest, NOW_NS).status == status


def test_the_least_fresh_is_the_stalest_then_the_oldest() -> None:
    current, unknown = Freshness("current", 1, None), Freshness("unknown", 9, None)
    old, older = Freshness("stale", 5, None), Freshness("stale", 4, None)
    assert least_of([current, unknown]) is unknown
    assert least_of([current, old, unknown, older]) is older


def test_times_are_rendered_or_null() -> None:
    assert msgspec.to_builtins(Freshness("unknown", None, 0).render()) == {
        "status": "unknown",
        "captured_at": None,
        "last_attempted_at": "1970-01-01T00:00:00.000Z",
    }


class Captured:
    """When records of each stream were captured."""

    def __init__(self, **at_ns: int) -> None:
        self._at_ns = at_ns

    def newest(self, snapshot: object, source: ReadableSource) -> int | None:
        del snapshot
        return self._at_ns.get(source.stream)


def of_connection(
    collection: Collection | None, *sources: ReadableSource, **at_ns: int
) -> Freshness:
    state: Any = None
    times: Any = Captured(**at_ns)
    return connection_freshness(state, times, sources, collection, NOW_NS)


def test_an_account_is_as_fresh_as_the_newest_record_of_any_stream() -> None:
    entries, volumes, *_ = client(stream_grant("entries"), stream_grant("volumes")).sources
    old, new = NOW_NS - 25 * HOUR_NS, NOW_NS - HOUR_NS
    assert of_connection(None, entries, volumes, entries=old, volumes=new).status == "current"
    assert of_connection(None, entries, volumes, entries=old).status == "stale"
    assert of_connection(None, entries, volumes).status == "unknown"


@pytest.mark.parametrize(
    ("collection", "captured", "attempted"),
    [
        (None, None, None),
        (Collection(None, 5), 5, None),
        (Collection(CollectionRun("r1", RunStatus.FAILED, 9), None), None, 9),
        (Collection(CollectionRun("r1", RunStatus.FAILED, 9), 5), 5, 9),
    ],
)
def test_an_account_that_offers_nothing_has_the_times_of_its_runs(
    collection: Collection | None, captured: int | None, attempted: int | None
) -> None:
    assert of_connection(collection) == Freshness("unknown", captured, attempted)
