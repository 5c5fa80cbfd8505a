import msgspec
import pytest

from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.stored import Collection, CollectionRun, RunStatus
from personal_server.reading.capture_times import CaptureTimes
from personal_server.reading.freshness import (
    Freshness,
    freshness_of,
    least_of,
)
from server.tests.resource_server.journal import DIARY, client, furnished, write

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


def test_the_newest_change_is_looked_up_once_per_state_of_the_store() -> None:
    store, times = furnished(), CaptureTimes()
    with store.snapshot() as snapshot:
        first = times.newest(snapshot, SOURCE)
        assert times.newest(snapshot, SOURCE) == first
    record = {"id": "new", "created_at": "2026-01-01T00:00:00Z"}
    write(store, DIARY, "entries", [record], "2026-07-01T00:00:00Z")
    with store.snapshot() as snapshot:
        newest = times.newest(snapshot, SOURCE)
    assert first is not None
    assert newest is not None
    assert newest > first
