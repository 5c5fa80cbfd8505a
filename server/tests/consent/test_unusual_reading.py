import pytest
from msgspec.structs import replace

from personal_server.consent.unusual_reading import (
    CANARY,
    ReadingNow,
    ReadingPast,
    said_of,
    unusual,
)
from personal_server.domain.reading_history import ReadingCount

NOTHING = ReadingCount()
KNOWN = ReadingPast(days=20, most_records=500, hours=frozenset(range(8, 19)))


def rules(now: ReadingNow, past: ReadingPast = KNOWN) -> list[str]:
    found = list(unusual(now, past))
    assert all("{" not in said_of(each.rule, each.figures) for each in found)
    return [each.rule for each in found]


def at(lately: ReadingCount = NOTHING, **more: object) -> ReadingNow:
    made = ReadingNow(lately=lately, this_hour=lately, today=lately, hour=10)
    return replace(made, **more)  # type: ignore[arg-type]


def test_a_busy_hour_of_an_ordinary_agent_is_nothing_unusual() -> None:
    busy = ReadingCount(60, 900, 2_000_000, searches=40, empty_searches=12, new_words=90)
    assert rules(at(busy)) == []
    assert rules(at(busy), ReadingPast()) == []
    bulk = ReadingCount(400, 40_000, 10**8)
    assert rules(at(bulk), ReadingPast(days=3, most_records=100)) == []


@pytest.mark.parametrize(
    ("lately", "rule"),
    [
        (ReadingCount(30, searches=30, empty_searches=30), "empty_searches"),
        (ReadingCount(40, searches=40, empty_searches=30), "empty_searches"),
        (ReadingCount(20, searches=20, new_words=200), "new_words"),
        (ReadingCount(20, unknown_keys=20), "unknown_keys"),
    ],
)
def test_probing_in_minutes_is_unusual_and_a_little_less_is_not(
    lately: ReadingCount, rule: str
) -> None:
    assert rules(at(lately), ReadingPast()) == [rule]
    fewer = replace(
        lately,
        empty_searches=max(0, lately.empty_searches - 1),
        new_words=max(0, lately.new_words - 1),
        unknown_keys=max(0, lately.unknown_keys - 1),
    )
    assert rules(at(fewer), ReadingPast()) == []


def test_slow_probing_shows_in_a_day() -> None:
    assert rules(at(today=ReadingCount(900, new_words=2_000))) == ["new_words"]
    assert rules(at(today=ReadingCount(900, unknown_keys=200))) == ["unknown_keys"]


def test_an_hour_far_from_all_before_is_unusual_once_habits_are_known() -> None:
    ten = ReadingCount(requests=10)
    assert rules(at(hour=3, this_hour=ten)) == ["unseen_hour"]
    assert rules(at(hour=7, this_hour=ten)) == []
    assert rules(at(hour=3, this_hour=ReadingCount(9))) == []
    assert rules(at(hour=3, this_hour=ten), replace(KNOWN, days=13)) == []
    late = replace(KNOWN, hours=frozenset({23}))
    assert rules(at(hour=0, this_hour=ten), late) == []


def test_far_more_than_on_any_day_before_is_unusual() -> None:
    assert rules(at(today=ReadingCount(records=2_501))) == ["volume"]
    assert rules(at(today=ReadingCount(records=2_500))) == []
    assert rules(at(today=ReadingCount(records=999)), replace(KNOWN, most_records=1)) == []
    assert rules(at(today=ReadingCount(records=9_999)), replace(KNOWN, days=6)) == []


def test_every_rule_has_its_sentence() -> None:
    assert "notes" in said_of(CANARY, {"stream": "notes"})
    assert said_of("of_a_later_version", {}) == "of_a_later_version"
