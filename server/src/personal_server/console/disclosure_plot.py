"""The plot of records read per day.  Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pdpp_kernel.texts import Date, Text, counted, date_of, message
from personal_server.storage.ports.disclosure_stores import DisclosedShare

PLOT_WIDTH, PLOT_HEIGHT = 720, 100


class Bar(msgspec.Struct, frozen=True):
    """One day of the plot, in its coordinates."""

    x: float
    width: float
    y: float
    height: float
    title: Text
    chosen: bool


class Plot(msgspec.Struct, frozen=True):
    """Records read per day."""

    bars: tuple[Bar, ...]
    first: Date
    last: Date
    most: int
    total: int


def plot_of(
    shares: Iterable[DisclosedShare], last_day: int, days: int, chosen: int | None = None
) -> Plot:
    """Records per UTC day over the days up to one."""
    served = {int(each.name): each.record_count for each in shares}
    counts = {day: served.get(day, 0) for day in range(last_day - days + 1, last_day + 1)}
    most = max(counts.values())
    step = PLOT_WIDTH / days
    return Plot(
        bars=tuple(
            _bar(index, step, count, most, day, day == chosen)
            for index, (day, count) in enumerate(counts.items())
        ),
        first=date_of(last_day - days + 1),
        last=date_of(last_day),
        most=most,
        total=sum(counts.values()),
    )


def _bar(index: int, step: float, count: int, most: int, day: int, chosen: bool) -> Bar:
    height = 0.0 if not most else round(PLOT_HEIGHT * count / most, 1)
    height = max(height, 2.0) if count else 0.0
    words = message("%(day)s: %(records)s", day=date_of(day), records=counted(count, "record"))
    y = round(PLOT_HEIGHT - height, 1)
    return Bar(round(index * step + 2, 1), round(step - 4, 1), y, height, words, chosen)
