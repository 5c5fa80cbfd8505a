"""What a track is made of: its points in their order, and what they make together."""

from __future__ import annotations

from math import asin, cos, radians, sin, sqrt

import msgspec

_EARTH_METERS = 6_371_008.8


class TrackPoint(msgspec.Struct):
    """A point as far as it is said; `is_first` where it does not go on from the one before."""

    latitude: float | None = None
    longitude: float | None = None
    altitude: float | None = None
    heart_rate: float | None = None
    time: str | None = None
    is_first: bool = False

    @property
    def is_placed(self) -> bool:
        """Whether it says where it is, on the earth."""
        latitude, longitude = self.latitude, self.longitude
        if latitude is None or longitude is None:
            return False
        return abs(latitude) <= 90 and abs(longitude) <= 180

    @property
    def place(self) -> tuple[str, str]:
        """Where it is, as a part of keys."""
        return f"{self.latitude}", f"{self.longitude}"


class TrackSums:
    """What the points of a track make together."""

    def __init__(self) -> None:
        self.count = 0
        self.meters = 0.0
        self.first = self.last = TrackPoint()
        self.started_at: str | None = None
        self.ended_at: str | None = None
        self._beats = 0.0
        self._beat_count = 0

    def add(self, point: TrackPoint) -> None:
        """Add the next point."""
        if point.time is not None:
            self.started_at = min(self.started_at or point.time, point.time, key=_order)
            self.ended_at = max(self.ended_at or point.time, point.time, key=_order)
        if point.heart_rate is not None:
            self._beats += point.heart_rate
            self._beat_count += 1
        if not point.is_placed:
            return
        self.count += 1
        if self.count == 1:
            self.first = point
        elif not point.is_first:
            self.meters += _meters(self.last, point)
        self.last = point

    @property
    def mean_heart_rate(self) -> float | None:
        """Beats a minute, of the points that have some."""
        return round(self._beats / self._beat_count, 1) if self._beat_count else None


def _order(time: str) -> str:
    """What orders instants: `12:00:00.5Z` is after `12:00:00Z`, though a dot is before a Z."""
    return time.removesuffix("Z")


def _meters(one: TrackPoint, other: TrackPoint) -> float:
    """The way along the surface between two points that are placed."""
    latitudes = radians(one.latitude or 0), radians(other.latitude or 0)
    apart = radians((other.longitude or 0) - (one.longitude or 0))
    half = sin((latitudes[1] - latitudes[0]) / 2) ** 2
    half += cos(latitudes[0]) * cos(latitudes[1]) * sin(apart / 2) ** 2
    return 2 * _EARTH_METERS * asin(min(1.0, sqrt(half)))
