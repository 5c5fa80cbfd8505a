"""When the owner of a feed is told of it: it waits for them, keeps failing, or is silent too long.

Rule: pure, and of the stored row alone, so that overview, status and events say the same.
Source: docs/contract/feeds.md 6.2.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.feeds.feed_states import FeedState
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.feed_rows import FeedRow

FEED_STALE, FEED_RECOVERED = "feed.stale", "feed.recovered"
"""Events of the owner's log: a feed is stale for another reason than before, or well again."""
FAILURES_TOLD = 3
# Fewer runs that brought something tell nothing of how long an account is usually silent.
LEAST_ARRIVALS = 5
LEAST_SILENCE_NS = 3 * DAY_NANOSECONDS
TOLD_BEFORE_NS = 2 * DAY_NANOSECONDS


class FeedTrouble(StrEnum):
    """Why a feed is stale."""

    NEEDS_YOU = "needs_you"
    FAILING = "failing"
    SIGN_IN_ENDS = "sign_in_ends"
    SILENT = "silent"


def trouble_of(feed: FeedRow) -> FeedTrouble | None:
    """Why a feed is stale; nothing, where its account is as current as it can be."""
    if feed.state == FeedState.NEEDS_YOU:
        return FeedTrouble.NEEDS_YOU
    if feed.state == FeedState.PAUSED:
        return None
    if feed.failures >= FAILURES_TOLD:
        return FeedTrouble.FAILING
    if _is_about_to_end(feed):
        return FeedTrouble.SIGN_IN_ENDS
    longest_ns = max(feed.longest_silence_ns, LEAST_SILENCE_NS)
    is_silent = feed.arrivals >= LEAST_ARRIVALS and silence_ns(feed) > longest_ns
    return FeedTrouble.SILENT if is_silent else None


def _is_about_to_end(feed: FeedRow) -> bool:
    ends_ns, succeeded_ns = feed.sign_in_ends_ns, feed.succeeded_at_ns
    return (
        ends_ns is not None and succeeded_ns is not None and ends_ns - succeeded_ns < TOLD_BEFORE_NS
    )


def with_trouble(feed: FeedRow, *, succeeded: bool) -> FeedRow:
    """The feed after a run, with what its owner is told of it.

    Only a run that succeeded shows that it is well again: one that was resumed has no reason to be
    stale, and fails as before.
    """
    trouble = trouble_of(feed)
    return feed if trouble is None and not succeeded else replace(feed, trouble=trouble)


def trouble_event(before: FeedRow, after: FeedRow, now_ns: int) -> AuditRow | None:
    """The event of the owner's log about a run that left a feed so, from which notifications are
    made; nothing where its owner knows already.
    """
    if before.trouble == after.trouble:
        return None
    facts = {"feed": after.feed_id, "rule": after.trouble, "code": after.code}
    return AuditRow(
        event=FEED_RECOVERED if after.trouble is None else FEED_STALE,
        at_ns=now_ns,
        actor="server",
        detail={name: value for name, value in facts.items() if value is not None},
    )


def silence_ns(feed: FeedRow) -> int:
    """For how long runs that succeeded found nothing new; no run, no silence."""
    if feed.brought_at_ns is None or feed.succeeded_at_ns is None:
        return 0
    return max(0, feed.succeeded_at_ns - feed.brought_at_ns)


def with_arrival(feed: FeedRow, now_ns: int) -> FeedRow:
    """The feed after a run that stored new records; how long none came before is remembered."""
    longest_ns = feed.longest_silence_ns
    if feed.brought_at_ns is not None:
        longest_ns = max(longest_ns, now_ns - feed.brought_at_ns)
    return replace(
        feed, brought_at_ns=now_ns, arrivals=feed.arrivals + 1, longest_silence_ns=longest_ns
    )
