from pathlib import Path

from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.calendar import CALENDAR
from sources.tests.specimens.files import as_zip


def test_times_are_read_in_the_zones_the_calendar_means(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["calendar"], tmp_path / "export.zip"))
    first, replaced, whole_day = records_of(items, "events")
    assert (first["starts_at"], first["ends_at"]) == (
        "2024-01-05T05:00:00Z",
        "2024-01-05T06:30:00Z",
    )
    assert (first["minutes"], whole_day["minutes"]) == (90, None)
    assert first["is_recurring"]
    assert first["title"].startswith("Caffè, and")
    assert first["title"].endswith("line has to be folded")
    assert first["attendees"] == ["Byron, Ann <ann@example.org>"]
    assert first["categories"] == ["work", "coffee"]
    assert replaced["starts_at"] == "2024-01-12T10:00:00Z"
    assert replaced["replaces_occurrence_at"] == "2024-01-12T05:00:00Z"
    assert (whole_day["starts_on"], whole_day["all_day"]) == ("2024-02-01", True)
    assert records_of(items, "tasks")[0]["is_completed"]


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["calendar"], tmp_path / "export.zip"))
    assert skips_of(items) == ["bad_date", "empty_busy_times"]


def test_a_calendar_cut_short_keeps_its_whole_events(tmp_path: Path) -> None:
    (tmp_path / "Home.ics").write_bytes(CALENDAR[: CALENDAR.index(b"UID:2@")])
    items = read_path(tmp_path)
    assert len(records_of(items, "events")) == 2
    assert skips_of(items) == ["truncated"]


def test_the_agenda_spells_repeating_events_out(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["calendar"], tmp_path / "export.zip"))
    weekly, *_ = records_of(items, "events")
    slots = [slot for slot in records_of(items, "agenda") if slot["event_id"] == weekly["id"]]
    assert [slot["starts_at"][:10] for slot in slots] == ["2024-01-05", "2024-01-19", "2024-01-26"]
    assert slots[0]["ends_at"] == "2024-01-05T06:30:00Z"
    titles = {slot["starts_on"]: slot["title"] for slot in records_of(items, "agenda")}
    assert titles["2024-01-12"] == "Floating, so Rome"
    assert titles["2024-02-01"] == "All day"


def test_an_entry_of_another_kind_is_named_once_with_what_is_inside(tmp_path: Path) -> None:
    unknown = [
        *("BEGIN:VAVAILABILITY", "BEGIN:AVAILABLE", "SUMMARY:Office", "END:AVAILABLE"),
        *("END:VAVAILABILITY", "BEGIN:X-NOTE", "END:X-NOTE"),
    ]
    event = ["BEGIN:VEVENT", "UID:1", "DTSTART:20240105T090000Z", "SUMMARY:Bake", "END:VEVENT"]
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", *unknown, *event, "END:VCALENDAR", ""]
    (tmp_path / "a.ics").write_bytes("\r\n".join(lines).encode())
    items = read_path(tmp_path / "a.ics")
    assert [each["title"] for each in records_of(items, "events")] == ["Bake"]
    assert skips_of(items) == ["unknown_record_type"] * 2
