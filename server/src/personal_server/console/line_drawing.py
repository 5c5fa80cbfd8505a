"""Figures over time as lines: where they stand in a drawing.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from math import floor, log10

import msgspec

DRAWING_WIDTH, DRAWING_HEIGHT = 720, 200
MARKS = 4
LARGEST, SMALLEST = 1e300, 1e-300
"""Beyond these a difference of two figures is infinite, or none."""


class DrawnMark(msgspec.Struct, frozen=True):
    """A height that is named beside the drawing."""

    y: float
    value: Decimal


class DrawnPoint(msgspec.Struct, frozen=True):
    """A figure: where it stands; `low` and `high` are those of its least and greatest value."""

    x: float
    y: float
    low: float
    high: float


class LineDrawing(msgspec.Struct, frozen=True):
    """Figures over time.

    Shapes: `lines` and `bands` are paths of SVG, one for each run of figures without a gap; points
        stand in the order of the figures.
    """

    points: tuple[DrawnPoint, ...]
    lines: tuple[str, ...]
    bands: tuple[str, ...]
    marks: tuple[DrawnMark, ...]


def draw_lines(
    figures: Sequence[tuple[int, Decimal, Decimal, Decimal]], places: int, *, from_zero: bool
) -> LineDrawing:
    """Figures, each with its place among so many, its value, the least and the greatest."""
    values = [_bounded(value) for figure in figures for value in figure[1:]]
    marks = _marks(min(values, default=0.0), max(values, default=0.0), from_zero=from_zero)
    low, high = marks[0], marks[-1]

    def height(value: Decimal) -> float:
        share = (_bounded(value) - low) / ((high - low) or 1.0)
        return round(DRAWING_HEIGHT * (1 - min(1.0, max(0.0, share))), 1)

    step = DRAWING_WIDTH / max(1, places)
    points = [
        DrawnPoint(round((index + 0.5) * step, 1), *map(height, (value, least, greatest)))
        for index, value, least, greatest in figures
    ]
    runs = list(_runs([index for index, *_ in figures]))
    return LineDrawing(
        points=tuple(points),
        lines=tuple(_path((points[n].x, points[n].y) for n in run) for run in runs),
        bands=tuple(
            _path(
                [(points[n].x, points[n].high) for n in run]
                + [(points[n].x, points[n].low) for n in reversed(run)]
            )
            + "Z"
            for run in runs
        )
        if not from_zero
        else (),
        marks=tuple(DrawnMark(height(Decimal(str(each))), Decimal(str(each))) for each in marks),
    )


def _bounded(value: Decimal) -> float:
    return max(-LARGEST, min(LARGEST, float(value)))


def _runs(places: Sequence[int]) -> Iterable[range]:
    """Stretches of places that follow each other, as positions."""
    begin = 0
    for position in range(1, len(places) + 1):
        if position == len(places) or places[position] != places[position - 1] + 1:
            yield range(begin, position)
            begin = position


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _marks(low: float, high: float, *, from_zero: bool) -> list[float]:
    """Round values from below the least to above the greatest."""
    low, high = (min(low, 0.0), max(high, 0.0)) if from_zero else (low, high)
    if high - low < SMALLEST:
        around = max(1.0, abs(low) / 1e9)
        low, high = low - around, high + around
    rough = (high - low) / MARKS
    power = 10.0 ** floor(log10(rough))
    step = next(power * by for by in (1, 2, 5, 10) if power * by >= rough)
    first, last = floor(low / step), -floor(-high / step)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]
