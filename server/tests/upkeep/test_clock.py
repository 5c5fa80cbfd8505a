"""A clock that jumps: what cannot be undone waits for a day of steady running or a word."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.app.stores import open_stores
from personal_server.collecting.declarations import declare
from personal_server.domain.stored import ClockNote
from personal_server.settings import Settings
from personal_server.storage.sql.care.upkeep import SqlUpkeepStore
from personal_server.upkeep.clock import ClockWatch, accept_clock

JOURNAL = Path(__file__).parents[1] / "samples" / "journal.json"
HOUR = 3_600 * NANOSECONDS
DAY, YEAR = DAY_NANOSECONDS, 365 * DAY_NANOSECONDS
NOW = 1_790_000_000 * NANOSECONDS


@dataclass
class Kept:
    """A note in memory, and how often it was written."""

    note: ClockNote | None = None
    writes: int = 0

    def clock_note(self) -> ClockNote | None:
        return self.note

    def keep_clock_note(self, note: ClockNote) -> None:
        self.note = note
        self.writes += 1


@dataclass
class Running:
    """A machine whose clock and time of running are the test's."""

    kept: Kept = field(default_factory=Kept)
    now_ns: int = NOW
    ran_ns: int = 0

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.watch = ClockWatch(self.kept, lambda: self.now_ns, lambda: self.ran_ns)

    def passes(self, ns: int) -> bool:
        self.now_ns += ns
        self.ran_ns += ns
        return self.watch.is_trusted()

    def jumps(self, ns: int) -> bool:
        self.now_ns += ns
        return self.watch.is_trusted()


@pytest.fixture
def machine() -> Running:
    machine = Running()
    assert machine.passes(0)
    return machine


def test_time_that_goes_on_is_trusted(machine: Running) -> None:
    assert all(machine.passes(HOUR) for _ in range(100))
    machine.start()
    assert machine.jumps(3 * DAY)


@pytest.mark.parametrize("jump", [YEAR, 8 * DAY, -2 * DAY, -YEAR])
def test_a_jump_is_trusted_after_a_day_of_running(machine: Running, jump: int) -> None:
    machine.start()
    assert not machine.jumps(jump)
    assert machine.watch.jumped_at_ns() == machine.now_ns
    assert not any(machine.passes(HOUR) for _ in range(23))
    assert machine.passes(2 * HOUR)
    assert machine.watch.jumped_at_ns() is None
    assert machine.passes(HOUR)


def test_starting_again_is_no_steady_day(machine: Running) -> None:
    assert not machine.jumps(YEAR)
    for _ in range(6):
        machine.start()
        assert not machine.jumps(DAY)


def test_a_clock_that_comes_back_is_trusted_at_once(machine: Running) -> None:
    assert not machine.jumps(YEAR)
    assert not machine.passes(5 * HOUR)
    assert machine.jumps(-YEAR)
    assert machine.passes(HOUR)


def test_another_jump_begins_the_day_anew(machine: Running) -> None:
    assert not machine.jumps(YEAR)
    assert not machine.passes(20 * HOUR)
    assert not machine.jumps(YEAR)
    assert not machine.passes(20 * HOUR)
    assert machine.passes(5 * HOUR)


def test_the_owners_word_ends_the_doubt(machine: Running) -> None:
    assert not accept_clock(machine.kept, machine.now_ns)
    assert not machine.jumps(YEAR)
    assert accept_clock(machine.kept, machine.now_ns)
    assert machine.passes(HOUR)


def test_a_trusted_clock_is_noted_once_an_hour_only(machine: Running) -> None:
    before = machine.kept.writes
    assert all(machine.passes(60 * NANOSECONDS) for _ in range(600))
    assert machine.kept.writes - before == 10


@pytest.fixture
def upkeep(tmp_path: Path) -> Generator[SqlUpkeepStore]:
    settings = Settings(data_dir=tmp_path)
    with open_stores(settings, serving=False, clock=lambda: NOW) as stores:
        declare(stores.records, JOURNAL.read_bytes(), 1)
        yield stores.upkeep


def test_a_file_without_a_note_is_judged_by_the_newest_instant_in_it(
    upkeep: SqlUpkeepStore,
) -> None:
    assert upkeep.clock_note() == ClockNote(NOW)
    assert not ClockWatch(upkeep, lambda: NOW + YEAR, lambda: 0).is_trusted()
    assert upkeep.clock_note() == ClockNote(NOW, NOW + YEAR, NOW + YEAR)
    assert ClockWatch(upkeep, lambda: NOW + HOUR, lambda: 0).is_trusted()
