"""Records on a map: clusters of those that lie near each other, and the track of one.  Pure.

Rule: the roles `latitude` and `longitude` say where a record is; a place that is none is left out
and counted.  Source: docs/contract/resource-server.md 17 ("What a stream looks like").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from math import floor, sqrt

import msgspec
from msgspec.structs import replace

from pdpp_kernel.operators import Operator
from pdpp_kernel.texts import Joined, Text, message, span_of_texts
from pdpp_kernel.values import instant_or_day_ns
from personal_server.console.presentations import place_fields
from personal_server.console.record_lists import Records, listed_record
from personal_server.console.record_view import MOST_LINK_BYTES, RecordsLayout, RecordsView
from personal_server.console.world_outlines import MapFrame, drawn_outlines
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.timeline import time_field

MAP_WIDTH, MOST_HEIGHT = 960, 620
ACROSS = 14
MOST_CLUSTERS = 40
LEAST_DEGREES = 0.02
MARGIN = 0.08
NAMES_SHOWN = 2
LEAST_RADIUS, MOST_RADIUS = 7.0, 26.0


class PlacedCluster(msgspec.Struct, frozen=True):
    """Records that lie near each other.

    Shapes: `link` is the record, or the map of these alone; `listed` the table of them.
    """

    name: Text
    count: int
    x: float
    y: float
    radius: float
    span: Text
    link: str
    listed: str
    latitude: str
    longitude: str


class PlaceMap(msgspec.Struct, frozen=True):
    """A map with its clusters, the fullest first.

    Shapes: `lands`, `borders` and `track` are paths of SVG; `wider` shows more of the world;
        `unplaced` of the records read have no place, and those of `apart` fit no table.
    """

    width: int
    height: int
    lands: str
    borders: str
    track: str
    clusters: tuple[PlacedCluster, ...]
    wider: str | None
    read: int
    unplaced: int
    apart: int


class _Placed(msgspec.Struct, frozen=True):
    key: str
    data: Mapping[str, object]
    longitude: float
    latitude: float


def map_of(view: RecordsView, source: ReadableSource, records: Records) -> PlaceMap | None:
    """The map of records; none where none of them has a place."""
    fields = place_fields(source)
    if fields is None:
        return None
    placed = [p for key, data in records if (p := _placed(fields, key, data)) is not None]
    unplaced = len(records) - len(placed)
    if not placed:
        return None
    frame = _frame(placed)
    cells: dict[tuple[int, int], list[_Placed]] = defaultdict(list)
    width = frame.width / ACROSS
    for each in placed:
        x, y = frame.place(each.longitude, each.latitude)
        cells[floor(x / width), floor(y / width)].append(each)
    groups = sorted(cells.values(), key=len, reverse=True)
    most = len(groups[0])
    clusters = [_cluster(view, source, frame, group, most) for group in groups[:MOST_CLUSTERS]]
    lands, borders = drawn_outlines(frame)
    return PlaceMap(
        width=frame.width,
        height=frame.height,
        lands=lands,
        borders=borders,
        track=_track(view, source, frame, placed),
        clusters=tuple(clusters),
        wider=_wider(view, fields),
        read=len(records),
        unplaced=unplaced,
        apart=sum(len(group) for group in groups[MOST_CLUSTERS:]),
    )


def _placed(fields: tuple[str, str], key: str, data: Mapping[str, object]) -> _Placed | None:
    latitude, longitude = data.get(fields[0]), data.get(fields[1])
    if not _is_number(latitude) or not _is_number(longitude):
        return None
    north, east = float(str(latitude)), float(str(longitude))
    return _Placed(key, data, east, north) if abs(north) <= 90 and abs(east) <= 180 else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _frame(placed: Sequence[_Placed]) -> MapFrame:
    """What of the world holds them all, with room around them, no higher than a screen."""
    longitudes, latitudes = [p.longitude for p in placed], [p.latitude for p in placed]
    west, east, south, north = (
        min(longitudes),
        max(longitudes),
        min(latitudes),
        max(latitudes),
    )
    across = max(east - west, (north - south) * 1.6, LEAST_DEGREES) * (1 + 2 * MARGIN)
    up = max((north - south) * (1 + 2 * MARGIN), across / 2.2)
    across, up = min(across, 360.0), min(up, 180.0)
    west = min(max((west + east - across) / 2, -180.0), 180.0 - across)
    south = min(max((south + north - up) / 2, -90.0), 90.0 - up)
    frame = MapFrame(west, south, west + across, south + up, MAP_WIDTH)
    if frame.height > MOST_HEIGHT:
        return replace(frame, width=max(1, round(MAP_WIDTH * MOST_HEIGHT / frame.height)))
    return frame


def _cluster(
    view: RecordsView,
    source: ReadableSource,
    frame: MapFrame,
    group: Sequence[_Placed],
    most: int,
) -> PlacedCluster:
    count = len(group)
    east, north = sum(p.longitude for p in group) / count, sum(p.latitude for p in group) / count
    x, y = frame.place(east, north)
    listed = [listed_record(view.root, source, p.key, p.data) for p in group[:20]]
    box = _box(view, source, group)
    table = replace(box, layout=RecordsLayout.TABLE, sort=None)
    is_one_place = len({(p.longitude, p.latitude) for p in group}) == 1
    link = listed[0].link if count == 1 else (table if is_one_place else box).link
    has_titles = source.declared.title_field in source.fields
    names = list(dict.fromkeys(each.name for each in listed)) if has_titles else []
    name: Text = Joined(tuple(names[:NAMES_SHOWN])) if names else f"{north:.3f}, {east:.3f}"
    if len(names) > NAMES_SHOWN:
        name = message("%(names)s and others", names=name)
    return PlacedCluster(
        name=name,
        count=count,
        x=round(x, 1),
        y=round(y, 1),
        radius=round(LEAST_RADIUS + (MOST_RADIUS - LEAST_RADIUS) * sqrt((count - 1) / most), 1),
        span=_span(source, group),
        link=link if len(link) <= MOST_LINK_BYTES else view.place,
        listed=table.link if count > 1 else listed[0].link,
        latitude=f"{north:.4f}",
        longitude=f"{east:.4f}",
    )


def _box(view: RecordsView, source: ReadableSource, group: Sequence[_Placed]) -> RecordsView:
    """The view of what lies where these do."""
    fields = place_fields(source) or ("", "")
    conditions: list[FilterText] = []
    for name, values in (
        (fields[0], [p.latitude for p in group]),
        (fields[1], [p.longitude for p in group]),
    ):
        for operator, bound in ((Operator.GTE, min(values)), (Operator.LTE, max(values))):
            if operator.value in source.declared.range_filters.get(name, ()):
                conditions.append(FilterText(name, operator.value, repr(bound)))
    return view.having(*conditions)


def _wider(view: RecordsView, fields: tuple[str, str]) -> str | None:
    """The view without the bounds of a cluster; none where it has none."""
    kept = tuple(each for each in view.filters if each.field not in fields)
    return replace(view, filters=kept).link if kept != view.filters else None


def _span(source: ReadableSource, group: Sequence[_Placed]) -> Text:
    dated = time_field(source)
    times = [p.data.get(dated.name) for p in group] if dated else []
    days = sorted(
        (each for each in times if isinstance(each, str)),
        key=lambda text: instant_or_day_ns(text) or 0,
    )
    return span_of_texts(days[0], days[-1]) if days else ""


def _track(
    view: RecordsView, source: ReadableSource, frame: MapFrame, placed: Sequence[_Placed]
) -> str:
    """The way from point to point, where all of them are of one record: of a workout, a route."""
    dated = time_field(source)
    if dated is None or not is_of_one(view, source):
        return ""
    ordered = sorted(placed, key=lambda p: instant_or_day_ns(str(p.data.get(dated.name))) or 0)
    corners = (frame.place(p.longitude, p.latitude) for p in ordered)
    return "M" + "L".join(corner for corner, _ in groupby(f"{x:.0f} {y:.0f}" for x, y in corners))


def is_of_one(view: RecordsView, source: ReadableSource) -> bool:
    """Whether a view has the records of one other record."""
    keys = {
        each.foreign_key for each in source.declared.relationships if each.foreign_key_on == "self"
    }
    return any(each.field in keys and each.operator is None for each in view.filters)
