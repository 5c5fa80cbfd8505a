"""Memory that several processes see: bounded, whole, and free again when one of them is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass

import pytest

from pdpp_kernel.errors import RateLimitExceeded
from personal_server.app.shared_memory import Seat, SharedMemory
from personal_server.domain.keyed_values import ValueSpace
from personal_server.domain.own_values import (
    OwnSpace,
    OwnValues,
)
from personal_server.domain.search_words import parse_words
from personal_server.enforcement.search_hits import FoundPassage
from personal_server.reading.rankings import RankedHit, Ranking, Rankings, shared_rankings
from personal_server.reading.relaxing import RelaxedSearch
from personal_server.web.limits import Bucket, levels_in

SECONDS = 30
OTHER = """
import sys
from personal_server.app.shared_memory import Seat, SharedMemory
space = SharedMemory(int(sys.argv[1]), Seat(1, 2))
"""
ADDS = "values = space.values('counted.here', int, 8, 9)\n" + (
    "for _ in range(2_000):\n    with values.lock:\n"
    "        values.put('n', (values.get('n') or 0) + 1)\n"
)
HOLDS = """
space.counts('under_way.calls', 8).add('a grant', 5)
values = space.values('held.here', int, 8, 9)
with values.lock:
    print('held', flush=True)
    sys.stdin.read()
"""


@dataclass
class Two:
    """Two processes' views of one memory, in this process."""

    first: SharedMemory
    second: SharedMemory

    def run(self, program: str) -> subprocess.Popen[str]:
        """A process of its own, in the second seat."""
        return subprocess.Popen(
            [sys.executable, "-c", OTHER + program, str(self.first.descriptor)],
            pass_fds=[self.first.descriptor],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def two() -> Generator[Two]:
    memory = SharedMemory.make(2)
    yield Two(*(SharedMemory(memory.descriptor, Seat(number, 2)) for number in (0, 1)))
    os.close(memory.descriptor)


@pytest.mark.parametrize("key", ["a", ("a", 1), b"\x00", 7, None, "\ud800"])
def test_what_one_puts_the_other_gets(two: Two, key: object) -> None:
    first, second = (each.values("a.b", list[int], 10, 64) for each in (two.first, two.second))
    assert second.get(key) is None
    first.put(key, [1, 2**60])
    assert second.get(key) == [1, 2**60]
    second.remove(key)
    assert first.get(key) is None


def test_names_are_values_of_their_own(two: Two) -> None:
    one, another = (two.first.values(name, int, 10, 9) for name in ("a.one", "a.another"))
    one.put("k", 1)
    assert another.get("k") is None
    assert two.second.values("a.one", int, 10, 9).get("k") == 1


def test_as_many_as_were_asked_for_stay_and_then_the_oldest_give_way(two: Two) -> None:
    values = two.first.values("many.of", int, 1_000, 9)
    for number in range(1_000):
        values.put(number, number)
    kept = [number for number in range(1_000) if values.get(number) == number]
    assert len(kept) > 990
    for number in range(100_000, 120_000):
        values.put(number, number)
    assert not any(values.get(number) for number in range(1_000))
    assert values.get(119_999) == 119_999
    assert values.displaced_by(119_999) is None
    assert values.displaced_by("another") in range(100_000, 120_000)


def test_what_takes_more_than_its_room_is_not_kept(two: Two) -> None:
    values = two.first.values("short.texts", str, 8, 16)
    values.put("k", "short")
    values.put("k", "as long as nobody said it would be")
    assert values.get("k") is None


def test_clearing_forgets_all(two: Two) -> None:
    values = two.first.values("some.values", int, 100, 9)
    for number in range(100):
        values.put(number, number)
    two.second.values("some.values", int, 100, 9).clear()
    assert not any(values.get(number) for number in range(1, 100))


def test_processes_that_count_together_lose_nothing(two: Two) -> None:
    programs = [two.run(ADDS) for _ in range(2)]
    for program in programs:
        program.communicate(timeout=SECONDS)
        assert program.returncode == 0
    assert two.first.values("counted.here", int, 8, 9).get("n") == 4_000


def test_one_that_is_killed_lets_go_of_its_lock_and_of_what_it_had_under_way(two: Two) -> None:
    program = two.run(HOLDS)
    assert program.stdout is not None
    assert program.stdout.readline() == "held\n"
    counts = two.first.counts("under_way.calls", 8)
    program.send_signal(signal.SIGKILL)
    program.wait()
    values = two.first.values("held.here", int, 8, 9)
    begun = time.monotonic()
    values.put("k", 1)
    assert time.monotonic() - begun < SECONDS
    assert counts.total("a grant") == 5
    two.first.forget_counts(1)
    assert counts.total("a grant") == 0
    program.communicate()


def test_counts_are_summed_and_forgotten_when_a_seat_is_taken_again(two: Two) -> None:
    first, second = two.first.counts("x.y", 8), two.second.counts("x.y", 8)
    first.add("k", 2)
    second.add("k", 1)
    assert (first.total("k"), second.total("k")) == (3, 3)
    assert SharedMemory(two.first.descriptor, Seat(0, 2)).counts("x.y", 8).total("k") == 1
    second.add("k", -1)
    assert first.total("k") == 0


@pytest.mark.parametrize("are_shared", [False, True])
def test_a_bucket_holds_over_all_that_take_of_it(two: Two, are_shared: bool) -> None:
    own = OwnSpace()
    spaces: list[ValueSpace] = [two.first, two.second] if are_shared else [own, own]
    buckets = [Bucket(lambda: 0, 10, 1, 60, levels=levels_in(each, "b.b")) for each in spaces]
    if not are_shared:
        buckets[1] = buckets[0]
    for number in range(10):
        buckets[number % 2].take("k")
    for bucket in buckets:
        with pytest.raises(RateLimitExceeded):
            bucket.take("k")


def test_a_further_page_finds_its_ranking_wherever_it_comes(two: Two) -> None:
    words = parse_words('umbrella -rain "as written"')
    hits = tuple(
        RankedHit("cin_1", "messages", f"key {number}", FoundPassage("body", 1, 2), duplicates=1)
        for number in range(1_000)
    )
    ranking = Ranking(hits, (words,), RelaxedSearch(2, 0, absent=["umbrela"]))
    Rankings(shared_rankings(two.first)).keep("holder", "request", "digest", ranking)
    other = Rankings(shared_rankings(two.second))
    assert other.find("holder", "request", "digest") == ranking
    assert other.find("holder", "request", "another") is None


def test_own_values_are_bounded_by_the_order_in_which_they_were_put() -> None:
    values = OwnValues[int](2)
    values.put("a", 1)
    values.put("b", 2)
    assert (values.displaced_by("a"), values.displaced_by("c")) == (None, 1)
    values.put("a", 3)
    values.put("c", 4)
    assert (values.get("a"), values.get("b"), values.get("c")) == (3, None, 4)
