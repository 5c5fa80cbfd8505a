"""The disclosure log for people: lines of a table and a plot of days.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from personal_server.console.words import day_of, field_words
from personal_server.domain.disclosure import DENIED, DisclosureEntry
from personal_server.domain.values import DAY_NANOSECONDS

PLOT_WIDTH, PLOT_HEIGHT, PLOT_BASE = 720, 150, 120
HOW = {
    "query_records": "listed records",
    "aggregate": "counted or summed",
    "search": "searched",
    "fetch": "opened a record",
    "read_record_field": "read a long text",
    "schema": "looked at what there is",
}


@dataclass(frozen=True, slots=True)
class DisclosureLine:
    """One row of the table."""

    number: int
    at_ns: int
    who: str
    access_id: str | None
    how: str
    stream: str | None
    fields: tuple[str, ...]
    record_count: int
    size_bytes: int
    refused: str | None


@dataclass(frozen=True, slots=True)
class Bar:
    """One day of the plot, in its coordinates."""

    x: float
    width: float
    y: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Records read per day."""

    bars: tuple[Bar, ...]
    first: str
    last: str
    most: int
    total: int


def disclosure_lines(
    found: Iterable[tuple[int, DisclosureEntry]], names: Mapping[str, str]
) -> list[DisclosureLine]:
    """Entries as lines; `names` of clients by id."""
    return [
        DisclosureLine(
            number=number,
            at_ns=entry.at_ns,
            who=names.get(entry.client_id or "", entry.client_id or "you"),
            access_id=entry.package_id or entry.grant_id,
            how=HOW.get(entry.tool or "", f"{entry.channel} {entry.tool or entry.route}"),
            stream=entry.stream,
            fields=tuple(field_words(name) for name in entry.fields),
            record_count=entry.record_count,
            size_bytes=entry.size_bytes,
            refused=entry.error_code if entry.outcome == DENIED else None,
        )
        for number, entry in found
    ]


def plot_of(entries: Sequence[DisclosureEntry], now_ns: int, days: int) -> Plot:
    """Records per UTC day over the last days."""
    today = now_ns // DAY_NANOSECONDS
    counts = dict.fromkeys(range(today - days + 1, today + 1), 0)
    for entry in entries:
        day = entry.at_ns // DAY_NANOSECONDS
        if day in counts and entry.outcome != DENIED:
            counts[day] += entry.record_count
    most = max(counts.values())
    step = PLOT_WIDTH / days
    return Plot(
        bars=tuple(
            _bar(place, step, count, most, day) for place, (day, count) in enumerate(counts.items())
        ),
        first=day_of((today - days + 1) * DAY_NANOSECONDS),
        last=day_of(now_ns),
        most=most,
        total=sum(counts.values()),
    )


def _bar(place: int, step: float, count: int, most: int, day: int) -> Bar:
    height = 0.0 if not most else (PLOT_BASE - 20) * count / most
    height = max(height, 2.0) if count else 0.0
    words = f"{day_of(day * DAY_NANOSECONDS)}: {count:,} records"
    return Bar(
        round(place * step + 2, 1), round(step - 4, 1), round(PLOT_BASE - height, 1), height, words
    )
