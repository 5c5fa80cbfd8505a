"""Workouts of FIT."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data, SourceItem
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.fit import (
    BYTE,
    JULY,
    LONG,
    POINT,
    SETTINGS,
    SHORT,
    SWIM,
    TIME,
    fit_file,
    fit_kind,
    fit_message,
    fit_point,
    fit_session,
)


def read(content: bytes, tmp_path: Path, name: str = "a.fit") -> list[tuple[str, SourceItem]]:
    (tmp_path / name).write_bytes(content)
    return read_path(tmp_path / name)


def workouts(content: bytes, tmp_path: Path) -> list[Data]:
    return records_of(read(content, tmp_path), "workouts")


def test_a_session_is_a_workout_in_the_units_of_its_fields(tmp_path: Path) -> None:
    (swim,) = workouts(SWIM, tmp_path)
    assert (swim["kind"], swim["device"], swim["name"]) == ("swimming", "Polar", "a")
    assert (swim["started_at"], swim["ended_at"]) == (
        "2024-07-05T08:00:00Z",
        "2024-07-05T08:20:00Z",
    )
    assert (swim["minutes"], swim["distance_meters"]) == (20, 800)
    assert (swim["energy_kcal"], swim["heart_rate"], swim["point_count"]) == (200, 125, 2)


def test_points_have_degrees_meters_and_no_heart_rate_that_was_not_measured(
    tmp_path: Path,
) -> None:
    first, second = records_of(read(SWIM, tmp_path), "route_points")
    assert (first["latitude"], first["longitude"], first["altitude_meters"]) == (47, 8, 400)
    assert (first["heart_rate"], second["heart_rate"]) == (120, None)
    assert second["recorded_at"] == "2024-07-05T08:01:00Z"


def test_points_of_a_triathlon_are_those_of_the_session_they_lie_in(tmp_path: Path) -> None:
    points = [fit_point(at, 47, 8 + at / 1000, 100) for at in (0, 50, 100, 150)]
    sessions = [fit_session(0, 5, 100, 10), fit_session(100, 2, 100, 20)]
    items = read(fit_file([fit_kind(4), *points, *sessions]), tmp_path)
    swim, ride = records_of(items, "workouts")
    held = [point["workout_id"] for point in records_of(items, "route_points")]
    assert held == [swim["id"], swim["id"], ride["id"], ride["id"]]


def test_a_file_that_was_cut_before_its_session_keeps_the_points(tmp_path: Path) -> None:
    whole = fit_file([fit_kind(4), fit_point(0, 47, 8, 100), fit_point(120, 47.01, 8, 110)], 900)
    items = read(whole[:-2], tmp_path)
    (walk,) = records_of(items, "workouts")
    assert (walk["minutes"], walk["heart_rate"]) == (2, 105)
    assert walk["distance_meters"] == pytest.approx(1112, abs=2)
    assert len(records_of(items, "route_points")) == 2
    assert skips_of(items) == ["truncated"]


def test_a_file_that_was_never_closed_is_read_to_its_end(tmp_path: Path) -> None:
    items = read(fit_file([fit_kind(4), fit_point(0, 47, 8, 100)], 0)[:-2], tmp_path)
    assert len(records_of(items, "route_points")) == 1


def test_settings_and_what_is_no_fit_behind_a_file_are_named(tmp_path: Path) -> None:
    items = read(SWIM + SETTINGS + b"something else", tmp_path)
    assert len(records_of(items, "workouts")) == 1
    assert skips_of(items) == ["unknown_record_type", "bad_record"]


def test_compressed_times_count_on_from_the_last_one(tmp_path: Path) -> None:
    place = (0, (0x85, "i"), 0), (1, (0x85, "i"), 0)
    points = [
        fit_message(POINT, *place, (TIME, LONG, JULY + 20), local=0),
        fit_message(POINT, *place, local=1),
        *(
            bytes((0x80 | 1 << 5 | (JULY + at) & 0x1F,)) + struct.pack("<ii", 0, 0)
            for at in (30, 45)
        ),
    ]
    found = records_of(read(fit_file([fit_kind(4), *points]), tmp_path), "route_points")
    times = [str(point["recorded_at"])[14:19] for point in found if "recorded_at" in point]
    assert times == ["00:20", "00:30", "00:45"]


def test_a_course_is_a_route_whose_times_are_planned(tmp_path: Path) -> None:
    items = read(fit_file([fit_kind(6), fit_point(0, 47, 8, 0), fit_point(9, 48, 8, 0)]), tmp_path)
    (route,) = records_of(items, "routes")
    assert (route["latitude"], route["point_count"]) == (47, 2)
    assert not records_of(items, "workouts")


def test_numbers_that_count_from_when_the_device_was_on_are_no_times(tmp_path: Path) -> None:
    indoors = fit_message(POINT, (TIME, LONG, 16_441_241), (3, BYTE, 100))
    assert skips_of(read(fit_file([fit_kind(4), indoors]), tmp_path)) == ["bad_date"]


def test_values_that_stand_for_nothing_are_none(tmp_path: Path) -> None:
    unsaid = (11, SHORT, 0xFFFF), (16, BYTE, 0xFF)
    content = fit_file([fit_kind(4), fit_session(0, 254, 60, 0, *unsaid)])
    (rest,) = workouts(content, tmp_path)
    assert (rest["energy_kcal"], rest["heart_rate"], rest["kind"]) == (None, None, None)
