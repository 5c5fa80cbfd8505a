from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from icalendar import vRecur

from pdpp_sources.calendar.entry import Start, parse_rule
from pdpp_sources.common.errors import BadRecord

LAST = date(2027, 12, 31)
ROME = ZoneInfo("Europe/Rome")


def starts(rule: str, begins: Start, last: date = LAST) -> list[Start]:
    parsed = parse_rule(vRecur.from_ical(rule))
    assert parsed is not None
    return list(parsed.starts(begins, last))


def test_wall_time_is_kept_over_the_change_of_the_clock() -> None:
    found = starts("FREQ=WEEKLY;COUNT=2", datetime(2024, 3, 28, 10, tzinfo=ROME))
    assert [each.astimezone(UTC).hour for each in found if isinstance(each, datetime)] == [9, 8]


def test_whole_days_repeat() -> None:
    assert starts("FREQ=YEARLY;COUNT=3", date(2024, 2, 29), date(2040, 1, 1)) == [
        date(2024, 2, 29),
        date(2028, 2, 29),
        date(2032, 2, 29),
    ]


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        (
            "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=3",
            ["2024-01-01", "2024-01-31", "2024-02-29"],
        ),
        ("FREQ=YEARLY;BYWEEKNO=3;BYDAY=MO;COUNT=3", ["2024-01-01", "2024-01-15", "2025-01-13"]),
        ("FREQ=YEARLY;BYYEARDAY=-1;COUNT=2", ["2024-01-01", "2024-12-31"]),
        ("FREQ=WEEKLY;BYDAY=MO,FR;UNTIL=20240108", ["2024-01-01", "2024-01-05", "2024-01-08"]),
        ("FREQ=DAILY;INTERVAL=0;COUNT=2", ["2024-01-01", "2024-01-02"]),
        ("FREQ=DAILY;BYHOUR=8,20;COUNT=2", ["2024-01-01", "2024-01-02"]),
        ("FREQ=DAILY;COUNT=9;UNTIL=20240102T120000Z", ["2024-01-01", "2024-01-02"]),
    ],
)
def test_rules_are_spelled_out(rule: str, days: list[str]) -> None:
    assert starts(rule, date(2024, 1, 1)) == [date.fromisoformat(day) for day in days]


def test_the_end_counts_by_the_clock_of_the_event() -> None:
    begins = datetime(2024, 7, 1, 23, tzinfo=ROME)
    assert len(starts("FREQ=DAILY;UNTIL=20240702T210000Z", begins)) == 2
    assert len(starts("FREQ=DAILY;UNTIL=20240702T205959Z", begins)) == 1
    assert len(starts("FREQ=DAILY;UNTIL=20240702", begins)) == 2


def test_there_is_a_limit() -> None:
    with pytest.raises(BadRecord) as told:
        starts("FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9", datetime(1950, 1, 1, tzinfo=ROME))
    assert told.value.code == "agenda_cut"


@pytest.mark.parametrize(
    "rule", ["FREQ=SECONDLY", "FREQ=DAILY;BYHOUR=25", "FREQ=MONTHLY;RSCALE=CHINESE"]
)
def test_rules_beyond_are_refused(rule: str) -> None:
    assert parse_rule(vRecur.from_ical(rule)) is None


def test_a_rule_that_never_holds_ends_after_the_first_time() -> None:
    first = date(1, 1, 1)
    assert starts("FREQ=DAILY;BYMONTH=2;BYDAY=MO", first, date(1, 1, 5)) == [first]
    never = "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2"
    assert starts(never, date(2024, 1, 1)) == [date(2024, 1, 1)]
