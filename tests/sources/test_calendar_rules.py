from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given, settings
from hypothesis import strategies as st
from icalendar import vRecur

from personal_server.sources.calendar_rules import Start, parse_rule

LAST = date(2027, 12, 31)
END = datetime.fromisoformat("2028-01-01")
ROME = ZoneInfo("Europe/Rome")
moments = st.datetimes(datetime.fromisoformat("2024-01-01"), datetime.fromisoformat("2025-12-31"))


def starts(rule: str, begins: Start, last: date = LAST) -> list[Start]:
    parsed = parse_rule(vRecur.from_ical(rule))
    assert parsed is not None
    return list(parsed.starts(begins, last))


weekdays = st.lists(st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"]), unique=True)
nth = st.lists(st.sampled_from(["1MO", "-1FR", "3WE", "2SU"]), unique=True, max_size=2)
months = st.lists(st.integers(1, 12), unique=True, max_size=3)
month_days = st.lists(st.integers(1, 31) | st.integers(-3, -1), unique=True, max_size=3)


@st.composite
def rules(draw: st.DrawFn) -> str:
    frequency = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    parts = [f"FREQ={frequency}", f"INTERVAL={draw(st.integers(1, 4))}"]
    by: dict[str, list[object]] = {"BYMONTH": [*draw(months)]}
    if frequency in ("DAILY", "WEEKLY"):
        by["BYDAY"] = [*draw(weekdays)]
    elif frequency == "MONTHLY":
        by[draw(st.sampled_from(["BYDAY", "-"]))] = [*draw(nth)]
        by |= {} if by.get("BYDAY") else {"BYMONTHDAY": [*draw(month_days)]}
    elif by["BYMONTH"]:
        by["BYDAY"] = [*draw(nth)]
    else:
        by["BYMONTH"] = []
    parts += [f"{n}={','.join(map(str, v))}" for n, v in by.items() if v and n != "-"]
    ending = draw(st.sampled_from(["", "COUNT=7", "UNTIL=20260301T120000"]))
    return ";".join(filter(None, [*parts, ending]))


@settings(max_examples=150, deadline=None)
@given(rules(), moments)
def test_it_agrees_with_the_library_of_rules(rule: str, begins: datetime) -> None:
    begins = begins.replace(microsecond=0)
    wanted = rrulestr(rule, dtstart=begins).between(begins, END, inc=True)
    assert starts(rule, begins) == [each for each in wanted if each.date() <= LAST]


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
    "rule", ["FREQ=SECONDLY", "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1", "FREQ=YEARLY;BYWEEKNO=3"]
)
def test_rules_beyond_are_refused(rule: str) -> None:
    assert parse_rule(vRecur.from_ical(rule)) is None


def test_a_rule_that_never_holds_ends() -> None:
    assert starts("FREQ=DAILY;BYMONTH=2;BYDAY=MO", date(1, 1, 1), date(1, 1, 5)) == []
    assert starts("FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2", date(2024, 1, 1)) == []
