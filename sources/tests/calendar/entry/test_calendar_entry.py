import os
from pathlib import Path

import pytest

from sources.tests.reading import read_path, records_of, skips_of

CALENDAR = "BEGIN:VCALENDAR\n{}END:VCALENDAR\n"
EVENT = "BEGIN:VEVENT\nUID:{}\nSUMMARY:{}\n{}\nEND:VEVENT\n"
WEEKLY = EVENT.format("1", "weekly", "DTSTART:20240101T100000Z\nRRULE:FREQ=WEEKLY;COUNT=3")


def written(tmp_path: Path, *events: str, head: str = "") -> Path:
    (tmp_path / "Home.ics").write_text(CALENDAR.format(head + "".join(events)))
    return tmp_path


def agenda(path: Path) -> list[tuple[str, str]]:
    return [(slot["starts_at"], slot["title"]) for slot in records_of(read_path(path), "agenda")]


def test_an_evening_in_utc_is_on_the_day_of_the_calendar_s_zone(tmp_path: Path) -> None:
    event = EVENT.format("1", "dinner", "DTSTART:20240302T040000Z\nDTEND:20240302T060000Z")
    path = written(tmp_path, event, head="X-WR-TIMEZONE:America/Los_Angeles\n")
    items = read_path(path)
    assert [e["starts_on"] for e in records_of(items, "events")] == ["2024-03-01"]
    assert [s["starts_on"] for s in records_of(items, "agenda")] == ["2024-03-01"]


def test_a_broken_alarm_costs_no_event(tmp_path: Path) -> None:
    alarm = "BEGIN:VALARM\nACTION:DISPLAY\nTRIGGER;RELATED=START:PT-2H\nEND:VALARM"
    path = written(tmp_path, EVENT.format("1", "train", f"DTSTART:20240101T100000Z\n{alarm}"))
    items = read_path(path)
    assert [event["title"] for event in records_of(items, "events")] == ["train"]
    assert skips_of(items) == []


@pytest.mark.parametrize(
    ("written_as", "listed"), [("CATEGORIES:", []), ("CATEGORIES:, work ,,", ["work"])]
)
def test_an_empty_category_is_none(tmp_path: Path, written_as: str, listed: list[str]) -> None:
    event = EVENT.format("1", "walk", f"DTSTART:20240101T100000Z\n{written_as}")
    [found] = records_of(read_path(written(tmp_path, event)), "events")
    assert found["categories"] == listed


def test_an_end_has_a_zone_of_its_own(tmp_path: Path) -> None:
    times = (
        "DTSTART;TZID=Europe/Berlin:20240101T100000\nDTEND;TZID=/x.org/Asia/Tokyo:20240101T200000"
    )
    (event,) = records_of(
        read_path(written(tmp_path, EVENT.format("1", "flight", times))), "events"
    )
    assert (event["starts_at"], event["ends_at"]) == (
        "2024-01-01T09:00:00Z",
        "2024-01-01T11:00:00Z",
    )


@pytest.mark.parametrize(
    ("zone", "instant"),
    [
        ("W. Europe Standard Time", "2024-01-01T09:00:00Z"),
        ("/freeassociation.sourceforge.net/Europe/Berlin", "2024-01-01T09:00:00Z"),
        ("/mozilla.org/20050126_1/Europe/Berlin", "2024-01-01T09:00:00Z"),
        ("US-Eastern", "2024-01-01T15:00:00Z"),
        ("Eastern Standard Time", "2024-01-01T15:00:00Z"),
        ("Manitoba Standard Time", "2024-01-01T16:00:00Z"),
        ("(UTC-08:00) Pacific Time (US & Canada)", "2024-01-01T18:00:00Z"),
        ("(GMT+01:00) Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna", "2024-01-01T09:00:00Z"),
        ("(UTC+05:30) Chennai, Kolkata, Mumbai, New Delhi", "2024-01-01T04:30:00Z"),
        ("(UTC) Coordinated Universal Time", "2024-01-01T10:00:00Z"),
        ("(UTC+09:30) Nowhere, Elsewhere", "2024-01-01T00:30:00Z"),
        ("GMT -0300", "2024-01-01T13:00:00Z"),
        ("+0200", "2024-01-01T08:00:00Z"),
        ("tzone://Microsoft/Utc", "2024-01-01T10:00:00Z"),
        ("Nowhere", "2024-01-01T15:00:00Z"),
    ],
)
def test_zones_are_known_by_their_vendors_names(tmp_path: Path, zone: str, instant: str) -> None:
    event = EVENT.format("1", "x", f"DTSTART;TZID={zone}:20240101T100000")
    path = written(tmp_path, event, head="X-WR-TIMEZONE:America/New_York\n")
    assert [e["starts_at"] for e in records_of(read_path(path), "events")] == [instant]


def test_an_occurrence_that_only_changes_its_words_takes_place_once(tmp_path: Path) -> None:
    times = "DTSTART:20240108T100000Z\nRECURRENCE-ID:20240108T100000Z\nRRULE:FREQ=WEEKLY;COUNT=3"
    path = written(tmp_path, WEEKLY, EVENT.format("1", "renamed", times))
    assert agenda(path) == [
        ("2024-01-01T10:00:00Z", "weekly"),
        ("2024-01-15T10:00:00Z", "weekly"),
        ("2024-01-08T10:00:00Z", "renamed"),
    ]


def test_what_was_cancelled_does_not_take_place(tmp_path: Path) -> None:
    times = "DTSTART:20240108T100000Z\nRECURRENCE-ID:20240108T100000Z\nSTATUS:CANCELLED"
    path = written(tmp_path, WEEKLY, EVENT.format("1", "weekly", times))
    assert [at for at, _ in agenda(path)] == ["2024-01-01T10:00:00Z", "2024-01-15T10:00:00Z"]
    assert len(records_of(read_path(path), "events")) == 2


def test_a_rule_that_is_not_known_leaves_the_first_time(tmp_path: Path) -> None:
    path = written(tmp_path, EVENT.format("1", "x", "DTSTART:20240101T100000Z\nRRULE:FREQ=OFTEN"))
    assert agenda(path) == [("2024-01-01T10:00:00Z", "x")]
    assert skips_of(read_path(path)) == ["unknown_rule"]


def test_an_empty_rule_is_none(tmp_path: Path) -> None:
    path = written(tmp_path, EVENT.format("1", "holiday", "DTSTART;VALUE=DATE:20240101\nRRULE:"))
    assert agenda(path) == [("2024-01-01T00:00:00Z", "holiday")]
    assert [e["is_recurring"] for e in records_of(read_path(path), "events")] == [False]
    assert skips_of(read_path(path)) == []


def test_days_left_out_count_for_times_too(tmp_path: Path) -> None:
    event = WEEKLY.replace("END:VEVENT", "EXDATE;VALUE=DATE:20240108\nEND:VEVENT")
    path = written(tmp_path, event)
    assert [at for at, _ in agenda(path)] == ["2024-01-01T10:00:00Z", "2024-01-15T10:00:00Z"]


def test_further_times_may_be_periods(tmp_path: Path) -> None:
    more = "DTSTART:20240101T100000Z\nRDATE;VALUE=PERIOD:20240103T100000Z/PT2H"
    path = written(tmp_path, EVENT.format("1", "x", more))
    assert [at for at, _ in agenda(path)] == ["2024-01-01T10:00:00Z", "2024-01-03T10:00:00Z"]


def test_of_two_versions_of_an_event_the_newer_counts(tmp_path: Path) -> None:
    old = EVENT.format("1", "old words", "DTSTART:20240101T100000Z\nSEQUENCE:1")
    new = EVENT.format("1", "new words", "DTSTART:20240102T100000Z\nSEQUENCE:2")
    for events in ((old, new), (new, old)):
        path = written(tmp_path, *events)
        assert agenda(path) == [("2024-01-02T10:00:00Z", "new words")]
        assert skips_of(read_path(path)) == ["duplicate"]


def zone(name: str, offset: str) -> str:
    return (
        f"BEGIN:VTIMEZONE\nTZID:{name}\nBEGIN:STANDARD\nDTSTART:16010101T000000\n"
        f"TZOFFSETFROM:{offset}\nTZOFFSETTO:{offset}\nEND:STANDARD\nEND:VTIMEZONE\n"
    )


def test_a_zone_that_the_file_defines_goes_before_one_of_that_name(tmp_path: Path) -> None:
    name = "W. Europe Standard Time"
    event = EVENT.format("1", "x", f"DTSTART;TZID={name}:20240101T100000")
    path = written(tmp_path, event, head=zone(name, "+0500"))
    assert [at for at, _ in agenda(path)] == ["2024-01-01T05:00:00Z"]


@pytest.mark.parametrize(
    "left_out",
    [
        "EXDATE;TZID=Mine:20240108T150000",
        "EXDATE;TZID=Asia/Tokyo:20240101T000000,20240108T190000",
        "EXDATE:20240108T100000Z",
    ],
)
def test_times_left_out_may_be_in_another_zone(tmp_path: Path, left_out: str) -> None:
    event = WEEKLY.replace("END:VEVENT", f"{left_out}\nEND:VEVENT")
    path = written(tmp_path, event, head=zone("Mine", "+0500"))
    assert [at for at, _ in agenda(path)] == ["2024-01-01T10:00:00Z", "2024-01-15T10:00:00Z"]


def test_a_whole_day_may_be_left_out_as_a_time(tmp_path: Path) -> None:
    times = "DTSTART;VALUE=DATE:20240101\nRRULE:FREQ=DAILY;COUNT=2\nEXDATE:20240102T000000"
    path = written(tmp_path, EVENT.format("1", "x", times), head="X-WR-TIMEZONE:Europe/Rome\n")
    assert [at for at, _ in agenda(path)] == ["2024-01-01T00:00:00Z"]


@pytest.mark.parametrize(
    ("begins", "replaced"),
    [
        ("DTSTART:20240101T100000Z", "RECURRENCE-ID;VALUE=DATE:20240108"),
        ("DTSTART;VALUE=DATE:20240101", "RECURRENCE-ID:20240108T000000"),
        ("DTSTART;VALUE=DATE:20240101", "RECURRENCE-ID;VALUE=DATE:20240108"),
        ("DTSTART;TZID=Asia/Tokyo:20240101T100000", "RECURRENCE-ID:20240108T010000Z"),
    ],
)
def test_an_occurrence_is_replaced_by_its_day_or_its_time(
    tmp_path: Path, begins: str, replaced: str
) -> None:
    weekly = EVENT.format("1", "weekly", f"{begins}\nRRULE:FREQ=WEEKLY;COUNT=2")
    moved = EVENT.format("1", "moved", f"DTSTART:20240109T100000Z\n{replaced}")
    path = written(tmp_path, weekly, moved, head="X-WR-TIMEZONE:Europe/Rome\n")
    assert [title for _, title in agenda(path)] == ["weekly", "moved"]


def test_the_first_time_takes_place_also_outside_of_its_rule(tmp_path: Path) -> None:
    times = "DTSTART:20240101T100000Z\nRRULE:FREQ=WEEKLY;BYDAY=WE;COUNT=3"
    path = written(tmp_path, EVENT.format("1", "x", times))
    assert [at[:10] for at, _ in agenda(path)] == ["2024-01-01", "2024-01-03", "2024-01-10"]


def test_the_agenda_is_bounded_by_time_and_says_what_lies_before(tmp_path: Path) -> None:
    times = "DTSTART;VALUE=DATE:19500101\nRRULE:FREQ=DAILY"
    path = written(
        tmp_path, EVENT.format("1", "x", times), EVENT.format("2", "y", "DTSTART:19510101T100000Z")
    )
    os.utime(path / "Home.ics", (1_700_000_000, 1_700_000_000))  # 2023-11-14
    found = agenda(path)
    days = [at[:10] for at, title in found if title == "x"]
    assert (days[0], days[-1], len(days)) == ("2003-11-19", "2024-12-18", 20 * 365 + 401)
    assert found[-1] == ("1951-01-01T10:00:00Z", "y")
    assert skips_of(read_path(path)) == ["agenda_cut"]


def test_line_ends_may_be_doubled(tmp_path: Path) -> None:
    event = EVENT.format("1", "a long tit\n le", "DTSTART;TZID=Mine:20240101T100000")
    text = CALENDAR.format(zone("Mine", "+0500") + event)
    (tmp_path / "Home.ics").write_text(text.replace("\n", "\r\r\n"), newline="")
    assert agenda(tmp_path) == [("2024-01-01T05:00:00Z", "a long title")]


def test_a_time_that_cannot_be_read_takes_no_other_along(tmp_path: Path) -> None:
    busy = (
        "BEGIN:VFREEBUSY\nUID:2\nDTSTART:2024717T080000Z\n"
        "FREEBUSY:20240103T080000Z/PT1H,2024103T120000Z/PT1H\n"
        "FREEBUSY:2024104T080000Z/PT1H\nEND:VFREEBUSY\n"
    )
    items = read_path(written(tmp_path, busy))
    (time,) = records_of(items, "busy_times")
    assert (time["starts_at"], time["minutes"]) == ("2024-01-03T08:00:00Z", 60)
    assert skips_of(items) == ["bad_date", "bad_date"]


def test_a_journal_and_times_that_people_are_busy_are_read(tmp_path: Path) -> None:
    journal = "BEGIN:VJOURNAL\nUID:1\nSUMMARY:Rain\nDTSTART;VALUE=DATE:20240103\nEND:VJOURNAL\n"
    busy = (
        "BEGIN:VFREEBUSY\nUID:2\nATTENDEE;CN=Ann:mailto:ann@example.org\n"
        "FREEBUSY:20240103T080000Z/PT1H,20240103T120000Z/20240103T123000Z\n"
        "FREEBUSY;FBTYPE=FREE:20240104T080000Z/PT1H\nEND:VFREEBUSY\n"
    )
    asked = "BEGIN:VFREEBUSY\nUID:3\nDTSTART:20240103T080000Z\nEND:VFREEBUSY\n"
    items = read_path(written(tmp_path, journal, busy, asked))
    (entry,) = records_of(items, "journal")
    assert (entry["title"], entry["written_at"]) == ("Rain", "2024-01-03T00:00:00Z")
    times = [
        (each["starts_at"], each["minutes"], each["kind"])
        for each in records_of(items, "busy_times")
    ]
    assert times == [
        ("2024-01-03T08:00:00Z", 60, "busy"),
        ("2024-01-03T12:00:00Z", 30, "busy"),
        ("2024-01-04T08:00:00Z", 60, "free"),
    ]
    assert {each["person"] for each in records_of(items, "busy_times")} == {"Ann <ann@example.org>"}
    assert skips_of(items) == ["empty_busy_times"]


def test_an_event_that_comes_again_is_told_once_without_its_times(tmp_path: Path) -> None:
    for name in ("Home", "Work"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Home.ics").write_text(CALENDAR.format(WEEKLY))
    items = read_path(tmp_path)
    assert len(records_of(items, "agenda")) == 3
    assert skips_of(items) == ["duplicate"]


def test_an_event_whose_last_line_is_missing_costs_no_other(tmp_path: Path) -> None:
    open_ended = EVENT.format("2", "open", "DTSTART:20240102T100000Z").replace("END:VEVENT\n", "")
    path = written(tmp_path, open_ended, WEEKLY)
    assert [event["title"] for event in records_of(read_path(path), "events")] == ["open", "weekly"]


def test_an_entry_for_this_and_all_later_times_moves_them(tmp_path: Path) -> None:
    weekly = EVENT.format(
        "1", "s", "DTSTART:20240101T090000Z\nDTEND:20240101T100000Z\nRRULE:FREQ=WEEKLY;COUNT=5"
    )
    moved = EVENT.format(
        "1",
        "moved",
        "RECURRENCE-ID;RANGE=THISANDFUTURE:20240115T090000Z\n"
        "DTSTART:20240115T110000Z\nDTEND:20240115T113000Z",
    )
    once = EVENT.format("1", "once", "RECURRENCE-ID:20240129T090000Z\nDTSTART:20240130T090000Z")
    path = written(tmp_path, weekly, moved, once)
    slots = sorted(records_of(read_path(path), "agenda"), key=lambda each: each["starts_at"])
    assert [(slot["starts_at"], slot["title"], slot["minutes"]) for slot in slots] == [
        ("2024-01-01T09:00:00Z", "s", 60),
        ("2024-01-08T09:00:00Z", "s", 60),
        ("2024-01-15T11:00:00Z", "moved", 30),
        ("2024-01-22T11:00:00Z", "moved", 30),
        ("2024-01-30T09:00:00Z", "once", None),
    ]


ZONE = (
    "BEGIN:VTIMEZONE\nTZID:{}\nBEGIN:STANDARD\nDTSTART:19700101T000000\n"
    "TZOFFSETFROM:{}\nTZOFFSETTO:{}\nEND:STANDARD\nEND:VTIMEZONE\n"
)


@pytest.mark.parametrize(
    ("distance", "instant"),
    [
        ("+0500", "2024-07-01T05:00:00Z"),  # no distance that Berlin ever had: another zone
        ("+0100", "2024-07-01T08:00:00Z"),  # Berlin's in winter: an old rule of the same zone
    ],
)
def test_a_zone_of_a_known_name_that_the_file_defines_otherwise(
    tmp_path: Path, distance: str, instant: str
) -> None:
    zone = ZONE.format("Europe/Berlin", distance, distance)
    event = EVENT.format("1", "x", "DTSTART;TZID=Europe/Berlin:20240701T100000")
    path = written(tmp_path, zone, event)
    assert [e["starts_at"] for e in records_of(read_path(path), "events")] == [instant]


BERLIN, NEW_YORK = "TZID=Europe/Berlin", "TZID=America/New_York"


@pytest.mark.parametrize(
    ("starts", "ends", "minutes"),
    [
        # a flight over the Atlantic: three hours by the clocks of both ends, nine in the air
        (f"DTSTART;{BERLIN}:20240105T100000", f"DTEND;{NEW_YORK}:20240105T130000", 540),
        # the night in which clocks go forward
        (f"DTSTART;{BERLIN}:20240331T010000", f"DTEND;{BERLIN}:20240331T040000", 120),
        ("DTSTART:20240105T100000Z", "DTEND:20240105T090000Z", None),
        ("DTSTART;VALUE=DATE:20240105", "DTEND;VALUE=DATE:20240107", None),
        ("DTSTART:20240105T100000Z", "DURATION:PT45M", 45),
    ],
)
def test_an_event_takes_as_long_as_time_passes(
    starts: str, ends: str, minutes: int | None, tmp_path: Path
) -> None:
    items = read_path(written(tmp_path, EVENT.format("1", "away", f"{starts}\n{ends}")))
    assert [event["minutes"] for event in records_of(items, "events")] == [minutes]
    assert {slot["minutes"] for slot in records_of(items, "agenda")} <= {minutes}
