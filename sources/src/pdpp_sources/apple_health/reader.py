"""The health reader: what an iPhone, a watch and other apps measured.

Source: the document type in front of Apple's own exports. What iOS calls
`HKQuantityTypeIdentifierHeartRate` is `heart_rate` here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common.declaration import (
    StreamForm,
    day,
    declaration,
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
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
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
from pdpp_sources.common.times import from_iso
from pdpp_sources.common.unit_fields import adding_up, in_unit, measuring, total
from pdpp_sources.common.xml_elements import XmlElement, cut_elements

_HEALTH = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)?<(?:!DOCTYPE\s+)?HealthData\b", re.DOTALL
)
_CLINICAL = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<\?[^>]*>\s*)*<ClinicalDocument\b")
_ROUTES, _HEARTS, _RECORDS = "workout-routes", "electrocardiograms", "clinical-records"
_NOT_READ = {
    _HEARTS: message("electrocardiograms are not imported"),
    _RECORDS: message("clinical records are not imported"),
}
_PREFIXES = re.compile(
    r"^HK(?:Quantity|Category|Correlation)TypeIdentifier|^HKDataType(?:Identifier)?"
    r"|^HKWorkoutActivityType|^HKCategoryValueSleepAnalysis|^HKCategoryValue"
)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SLEEP = "HKCategoryTypeIdentifierSleepAnalysis"
_MINUTES = {"min": 1.0, "s": 1 / 60, "sec": 1 / 60, "hr": 60.0}
_METERS = {"km": 1000.0, "m": 1.0, "mi": 1609.344, "yd": 0.9144, "ft": 0.3048}
_KILOCALORIES = {"kcal": 1.0, "Cal": 1.0, "kJ": 1 / 4.184, "cal": 0.001}
_HIGHEST = 1e15
# What Health counts and what adds up to more; all else is a state, of which a day has a mean.
_ADDED_UP = (
    "step_count",
    "distance_walking_running",
    "distance_cycling",
    "distance_swimming",
    "distance_wheelchair",
    "flights_climbed",
    "swimming_stroke_count",
    "push_count",
    "active_energy_burned",
    "basal_energy_burned",
    "apple_exercise_time",
    "apple_stand_time",
    "apple_move_time",
    "time_in_daylight",
    "dietary_water",
    "dietary_caffeine",
    "dietary_energy_consumed",
    "dietary_protein",
    "dietary_carbohydrates",
    "dietary_sugar",
    "dietary_fat_total",
    "dietary_fiber",
    "dietary_sodium",
    "inhaler_usage",
    "insulin_delivery",
    "number_of_times_fallen",
    "number_of_alcoholic_beverages",
)


MEASUREMENTS = StreamForm(
    "measurements",
    "What was measured of your body",
    "Steps, heart rate, weight, blood pressure, cycle, medication and all else that Health keeps: "
    "kind, value, time and device.",
    [
        key(),
        moment("started_at", "When it began, in UTC", event=True),
        ending(moment("ended_at", "When it ended, in UTC")),
        sensitive(word("kind", "heart_rate, step_count, body_mass …", title=True, searched=True)),
        adding_up(
            measuring(
                in_unit(
                    sensitive(number("value", "The number measured, in its unit", summed=True)),
                    by="unit",
                ),
                by="kind",
            ),
            *_ADDED_UP,
        ),
        word("unit", "The unit of the value"),
        sensitive(word("state", "What was noted where nothing is counted, such as severe")),
        sensitive(text("parts", "The values of one that has several, such as blood pressure")),
        word("device", "The app or device that measured"),
    ],
    time_field="started_at",
    views={"kinds": ("Kinds and times, no values", ["id", "started_at", "kind", "device"])},
)

SLEEP = StreamForm(
    "sleep",
    "How you slept",
    "Each stretch in bed, asleep or awake.",
    [
        key(),
        moment("started_at", "When it began, in UTC", event=True),
        ending(moment("ended_at", "When it ended, in UTC")),
        sensitive(
            word("stage", "in_bed, asleep_core, asleep_deep, asleep_rem, awake …", title=True)
        ),
        adding_up(
            measuring(
                in_unit(number("minutes", "How long it was", summed=True), unit="min"), by="stage"
            )
        ),
        word("device", "The app or device that measured"),
    ],
    time_field="started_at",
)

WORKOUTS = StreamForm(
    "workouts",
    "Your workouts",
    "Kind, length, distance and energy of each workout.",
    [
        key(),
        moment("started_at", "When it began, in UTC", event=True),
        ending(moment("ended_at", "When it ended, in UTC")),
        word("kind", "running, cycling, yoga …", title=True, searched=True),
        total("minutes", "How long it was", "min"),
        total("distance_meters", "How far it went", "m"),
        total("energy_kcal", "Active energy burned", "kcal"),
        sensitive(number("heart_rate", "Mean of the heart rate, in beats a minute")),
        reference("route", "The file of its route"),
        word("device", "The app or device that measured"),
    ],
    time_field="started_at",
)

DAYS = StreamForm(
    "activity_days",
    "Your days in rings",
    "Energy, exercise and standing of each day, with your goals.",
    [
        key(),
        day("day", "The day", event=True),
        total("energy_kcal", "Active energy burned", "kcal"),
        number("energy_goal_kcal", "Your goal for it"),
        total("move_minutes", "Minutes in motion", "min"),
        adding_up(
            in_unit(integer("exercise_minutes", "Minutes of exercise", summed=True), unit="min")
        ),
        integer("exercise_goal_minutes", "Your goal for it"),
        adding_up(
            in_unit(integer("stand_hours", "Hours in which you stood", summed=True), unit="h")
        ),
        integer("stand_goal_hours", "Your goal for it"),
    ],
    time_field="day",
)

ROUTES = StreamForm(
    "route_points",
    "Where your workouts went",
    "Coordinates of every second of every route: where you live and run.",
    [
        key(),
        reference("route", "The file of the route", required=True),
        moment("recorded_at", "When you were there, in UTC", event=True),
        *place(),
        number("elevation_meters", "Height above the sea"),
        number("speed", "Meters a second"),
    ],
    time_field="recorded_at",
)

DECLARATION = declaration(
    "apple_health",
    "Apple Health",
    "Measurements, sleep, workouts and routes of the Health app on an iPhone.",
    [MEASUREMENTS, SLEEP, WORKOUTS, DAYS, ROUTES],
)


class AppleHealthSource:
    """Reads export.xml, whatever it is called, and the routes beside it."""

    connector_key = "apple_health"
    declaration: Data = DECLARATION
    how_to_export = (
        "On the iPhone open Health, tap your picture, then Export All Health Data; it takes some "
        "minutes. Import the zip as it is."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim the XML by how it begins, and what lies beside it."""
        files = list(matching(export, _HEALTH.match, ".xml"))
        clinical = list(matching(export, _CLINICAL.match, ".xml")) if files else []
        roots = {PurePosixPath(member.name).parent for member in files}
        folders = {root / name for root in roots for name in (_ROUTES, *_NOT_READ)}
        neighbours = [m for m in export.members if PurePosixPath(m.name).parent in folders]
        return claim([*files, *clinical, *neighbours], "it holds what Apple Health exports")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield what each element of each file holds."""
        return beginning_at(start, without_repeats(each_member(export, _read_member)))


def _read_member(member: ExportMember) -> Iterator[SourceItem]:
    folder = PurePosixPath(member.name).parent.name
    if folder in _NOT_READ:
        yield Skipped(member.name, "unknown_record_type", _NOT_READ[folder], member.offset)
    elif folder == _ROUTES:
        route = PurePosixPath(member.name).name
        yield from _items(member, {"trkpt": partial(_point, route)})
    elif _CLINICAL.match(member.head()):
        reason = message("clinical documents are not imported")
        yield Skipped(member.name, "unknown_record_type", reason, member.offset)
    else:
        yield from _items(member, _BUILDS)


def _items(
    member: ExportMember, builds: dict[str, Callable[[XmlElement], SourceRecord]]
) -> Iterator[SourceItem]:
    for element in cut_elements(member, *builds):
        if isinstance(element, Skipped):
            yield element
        else:
            build = partial(_built, builds[element.name], element)
            yield from one_record(element.where, element.position, build)


def _built(build: Callable[[XmlElement], SourceRecord], element: XmlElement) -> list[SourceItem]:
    record = build(element)
    return [record, *_old_route(record, element)] if record.stream == "workouts" else [record]


def _old_route(workout: SourceRecord, element: XmlElement) -> Iterator[SourceItem]:
    """The places of a workout, which exports before iOS 13 hold inside of it."""
    for name, own, _ in element.inner():
        latitude, longitude = _number(own.get("latitude", "")), _number(own.get("longitude", ""))
        if name == "Location" and latitude is not None and longitude is not None:
            data: Data = {
                "id": stable_id("rpt", workout.data["id"], *map(str, own.values())),
                "route": workout.data["id"],
                "recorded_at": _instant(own.get("date", "")),
                "latitude": latitude,
                "longitude": longitude,
                "elevation_meters": _number(own.get("altitude", "")),
                "speed": _number(own.get("speed", "")),
            }
            yield SourceRecord("route_points", data, element.position)


def _record(element: XmlElement) -> SourceRecord:
    """A measurement, or a stretch of sleep. Raises: BadRecord."""
    facts = element.attributes
    kind, value = facts.get("type", ""), facts.get("value", "")
    if not kind:
        raise BadRecord("bad_record", "the entry does not say what was measured")
    started_at, ended_at = _span(facts)
    own_id = stable_id(
        "hlt",
        kind,
        facts.get("sourceName"),
        started_at,
        ended_at,
        value,
        facts.get("unit"),
        facts.get("creationDate"),
    )
    common: Data = {"id": own_id, "started_at": started_at, "ended_at": ended_at}
    common["device"] = _line(facts.get("sourceName"))
    if kind == _SLEEP:
        data = common | {"stage": _plain(value), "minutes": _minutes(started_at, ended_at)}
        return SourceRecord("sleep", data, element.position)
    counted = _number(value)
    data = common | {
        "kind": _plain(kind),
        "value": counted,
        "unit": _line(facts.get("unit")),
        "state": _plain(value) if counted is None else None,
        "parts": None,
    }
    return SourceRecord("measurements", data, element.position)


def _correlation(element: XmlElement) -> SourceRecord:
    """What was measured together; its parts stand in the file by themselves as well."""
    facts = element.attributes
    started_at, ended_at = _span(facts)
    parts = [
        one_line(f"{_plain(own.get('type', ''))} {own.get('value', '')} {own.get('unit', '')}")
        for name, own, _ in element.inner()
        if name == "Record"
    ]
    data: Data = {
        "id": stable_id("hlt", facts.get("type"), started_at, ended_at, *parts),
        "started_at": started_at,
        "ended_at": ended_at,
        "kind": _plain(facts.get("type", "")),
        "value": None,
        "unit": None,
        "state": None,
        "parts": or_none(printable(", ".join(parts))),
        "device": _line(facts.get("sourceName")),
    }
    return SourceRecord("measurements", data, element.position)


def _workout(element: XmlElement) -> SourceRecord:
    """A workout; since iOS 16 its sums stand in elements further inside. Raises: BadRecord."""
    facts = element.attributes
    started_at, ended_at = _span(facts)
    kind = facts.get("workoutActivityType", "")
    distance = _in_unit(facts, "totalDistance", _METERS)
    energy = _in_unit(facts, "totalEnergyBurned", _KILOCALORIES)
    heart, route = None, None
    for name, own, _ in element.inner():
        measured = _plain(own.get("type", ""))
        if name == "WorkoutStatistics" and measured.startswith("distance_"):
            distance = distance if distance is not None else _in_unit(own, "sum", _METERS)
        elif name == "WorkoutStatistics" and measured == "active_energy_burned":
            energy = energy if energy is not None else _in_unit(own, "sum", _KILOCALORIES)
        elif name == "WorkoutStatistics" and measured == "heart_rate":
            heart = _number(own.get("average", ""))
        elif name == "FileReference":
            route = _line(PurePosixPath(own.get("path", "")).name)
    data: Data = {
        "id": stable_id("wrk", kind, facts.get("sourceName"), started_at, ended_at),
        "started_at": started_at,
        "ended_at": ended_at,
        "kind": _plain(kind),
        "minutes": _in_unit(facts, "duration", _MINUTES),
        "distance_meters": distance,
        "energy_kcal": energy,
        "heart_rate": heart,
        "route": route,
        "device": _line(facts.get("sourceName")),
    }
    return SourceRecord("workouts", data, element.position)


def _activity_day(element: XmlElement) -> SourceRecord:
    facts = element.attributes
    written = facts.get("dateComponents", "")
    try:
        datetime.strptime(written, "%Y-%m-%d")  # noqa: DTZ007 (a day has no zone)
    except ValueError:
        raise BadRecord("bad_date", "the day of the entry cannot be read") from None
    unit = _KILOCALORIES.get(facts.get("activeEnergyBurnedUnit", "kcal"), 1.0)
    energy, goal = (_number(facts.get(f"activeEnergyBurned{end}", "")) for end in ("", "Goal"))
    data: Data = {
        "id": written,
        "day": written,
        "energy_kcal": None if energy is None else energy * unit,
        "energy_goal_kcal": None if goal is None else goal * unit,
        "move_minutes": _number(facts.get("appleMoveTime", "")),
        "exercise_minutes": _whole(facts, "appleExerciseTime"),
        "exercise_goal_minutes": _whole(facts, "appleExerciseTimeGoal"),
        "stand_hours": _whole(facts, "appleStandHours"),
        "stand_goal_hours": _whole(facts, "appleStandHoursGoal"),
    }
    return SourceRecord("activity_days", data, element.position)


def _point(route: str, element: XmlElement) -> SourceRecord:
    facts = element.attributes
    latitude, longitude = _number(facts.get("lat", "")), _number(facts.get("lon", ""))
    if latitude is None or longitude is None:
        raise BadRecord("bad_record", "the point has no coordinates")
    inside = {name: words for name, _, words in element.inner()}
    recorded_at = from_iso(inside.get("time", ""))
    data: Data = {
        "id": stable_id("rpt", route, recorded_at, facts["lat"], facts["lon"]),
        "route": route,
        "recorded_at": recorded_at,
        "latitude": latitude,
        "longitude": longitude,
        "elevation_meters": _number(inside.get("ele", "")),
        "speed": _number(inside.get("speed", "")),
    }
    return SourceRecord("route_points", data, element.position)


def _unread(reason: str, _: XmlElement) -> SourceRecord:
    raise BadRecord("unknown_record_type", reason)


_BUILDS: dict[str, Callable[[XmlElement], SourceRecord]] = {
    "Record": _record,
    "Correlation": _correlation,
    "Workout": _workout,
    "ActivitySummary": _activity_day,
    "Me": partial(_unread, message("your date of birth, sex and blood type are not imported")),
    "ClinicalRecord": partial(_unread, message("clinical records are not imported")),
    "Audiogram": partial(_unread, message("audiograms are not imported")),
    "VisionPrescription": partial(_unread, message("vision prescriptions are not imported")),
}


def _span(facts: dict[str, str]) -> tuple[str, str]:
    """When it began and ended. Raises: BadRecord."""
    start = _instant(facts.get("startDate", ""))
    return start, _instant(facts["endDate"]) if facts.get("endDate") else start


def _instant(written: str) -> str:
    """`2016-11-14 07:25:41 -0700`. Raises: BadRecord."""
    return from_iso(written[:19] + written[19:].strip())


def _minutes(started_at: str, ended_at: str) -> float:
    begun, ended = (datetime.fromisoformat(instant) for instant in (started_at, ended_at))
    return round((ended - begun).total_seconds() / 60, 2)


def _plain(name: str) -> str:
    """Apple's name of a thing as words: `heart_rate`."""
    return one_line(printable(_CAPITAL.sub("_", _PREFIXES.sub("", name)).lower()), 200)


def _number(written: str) -> float | None:
    try:
        number = float(written)
    except ValueError:
        return None
    return number if abs(number) < _HIGHEST else None


def _whole(facts: dict[str, str], name: str) -> int | None:
    number = _number(facts.get(name, ""))
    return None if number is None else round(number)


def _in_unit(facts: dict[str, str], name: str, units: dict[str, float]) -> float | None:
    """A number in the one unit of its field; of an unknown unit nothing is said."""
    unit = facts.get(f"{name}Unit") or facts.get("unit", "")
    number = _number(facts.get(name, ""))
    return None if number is None or unit not in units else round(number * units[unit], 3)


def _line(value: str | None) -> str | None:
    return or_none(one_line(printable(value))) if value else None
