"""Tracks, workouts and places of GPX, TCX and KML."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_kernel.source_item import SourceItem
from pdpp_sources.tracks.tracks_source import is_track
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.tracks import FILES


def test_workouts_of_each_format(tmp_path: Path) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    assert {key for key, _ in items} == {"tracks"}
    run, ride, cycled, swim = sorted(
        records_of(items, "workouts"), key=lambda w: str(w["started_at"])
    )
    assert (run["kind"], run["name"], run["minutes"]) == ("running", "Morning run", 11)
    assert (run["started_at"], run["heart_rate"]) == ("2024-03-05T06:00:00Z", 120)
    assert run["distance_meters"] == pytest.approx(222.4, abs=0.2)  # no way between two segments
    assert (ride["kind"], ride["minutes"], ride["distance_meters"]) == ("cycling", 15, 4500)
    assert (ride["energy_kcal"], ride["heart_rate"]) == (120, 131)
    assert (cycled["name"], cycled["minutes"]) == ("Ride", 30)
    assert cycled["distance_meters"] == pytest.approx(7526, abs=10)
    assert (swim["kind"], swim["minutes"], swim["distance_meters"]) == ("swimming", 20, 800)
    assert sorted(skips_of(items)) == [*["bad_record"] * 2, *["unknown_record_type"] * 2]


def test_points_have_their_time_and_heart_rate(tmp_path: Path) -> None:
    points = records_of(read_path(as_folder(FILES, tmp_path)), "route_points")
    first = next(p for p in points if p["altitude_meters"] == 400.5)
    assert (first["latitude"], first["altitude_meters"]) == (47, 400.5)
    assert first["recorded_at"] == "2024-03-05T06:00:00Z"
    assert len(points) == 4 + 1 + 2 + 2


def test_what_bears_no_time_is_a_route_or_a_place(tmp_path: Path) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    assert [r["name"] for r in records_of(items, "routes")] == ["Round the lake", "Walk"]
    spring, bakery = sorted(records_of(items, "places"), key=lambda p: str(p["name"]))[::-1]
    assert (spring["name"], spring["description"]) == ("Spring", "Water & shade")
    assert (bakery["latitude"], bakery["longitude"]) == (47.4, 8.5)
    assert bakery["description"] == "Best bread"


@pytest.mark.parametrize("head", [b"<gpx>", b"   <?xml?><!--x--><kml xmlns='a'>"])
def test_a_track_is_known_by_its_root(head: bytes) -> None:
    assert is_track(head)
    assert not is_track(head.replace(b"gpx", b"g").replace(b"kml", b"k"))


def tracks_of(tmp_path: Path, name: str, text: str) -> list[tuple[str, SourceItem]]:
    (tmp_path / name).write_text(text)
    return read_path(tmp_path / name)


def test_what_a_point_says_of_itself_is_not_said_of_the_track(tmp_path: Path) -> None:
    point = "<trkpt lat='1' lon='1'><time>2024-03-05T06:00:00Z</time>{}</trkpt>"
    points = point.format("<name>Bench</name><src>network</src><type>stop</type>")
    gpx = f"<gpx><trk><cmt>By the lake</cmt><trkseg>{points}</trkseg></trk></gpx>"
    (walk,) = records_of(tracks_of(tmp_path, "walk.gpx", gpx), "workouts")
    assert (walk["name"], walk["device"], walk["kind"]) == ("walk", None, None)
    assert walk["description"] == "By the lake"


def test_parts_beside_the_points_of_a_workout_change_nothing_of_it(tmp_path: Path) -> None:
    point = (
        "<Trackpoint><Time>2024-03-05T06:00:00Z</Time><Position><LatitudeDegrees>1"
        "</LatitudeDegrees><LongitudeDegrees>1</LongitudeDegrees></Position></Trackpoint>"
    )
    lap = (
        "<Lap><TotalTimeSeconds>600</TotalTimeSeconds><DistanceMeters>3000</DistanceMeters>"
        f"<Track>{point}</Track><Notes>Rain</Notes></Lap>"
    )
    plan = (
        "<Training><QuickWorkoutResults><TotalTimeSeconds>900</TotalTimeSeconds>"
        "<DistanceMeters>5000</DistanceMeters></QuickWorkoutResults>"
        "<Plan><Name>Week 3</Name></Plan></Training>"
    )
    activity = f"<Activity Sport='Running'>{lap}{plan}<Creator><Name>Watch</Name></Creator>"
    tcx = f"<TrainingCenterDatabase>{activity}</Activity></TrainingCenterDatabase>"
    (run,) = records_of(tracks_of(tmp_path, "run.tcx", tcx), "workouts")
    assert (run["minutes"], run["distance_meters"]) == (10, 3000)
    assert (run["device"], run["description"]) == ("Watch", "Rain")


def test_a_course_is_a_route_whose_turns_are_none_of_its_points(tmp_path: Path) -> None:
    place = (
        "<Time>2024-03-05T0{0}:00:00Z</Time><Position><LatitudeDegrees>{0}</LatitudeDegrees>"
        "<LongitudeDegrees>1</LongitudeDegrees></Position>"
    )
    course = (
        f"<Course><Name>Loop</Name><Track><Trackpoint>{place.format(1)}</Trackpoint></Track>"
        f"<CoursePoint><Name>Left</Name>{place.format(9)}</CoursePoint></Course>"
    )
    tcx = f"<TrainingCenterDatabase>{course}</TrainingCenterDatabase>"
    items = tracks_of(tmp_path, "a.tcx", tcx)
    (route,) = records_of(items, "routes")
    assert (route["name"], route["latitude"], route["point_count"]) == ("Loop", 1, 1)
    assert not records_of(items, "workouts")


def test_marks_and_lines_of_kml_keep_their_words_and_times(tmp_path: Path) -> None:
    line = "<LineString><coordinates>1,2 {},2</coordinates></LineString>"
    about = "<description>By bus</description>"
    marks = (
        "<Placemark><name>Stop</name><TimeStamp><when>2024-03-05T06:00:00Z</when></TimeStamp>"
        "<Point><coordinates>1,2,3</coordinates></Point></Placemark>",
        *(f"<Placemark>{about}{line.format(end)}</Placemark>" for end in (2, 3)),
    )
    items = tracks_of(tmp_path, "a.kml", f"<kml>{''.join(marks)}</kml>")
    assert [p["marked_at"] for p in records_of(items, "places")] == ["2024-03-05T06:00:00Z"]
    assert [r["description"] for r in records_of(items, "routes")] == ["By bus", "By bus"]


def test_tracks_of_one_placemark_have_their_own_times_and_no_way_between(tmp_path: Path) -> None:
    track = (
        "<gx:Track><when>2024-03-05T0{0}:00:00Z</when><when>2024-03-05T0{0}:30:00Z</when>{1}"
        "</gx:Track>"
    )
    first = track.format(6, "<gx:coord>1 1 0</gx:coord>")  # of its second point the place is lost
    second = track.format(8, "<gx:coord>9 9 0</gx:coord><gx:coord>9 9 0</gx:coord>")
    mark = f"<Placemark><gx:MultiTrack>{first}{second}</gx:MultiTrack></Placemark>"
    items = tracks_of(tmp_path, "a.kml", f"<kml>{mark}</kml>")
    times = [str(p["recorded_at"])[11:16] for p in records_of(items, "route_points")]
    assert times == ["06:00", "08:00", "08:30"]
    assert records_of(items, "workouts")[0]["distance_meters"] == 0


@pytest.mark.parametrize(
    ("seconds", "ended_at"),
    [("600", "2024-03-05T06:10:00Z"), ("9e99", "2024-03-05T06:00:00Z")],
)
def test_a_workout_without_points_ends_when_its_laps_do(
    seconds: str, ended_at: str, tmp_path: Path
) -> None:
    lap = f"<Lap><TotalTimeSeconds>{seconds}</TotalTimeSeconds></Lap>"
    activity = f"<Activity Sport='Other'><Id>2024-03-05T06:00:00Z</Id>{lap}</Activity>"
    tcx = f"<TrainingCenterDatabase>{activity}</TrainingCenterDatabase>"
    (indoors,) = records_of(tracks_of(tmp_path, "a.tcx", tcx), "workouts")
    assert indoors["ended_at"] == ended_at


def test_parts_of_a_second_are_in_the_order_of_time(tmp_path: Path) -> None:
    times = ("2024-03-05T06:00:00Z", "2024-03-05T06:00:00.600Z")
    points = "".join(f"<trkpt lat='1' lon='1'><time>{time}</time></trkpt>" for time in times)
    gpx = f"<gpx><trk><trkseg>{points}</trkseg></trk></gpx>"
    (walk,) = records_of(tracks_of(tmp_path, "a.gpx", gpx), "workouts")
    assert (walk["started_at"], walk["ended_at"], walk["minutes"]) == (*times, 0.01)
