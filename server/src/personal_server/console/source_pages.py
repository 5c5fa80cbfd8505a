"""The page of all sources, with what each holds and which apps read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import Response

from personal_server.console.feed_views import FeedList, view_of_feed
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.sources import source_views
from personal_server.granting.holdings import list_held
from personal_server.reading.ports import ReadPorts
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import AuthorizationStore, HeldQuery

READERS_READ = 200


@dataclass(frozen=True, slots=True)
class SourcePages:
    """`/owner/sources`."""

    authorization: AuthorizationStore
    reads: ReadPorts
    catalogs: Catalogs
    pages: Templates
    clock: Callable[[], int]
    has_uploads: bool = False
    feeds: FeedList = tuple
    adds_feeds: bool = False

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (PageRoute("GET", "/owner/sources", self.show_sources),)

    def show_sources(self, visit: PageRequest) -> Response:
        """What is stored, per connection."""
        catalog = self.catalogs()
        with self.reads.snapshot(None) as snapshot:
            stored, collections = snapshot.stored_streams(), snapshot.collections()
        with self.authorization.read() as reader:
            lasting = HeldQuery(self.clock(), lasts=True)
            held = list_held(reader, lasting, READERS_READ + 1)
        views = source_views(catalog, stored, collections, held[:READERS_READ])
        values = {
            "sources": views,
            "more_readers": len(held) > READERS_READ,
            "uploads": self.has_uploads,
            "feeds": [view_of_feed(each) for each in self.feeds()],
            "adds_feeds": self.adds_feeds,
        }
        return self.pages.show(visit, "sources.html", values)
