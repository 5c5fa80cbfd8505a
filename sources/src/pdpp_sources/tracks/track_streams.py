"""The streams of tracks, whatever the format they come in."""

from __future__ import annotations

from pdpp_kernel.source_item import Data, SourceRecord
from pdpp_sources.common.declaration import (
    StreamForm,
    ending,
    integer,
    key,
    moment,
    number,
    place,
    reference,
    sensitive,
    text,
    word,
)
from pdpp_sources.common.unit_fields import in_unit, total
from pdpp_sources.tracks.track_points import TrackPoint

WORKOUTS = StreamForm(
    "workouts",
    "Your workouts and recorded routes",
    "Kind, time, length, distance and energy of each.",
    [
        key(),
        moment("started_at", "When it began, in UTC", event=True),
        ending(moment("ended_at", "When it ended, in UTC")),
        word("kind", "running, cycling …", searched=True),
        text("name", "Its name", title=True),
        text("description", "What was noted on it"),
        total("minutes", "How long it was, breaks among them", "min"),
        total("distance_meters", "How far it went", "m"),
        total("energy_kcal", "Energy burned", "kcal"),
        sensitive(number("heart_rate", "Mean of the heart rate, in beats a minute")),
        integer("point_count", "How many points were recorded", summed=True),
        word("device", "The device or app that recorded it"),
    ],
    time_field="started_at",
    children={"points": ("route_points", "workout_id")},
)
POINTS = StreamForm(
    "route_points",
    "Where you were during workouts",
    "Each recorded point: its place, height, time and heart rate.",
    [
        key(),
        reference("workout_id", "The workout", required=True),
        moment("recorded_at", "When, in UTC", event=True),
        *place(),
        number("altitude_meters", "Height above the sea"),
        sensitive(number("heart_rate", "Beats a minute")),
    ],
    time_field="recorded_at",
    parents={"workout": ("workouts", "workout_id")},
)
ROUTES = StreamForm(
    "routes",
    "Routes you planned or kept",
    "Name and length of each route and line that bears no times.",
    [
        key(),
        text("name", "Its name", title=True),
        text("description", "What was noted on it"),
        in_unit(number("distance_meters", "How long it is", summed=True), unit="m"),
        integer("point_count", "How many points it has", summed=True),
        *place(of="of its beginning"),
    ],
)
PLACES = StreamForm(
    "places",
    "Places you marked",
    "Name, description and position of each.",
    [
        key(),
        text("name", "Its name", title=True),
        text("description", "What was noted on it"),
        word("kind", "Its kind, or the sign that it is shown with"),
        moment("marked_at", "When it was marked, in UTC", event=True),
        *place(),
        number("altitude_meters", "Height above the sea"),
    ],
    time_field="marked_at",
)


def point_record(workout: str, number: int, point: TrackPoint, position: int) -> SourceRecord:
    """The record of the point of that number in a workout."""
    data: Data = {
        "id": f"{workout}.{number}",
        "workout_id": workout,
        "latitude": point.latitude,
        "longitude": point.longitude,
        "altitude_meters": point.altitude,
        "heart_rate": point.heart_rate,
    }
    if point.time is not None:
        data["recorded_at"] = point.time
    return SourceRecord("route_points", data, position)
