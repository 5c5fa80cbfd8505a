from __future__ import annotations

import itertools
import os
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.domain.disclosure import DENIED, SERVED, AskedDetail, DisclosureEntry
from personal_server.granting.audit import Acting
from personal_server.granting.pauses import resume_access
from personal_server.granting.reading_alarms import (
    DISMISSED_DAYS,
    HOUR,
    MINUTE,
    PausePolicy,
    ReadingWatch,
    dismiss_alarms,
    forget_reading,
    limit_reading,
    limit_words,
    open_alarms,
    read_since,
    reading_figures,
)
from personal_server.granting.tokens import FAMILY_IDLE_NS
from personal_server.storage.authorization_rows import (
    AuditRow,
    CanaryRow,
    GrantRow,
    ReadingAlarmRow,
    ReadingLimitsRow,
    ReadingSpanRow,
    ReadingWordsRow,
)
from server.tests.granting.conftest import entry

OWNER = Acting("owner")
START = 20_000 * DAY_NANOSECONDS + 10 * HOUR * NANOSECONDS
_numbers = itertools.count()


def read(at_ns: int = START, asked: str = "/v1", **members: Any) -> DisclosureEntry:
    number = next(_numbers)
    made = DisclosureEntry(
        f"dis_{number}", "own_1", at_ns, f"req_{number}", SERVED, "client", "rest", "GET /v1/x"
    )
    detail = AskedDetail(b"", asked, tuple(members.pop("keys", ())))
    return replace(made, grant_id="grt_1", client_id="cli_1", detail=detail, **members)


def search(words: str, at_ns: int = START) -> DisclosureEntry:
    """One that found nothing."""
    return read(at_ns, f"/v1/search?q={words}", route="GET /v1/search")


def unknown(at_ns: int = START) -> DisclosureEntry:
    route = "GET /v1/streams/{stream}/records/{record_key}"
    return read(at_ns, route=route, outcome=DENIED, error_code="not_found")


def rules(bench: Any) -> list[str]:
    with bench.store.read() as reader:
        return [row.rule for row in open_alarms(reader)]


@pytest.fixture
def watch(bench: Any) -> ReadingWatch:
    return ReadingWatch(bench.store, os.urandom)


def test_what_is_read_becomes_figures_without_a_word_or_key(
    bench: Any, watch: ReadingWatch
) -> None:
    watch([search("rain"), read(record_count=7, size_bytes=90, keys=["secret-key"])])
    watch([search("rain"), search("snow"), unknown(START + HOUR * NANOSECONDS)])
    with bench.store.read() as reader:
        count = read_since(reader, "grt_1", START)
        spans = reader.rows(ReadingSpanRow)
    assert (count.requests, count.records, count.size_bytes) == (5, 7, 90)
    assert (count.searches, count.empty_searches, count.new_words) == (3, 3, 2)
    assert count.unknown_keys == 1
    assert sorted(row.seconds for row in spans) == [MINUTE, MINUTE, HOUR, HOUR]
    (words,) = bench.rows(ReadingWordsRow)
    assert b"rain" not in words.seen
    assert "secret-key" not in repr(spans)


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ([search("same") for _ in range(30)], "empty_searches"),
        ([replace(search(f"w{n}"), fields=("id",)) for n in range(210)], "new_words"),
        ([unknown() for _ in range(20)], "unknown_keys"),
    ],
)
def test_probing_raises_one_alarm_and_one_event(
    bench: Any, watch: ReadingWatch, entries: list[DisclosureEntry], rule: str
) -> None:
    half = len(entries) // 2
    watch(entries[:half])
    assert rules(bench) == []
    watch(entries[half:])
    watch(entries[half:])
    assert rules(bench) == [rule]
    events = [row for row in bench.rows(AuditRow) if row.event == "reading.unusual"]
    assert [(row.grant_id, row.client_id, row.detail["rule"]) for row in events] == [
        ("grt_1", "cli_1", rule)
    ]


def test_the_same_pace_over_hours_is_no_alarm(bench: Any, watch: ReadingWatch) -> None:
    for step in range(60):
        watch([unknown(START + step * 10 * MINUTE * NANOSECONDS)])
        watch([search("again", START + step * 10 * MINUTE * NANOSECONDS)])
    assert rules(bench) == []


def test_hours_and_volume_are_compared_with_its_own_history(
    bench: Any, watch: ReadingWatch
) -> None:
    for day in range(15):
        watch([read(START + day * DAY_NANOSECONDS, record_count=200)])
    today = START + 15 * DAY_NANOSECONDS
    watch([read(today, record_count=1_000)])
    assert rules(bench) == []
    watch([read(today, record_count=1)])
    assert rules(bench) == ["volume"]
    night = today + 10 * HOUR * NANOSECONDS
    watch([read(night) for _ in range(10)])
    assert sorted(rules(bench)) == ["unseen_hour", "volume"]


@pytest.mark.parametrize(
    ("policy", "own", "held"),
    [
        ("never", None, "none"),
        ("canary", None, "none"),
        ("always", None, "alarm"),
        ("never", True, "alarm"),
        ("always", False, "none"),
    ],
)
def test_an_alarm_pauses_as_its_owner_wants(
    bench: Any, make_entry: Any, policy: PausePolicy, own: bool | None, held: str
) -> None:
    bench.allow(bench.ask([make_entry()]))
    grant_id = bench.rows(GrantRow)[0].grant_id
    if own is not None:
        with bench.store.write() as writer:
            limits = ReadingLimitsRow(held_id=grant_id, pauses=own)
            limit_reading(writer, limits, OWNER, START)
    watch = ReadingWatch(bench.store, os.urandom, policy)
    watch([replace(unknown(), grant_id=grant_id) for _ in range(20)])
    assert bench.rows(GrantRow)[0].hold == held
    with bench.store.write() as writer:
        assert open_alarms(writer)[0].paused is (held == "alarm")
        assert resume_access(writer, grant_id, OWNER, START) == (held == "alarm")


def test_a_canary_that_was_given_raises_an_alarm_each_time_it_was_dismissed(
    bench: Any, watch: ReadingWatch
) -> None:
    canary = CanaryRow(connection_id="cin_1", stream="notes", key="k1", planted_at_ns=1)
    with bench.store.write() as writer:
        writer.insert(canary)
    given = read(connection_id="cin_1", stream="notes", record_count=2, keys=["k0", "k1"])
    watch([replace(given, detail=AskedDetail(b"", "", ("k0",)))])
    watch([replace(given, grant_id=None)])
    watch([replace(given, stream="rest")])
    assert rules(bench) == []
    watch([given])
    watch([given])
    assert rules(bench) == ["canary"]
    (row,) = bench.rows(CanaryRow)
    assert (row.disclosed_at_ns, row.disclosed_to) == (START, "grt_1")
    with bench.store.write() as writer:
        assert dismiss_alarms(writer, "grt_1", OWNER, START) == 1
        assert dismiss_alarms(writer, "grt_1", OWNER, START) == 0
    watch([given])
    assert rules(bench) == ["canary"]


def test_what_was_counted_is_forgotten_in_time(bench: Any, watch: ReadingWatch) -> None:
    watch([search("rain")])
    for days, spans, words in ((1, 1, 1), (31, 1, 0), (36, 0, 0)):
        with bench.store.write() as writer:
            forget_reading(writer, START + days * DAY_NANOSECONDS)
        assert len(bench.rows(ReadingSpanRow)) == spans
        assert len(bench.rows(ReadingWordsRow)) == words


def test_figures_say_what_was_read_and_may_be(bench: Any, watch: ReadingWatch) -> None:
    watch([read(record_count=5)])
    watch([read(START + DAY_NANOSECONDS, record_count=3)])
    with bench.store.write() as writer:
        limits = ReadingLimitsRow(held_id="grt_1", records_per_day=50)
        limit_reading(writer, limits, OWNER, START)
        found = reading_figures(writer, "grt_1", START + DAY_NANOSECONDS)
    assert (found.today.records, found.past.most_records, found.past.days) == (3, 5, 1)
    assert found.limits.records_per_day == 50


def alarms(bench: Any) -> list[str]:
    return [row.rule for row in bench.rows(ReadingAlarmRow)]


def plant(bench: Any) -> None:
    bench.insert(CanaryRow(connection_id="cin_a", stream="entries", key="bait", planted_at_ns=1))


def bait(at_ns: int = START, **members: Any) -> DisclosureEntry:
    return read(at_ns, keys=["bait"], connection_id="cin_a", stream="entries", **members)


def test_the_figures_of_today_are_with_the_limits_and_alarms(memory: Any) -> None:
    watch = ReadingWatch(memory.store, os.urandom)
    plant(memory)
    watch([bait(record_count=3, size_bytes=40)])
    with memory.store.write() as writer:
        limits = ReadingLimitsRow(held_id="grt_1", records_per_day=9)
        limit_reading(writer, limits, OWNER, START)
    with memory.store.read() as reader:
        figures = reading_figures(reader, "grt_1", START + HOUR * NANOSECONDS)
        tomorrow = reading_figures(reader, "grt_1", START + DAY_NANOSECONDS)
        other = reading_figures(reader, "grt_2", START)
    assert (figures.today.records, figures.today.size_bytes) == (3, 40)
    assert figures.limits == limits
    assert [row.rule for row in figures.alarms] == ["canary"]
    assert tomorrow.today.records == 0
    assert (other.today.records, other.limits, other.alarms) == (
        0,
        ReadingLimitsRow(held_id="grt_2"),
        (),
    )


def test_a_limit_takes_the_place_of_the_one_before_and_is_in_the_trail(memory: Any) -> None:
    for limits in (
        ReadingLimitsRow(held_id="grt_1", records_per_day=9, requests_per_day=8),
        ReadingLimitsRow(held_id="grt_1", bytes_per_day=7, result_chars=5_000, pauses=True),
        ReadingLimitsRow(held_id="grt_2", events=True),
    ):
        with memory.store.write() as writer:
            limit_reading(writer, limits, OWNER, START)
    first, second = memory.rows(ReadingLimitsRow)
    assert (first.records_per_day, first.bytes_per_day, first.pauses) == (None, 7, True)
    assert (second.held_id, second.events) == ("grt_2", True)
    details = [row.detail for row in memory.rows(AuditRow) if row.event == "reading.limited"]
    assert details == [
        {"held": "grt_1", "records": 9, "requests": 8, "events": False},
        {"held": "grt_1", "bytes": 7, "result_chars": 5_000, "pauses": True, "events": False},
        {"held": "grt_2", "events": True},
    ]


def test_a_limit_is_said_with_what_it_limits() -> None:
    nothing = limit_words(ReadingLimitsRow(held_id="grt_1"))
    every = limit_words(
        ReadingLimitsRow(
            held_id="grt_1",
            records_per_day=1_000,
            bytes_per_day=2_000,
            requests_per_day=3_000,
            result_chars=4_000,
            events=True,
            pauses=True,
        )
    )
    never = limit_words(ReadingLimitsRow(held_id="grt_1", pauses=False))
    assert [number in every for number in ("1,000", "2,000", "3,000", "4,000")] == [True] * 4
    assert (nothing.count(","), every.count(", ")) == (0, 5)
    assert len({nothing, every, never}) == 3
    assert never.startswith(f"{nothing}, ")


def test_a_bait_given_again_raises_a_second_alarm_once_the_first_was_seen(memory: Any) -> None:
    watch = ReadingWatch(memory.store, os.urandom)
    plant(memory)
    watch([bait()])
    watch([bait(START + 1)])
    assert alarms(memory) == ["canary"]
    with memory.store.write() as writer:
        dismiss_alarms(writer, "grt_1", OWNER, START + 2)
    watch([bait(START + 3)])
    assert alarms(memory) == ["canary", "canary"]
    (row,) = memory.rows(CanaryRow)
    assert (row.disclosed_at_ns, row.disclosed_to) == (START + 3, "grt_1")
    events = [row for row in memory.rows(AuditRow) if row.event == "reading.unusual"]
    assert [event.detail for event in events] == [{"rule": "canary", "stream": "entries"}] * 2
    assert {(event.actor, event.grant_id, event.client_id) for event in events} == {
        ("server", "grt_1", "cli_1")
    }


def test_a_bait_that_was_refused_or_is_another_record_raises_nothing(memory: Any) -> None:
    watch = ReadingWatch(memory.store, os.urandom)
    plant(memory)
    watch([bait(outcome=DENIED), read(keys=["bait"], connection_id="cin_a", stream="volumes")])
    watch([read(keys=["other"], connection_id="cin_a", stream="entries")])
    assert alarms(memory) == []
    assert memory.rows(CanaryRow)[0].disclosed_to is None


def test_the_alarm_of_a_package_is_the_package_s(memory: Any) -> None:
    watch = ReadingWatch(memory.store, os.urandom)
    plant(memory)
    watch([bait(package_id="gpkg_1")])
    (alarm,) = memory.rows(ReadingAlarmRow)
    assert (alarm.held_id, alarm.client_id, alarm.paused) == ("gpkg_1", "cli_1", False)
    event = next(row for row in memory.rows(AuditRow) if row.event == "reading.unusual")
    assert (event.grant_id, event.package_id) == (None, "gpkg_1")


@pytest.mark.parametrize(
    ("policy", "own", "is_paused"),
    [
        ("never", None, False),
        ("canary", None, True),
        ("always", None, True),
        ("always", False, False),
        ("never", True, True),
    ],
)
def test_an_owner_s_word_for_one_access_goes_before_that_for_all(
    memory: Any, policy: PausePolicy, own: bool | None, *, is_paused: bool
) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    plant(memory)
    memory.insert(ReadingLimitsRow(held_id=grant_id, pauses=own))
    ReadingWatch(memory.store, os.urandom, policy)([replace(bait(), grant_id=grant_id)])
    assert memory.rows(ReadingAlarmRow)[0].paused is is_paused
    assert memory.rows(GrantRow)[0].hold == ("alarm" if is_paused else "none")


@pytest.mark.parametrize(
    ("age_ns", "left"),
    [
        (HOUR * NANOSECONDS - 1, {MINUTE, HOUR}),
        (HOUR * NANOSECONDS, {HOUR}),
        (35 * DAY_NANOSECONDS - 1, {HOUR}),
        (35 * DAY_NANOSECONDS, set[int]()),
    ],
)
def test_figures_are_forgotten_in_time(memory: Any, age_ns: int, left: set[int]) -> None:
    figures = dict.fromkeys(
        (
            "requests",
            "records",
            "size_bytes",
            "searches",
            "empty_searches",
            "new_words",
            "unknown_keys",
        ),
        1,
    )
    memory.insert(
        *(
            ReadingSpanRow(held_id="grt_1", seconds=seconds, start_ns=START, **figures)
            for seconds in (MINUTE, HOUR)
        )
    )
    with memory.store.write() as writer:
        forget_reading(writer, START + age_ns)
    assert {row.seconds for row in memory.rows(ReadingSpanRow)} == left


@pytest.mark.parametrize(
    ("age_days", "dismissed", "is_kept"),
    [(89, True, True), (90, True, False), (179, False, True), (180, False, False)],
)
def test_alarms_are_forgotten_in_time(
    memory: Any, age_days: int, *, dismissed: bool, is_kept: bool
) -> None:
    memory.insert(
        ReadingAlarmRow(
            alarm_id="ral_1",
            held_id="grt_1",
            client_id=None,
            rule="canary",
            at_ns=START,
            detail={},
            paused=False,
            dismissed_at_ns=START if dismissed else None,
        ),
        ReadingWordsRow(held_id="grt_1", salt=b"", seen=b"", ends_at_ns=START),
        ReadingWordsRow(held_id="grt_2", salt=b"", seen=b"", ends_at_ns=2**62),
    )
    with memory.store.write() as writer:
        forget_reading(writer, START + age_days * DAY_NANOSECONDS)
    assert bool(memory.rows(ReadingAlarmRow)) is is_kept
    assert [row.held_id for row in memory.rows(ReadingWordsRow)] == ["grt_2"]


def test_words_that_were_seen_are_new_again_after_thirty_days(memory: Any) -> None:
    watch, kept = ReadingWatch(memory.store, os.urandom), 30 * DAY_NANOSECONDS
    watch([search("rain"), search("rain", START + kept - 1)])
    (row,) = memory.rows(ReadingWordsRow)
    assert row.ends_at_ns == START + kept
    watch([search("rain", START + kept)])
    assert sum(span.new_words for span in memory.rows(ReadingSpanRow) if span.seconds == HOUR) == 2
    assert memory.rows(ReadingWordsRow)[0].ends_at_ns == START + 2 * kept


def test_what_an_owner_dismissed_is_known_as_long_as_the_repeats_that_it_counted() -> None:
    assert DISMISSED_DAYS * DAY_NANOSECONDS == FAMILY_IDLE_NS


def test_alarms_that_an_owner_saw_are_in_the_trail_and_none_is_no_line(memory: Any) -> None:
    watch = ReadingWatch(memory.store, os.urandom)
    plant(memory)
    watch([bait()])
    for number, count in enumerate((1, 0)):
        with memory.store.write() as writer:
            assert dismiss_alarms(writer, "grt_1", OWNER, START + 2 + number) == count
    (line,) = [row for row in memory.rows(AuditRow) if row.event == "reading.dismissed"]
    assert line.detail == {"held": "grt_1", "alarms": 1}
    assert (line.actor, line.client_id, line.at_ns) == ("owner", "cli_1", START + 2)
