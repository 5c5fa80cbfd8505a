"""Feeds on the owner's pages: how fresh an account is, and what needs its owner.

Source: docs/contract/feeds.md 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import unquote

import msgspec

from pdpp_kernel.texts import Text, message
from personal_server.feeds.feed_sentences import advice
from personal_server.feeds.feed_states import FeedState, is_refused
from personal_server.feeds.feed_trouble import trouble_of
from personal_server.storage.feed_rows import FeedRow

FeedList = Callable[[], Sequence[FeedRow]]
FeedRunner = Callable[[str], object]
"""Has a feed run now, by its id.  Raises: NotFound, InvalidState where it is paused."""
STATES: dict[str, Text] = {
    FeedState.WAITING: message("waiting for the next run"),
    FeedState.RUNNING: message("running now"),
    FeedState.RESTING: message("trying again later"),
    FeedState.NEEDS_YOU: message("waiting for you"),
    FeedState.PAUSED: message("paused"),
}


class FeedView(msgspec.Struct, frozen=True):
    """A feed as a page shows it.

    Shapes: `silent_since_ns` is there while a run waits for a silent server; `trouble` says what
        to do, where the last run failed or all is silent; `next_ns` is there where it runs again by
        itself.
    """

    feed_id: str
    name: str
    place: str
    state: Text
    can_run: bool
    succeeded_at_ns: int | None
    next_ns: int | None
    trouble: Text | None
    failing_since_ns: int | None
    brought_at_ns: int | None
    silent_since_ns: int | None = None


def feeds_of_account(feeds: Iterable[FeedRow], connection_id: str) -> Iterator[FeedView]:
    """Those that filled an account."""
    return (view_of_feed(each) for each in feeds if connection_id in each.connection_ids)


def feeds_in_trouble(feeds: Iterable[FeedRow]) -> Iterator[FeedView]:
    """Those that need their owner, failed several times in a row or are silent too long."""
    return (view_of_feed(each) for each in feeds if trouble_of(each))


def view_of_feed(feed: FeedRow) -> FeedView:
    """One as a page shows it."""
    runs_again = feed.state in (FeedState.WAITING, FeedState.RESTING)
    return FeedView(
        feed.feed_id,
        feed.name,
        unquote(feed.place) if "://" in feed.place else feed.place,
        STATES[feed.state],
        feed.state not in (FeedState.PAUSED, FeedState.RUNNING) and not is_refused(feed),
        feed.succeeded_at_ns,
        feed.due_at_ns if runs_again else None,
        advice(feed),
        feed.failing_since_ns,
        feed.brought_at_ns,
        feed.silent_since_ns,
    )
