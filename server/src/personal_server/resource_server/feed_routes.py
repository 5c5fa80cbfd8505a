"""Feeds over `/v1`: how each is, and a run that the owner's program asks for.

Source: docs/contract/feeds.md 11.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from pdpp_kernel.errors import InvalidCursor, InvalidState, NotFound
from pdpp_kernel.values import render_instant
from pdpp_kernel.wire_objects import ConnectionId, Count, Instant, WireObject, Word
from personal_server.domain.cursor import Sealer
from personal_server.enforcement.queries import DEFAULT_LIMIT, MAX_LIMIT
from personal_server.feeds.feed_requests import ask_for_run
from personal_server.feeds.feed_states import FeedState
from personal_server.feeds.feed_trouble import FeedTrouble, trouble_of
from personal_server.resource_server.envelopes import (
    ListOf,
    Meta,
    SelfLink,
    completed,
    page_of,
)
from personal_server.resource_server.owner_lists import named_page
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.feed_stores import FeedStore
from personal_server.web.parameters import CURSOR, page_limit
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import Route, owner

ROOT = "/v1/feeds"
RUNS_BY_ITSELF = (FeedState.WAITING, FeedState.RESTING)


class ShownFeed(WireObject, kw_only=True, tag_field="object", tag="feed"):
    """A feed as its owner's programs see it; not where it looks, which may name people."""

    feed_id: Word
    name: str
    kind: Word
    state: FeedState
    code: Word | None
    stale: FeedTrouble | None
    failures: Count
    failing_since: Instant | None
    last_success: Instant | None
    next_run: Instant | None
    connection_ids: Sequence[ConnectionId]


class SingleFeed(ShownFeed, kw_only=True):
    """One feed."""

    component: ClassVar = "Feed"

    links: SelfLink
    meta: Meta


class FeedPage(ListOf[ShownFeed]):
    """A page of feeds."""

    component: ClassVar = "FeedList"


class FeedRoutes:
    """The routes of one store; without feeds there is nothing to list or run."""

    def __init__(self, store: FeedStore | None, sealer: Sealer, clock: Callable[[], int]) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock

    def routes(self) -> tuple[Route, ...]:
        """`GET /v1/feeds`, `POST /v1/feeds/{id}/run`."""
        return (
            owner(
                Route(
                    "GET",
                    ROOT,
                    self.list,
                    "What keeps your accounts current, and how each is.",
                    "14.7",
                    answer=FeedPage,
                    parameters=(page_limit(DEFAULT_LIMIT, MAX_LIMIT), CURSOR),
                    errors=(InvalidCursor,),
                )
            ),
            owner(
                Route(
                    "POST",
                    f"{ROOT}/{{id}}/run",
                    self.run,
                    "Has a feed look for new data now.",
                    "14.7",
                    answer=SingleFeed,
                    success=202,
                    errors=(NotFound, InvalidState),
                )
            ),
        )

    def list(self, request: Request) -> Reply:
        """By id, so that a cursor keeps its place where a feed is renamed."""
        feeds = [] if self._store is None else self._store.feeds()
        items = sorted((each.feed_id, each) for each in feeds)
        page, cursor = named_page(request, self._sealer, items)
        rows = [_shown(each) for each in page]
        return Reply(page_of(FeedPage, request, rows, next_cursor=cursor))

    def run(self, request: Request) -> Reply:
        """Asked for and answered at once; the state tells when it has begun and ended."""
        if self._store is None:
            raise NotFound("There is no such feed.")
        feed = ask_for_run(self._store, request.path["id"], self._clock())
        return Reply(completed(SingleFeed, request, _shown(feed)), 202)


def _shown(feed: FeedRow) -> ShownFeed:
    return ShownFeed(
        feed_id=feed.feed_id,
        name=feed.name,
        kind=feed.kind,
        state=FeedState(feed.state),
        code=feed.code,
        stale=trouble_of(feed),
        failures=feed.failures,
        failing_since=_instant(feed.failing_since_ns),
        last_success=_instant(feed.succeeded_at_ns),
        next_run=_instant(feed.due_at_ns if feed.state in RUNS_BY_ITSELF else None),
        connection_ids=feed.connection_ids,
    )


def _instant(at_ns: int | None) -> str | None:
    return None if at_ns is None else render_instant(at_ns)
