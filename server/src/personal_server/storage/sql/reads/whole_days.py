"""Whole days in an order of time: where those of a zone begin, not where they are stored.

Of a zone 8 hours behind UTC, newest first, of events that are stored as UTC (whole days as its
midnights):

  stored    dinner 10 Mar 03:00   holiday 10 Mar 00:00 (a whole day)   yoga 9 Mar 16:00
  order     holiday (begins 10 Mar 08:00), dinner, yoga

So both are walked by the index of the time, each alone, and merged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from pdpp_kernel.criteria import Order, WholeDays
from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.domain.local_days import local_days
from personal_server.enforcement.asked_times import flagged, unflagged
from personal_server.enforcement.rows import Position
from personal_server.storage.sql.compiler import Where
from personal_server.storage.sql.source_tables import ScopedSource

Spot = tuple[Any, str, int]
Walk = Callable[[Where, Order, Position | None], list[Spot]]


def with_whole_days(
    scoped: ScopedSource, where: Where, order: Order, after: Position | None, walk: Walk
) -> list[Spot]:
    """The next lines (value, key, id) of a source, whole days at the instants of their start."""
    days, plain = order.days, replace(order, days=None)
    if days is None:
        return walk(where, plain, after)
    compiler, scope = scoped.compiler, scoped.scope
    timed = where & compiler.asked(scope, (unflagged(days.flag),))
    whole = where & compiler.asked(scope, (flagged(days.flag),))
    midnight = None if after is None else days_after(after, days, DAY_NANOSECONDS)
    found = [
        *walk(timed, plain, after),
        *((_started(days, value), key, id_) for value, key, id_ in walk(whole, plain, midnight)),
    ]
    down = order.descending
    found.sort(key=lambda spot: spot[1], reverse=down)
    valued = [spot for spot in found if spot[0] is not None]
    valued.sort(key=lambda spot: spot[0], reverse=down)
    return valued + [spot for spot in found if spot[0] is None]


def days_after(after: Position, days: WholeDays | None, unit: int = 1) -> Position:
    """A position among instants as one among days, which count as their start.

    Units: days since 1970 times `unit`; of UTC without a zone.
    """
    if after.value is None:
        return after
    at_ns = int(str(after.value))
    if days is None:
        day, rest = divmod(at_ns, DAY_NANOSECONDS)
    else:
        zone = local_days(days.time_zone)
        day = zone.day_of(at_ns)
        rest = at_ns - zone.start(day)
    # no key is empty: before the next day is after all of this one
    if rest:
        return after._replace(value=(day + 1) * unit, key="")
    return after._replace(value=day * unit)


def start_of_day(day: int, days: WholeDays | None) -> int:
    """The instant at which a day begins, in UTC without a zone."""
    return day * DAY_NANOSECONDS if days is None else local_days(days.time_zone).start(day)


def _started(days: WholeDays, value: Any) -> Any:
    return None if value is None else start_of_day(int(value) // DAY_NANOSECONDS, days)
