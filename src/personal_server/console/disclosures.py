"""What is kept and what was read: sources and disclosures.

Rule: these pages tell names, counts and times, never what a record says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import Response

from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.sources import source_views
from personal_server.console.words import day_of, field_words
from personal_server.domain.disclosure import DENIED, DisclosureEntry
from personal_server.domain.values import DAY_NANOSECONDS
from personal_server.errors import InvalidRequest
from personal_server.granting.holdings import list_held
from personal_server.reading.ports import ReadPorts
from personal_server.storage.authorization import AuthorizationStore
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


PAGE_LINES = 50
PLOT_DAYS = 30
PLOT_ENTRIES = 20_000


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
            held = list_held(reader, self.clock())
        views = source_views(catalog, stored, collections, held)
        return self.pages.show(visit, "sources.html", {"sources": views})

    def show_disclosures(self, visit: PageRequest) -> Response:
        """Who read what, when.  Raises: InvalidRequest."""
        before = _number(visit.query.get("before"))
        found = self.disclosures.disclosures(DisclosureQuery(limit=PAGE_LINES + 1, below=before))
        now_ns = self.clock()
        since = (now_ns // DAY_NANOSECONDS - PLOT_DAYS + 1) * DAY_NANOSECONDS
        recent = self.disclosures.disclosures(DisclosureQuery(PLOT_ENTRIES, since_ns=since))
        with self.authorization.read() as reader:
            names = {held.client_id: held.client_name for held in list_held(reader, now_ns)}
        lines = disclosure_lines(found[:PAGE_LINES], names)
        return self.pages.show(
            visit,
            "disclosures.html",
            {
                "lines": lines,
                "older": lines[-1].number if len(found) > PAGE_LINES else None,
                "newest": before is None,
                "plot": plot_of([entry for _, entry in recent], now_ns, PLOT_DAYS),
            },
        )


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise InvalidRequest("That is not a place in the list.", param="before")
    return int(text)
