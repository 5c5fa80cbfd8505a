"""The outlines of lands and the borders of countries, as paths of a map.

Source: Natural Earth (public domain), 1:110m, in `outlines/world-110m.json`, which names it; so no
map is ever asked of anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import cos, radians

import msgspec

PARTS_A_DEGREE = 20
_OUTLINES = files("personal_server.console") / "outlines" / "world-110m.json"
ROOM = 0.03
HALF_WORLD, WORLD = 180, 360
"""A longer step than half the world crosses the date line."""
Corner = tuple[float, float]
"""Degrees east and north."""


class MapFrame(msgspec.Struct, frozen=True):
    """What of the world a map shows.  Units: degrees; `width` and `height` those of the drawing."""

    west: float
    south: float
    east: float
    north: float
    width: int

    @property
    def height(self) -> int:
        """So high that a mile is as long from north to south as from east to west."""
        return max(1, round((self.north - self.south) * self._scale / self._squeeze))

    def place(self, longitude: float, latitude: float) -> Corner:
        """Where a point of the world stands in the drawing."""
        x = (longitude - self.west) * self._scale
        return x, (self.north - latitude) * self._scale / self._squeeze

    @property
    def _scale(self) -> float:
        return self.width / (self.east - self.west)

    @property
    def _squeeze(self) -> float:
        return max(0.2, cos(radians((self.north + self.south) / 2)))


class WorldOutlines(msgspec.Struct, frozen=True):
    """Lines of points, in degrees east and north."""

    lands: tuple[tuple[Corner, ...], ...]
    borders: tuple[tuple[Corner, ...], ...]


@cache
def world_outlines() -> WorldOutlines:
    """Those of the whole world."""
    stored = msgspec.json.decode(_OUTLINES.read_bytes(), type=_StoredOutlines)
    return WorldOutlines(
        tuple(land for line in stored.land for land in _whole_lands(list(_corners(line)))),
        tuple(tuple(_corners(line)) for line in stored.borders),
    )


class _StoredOutlines(msgspec.Struct):
    """The file.  Shapes: of each line the first point, then steps, in parts of a degree."""

    land: list[list[int]]
    borders: list[list[int]]


def _corners(line: Sequence[int]) -> Iterator[Corner]:
    x = y = 0
    for step_x, step_y in zip(line[::2], line[1::2], strict=True):
        x, y = x + step_x, y + step_y
        yield x / PARTS_A_DEGREE, y / PARTS_A_DEGREE


def _whole_lands(line: Sequence[Corner]) -> Iterator[tuple[Corner, ...]]:
    """A land in one piece where it crosses the date line, at each end of the world it is on."""
    land, turn = [line[0]], 0
    for (before, _), (longitude, latitude) in pairwise(line):
        if abs(longitude - before) > HALF_WORLD:
            turn += WORLD if longitude < before else -WORLD
        land.append((longitude + turn, latitude))
    if turn:  # round the pole
        land += [(land[-1][0], -90.0), (land[0][0], -90.0)]
    for shift in (-WORLD, 0, WORLD):
        xs = [x + shift for x, _ in land]
        if min(xs) < HALF_WORLD and max(xs) > -HALF_WORLD:
            yield tuple((x + shift, y) for x, y in land)


def drawn_outlines(frame: MapFrame) -> tuple[str, str]:
    """The lands and the borders that a map meets, as paths of SVG."""
    world = world_outlines()
    lands = (_clipped(frame, line) for line in world.lands if _meets(frame, line))
    borders = (part for line in world.borders if _meets(frame, line) for part in _met(frame, line))
    return (
        "".join(_line(frame, line) + "z" for line in lands if line),
        "".join(_line(frame, line) for line in borders),
    )


def _clipped(frame: MapFrame, line: Sequence[Corner]) -> Sequence[Corner]:
    """What of a land lies in the frame and a little around it (Sutherland and Hodgman)."""
    room = (frame.east - frame.west) * ROOM
    edges = (
        (0, frame.west - room, 1),
        (0, frame.east + room, -1),
        (1, frame.south - room, 1),
        (1, frame.north + room, -1),
    )
    for axis, bound, sign in edges:
        kept: list[Corner] = []
        for before, corner in zip([line[-1], *line[:-1]], line, strict=True):
            was_in = (before[axis] - bound) * sign >= 0
            is_in = (corner[axis] - bound) * sign >= 0
            if was_in != is_in:
                kept.append(_crossing(before, corner, axis, bound))
            if is_in:
                kept.append(corner)
        line = kept
        if not line:
            break
    return line


def _crossing(one: Corner, other: Corner, axis: int, bound: float) -> Corner:
    """Where the way from one corner to another has this coordinate."""
    share = (bound - one[axis]) / (other[axis] - one[axis])
    x, y = (a + (b - a) * share for a, b in zip(one, other, strict=True))
    return x, y


def _met(frame: MapFrame, line: Sequence[Corner]) -> Iterator[Sequence[Corner]]:
    """The stretches of a border whose steps meet the frame."""
    part: list[Corner] = []
    for step in pairwise(line):
        if _meets(frame, step):
            part = part or [step[0]]
            part.append(step[1])
        elif part:
            yield part
            part = []
    if part:
        yield part


def _meets(frame: MapFrame, line: Sequence[Corner]) -> bool:
    xs, ys = [x for x, _ in line], [y for _, y in line]
    return (
        min(xs) <= frame.east
        and max(xs) >= frame.west
        and min(ys) <= frame.north
        and max(ys) >= frame.south
    )


def _line(frame: MapFrame, line: Sequence[Corner]) -> str:
    """Steps of whole units of the drawing; those of less than one are left out."""
    at: tuple[int, int] | None = None
    parts: list[str] = []
    for longitude, latitude in line:
        x, y = map(round, frame.place(longitude, latitude))
        if at is None:
            parts.append(f"M{x} {y}")
        elif (x, y) != at:
            parts.append(f"l{x - at[0]} {y - at[1]}")
        at = x, y
    return "".join(parts)
