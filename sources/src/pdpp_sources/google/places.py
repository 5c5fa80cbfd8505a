"""Browser visits and the phone's places, in every layout Google has used.

Records.json counts degrees in ten-millionths; the timeline kept on the phone writes them as text,
"35.05°, 135.67°" on Android and "geo:35.05,135.67" on iPhone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import cast

from msgspec.structs import replace

from pdpp_kernel.source_item import (
    Data,
    Json,
    Skipped,
    SourceItem,
    SourceRecord,
    stable_id,
)
from pdpp_sources.common import json_values
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.json_stream import Element
from pdpp_sources.common.text import host_of
from pdpp_sources.common.times import from_epoch, from_iso

PLACE_ARRAYS = ("semanticSegments", "rawSignals", "frequentPlaces")
_DEGREES = re.compile(r"^(?:geo:)?\s*(-?\d{1,3}(?:\.\d+)?)°?\s*,\s*(-?\d{1,3}(?:\.\d+)?)°?$")
_DEGREE = 1e-7
_FARTHEST = 1_800_000_000

Position = tuple[float, float]


def edit_records(element: Element) -> Iterator[SourceItem]:
    """One entry of `Timeline Edits.json`: a point that the phone observed. Raises: BadRecord."""
    signal = json_values.inner(element.value, "rawSignal", "signal", "position")
    if not signal:
        raise BadRecord("unknown_record_type", "the entry is no observation of a position")
    coordinates = _ten_millionths(json_values.inner(signal, "point"))
    if coordinates is None:
        raise BadRecord("bad_record", "the point has no coordinates")
    millimeters = json_values.whole(signal, "accuracyMm")
    accuracy = round(millimeters / 1000) if millimeters is not None else None
    yield _point(_time(signal, "timestamp"), coordinates, accuracy, signal, element.position)


def visit_records(element: Element) -> Iterator[SourceItem]:
    """One visit of Chrome's history. Raises: BadRecord."""
    value = element.value
    microseconds = json_values.whole(value, "time_usec")
    url = json_values.line(value, "url")
    if microseconds is None or url is None:
        raise BadRecord("bad_record", "the entry has no time or no address")
    visited_at = from_epoch(microseconds / 1_000_000)
    data: Data = {
        "id": stable_id("vis", microseconds, url),
        "visited_at": visited_at,
        "title": json_values.line(value, "title"),
        "url": url,
        "host": host_of(url),
        "transition": (json_values.line(value, "page_transition") or "unknown").lower(),
    }
    yield SourceRecord("browser_visits", data, element.position)


def point_records(element: Element) -> Iterator[SourceItem]:
    """One entry of Records.json. Raises: BadRecord."""
    value = element.value
    coordinates = _ten_millionths(value)
    if coordinates is None:
        raise BadRecord("bad_record", "the point has no coordinates")
    yield _point(
        _time(value), coordinates, json_values.whole(value, "accuracy"), value, element.position
    )


def place_records(element: Element) -> Iterator[SourceItem]:
    """One object of the Semantic Location History, with its points. Raises: BadRecord."""
    visit = json_values.inner(element.value, "placeVisit")
    activity = json_values.inner(element.value, "activitySegment")
    span = json_values.inner(visit or activity, "duration")
    points = json_values.objects(
        json_values.inner(visit or activity, "simplifiedRawPath"), "points"
    )
    for point in points:
        coordinates = _ten_millionths(point)
        accuracy = json_values.whole(point, "accuracyMeters")
        yield from _point_or_reason(point, None, coordinates, accuracy, element.position)
    for child in json_values.objects(visit, "childVisits"):
        yield from place_records(replace(element, value={"placeVisit": child}))
    if visit:
        location = json_values.inner(visit, "location")
        named = _ten_millionths(location)
        centre = None if named else _ten_millionths(visit, "center")
        yield _visit(
            (_time(span, "start"), _time(span, "end")),
            named,
            ({"latitude": centre[0], "longitude": centre[1]} if centre else {})
            | {
                "place_name": json_values.line(location, "name"),
                "address": json_values.text(location, "address"),
                "place_id": json_values.line(location, "placeId"),
                "kind": _kind(location, "semanticType"),
            },
            element.position,
        )
    elif activity:
        yield _trip(
            (_time(span, "start"), _time(span, "end")),
            _ten_millionths(json_values.inner(activity, "startLocation")),
            _ten_millionths(json_values.inner(activity, "endLocation")),
            json_values.line(activity, "activityType"),
            json_values.decimal(activity, "distance"),
            element.position,
            _waypoints(activity),
        )
    else:
        raise BadRecord("unknown_record_type", "the entry is neither a visit nor a movement")


def segment_records(element: Element) -> Iterator[SourceItem]:
    """One segment or signal of the timeline that the phone keeps. Raises: BadRecord."""
    value = element.value
    if element.key == "rawSignals":
        yield _signal(value, element.position)
        return
    if element.key == "frequentPlaces":
        yield _frequent_place(value, element.position)
        return
    span = (_time(value, "startTime"), _time(value, "endTime"))
    visit, activity = json_values.inner(value, "visit"), json_values.inner(value, "activity")
    if visit:
        best = json_values.inner(visit, "topCandidate")
        facts = {
            "place_name": None,
            "address": None,
            "place_id": json_values.line(best, "placeId", "placeID"),
            "kind": _kind(best, "semanticType"),
        }
        yield _visit(span, _degrees(best.get("placeLocation")), facts, element.position)
    elif activity:
        best = json_values.inner(activity, "topCandidate")
        length = json_values.decimal(activity, "distanceMeters") or _number(
            activity, "distanceMeters"
        )
        ends = (_degrees(activity.get("start")), _degrees(activity.get("end")))
        yield _trip(span, *ends, json_values.line(best, "type"), length, element.position)
    elif "timelinePath" in value:
        yield from _path(value, span[0], element.position)
    else:
        raise BadRecord("unknown_record_type", "the entry is not a visit, a movement or a path")


def _path(value: Data, started_at: str, position: int) -> Iterator[SourceItem]:
    for step in json_values.objects(value, "timelinePath"):
        minutes = _number(step, "durationMinutesOffsetFromStartTime")
        begun = datetime.fromisoformat(started_at).timestamp() + 60 * (minutes or 0)
        yield from _point_or_reason(step, begun, _degrees(step.get("point")), None, position)


def _point_or_reason(
    value: Data,
    begun: float | None,
    coordinates: Position | None,
    accuracy: int | None,
    position: int,
) -> Iterator[SourceItem]:
    """One point of a way: a fault of it costs it alone. `begun` dates it where it says no time."""
    try:
        if coordinates is None:
            raise BadRecord("bad_record", "a point of the path has no coordinates")
        says_time = begun is None or json_values.line(value, "time")
        observed_at = _time(value, "time") if says_time else from_epoch(begun or 0)
        yield _point(observed_at, coordinates, accuracy, value, position)
    except BadRecord as bad:
        yield Skipped("a way", bad.code, bad.reason, position)


def _frequent_place(value: Data, position: int) -> SourceItem:
    """A place that the phone knows as home, work or often visited. Raises: BadRecord."""
    coordinates = _degrees(value.get("placeLocation"))
    place_id = json_values.line(value, "placeId", "placeID")
    if coordinates is None and place_id is None:
        raise BadRecord("bad_record", "the place has neither coordinates nor an id")
    data: Data = {
        "id": stable_id("frq", place_id, repr(coordinates)),
        "kind": _kind(value, "label"),
        "place_id": place_id,
        "latitude": coordinates[0] if coordinates else None,
        "longitude": coordinates[1] if coordinates else None,
    }
    return SourceRecord("frequent_places", data, position)


def _kind(value: Data, name: str) -> str | None:
    """What a place is, said alike of all layouts: TYPE_HOME, HOME and Home are home."""
    kind = json_values.line(value, name)
    return kind.removeprefix("TYPE_").lower().replace("_", " ") if kind else None


def _waypoints(activity: Data) -> list[str]:
    """The way between two places as Google drew it; its points have no time."""
    drawn = json_values.objects(json_values.inner(activity, "waypointPath"), "waypoints")
    stops = json_values.objects(json_values.inner(activity, "transitPath"), "transitStops")
    points = [_ten_millionths(point) for point in (*drawn, *stops)]
    return [f"{point[0]},{point[1]}" for point in points if point]


def _signal(value: Data, position: int) -> SourceItem:
    fix = json_values.inner(value, "position")
    coordinates = _degrees(fix.get("LatLng") or fix.get("latLng"))
    if coordinates is None:
        raise BadRecord("unknown_record_type", "the entry has no position")
    accuracy = json_values.whole(fix, "accuracyMeters")
    return _point(_time(fix, "timestamp"), coordinates, accuracy, fix, position)


def _point(
    observed_at: str, coordinates: Position, accuracy: int | None, value: Data, position: int
) -> SourceRecord:
    data: Data = {
        "id": stable_id("pnt", observed_at, repr(coordinates)),
        "observed_at": observed_at,
        "latitude": coordinates[0],
        "longitude": coordinates[1],
        "accuracy_meters": accuracy,
        "origin": json_values.line(value, "source"),
    }
    return SourceRecord("location_points", data, position)


def _visit(
    span: tuple[str, str], coordinates: Position | None, facts: Data, position: int
) -> SourceRecord:
    """A visit; a position that its place does not have itself stands among the facts."""
    data: Data = {
        "id": stable_id("plc", *span, facts["place_id"], repr(coordinates)),
        "started_at": span[0],
        "ended_at": span[1],
        "minutes": _minutes(span),
        "latitude": coordinates[0] if coordinates else None,
        "longitude": coordinates[1] if coordinates else None,
    }
    return SourceRecord("location_visits", data | facts, position)


def _trip(
    span: tuple[str, str],
    start: Position | None,
    end: Position | None,
    mode: str | None,
    length: float | None,
    position: int,
    waypoints: list[str] | None = None,
) -> SourceRecord:
    data: Data = {
        "id": stable_id("trp", *span, mode, repr(start), repr(end)),
        "started_at": span[0],
        "ended_at": span[1],
        "minutes": _minutes(span),
        "mode": mode.lower().replace("_", " ") if mode else None,
        "distance_meters": length,
        "start_latitude": start[0] if start else None,
        "start_longitude": start[1] if start else None,
        "end_latitude": end[0] if end else None,
        "end_longitude": end[1] if end else None,
        "waypoints": waypoints or [],
    }
    return SourceRecord("location_trips", data, position)


def _minutes(span: tuple[str, str]) -> int:
    begun, ended = (datetime.fromisoformat(instant) for instant in span)
    return int((ended - begun).total_seconds() // 60)


def _time(value: Data, name: str = "") -> str:
    """A time under any of its spellings: ISO text, or milliseconds as text."""
    for spelled in (name, f"{name}Timestamp" if name else "timestamp", "timestamp"):
        if text := json_values.line(value, spelled):
            return from_iso(text)
    spelled = f"{name}TimestampMs" if name else "timestampMs"
    milliseconds = json_values.whole(value, spelled if spelled in value else "timestampMs")
    if milliseconds is None:
        raise BadRecord("bad_date", "the note has no readable time")
    return from_epoch(milliseconds / 1000)


def _ten_millionths(value: Data, of: str = "") -> Position | None:
    """Coordinates under the names of points, of waypoints, or of something's middle."""
    short = (f"{of}LatE7", f"{of}LngE7") if of else ("latE7", "lngE7")
    latitude, longitude = (
        json_values.whole(value, name if name in value else other)
        for name, other in zip(("latitudeE7", "longitudeE7"), short, strict=True)
    )
    if latitude is None or longitude is None:
        return None
    return _checked(_unwrapped(latitude) * _DEGREE, _unwrapped(longitude) * _DEGREE)


def _unwrapped(ten_millionths: int) -> int:
    """South and west, which some exports write as what is left of 32 bits."""
    wrapped = _FARTHEST < ten_millionths < 2**32
    return ten_millionths - 2**32 if wrapped else ten_millionths


def _degrees(value: Json) -> Position | None:
    """Coordinates as text, alone or in an object."""
    if isinstance(value, dict):
        inside = cast(Data, value).values()
        return next((coordinates for value in inside if (coordinates := _degrees(value))), None)
    match = _DEGREES.match(value) if isinstance(value, str) else None
    return _checked(float(match.group(1)), float(match.group(2))) if match else None


def _checked(latitude: float, longitude: float) -> Position | None:
    fits = abs(latitude) <= 90 and abs(longitude) <= 180
    return (round(latitude, 7), round(longitude, 7)) if fits else None


def _number(value: Data, name: str) -> float | None:
    """A number that may be written as text."""
    text = json_values.line(value, name)
    try:
        number = float(text) if text else json_values.decimal(value, name)
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1e9 else None
