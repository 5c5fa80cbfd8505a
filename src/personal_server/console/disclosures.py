"""What is kept and what was read: sources and disclosures.

Rule: these pages tell names, counts and times, never what a record says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from starlette.responses import Response

from personal_server.console.pages import Templates
from personal_server.console.places import PAGE_LINES, list_page, parse_number
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.sources import source_views
from personal_server.console.words import day_of, field_words
from personal_server.domain.disclosure import DENIED, DisclosureEntry
from personal_server.domain.values import DAY_NANOSECONDS
from personal_server.granting.holdings import client_names, list_held
from personal_server.reading.ports import ReadPorts
from personal_server.storage.authorization import AuthorizationStore, HeldQuery
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports import DisclosureQuery, DisclosureStore

# The disclosure log for people: lines of a table and a plot of days.  Pure.


PLOT_WIDTH, PLOT_BASE = 720, 120
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


def plot_of(served: Mapping[int, int], now_ns: int, days: int) -> Plot:
    """Records per UTC day over the last days."""
    today = now_ns // DAY_NANOSECONDS
    counts = {day: served.get(day, 0) for day in range(today - days + 1, today + 1)}
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


PLOT_DAYS = 30
READERS_READ = 200


@dataclass(frozen=True, slots=True)
class RecordsPages:
    """`/owner/sources` and `/owner/disclosures`."""

    authorization: AuthorizationStore
    disclosures: DisclosureStore
    reads: ReadPorts
    catalogs: Catalogs
    pages: Templates
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """Where they stand."""
        return (
            PageRoute("GET", "/owner/sources", self.show_sources),
            PageRoute("GET", "/owner/disclosures", self.show_disclosures, frozenset({"before"})),
        )

    def show_sources(self, visit: PageRequest) -> Response:
        """What is stored, per connection."""
        catalog = self.catalogs()
        with self.reads.snapshot(None) as snapshot:
            stored, collections = snapshot.stored_streams(), snapshot.collections()
        with self.authorization.read() as reader:
            lasting = HeldQuery(self.clock(), lasts=True)
            held = list_held(reader, lasting, READERS_READ + 1)
        views = source_views(catalog, stored, collections, held[:READERS_READ])
        values = {"sources": views, "more_readers": len(held) > READERS_READ}
        return self.pages.show(visit, "sources.html", values)

    def show_disclosures(self, visit: PageRequest) -> Response:
        """Who read what, when.  Raises: InvalidRequest."""
        before = parse_number(visit.query.get("before"))
        found = self.disclosures.disclosures(DisclosureQuery(limit=PAGE_LINES + 1, below=before))
        with self.authorization.read() as reader:
            names = client_names(reader, (entry.client_id for _, entry in found))
        now_ns = self.clock()
        served = self.disclosures.served_by_day(now_ns - PLOT_DAYS * DAY_NANOSECONDS)
        return self.pages.show(
            visit,
            "disclosures.html",
            {
                "page": list_page(disclosure_lines(found, names), lambda line: str(line.number)),
                "newest": before is None,
                "plot": plot_of(served, now_ns, PLOT_DAYS),
            },
        )
