"""Workouts, their points and courses of FIT.

Source: FIT's profile, for the numbers of messages and fields, their units and the words of sports.
A session is a workout; where a file ends before it says one, its points are. Files of other things
(settings, plans, weights, what a watch measures all day) are named.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import PurePosixPath

import msgspec

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.source import one_record
from pdpp_sources.common.text import one_line, or_none, printable
from pdpp_sources.tracks.fit_messages import (
    TIMESTAMP,
    FitCut,
    FitMessage,
    Value,
    fit_files,
    fit_instant,
    fit_messages,
)
from pdpp_sources.tracks.track_points import TrackPoint, TrackSums
from pdpp_sources.tracks.track_streams import point_record

LARGEST_FIT_BYTES = 16 * 1024 * 1024  # a day of a point a second takes some 5 MB
_MOST_FILES = 1000
_FILE_ID, _SESSION, _POINT, _DEVICE, _COURSE = 0, 18, 20, 23, 31
_ABOUT = {
    _FILE_ID: frozenset({0, 1, 8}),
    _SESSION: frozenset({2, 5, 6, 7, 8, 9, 11, 16, 110, TIMESTAMP}),
    _DEVICE: frozenset({0, 27}),
    _COURSE: frozenset({5}),
}
_POINTS = {_POINT: frozenset({0, 1, 2, 3, 78, TIMESTAMP})}
_ACTIVITY_FILE, _COURSE_FILE = 4, 6
_DEGREES = 180 / 2**31
_MOST_SESSIONS = 1000
_MAKERS = {
    1: "Garmin",
    15: "Dynastream",
    23: "Suunto",
    32: "Wahoo",
    37: "Magellan",
    40: "Concept2",
    59: "Mio",
    68: "CatEye",
    69: "Stages",
    70: "Sigma",
    86: "Elite",
    89: "Tacx",
    115: "iGPSPORT",
    123: "Polar",
    258: "Lezyne",
    260: "Zwift",
    265: "Strava",
    267: "Bryton",
    281: "TrainerRoad",
    289: "Hammerhead",
    294: "COROS",
    310: "Decathlon",
    331: "MyWhoosh",
}
# The words of sports in the order of their numbers; of a dash there is none.
_SPORT_WORDS = """
- running cycling transition fitness_equipment swimming basketball soccer tennis american_football
training walking cross_country_skiing alpine_skiing snowboarding rowing mountaineering hiking
multisport paddling flying e_biking motorcycling boating driving golf hang_gliding horseback_riding
hunting fishing inline_skating rock_climbing sailing ice_skating sky_diving snowshoeing
snowmobiling stand_up_paddleboarding surfing wakeboarding water_skiing kayaking rafting windsurfing
kitesurfing tactical jumpmaster boxing floor_climbing baseball - - - diving - - - - - - - - hiit -
racket wheelchair_push_walk wheelchair_push_run meditation - disc_golf - cricket rugby hockey
lacrosse volleyball water_tubing wakesurfing - - mixed_martial_arts - snorkeling dance jump_rope
"""
_SPORTS = dict(enumerate(_SPORT_WORDS.split()))
# What says more than its sport, which is then none, `training` or `fitness_equipment`.
_SUB_SPORTS = {
    1: "treadmill",
    14: "indoor rowing",
    15: "elliptical",
    16: "stair climbing",
    19: "flexibility training",
    20: "strength training",
    26: "cardio training",
    43: "yoga",
    44: "pilates",
    62: "breathing",
    70: "hiit",
    84: "pickleball",
    85: "padel",
    94: "squash",
    95: "badminton",
    96: "racquetball",
    97: "table tennis",
}
_VAGUE = (0, 4, 10, 64)


class _Workout(msgspec.Struct):
    """A session with what its points make together, or the points of a file that says none.

    Units: `since` in seconds of FIT.
    """

    values: dict[int, Value]
    since: int
    key: str = ""
    sums: TrackSums = msgspec.field(default_factory=TrackSums)


class _FitFile(msgspec.Struct):
    """One file: what it is, which device wrote it, its sessions in the order of time."""

    begin: int
    end: int
    kind: Value | None = None
    device: str | None = None
    name: str | None = None
    sessions: list[_Workout] = msgspec.field(default_factory=list[_Workout])
    beyond: int = 0  # sessions
    is_cut: bool = False


def read_fit(member: ExportMember) -> Iterator[SourceItem]:
    """The workouts of a file, each before its points, or its course. Raises: BadRecord."""
    if member.size_bytes > LARGEST_FIT_BYTES:
        raise BadRecord("too_large", message("the file is over 16 MB"))
    with member.exact() as stream:
        content = stream.read(LARGEST_FIT_BYTES)
    end = 0
    for begin, end in islice(fit_files(content), _MOST_FILES):
        yield from _read_file(content, begin, end, member)
    if end < len(content):
        reason = message("what follows in the file is no FIT")
        yield Skipped(member.where(end), "bad_record", reason, member.offset + end)


def _read_file(content: bytes, begin: int, end: int, member: ExportMember) -> Iterator[SourceItem]:
    position, where = member.offset + begin, member.where(begin)
    file = _about(content, begin, end)
    cut = message("the file ends, or is damaged, before its end; what comes before is read")
    if file.kind not in (_ACTIVITY_FILE, _COURSE_FILE) and not file.sessions:
        reason = message("the file holds no workout and no course")
        yield Skipped(
            where, "truncated" if file.is_cut else "unknown_record_type", reason, position
        )
        return
    _sum_up(content, file)
    if file.is_cut:
        yield Skipped(where, "truncated", cut, position)
    if file.beyond:
        reason = message(
            "the file holds more than %(most)s workouts; the other %(others)s were not imported",
            most=_MOST_SESSIONS,
            others=file.beyond,
        )
        yield Skipped(where, "beyond_bounds", reason, position)
    if file.kind == _COURSE_FILE:
        yield from one_record(where, position, partial(_course, file, member, position))
        return
    for workout in file.sessions:
        yield from one_record(where, position, partial(_session, workout, file, member, position))
    number = dict.fromkeys((workout.key for workout in file.sessions if workout.key), 0)
    for found, point in _points(content, file):
        workout = _workout_of(found, file)
        if workout.key and point.is_placed:
            number[workout.key] += 1
            at = member.offset + found.at
            yield point_record(workout.key, number[workout.key], point, at)


def _about(content: bytes, begin: int, end: int) -> _FitFile:
    """What a file says of itself and its sessions, before any point is read."""
    file = _FitFile(begin, end)
    for found in _messages(content, file, _ABOUT):
        values = found.values
        if found.number == _FILE_ID and file.kind is None:
            file.kind = values.get(0)
            maker = values.get(1)
            file.device = _line(values.get(8)) or (
                _MAKERS.get(maker) if isinstance(maker, int) else None
            )
        elif found.number == _DEVICE and values.get(0) == 0:
            file.device = _line(values.get(27)) or file.device
        elif found.number == _COURSE:
            file.name = _line(values.get(5)) or file.name
        elif found.number == _SESSION and len(file.sessions) >= _MOST_SESSIONS:
            file.beyond += 1
        elif found.number == _SESSION:
            file.sessions.append(_Workout(values, _whole(values.get(2)) or 0))
    file.sessions.sort(key=lambda workout: workout.since)
    if not file.sessions and file.kind in (_ACTIVITY_FILE, _COURSE_FILE):
        file.sessions.append(_Workout({}, 0))
    return file


def _sum_up(content: bytes, file: _FitFile) -> None:
    for found, point in _points(content, file):
        _workout_of(found, file).sums.add(point)


def _workout_of(found: FitMessage, file: _FitFile) -> _Workout:
    """The session that a point is of: the last that began by then, else the first."""
    second = _whole(found.values.get(TIMESTAMP)) or 0
    index = bisect_right(file.sessions, second, key=lambda workout: workout.since)
    return file.sessions[max(0, index - 1)]


def _points(content: bytes, file: _FitFile) -> Iterator[tuple[FitMessage, TrackPoint]]:
    for found in _messages(content, file, _POINTS):
        values = found.values
        altitude = values.get(78, values.get(2))
        point = TrackPoint(
            _scaled(values.get(0), _DEGREES, 7),
            _scaled(values.get(1), _DEGREES, 7),
            None if altitude is None else _scaled(altitude, 0.2, 1, -500),
            _scaled(values.get(3) or None, 1, 0),  # 0 is a heart rate that was not measured
            fit_instant(values.get(TIMESTAMP)),
        )
        yield found, point


def _messages(
    content: bytes, file: _FitFile, wanted: dict[int, frozenset[int]]
) -> Iterator[FitMessage]:
    """The messages up to where the file stops to be FIT, which is noted."""
    try:
        yield from fit_messages(content, file.begin, file.end, wanted)
    except FitCut:
        file.is_cut = True


def _session(
    workout: _Workout, file: _FitFile, member: ExportMember, position: int
) -> Iterator[SourceItem]:
    """A workout. Raises: BadRecord."""
    values, sums = workout.values, workout.sums
    started_at = fit_instant(values.get(2)) or sums.started_at
    if started_at is None:
        raise BadRecord("bad_date", message("the workout says no time"))
    seconds = _scaled(values.get(7), 0.001, 3) or _scaled(values.get(8), 0.001, 3)
    ended_at = fit_instant(_later(values, seconds)) or sums.ended_at or started_at
    if seconds is None:
        seconds = _between(started_at, ended_at)
    kind = _kind(values)
    workout.key = stable_id("workout", started_at, kind, *sums.first.place)
    data: Data = {
        "id": workout.key,
        "started_at": started_at,
        "ended_at": ended_at,
        "kind": or_none(kind),
        "name": _line(values.get(110)) or _stem(member),
        "minutes": round(seconds / 60, 2),
        "distance_meters": _scaled(values.get(9), 0.01, 1) or round(sums.meters, 1),
        "energy_kcal": _scaled(values.get(11), 1, 0),
        "heart_rate": _scaled(values.get(16) or None, 1, 0) or sums.mean_heart_rate,
        "point_count": sums.count,
        "device": file.device,
    }
    yield SourceRecord("workouts", data, position)


def _course(file: _FitFile, member: ExportMember, position: int) -> Iterator[SourceItem]:
    """A planned way. Raises: BadRecord."""
    sums = file.sessions[0].sums
    if not sums.count:
        raise BadRecord("bad_record", message("the entry has no point"))
    name = file.name or ""
    data: Data = {
        "id": stable_id("route", name, *sums.first.place, *sums.last.place, sums.count),
        "name": name or _stem(member),
        "distance_meters": round(sums.meters, 1),
        "point_count": sums.count,
        "latitude": sums.first.latitude,
        "longitude": sums.first.longitude,
    }
    yield SourceRecord("routes", data, position)


def _later(values: dict[int, Value], seconds: float | None) -> int | None:
    """The second in which a workout ended; a session may be stored long after its end."""
    began = _whole(values.get(2))
    if began is not None and seconds is not None:
        return began + int(seconds)
    return _whole(values.get(TIMESTAMP))


def _between(began: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()


def _kind(values: dict[int, Value]) -> str:
    sport, sub = values.get(5), values.get(6)
    words = _SPORTS.get(sport, "") if isinstance(sport, int) else ""
    if sport in _VAGUE and isinstance(sub, int):
        words = _SUB_SPORTS.get(sub, words)
    return "" if words == "-" else words.replace("_", " ")


def _scaled(value: Value | None, unit: float, digits: int, offset: float = 0) -> float | None:
    return round(value * unit + offset, digits) if isinstance(value, int | float) else None


def _whole(value: Value | None) -> int | None:
    return value if isinstance(value, int) else None


def _line(value: Value | None) -> str | None:
    return or_none(one_line(printable(value), 200)) if isinstance(value, str) else None


def _stem(member: ExportMember) -> str | None:
    return or_none(one_line(PurePosixPath(member.name).stem, 200))
