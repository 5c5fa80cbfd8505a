from pathlib import Path

import pytest

from tests.sources.reading import read_path, records_of, skips_of

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
