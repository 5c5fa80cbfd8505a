from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import apple_health
from sources.tests.specimens.files import as_folder

Items = dict[str, list[Data]]


@pytest.fixture
def found(tmp_path: Path) -> Items:
    """The records of the specimen by their stream."""
    items = read_path(as_folder(apple_health.FILES, tmp_path))
    streams = ("measurements", "sleep", "workouts", "activity_days", "route_points")
    return {stream: records_of(items, stream) for stream in streams}


def test_measurements_keep_their_value_unit_and_device(found: Items) -> None:
    first = found["measurements"][0]
    assert (first["kind"], first["value"], first["unit"]) == ("heart_rate", 61, "count/min")
    assert (first["started_at"], first["device"]) == ("2024-03-04T07:00:00Z", "Ada’s Watch")
    mass = next(each for each in found["measurements"] if each["kind"] == "body_mass")
    assert mass["value"] == 70.5


def test_what_was_measured_together_names_its_parts(found: Items) -> None:
    kinds = [each["kind"] for each in found["measurements"]]
    assert kinds.count("blood_pressure_systolic") == kinds.count("blood_pressure") == 1
    pressure = next(e for e in found["measurements"] if e["kind"] == "blood_pressure")
    assert pressure["parts"] == "blood_pressure_systolic 121 mmHg, blood_pressure_diastolic 79 mmHg"


def test_sleep_has_its_stage_and_length(found: Items) -> None:
    [night] = found["sleep"]
    assert (night["stage"], night["minutes"]) == ("asleep_core", 90)


def test_workouts_are_in_one_unit_whichever_version_wrote_them(found: Items) -> None:
    run, yoga = found["workouts"]
    assert (run["minutes"], run["distance_meters"], run["energy_kcal"]) == (31.5, 5100, 320)
    assert (run["heart_rate"], run["route"]) == (141, "route_1.gpx")
    assert (yoga["minutes"], yoga["distance_meters"], yoga["energy_kcal"]) == (30, 1609.344, 100)


def test_days_have_their_rings_and_routes_their_points(found: Items) -> None:
    [day] = found["activity_days"]
    assert (day["id"], day["exercise_minutes"], day["stand_hours"]) == ("2024-03-04", 68, 13)
    first, _ = found["route_points"]
    assert (first["latitude"], first["speed"], first["route"]) == (52.520008, 2.71, "route_1.gpx")


def test_a_broken_entry_costs_itself(tmp_path: Path) -> None:
    items = read_path(as_folder(apple_health.FILES, tmp_path))
    assert sorted(skips_of(items)) == sorted(
        ["bad_date", "bad_record", "bad_record", "bad_record", "duplicate"]
        + ["unknown_record_type"] * 4
    )


def test_an_old_workout_holds_its_route(tmp_path: Path) -> None:
    place = '<Location date="2016-11-14 07:25:44 -0700" latitude="37.7" longitude="-122.4"/>'
    span = 'startDate="2016-11-14 07:25:41 -0700" endDate="2016-11-14 07:30:52 -0700"'
    body = f"<Workout {span}><WorkoutRoute>{place}</WorkoutRoute></Workout>"
    (tmp_path / "export.xml").write_text(f"<HealthData>{body}</HealthData>")
    [point] = records_of(read_path(tmp_path), "route_points")
    assert (point["latitude"], point["recorded_at"]) == (37.7, "2016-11-14T14:25:44Z")


def test_entities_of_a_file_are_never_resolved(tmp_path: Path) -> None:
    head = '<!DOCTYPE HealthData [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
    span = 'startDate="2024-03-04 08:00:00 +0000"'
    body = f'<Record type="HKQuantityTypeIdentifierX" sourceName="&b;" value="1" {span}/>'
    (tmp_path / "export.xml").write_text(f"{head}<HealthData>{body}</HealthData>")
    [record] = records_of(read_path(tmp_path))
    assert record["device"] == "&b;"
