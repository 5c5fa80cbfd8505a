"""When the newest record of a source was captured: looked up once per state of the store."""

from __future__ import annotations

from typing import Any, cast

from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.rows import Summary
from personal_server.reading.capture_times import CaptureTimes
from personal_server.storage.ports.snapshots import ReadSnapshot
from server.tests.resource_server.journal import DIARY, client, furnished, write

SOURCE = client().sources[0]


class Asked:
    """A state of a store that counts how often it was asked."""

    def __init__(self, snapshot: Any) -> None:
        self._snapshot = snapshot
        self.times = 0

    def summary(self, scope: object) -> Any:
        self.times += 1
        return self._snapshot.summary(scope)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._snapshot, name)


def asked(times: CaptureTimes, store: Any, *sources: ReadableSource) -> tuple[list[Any], int]:
    """What is answered of each source, and how often the store was asked."""
    with store.snapshot() as snapshot:
        counting = Asked(snapshot)
        return [times.newest(counting, each) for each in sources], counting.times  # type: ignore[arg-type]


def test_it_is_asked_once_of_each_source_until_something_is_written() -> None:
    store, times = furnished(), CaptureTimes()
    captured = instant_ns("2026-05-01T00:00:00Z")
    assert asked(times, store, SOURCE, SOURCE) == ([captured] * 2, 1)
    assert asked(times, store, *client().sources, SOURCE)[1] == len(client().sources) - 1
    record = {"id": "new", "created_at": "2026-01-01T00:00:00Z"}
    write(store, DIARY, "entries", [record], "2026-07-01T00:00:00Z")
    assert asked(times, store, SOURCE) == ([instant_ns("2026-07-01T00:00:00Z")], 1)


class Growing:
    """A store to which something is written before each question."""

    epoch = "e"

    def __init__(self) -> None:
        self.horizon = self.times = 0

    def summary(self, scope: object) -> Summary:
        del scope
        self.times += 1
        return Summary(1, self.horizon)


def test_what_was_asked_for_longest_ago_gives_way() -> None:
    times, state = CaptureTimes(), Growing()

    def newest(horizon: int) -> int:
        """How often the store was asked until then."""
        state.horizon = horizon
        assert times.newest(cast("ReadSnapshot", state), SOURCE) == horizon
        return state.times

    assert [newest(number) for number in range(1_024)] == [*range(1, 1_025)]
    assert newest(0) == 1_024  # known, and the last that was asked for
    assert newest(1_024) == newest(0) == 1_025
    assert newest(1) == 1_026
