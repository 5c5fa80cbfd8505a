from pathlib import Path

from pdpp_kernel.source_item import Data, SourceItem
from pdpp_sources.common.export import open_parts
from pdpp_sources.registry import readings
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.contacts import CONTACTS
from sources.tests.specimens.files import as_json, as_zip
from sources.tests.specimens.mail import MAIL


def test_activity_goes_to_the_stream_of_its_address(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["google"], tmp_path / "export.zip"))
    page, listed = sorted(
        records_of(items, "youtube_watches"), key=lambda w: w["occurred_at"], reverse=True
    )
    assert listed["title"] == "Bread in an hour"
    assert listed["channel"] == "Bakers"
    assert page["title"] == "Sourdough & you"
    assert page["occurred_at"] == "2024-03-02T12:05:09Z"
    assert [s["query"] for s in records_of(items, "youtube_searches")] == ["rye bread"]
    queries = {each["query"] for each in records_of(items, "activity")}
    assert queries == {None, "flour"}


def test_places_of_all_layouts(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["google"], tmp_path / "export.zip"))
    visits = records_of(items, "location_visits")
    assert {(visit["place_name"], visit["minutes"]) for visit in visits} == {
        ("Mill", 90),
        ("Cellar", 10),
        (None, 60),
        (None, 20),
    }
    homes = {(v["place_id"], v["latitude"]) for v in visits if v["kind"] == "home"}
    assert homes == {("p2", 45.7), (None, 45.7)}
    often = {(p["kind"], p["place_id"]) for p in records_of(items, "frequent_places")}
    assert often == {("home", "p3"), ("work", "p4")}
    walk, trip = sorted(records_of(items, "location_trips"), key=lambda t: t["started_at"])
    assert (walk["mode"], walk["waypoints"]) == ("walking", ["45.7,9.1"])
    assert (trip["mode"], trip["minutes"], trip["distance_meters"]) == ("in train", 20, 1234.5)
    points = {
        point["observed_at"]: point["latitude"] for point in records_of(items, "location_points")
    }
    assert points == {
        "2022-01-01T00:00:00Z": 45.7,
        "2022-01-01T00:01:00Z": 45.7000001,
        "2022-01-02T10:10:00Z": 45.75,
        "2022-01-02T10:20:00Z": 45.76,
        "2024-05-01T12:03:00Z": 45.8,
        "2024-05-01T13:00:00Z": 45.9,
        "2024-06-01T12:30:00Z": 45.8,
    }


def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["google"], tmp_path / "export.zip"))
    assert sorted(skips_of(items)) == [
        "bad_date",
        "bad_date",
        *["bad_record"] * 6,
        *["duplicate"] * 2,
        *["missing_attachment"] * 2,
        "unknown_record_type",
        "unknown_record_type",
    ]


def test_notes_lists_and_tasks_of_folders_in_any_language(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["google"], tmp_path / "export.zip"))
    note, listed = sorted(records_of(items, "notes"), key=lambda n: n["kind"], reverse=True)
    assert (note["created_at"], note["labels"]) == ("2024-02-29T10:00:00Z", ["Bakery"])
    assert note["links"] == ["Rye <https://example.org/rye>"]
    assert (listed["text"], listed["done_count"]) == ("[x] Flour\n[ ] Salt", 1)
    assert listed["is_trashed"]
    (picture,) = [f for f in records_of(items, "note_files") if "blob_ref" in f]
    assert (picture["filename"], picture["note_id"]) == ("18a.jpg", note["id"])
    whole, part = records_of(items, "tasks")
    assert (whole["due_on"], whole["starts_at"]) == ("2024-03-05", "2024-03-05T07:00:00Z")
    assert part["parent_id"] == whole["id"]
    assert "updated_at" not in part


def test_parts_of_one_takeout_are_read_as_one(tmp_path: Path) -> None:
    files = SPECIMENS["google"]
    pictures = {name: body for name, body in files.items() if name.endswith(".jpg")}
    facts = {name: body for name, body in files.items() if name not in pictures}
    paths = [
        as_zip(part, tmp_path / f"takeout-20240301T100000Z-00{number}.zip")
        for number, part in enumerate((facts, pictures), 1)
    ]
    with open_parts(paths) as export:
        (reading,) = readings(export)
        items: list[tuple[str, SourceItem]] = [("google", item) for item in reading.items()]
    (photo, *_) = [p for p in records_of(items, "photos") if p["people"]]
    assert photo["blob_ref"]["size_bytes"] == len(b"\xff\xd8loaf")


def test_mail_and_contacts_of_the_same_archive_go_to_their_own_sources(tmp_path: Path) -> None:
    files = SPECIMENS["google"] | {"Takeout/Mail/All.mbox": MAIL, "Takeout/All.vcf": CONTACTS}
    items = read_path(as_zip(files, tmp_path / "takeout.zip"))
    assert {key for key, _ in items} == {"google", "mail", "contacts"}


def watched(tmp_path: Path, **facts: object) -> Data:
    usual = {"header": "YouTube", "title": "Watched Bread", "time": "2024-03-01T10:00:00Z"}
    url = {"titleUrl": "https://www.youtube.com/watch?v=1", "products": ["YouTube"]}
    (tmp_path / "watch-history.json").write_bytes(as_json([usual | url | facts]))
    (found,) = records_of(read_path(tmp_path), "youtube_watches")
    return found


def test_an_advertisement_is_told_from_a_video_that_was_chosen(tmp_path: Path) -> None:
    assert watched(tmp_path, details=[{"name": "From Google Ads"}])["details"] == [
        "From Google Ads"
    ]
    assert watched(tmp_path)["details"] == []


def test_a_video_without_a_title_has_its_address_for_one(tmp_path: Path) -> None:
    title = "Watched https://www.youtube.com/watch?v=1"
    assert watched(tmp_path, title=title)["title"] == "https://www.youtube.com/watch?v=1"


def test_the_verb_is_no_part_of_a_title_in_any_of_some_languages(tmp_path: Path) -> None:
    for title in ("Watched Bread", "Bread angesehen", "Vous avez regardé Bread", "Bread bekeken"):
        assert watched(tmp_path, title=title)["title"] == "Bread"


def test_south_and_west_may_be_what_is_left_of_32_bits(tmp_path: Path) -> None:
    point = {"timestamp": "2015-01-01T00:00:00Z", "latitudeE7": 4294967296 - 350000000}
    places = {"locations": [point | {"longitudeE7": 1356700000}]}
    (tmp_path / "Records.json").write_bytes(as_json(places))
    (found,) = records_of(read_path(tmp_path), "location_points")
    assert (found["latitude"], found["longitude"]) == (-35, 135.67)


def test_histories_are_known_behind_other_lists(tmp_path: Path) -> None:
    visit = {"url": "https://example.org/", "time_usec": 1700000000000000, "title": "x"}
    chrome = {"Typed Url": [{"url": "https://a"}], "Browser History": [visit], "Session": []}
    place = {"timelinePath": [{"point": "45.8°, 9.2°", "time": "2024-05-01T12:03:00Z"}]}
    segment = {"startTime": "2024-05-01T12:00:00Z", "endTime": "2024-05-01T14:00:00Z"}
    timeline: Data = {"userLocationProfile": {"persona": {}}, "semanticSegments": [segment | place]}
    (tmp_path / "History.json").write_bytes(as_json(chrome))
    (tmp_path / "Timeline.json").write_bytes(as_json(timeline))
    items = read_path(tmp_path)
    assert [v["visited_at"] for v in records_of(items, "browser_visits")] == [
        "2023-11-14T22:13:20Z"
    ]
    assert len(records_of(items, "location_points")) == 1


def page(tmp_path: Path, style: str, body: str, small: str = "") -> list[Data]:
    cell = '<div class="outer-cell"><p class="mdl-typography--title">{}<br></p>{}{}</div>'
    said = f'<div class="content-cell mdl-typography--body-1">{body}</div>'
    caption = f'<div class="content-cell mdl-typography--caption">{small}</div>'
    head = f"<html><head><title>x</title><style>{style}</style></head><body>"
    text = head + cell.format("YouTube", said, caption) + "</body></html>"
    (tmp_path / "page.html").write_text(text)
    return records_of(read_path(tmp_path))


def test_a_page_is_known_behind_its_long_style_sheet(tmp_path: Path) -> None:
    link = '<a href="https://www.youtube.com/watch?v=1">Bread</a><br>'
    small = (
        "<b>Products:</b><br>&emsp;YouTube<br><b>Details:</b><br>&emsp;From Google Ads<br>"
        '<b>Why is this here?</b><br>&emsp;Because of <a href="https://a">settings</a>.'
    )
    (found,) = page(tmp_path, "a{} " * 9000, f"Watched {link}Mar 2, 2024, 1:05:09 PM UTC", small)
    assert (found["title"], found["details"]) == ("Bread", ["From Google Ads"])


def test_what_an_assistant_answered_is_kept(tmp_path: Path) -> None:
    body = (
        "Prompted why is bread flat<br>Mar 2, 2024, 1:05:09 PM UTC<br><p>Too cold at 10:00:00</p>"
    )
    (found,) = page(tmp_path, "", body)
    assert found["title"] == "Prompted why is bread flat"
    assert found["answer"] == "Too cold at 10:00:00"
    listed = {"header": "Gemini Apps", "title": "Prompted x", "time": "2024-03-01T10:00:00Z"}
    (tmp_path / "page.html").unlink()
    answer = {"safeHtmlItem": [{"html": "<p>Too <b>cold</b></p>"}]}
    (tmp_path / "MyActivity.json").write_bytes(as_json([listed | answer]))
    assert [a["answer"] for a in records_of(read_path(tmp_path), "activity")] == ["Too cold"]
