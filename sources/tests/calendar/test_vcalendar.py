from pathlib import Path

import pytest

from pdpp_sources.calendar.vcalendar import modern_rule
from sources.tests.reading import read_path, records_of

OLD = (
    "BEGIN:VCALENDAR\nVERSION:1.0\nBEGIN:VEVENT\nUID:1\n"
    "SUMMARY;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Z=C3=\n=BCge; 1, 2\n"
    "DESCRIPTION;QUOTED-PRINTABLE:one=0D=0Atwo\n"
    "DTSTART:20080101T090000Z\nDTEND:20080101T100000Z\n"
    "RRULE:W1 TU #4\nEXDATE:20080108T090000Z;20080109T090000Z\nEND:VEVENT\nEND:VCALENDAR\n"
)


@pytest.mark.parametrize("name", ["a.vcs", "a.ics"])
def test_a_calendar_of_an_old_phone_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(OLD)
    items = read_path(tmp_path)
    (event,) = records_of(items, "events")
    assert (event["title"], event["description"]) == ("Züge; 1, 2", "one\ntwo")
    starts = [slot["starts_at"][:10] for slot in records_of(items, "agenda")]
    assert starts == ["2008-01-01", "2008-01-15", "2008-01-22"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("D1 #10", "FREQ=DAILY;INTERVAL=1;COUNT=10"),
        ("D2 #0", "FREQ=DAILY;INTERVAL=2"),
        ("W2 MO TH 20081224T000000Z", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH;UNTIL=20081224T000000Z"),
        ("MP1 1+ SU TU 2- FR #5", "FREQ=MONTHLY;INTERVAL=1;BYDAY=1SU,1TU,-2FR;COUNT=5"),
        ("MD1 7 LD", "FREQ=MONTHLY;INTERVAL=1;BYMONTHDAY=7,-1;COUNT=2"),
        ("YM1 6 7 #8", "FREQ=YEARLY;INTERVAL=1;BYMONTH=6,7;COUNT=8"),
        ("YD1 100 #3", "FREQ=YEARLY;INTERVAL=1;BYYEARDAY=100;COUNT=3"),
        ("FREQ=DAILY", "FREQ=DAILY"),
        ("", ""),
    ],
)
def test_rules_of_repetition_are_put_into_the_grammar_of_today(old: str, new: str) -> None:
    assert modern_rule(old) == new
