"""The reader of recorded tracks: GPX, TCX, KML and FIT, as watches, phones and maps write them.

Source: the schemas of the three (GPX 1.1, Training Center Database 2, KML 2.2 with Google's tracks)
and files in the tests and trackers of published readers. Times without a zone are UTC, as GPX has
them. A track without any time is a route that nobody went yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import PurePosixPath

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common.declaration import declaration
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.html_text import html_to_text
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import one_line, or_none, printable
from pdpp_sources.common.times import from_iso, rendered
from pdpp_sources.common.xml_elements import XmlElement, cut_elements
from pdpp_sources.tracks.fit_messages import is_fit
from pdpp_sources.tracks.track_points import TrackPoint, TrackSums
from pdpp_sources.tracks.track_streams import PLACES, POINTS, ROUTES, WORKOUTS, point_record

_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>(?:\s|<!--.*?-->|<\?.*?\?>)*)"
    rb"<(?:\w{1,16}:)?(?:gpx|TrainingCenterDatabase|kml)[\s>]",
    re.DOTALL,
)
_WHOLE = re.compile(rb"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_MARKUP = re.compile(r"<[a-z/!][^<>]{0,1000}>", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d{1,12}(?:\.\d{1,20})?(?:[eE][-+]?\d{1,2})?")
_KINDS = {"1": "cycling", "9": "running", "10": "walking", "biking": "cycling", "run": "running"}
_MOST_PLACE_CHARS = 20_000
# What these hold is of the watch, of a plan or of a turn on the way, not of the track.
_APART = ("Training", "Plan", "CoursePoint", "Creator")
_ELEMENTS = ("trk", "rte", "wpt", "Activity", "Course", "Placemark")


class TracksSource:
    """Reads GPX, TCX, KML and FIT."""

    connector_key = "tracks"
    declaration: Data = declaration(
        "tracks",
        "Tracks, workouts and places",
        "Recorded tracks and workouts, routes and marked places in GPX, TCX, KML and FIT.",
        [WORKOUTS, POINTS, ROUTES, PLACES],
    )
    how_to_export = (
        "In the app of your watch or bicycle computer (Garmin Connect, Komoot, OpenTracks …) open "
        "an activity and choose Export Original (FIT), TCX or GPX; of Google My Maps choose Export "
        "to KML. All of Garmin: garmin.com/account/datamanagement/exportdata, with the zips inside."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim the XML by its outermost element, FIT by its header."""
        mine = matching(export, _is_mine, ".gpx", ".tcx", ".kml", ".fit")
        return claim(mine, "it holds tracks or places")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each workout before its points. What two files hold alike is told once."""
        return beginning_at(start, without_repeats(each_member(export, _read_member)))


def is_track(head: bytes) -> bool:
    """Whether a file begins as GPX, TCX or KML."""
    return _ROOT.match(head) is not None


def _is_mine(head: bytes) -> bool:
    return is_track(head) or is_fit(head)


class _ElementDetails(msgspec.Struct):
    """What an element says beside its points: texts by their names, and sums of its laps.

    Shapes: `within` is the part that is read now, of those that are apart; it leads the names.
    """

    within: str = ""
    texts: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    distance: float = 0.0
    energy: float = 0.0
    seconds: float = 0.0

    def first_text(self, *names: str) -> str | None:
        """The text of the first of these names that says something."""
        return next((self.texts[name] for name in names if name in self.texts), None)

    @property
    def description(self) -> str | None:
        """What was noted on the whole."""
        return self.first_text("desc", "description", "Notes", "cmt")


def _read_member(member: ExportMember) -> Iterator[SourceItem]:
    if is_fit(member.head(16)):
        from pdpp_sources.tracks.fit_workouts import read_fit  # noqa: PLC0415 (most tracks are XML)

        yield from read_fit(member)
        return
    for element in cut_elements(member, *_ELEMENTS):
        if isinstance(element, Skipped):
            yield element
            continue
        element = replace(element, content=_WHOLE.sub(_escaped, element.content))
        build = _place if element.name == "wpt" else _track
        workouts: list[str] = []
        for item in one_record(element.where, element.position, partial(build, element, member)):
            if isinstance(item, SourceRecord) and item.stream == "workouts":
                workouts.append(str(item.data["id"]))
            yield item
        for workout in workouts:
            yield from _point_records(element, workout)


def _escaped(match: re.Match[bytes]) -> bytes:
    """Text that stands as it is, such as HTML, written as other text."""
    return match[1].replace(b"&", b"&amp;").replace(b"<", b"&lt;")


def _track(element: XmlElement, member: ExportMember) -> Iterator[SourceItem]:
    """A workout, a route without times, or the place of a placemark. Raises: BadRecord."""
    details, sums = _ElementDetails(), TrackSums()
    for point in _points(element, details):
        sums.add(point)
    if element.name == "Placemark" and sums.count <= 1 and sums.started_at is None:
        yield from _placemark(element, details, sums)
        return
    if not sums.count and details.seconds == 0:
        raise BadRecord("bad_record", message("the entry has no point"))
    name = details.first_text("name", "Name")
    about: Data = {
        "name": name or or_none(one_line(PurePosixPath(member.name).stem, 200)),
        "description": details.description,
        "distance_meters": round(details.distance or sums.meters, 1),
        "point_count": sums.count,
    }
    started_at = sums.started_at or _time(details.first_text("Id") or "")
    first = sums.first
    if started_at is None or element.name == "Course":  # which is planned: so are its times
        route_key = stable_id("route", name or "", *first.place, *sums.last.place, sums.count)
        position: Data = {"latitude": first.latitude, "longitude": first.longitude}
        yield SourceRecord("routes", {"id": route_key} | about | position, element.position)
        return
    kind = (element.attributes.get("Sport") or details.first_text("type") or "").strip().lower()
    ended_at = sums.ended_at or _later(started_at, details.seconds)
    seconds = details.seconds or _seconds(started_at, ended_at)
    workout: Data = {
        "id": stable_id("workout", started_at, kind, *first.place),
        "started_at": started_at,
        "ended_at": ended_at,
        "kind": or_none(one_line(_KINDS.get(kind, kind), 100)),
        "minutes": round(seconds / 60, 2),
        "energy_kcal": details.energy or None,
        "heart_rate": sums.mean_heart_rate,
        "device": details.first_text("src", "Creator/Name"),
    }
    yield SourceRecord("workouts", workout | about, element.position)


def _placemark(
    element: XmlElement, details: _ElementDetails, sums: TrackSums
) -> Iterator[SourceItem]:
    if not sums.count:
        raise BadRecord("unknown_record_type", message("the placemark has no point and no line"))
    marked_at = _time(details.first_text("when") or "")
    yield _place_record(element, details, replace(sums.first, time=marked_at))


def _place(element: XmlElement, _member: ExportMember) -> Iterator[SourceItem]:
    """A waypoint. Raises: BadRecord."""
    details = _ElementDetails()
    point = _at(element.attributes)
    for found, _, words in element.inner():
        name = found.rpartition(":")[2]
        _note_of_point(name, words, point)
        _note(name, words, details)
    if not point.is_placed:
        raise BadRecord("bad_record", message("the place has no position"))
    yield _place_record(element, details, point)


def _place_record(element: XmlElement, details: _ElementDetails, point: TrackPoint) -> SourceRecord:
    name = details.first_text("name")
    data: Data = {
        "id": stable_id("place", name or "", *point.place),
        "name": name,
        "description": details.description,
        "kind": details.first_text("type", "sym"),
        "latitude": point.latitude,
        "longitude": point.longitude,
        "altitude_meters": point.altitude,
    }
    marked_at = point.time
    return SourceRecord(
        "places", data | ({"marked_at": marked_at} if marked_at else {}), element.position
    )


def _point_records(element: XmlElement, workout: str) -> Iterator[SourceRecord]:
    """The points of a workout one after the other, however many there are."""
    for number, point in enumerate(_points(element, _ElementDetails()), 1):
        if point.is_placed:
            yield point_record(workout, number, point, element.position)


def _points(element: XmlElement, details: _ElementDetails) -> Iterator[TrackPoint]:
    """The points of a track in their order; what is said beside them is noted."""
    point: TrackPoint | None = None
    whens: list[str] = []
    index = 0
    is_new = True
    for found, attributes, words in element.inner():
        name = found.rpartition(":")[2]
        if name in ("trkseg", "Lap", "LineString", "Track", *_APART):
            if point is not None:
                yield point
            point, is_new = None, True
            whens, index = [], 0
            details.within = f"{name}/" if name in _APART else ""
        elif name in ("trkpt", "rtept", "Trackpoint"):
            if point is not None:
                yield point
            point = _at(attributes)
            point.is_first, is_new = is_new, False
        elif name == "when":
            whens.append(words)
            details.texts.setdefault(name, words)
        elif name == "coord":
            when = whens[index] if index < len(whens) else ""
            yield _of_words(words.split(), when, is_first=index == 0)
            index += 1
        elif name == "coordinates":
            for count, triple in enumerate(words.split()):
                yield _of_words(triple.split(","), "", is_first=count == 0)
        elif point is not None and name != "Notes":  # they stand behind the last point of a lap
            _note_of_point(name, words, point)
        else:
            _note(name, words, details)
    if point is not None:
        yield point


def _note_of_point(name: str, words: str, point: TrackPoint) -> None:
    """Keep what an element inside a point says of it."""
    if name in ("ele", "AltitudeMeters"):
        point.altitude = _number(words)
    elif name in ("time", "Time"):
        point.time = _time(words)
    elif name == "LatitudeDegrees":
        point.latitude = _number(words)
    elif name == "LongitudeDegrees":
        point.longitude = _number(words)
    elif name in ("hr", "heartrate") or (name == "Value" and point.heart_rate is None):
        point.heart_rate = _number(words)  # `Value` is of HeartRateBpm, the only one in a point


def _note(name: str, words: str, details: _ElementDetails) -> None:
    """Keep what an element outside of any point says of the whole."""
    own_name = details.within + name
    if own_name == "TotalTimeSeconds":
        details.seconds += _number(words) or 0
    elif own_name == "DistanceMeters":
        details.distance += _number(words) or 0
    elif own_name == "Calories":
        details.energy += _number(words) or 0
    elif words and own_name not in details.texts and len(details.texts) < 20:
        text = html_to_text(words) if _MARKUP.search(words) else words
        text = printable(text).strip()
        long = name in ("desc", "description", "cmt", "Notes")
        details.texts[own_name] = text[:_MOST_PLACE_CHARS] if long else one_line(text, 500)


def _at(attributes: dict[str, str]) -> TrackPoint:
    return TrackPoint(_number(attributes.get("lat", "")), _number(attributes.get("lon", "")))


def _of_words(parts: list[str], when: str, *, is_first: bool) -> TrackPoint:
    """A point of KML: longitude before latitude."""
    numbers = [_number(part) for part in parts[:3]]
    longitude, latitude, altitude = (numbers + [None] * 3)[:3]
    return TrackPoint(latitude, longitude, altitude, time=_time(when), is_first=is_first)


def _number(words: str) -> float | None:
    words = words.strip()
    return float(words) if _NUMBER.fullmatch(words) else None


def _time(words: str) -> str | None:
    try:
        return from_iso(words, UTC) if words.strip() else None
    except BadRecord:
        return None


def _later(begin: str, seconds: float) -> str:
    try:
        return rendered(datetime.fromisoformat(begin) + timedelta(seconds=seconds))
    except (OverflowError, BadRecord):
        return begin


def _seconds(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()
