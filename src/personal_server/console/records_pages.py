"""What is kept and what was read: sources and disclosures.

Rule: these pages tell names, counts and times, never what a record says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import Response

from personal_server.console.disclosure_view import disclosure_lines, plot_of
from personal_server.console.frame import PageRoute
from personal_server.console.pages import Pages
from personal_server.console.source_view import source_views
from personal_server.console.visits import Visit
from personal_server.domain.values import DAY_NANOSECONDS
from personal_server.errors import InvalidRequest
from personal_server.granting.holdings import list_held
from personal_server.reading.ports import ReadPorts
from personal_server.storage.authorization import AuthorizationStore
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports import DisclosureQuery, DisclosureStore

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
    pages: Pages
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """Where they stand."""
        return (
            PageRoute("GET", "/owner/sources", self.show_sources),
            PageRoute("GET", "/owner/disclosures", self.show_disclosures, frozenset({"before"})),
        )

    def show_sources(self, visit: Visit) -> Response:
        """What is stored, per connection."""
        catalog = self.catalogs()
        with self.reads.snapshot(None) as snapshot:
            stored, collections = snapshot.stored_streams(), snapshot.collections()
        with self.authorization.read() as reader:
            held = list_held(reader, self.clock())
        views = source_views(catalog, stored, collections, held)
        return self.pages.show(visit, "sources.html", {"sources": views})

    def show_disclosures(self, visit: Visit) -> Response:
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
