"""An owner's wish for a run now, whoever carries it out.

Source: docs/contract/feeds.md 2 and 11.
"""

from __future__ import annotations

from dataclasses import replace

from personal_server.feeds import feed_states
from personal_server.feeds.feed_ledger import ItemState
from personal_server.feeds.feed_states import FeedState
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.feed_stores import FeedStore

_UNREAD = ""
"""No version of the reader, so that an item is read again by the one that is there."""


def ask_for_run(store: FeedStore, feed_id: str, now_ns: int) -> FeedRow:
    """Make a feed due now, and have what was rejected tried again; one that runs is left alone.

    Raises: NotFound, InvalidState where it is paused.
    """

    def asked(feed: FeedRow) -> FeedRow:
        return feed if feed.state == FeedState.RUNNING else feed_states.ask(feed, now_ns)

    # before the feed is due, or the run could have begun with the ledger as it was
    lines = store.feed_items(feed_id)
    again = [replace(e, reader=_UNREAD) for e in lines if e.state == ItemState.REJECTED]
    if again:
        store.keep_feed_items(feed_id, again)
    return store.change_feed(feed_id, asked)
