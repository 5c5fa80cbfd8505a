"""The first page of the records: a card for each account, with what brings its records.

Rule: each page takes the road of a token's read, that of the viewpoint whose pages these are,
bounded in rows and time; what only the owner is told is left out of an app's.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.persons import CONNECTOR_KEY as PERSONS
from pdpp_kernel.texts import Text, span_of_texts
from pdpp_kernel.values import instant_or_day_ns
from personal_server.console.feed_views import FeedList, view_of_feed
from personal_server.console.pages import Templates
from personal_server.console.places import parse_number
from personal_server.console.record_figures import FIGURES_SECONDS, ViewFigures
from personal_server.console.record_view import RecordsView
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.sources import STATUS_WORDS, readers_of
from personal_server.console.viewpoints import (
    ROOTS,
    Viewpoint,
    Viewpoints,
    account_name,
    records_path,
)
from personal_server.console.words import declared_name
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.stored import Collection, RunStatus
from personal_server.granting.holdings import list_held
from personal_server.reading.newest_times import newest_time, oldest_time
from personal_server.reading.ports import ReadPorts
from personal_server.storage.catalog import Catalog, Catalogs
from personal_server.storage.feed_rows import FEED_ID
from personal_server.storage.ports.authorization_store import AuthorizationStore, HeldQuery
from personal_server.storage.ports.snapshots import ReadSnapshot

STREAMS_SHOWN = 40
READERS_READ = 200
PAGE_SECONDS = 10.0
Ends = tuple[str, str] | None
"""The times of the oldest and of the newest record, as they are stored."""


class KindLine(msgspec.Struct, frozen=True):
    """A kind of records of an account; `count` is none where counting takes too long."""

    link: str
    label: str
    count: int | None


class AccountCard(msgspec.Struct, frozen=True):
    """An account with what it holds.

    Shapes: `total` is none where one of its kinds is not counted; `span` is empty where nothing of
        it has a time; everything below `span` is told to the owner alone.
    """

    connection_id: str
    name: str
    source: str
    kinds: tuple[KindLine, ...]
    total: int | None
    span: Text
    updated_at_ns: int | None = None
    has_failed: bool = False
    status: ConnectionStatus | None = None
    readers: tuple[str, ...] = ()

    @property
    def status_words(self) -> tuple[str, Text] | None:
        """How its status is marked and said, where it is not the usual one."""
        if self.status in (None, ConnectionStatus.ACTIVE):
            return None
        return STATUS_WORDS[self.status]


class AccountCardPages(msgspec.Struct, frozen=True):
    """`/owner/records`, for every viewpoint; `/owner/sources` leads there."""

    authorization: AuthorizationStore
    catalogs: Catalogs
    viewpoints: Viewpoints
    pages: Templates
    clock: Callable[[], int]
    has_uploads: bool = False
    feeds: FeedList = tuple
    adds_feeds: bool = False

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        shown = (
            PageRoute("GET", f"{root}/records", self.show_accounts, frozenset({"from"}))
            for root in ROOTS
        )
        return (PageRoute("GET", "/owner/sources", self.lead), *shown)

    def lead(self, visit: PageRequest) -> Response:
        """To where sources and records are one page."""
        return self.pages.go(visit, "/owner/records")

    def show_accounts(self, visit: PageRequest) -> Response:
        """Every account that holds records; for the owner those that hold none, too."""
        first = parse_number(visit.query.get("from")) or 0
        viewpoint = self.viewpoints.of(visit)
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            stored = stored_counts(snapshot)
            sources = [source for source in authority.sources if stored.get(source.order)]
            sources.sort(key=lambda s: (account_name(s).lower(), s.connection_id, -stored[s.order]))
            following = _end_of_account(sources, first + STREAMS_SHOWN)
            shown = sources[first:following]
            ends = [_ends(viewpoint.reads.ports, snapshot, authority, source) for source in shown]
            collections: Mapping[str, Collection] = {} if viewpoint.app else snapshot.collections()
        until = time.monotonic() + FIGURES_SECONDS
        cards: list[AccountCard] = []
        pairs = zip(shown, ends, strict=True)
        for connection_id, group in groupby(pairs, key=lambda pair: pair[0].connection_id):
            of_account = list(group)
            counts = [count_of(viewpoint, source, stored, until) for source, _ in of_account]
            collection = collections.get(connection_id) or Collection()
            cards.append(_card(viewpoint.root, of_account, counts, collection))
        has_more = following < len(sources)
        values = {
            "viewpoint": viewpoint,
            "accounts": cards,
            "records": sum(stored[source.order] for source in sources),
            "next": following if has_more else None,
            "begins": first == 0,
        }
        if not viewpoint.app:
            full = {source.connection_id for source in sources}
            values |= self._for_the_owner(cards, full, collections, has_more=has_more)
        return self.pages.show(visit, "records.html", values)

    def _for_the_owner(
        self,
        cards: list[AccountCard],
        full: set[str],
        collections: Mapping[str, Collection],
        *,
        has_more: bool,
    ) -> dict[str, object]:
        """The cards with who may read them, and after the last those of `full`'s empty siblings."""
        catalog = self.catalogs()
        with self.authorization.read() as reader:
            lasting = HeldQuery(self.clock(), lasts=True)
            holdings = list_held(reader, lasting, READERS_READ + 1)
        known = {each.connection_id: each for each in catalog.connections}
        shown_cards = [
            replace(
                card,
                status=known[card.connection_id].status,
                readers=readers_of(holdings[:READERS_READ], card.connection_id),
            )
            if card.connection_id in known
            else card
            for card in cards
        ]
        if not has_more:
            shown_cards += [
                _empty_card(each, catalog, collections.get(each.connection_id) or Collection())
                for each in catalog.connections
                if each.connection_id not in full and each.connector_key != PERSONS
            ]
        return {
            "accounts": shown_cards,
            "more_readers": len(holdings) > READERS_READ,
            "uploads": self.has_uploads,
            "feeds": [view_of_feed(each) for each in self.feeds()],
            "adds_feeds": self.adds_feeds,
            "persons": any(each.connector_key == PERSONS for each in catalog.connections),
        }


def _end_of_account(sources: Sequence[ReadableSource], end: int) -> int:
    """The first place at or after this one at which an account begins, or the end."""
    while 0 < end < len(sources) and sources[end].connection_id == sources[end - 1].connection_id:
        end += 1
    return end


def _card(
    root: str,
    sources: Sequence[tuple[ReadableSource, Ends]],
    counts: Sequence[int | None],
    collection: Collection,
) -> AccountCard:
    first = sources[0][0]
    kinds = tuple(
        KindLine(records_path(root, *source.order), declared_name(source.declared.label), count)
        for (source, _), count in zip(sources, counts, strict=True)
    )
    begins = [ends[0] for _, ends in sources if ends is not None]
    stops = [ends[1] for _, ends in sources if ends is not None]
    span = span_of_texts(min(begins, key=_at_ns), max(stops, key=_at_ns)) if begins else ""
    known = [count for count in counts if count is not None]
    return AccountCard(
        first.connection_id,
        account_name(first),
        declared_name(first.source_name or first.connector_key),
        kinds,
        sum(known) if len(known) == len(counts) else None,
        span,
        collection.last_succeeded_at_ns,
        _has_failed(collection),
    )


def _empty_card(connection: Connection, catalog: Catalog, collection: Collection) -> AccountCard:
    declaration = catalog.declarations.get(connection.source_id)
    return AccountCard(
        connection.connection_id,
        connection.display_name or connection.connection_id,
        connection.connector_key
        if declaration is None
        else declared_name(declaration.display_name),
        (),
        0,
        "",
        collection.last_succeeded_at_ns,
        _has_failed(collection),
        connection.status,
    )


def _has_failed(collection: Collection) -> bool:
    """Whether its last import failed, if it was no feed's: a feed says so itself."""
    run = collection.last_run
    if run is None or run.run_id.startswith(FEED_ID):
        return False
    return run.status is RunStatus.FAILED


def _at_ns(text: str) -> int:
    """The instant of a time, or of the midnight of a day."""
    return instant_or_day_ns(text) or 0


def _ends(
    ports: ReadPorts, snapshot: ReadSnapshot, authority: ReadAuthority, source: ReadableSource
) -> Ends:
    """The times of the oldest and of the newest record."""
    state = (ports, snapshot, authority, source)
    times = [each for each in (oldest_time(*state), newest_time(*state)) if each is not None]
    return (times[0], times[-1]) if times else None


def count_of(
    viewpoint: Viewpoint,
    source: ReadableSource,
    stored: Mapping[tuple[str, str], int],
    until: float,
) -> int | None:
    """How many records a viewpoint has of a source; `None` where that takes too long."""
    if source.grant_id is None:  # no grant leaves any out
        return stored.get(source.order, 0)
    view = RecordsView(*source.order, root=viewpoint.root)
    return ViewFigures(viewpoint.reads, view, source, until).count()


def stored_counts(snapshot: ReadSnapshot) -> dict[tuple[str, str], int]:
    """How many records are stored, by connection and stream."""
    stored = snapshot.stored_streams()
    return {(each.connection_id, each.stream): each.record_count for each in stored}
