"""Times as a caller names them: a range, a day, a clock's time; and the records that lie in it.

Rule: a bare day, and a time without an offset, mean the zone that the request names, else UTC days.
What lasts lies in a range that it overlaps; whole days and dates are days of that zone.
Source: docs/contract/resource-server.md 7.3, 7.9; docs/decisions.md C41.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from msgspec.structs import replace

from pdpp_kernel.criteria import Condition, Order, WholeDays
from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import InvalidRequest
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind, day_number, instant_ns
from personal_server.domain.authority import ReadableSource
from personal_server.domain.local_days import local_days
from personal_server.enforcement.queries import ALWAYS, Times

Sources = tuple[ReadableSource, ...]


@cache
def time_zones() -> frozenset[str]:
    """All IANA names, from the time zone data we ship with."""
    return frozenset(files("tzdata").joinpath("zones").read_text("utf-8").split())


def check_zone(name: str) -> None:
    """Raise: InvalidRequest unless it is the IANA name of a zone."""
    if name not in time_zones():
        raise InvalidRequest(
            "'time_zone' must be 'owner' or an IANA name, such as Europe/Rome or UTC.",
            param="time_zone",
        )


def times_in(texts: Mapping[str, str], time_zone: str | None) -> Times:
    """`since` and `until` of a request.  Raises: InvalidRequest."""
    nothing = (None, None)
    since_ns, since_day = _point(texts, "since", time_zone) or nothing
    until_ns, until_day = _point(texts, "until", time_zone) or nothing
    return Times(since_ns, until_ns, since_day, until_day)


def moment_of(text: str, time_zone: str | None, *, last: bool = False) -> int | None:
    """The instant that a text names: with an offset, or a day or a clock's time of the zone."""
    day = day_number(text)
    if day is not None:
        return _start(day, time_zone)
    found = instant_ns(text)
    if found is None and time_zone is not None:
        return local_days(time_zone).instant(text, last=last)
    return found


def _point(texts: Mapping[str, str], name: str, time_zone: str | None) -> tuple[int, int] | None:
    """An end of a range, and the day that it means for what lasts days."""
    text, is_end = texts.get(name), name == "until"
    if text is None:
        return None
    at_ns = moment_of(text, time_zone, last=is_end)
    if at_ns is None:
        raise InvalidRequest(
            f"'{name}' must be an instant with its offset, or a day: {name}=2026-01-31T09:00:00Z.",
            param=name,
        )
    day = day_number(text)
    return at_ns, _day_of(at_ns, time_zone, after=is_end) if day is None else day


def _day_of(at_ns: int, time_zone: str | None, *, after: bool) -> int:
    """The day that an instant lies in; `after`: the first that does not begin before it."""
    if time_zone is None:
        return -(-at_ns // DAY_NANOSECONDS) if after else at_ns // DAY_NANOSECONDS
    days = local_days(time_zone)
    return days.day_from(at_ns) if after else days.day_of(at_ns)


# What lies in a range.  Of a holiday from the 3rd to the 11th, asked for the 10th:
#
#   starts before the range ends      starts_at <  11th            (by the index of the time)
#   and starts in it, or ends after   starts_at >= 10th  OR  ends_at > 10th
#
# Whole days are stored as midnights (UTC), and are compared with days: 10th, whatever the zone.


def conditions_in(times: Times, field: Property, sources: Sources = ()) -> tuple[Condition, ...]:
    """The conditions on records of one stream that lie in a range of time, by that field."""
    if field.kind is None or times == ALWAYS:
        return ()
    end, (since_day, until_day) = end_of(field, sources), times.days
    if field.kind is ValueKind.DATE:
        return _bounds(field, since_day, until_day, end)
    timed, days = _bounds(field, times.since_ns, times.until_ns, end), flag_of(field, sources)
    if days is None:
        return timed
    since, until = (None if each is None else each * DAY_NANOSECONDS for each in times.days)
    whole = _bounds(field, since, until, end)
    either = _one_of(field, (flagged(days), *whole), (unflagged(days), *timed))
    return (*_outer(timed, whole), either)


def range_on(
    field: Property, operator: Operator, text: str, time_zone: str | None, sources: Sources
) -> Condition | None:
    """A bound of a filter on an instant; of whole days, the days that it leaves.

    `None` where the text names no time.
    """
    is_upper = operator in (Operator.LT, Operator.LTE)
    day = day_number(text)
    at_ns = moment_of(text, time_zone, last=is_upper)
    if at_ns is None:
        return None
    if day is None:
        timed = Condition(field.name, ValueKind.INSTANT, operator, at_ns)
        goes_past = operator in (Operator.GT, Operator.LTE)
        day = _day_of(at_ns, time_zone, after=not goes_past) + goes_past
    else:
        # a bare day means all of it: `gt` and `lte` are of its end
        day += operator in (Operator.GT, Operator.LTE)
        whole = Operator.LT if is_upper else Operator.GTE
        timed = Condition(field.name, ValueKind.INSTANT, whole, _start(day, time_zone))
    flag = None if time_zone is None else flag_of(field, sources)
    if flag is None:
        return timed
    sign = Operator.LT if is_upper else Operator.GTE
    midnight = Condition(field.name, ValueKind.INSTANT, sign, day * DAY_NANOSECONDS)
    return _one_of(field, (flagged(flag), midnight), (unflagged(flag), timed))


def flagged(flag: str) -> Condition:
    """Records that last whole days."""
    return Condition(flag, ValueKind.BOOLEAN, Operator.EQ, True)


def unflagged(flag: str) -> Condition:
    """All others, also those that do not say."""
    missing = Condition(flag, ValueKind.BOOLEAN, Operator.EXISTS, False)
    not_missing = Condition(flag, ValueKind.BOOLEAN, Operator.EQ, False)
    return replace(missing, any_of=((not_missing,), (missing,)))


def _bounds(
    field: Property, since: int | None, until: int | None, end: Property | None
) -> tuple[Condition, ...]:
    kind = field.kind or ValueKind.INSTANT
    found: list[Condition] = []
    if since is not None:
        begun = Condition(field.name, kind, Operator.GTE, since)
        if end is not None:
            # the last day of what lasts from day to day is part of it
            sign = Operator.GTE if end.kind is ValueKind.DATE else Operator.GT
            begun = _one_of(field, (begun,), (Condition(end.name, kind, sign, since),))
        found.append(begun)
    if until is not None:
        found.append(Condition(field.name, kind, Operator.LT, until))
    return tuple(found)


def _outer(timed: tuple[Condition, ...], whole: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Bounds that both leave room for, so that an index narrows."""
    found: list[Condition] = []
    for one, other in zip(timed, whole, strict=True):
        if not one.any_of:
            best = max if one.operator in (Operator.LT, Operator.LTE) else min
            found.append(best(one, other, key=lambda each: int(each.value)))
    return tuple(found)


def end_of(field: Property, sources: Sources) -> Property | None:
    """Until when records last, where every source grants that."""
    if not sources or field.name != sources[0].declared.event_time_field:
        return None
    declared = sources[0].declared
    end = _granted(sources, declared.event_end_field)
    return end if end and end.name in declared.sortable and end.kind is field.kind else None


def flag_of(field: Property, sources: Sources) -> str | None:
    """Which field says that a record lasts whole days, where every source grants it.

    Shapes: `field` is a time from or until which it lasts.
    """
    if not sources or field.kind is not ValueKind.INSTANT:
        return None
    declared = sources[0].declared
    if field.name not in (declared.event_time_field, declared.event_end_field):
        return None
    flag = _granted(sources, declared.whole_days_field)
    return flag.name if flag and flag.kind is ValueKind.BOOLEAN else None


def whole_days(field: Property, sources: Sources, time_zone: str | None) -> WholeDays | None:
    """Which records are days of a zone in an order by that field, or in its buckets."""
    flag = None if time_zone is None else flag_of(field, sources)
    return WholeDays(flag, time_zone) if flag and time_zone else None


def order_in_time(
    source: ReadableSource, field: Property, time_zone: str | None, *, descending: bool
) -> Order:
    """The order of a source on a time line, where days of a zone stand at their start."""
    days = whole_days(field, (source,), time_zone)
    if time_zone is not None and field.kind is ValueKind.DATE:
        days = WholeDays("", time_zone)
    return Order(field.name, field.kind, descending, days)


def _granted(sources: Sources, name: str | None) -> Property | None:
    if name is None or not all(name in source.fields for source in sources):
        return None
    return sources[0].declared.properties[name]


def _start(day: int, time_zone: str | None) -> int:
    return day * DAY_NANOSECONDS if time_zone is None else local_days(time_zone).start(day)


def _one_of(field: Property, *choices: tuple[Condition, ...]) -> Condition:
    kind = field.kind or ValueKind.INSTANT
    return Condition(field.name, kind, Operator.EXISTS, True, any_of=choices)
