"""The states of a feed, and the only ways from one to another.

Rule: pure; what a run does is decided elsewhere, and ends here as a word.
Source: docs/contract/feeds.md 2 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType

from pdpp_kernel.errors import InvalidState
from pdpp_kernel.values import NANOSECONDS
from personal_server.feeds.feed_schedule import is_due
from personal_server.storage.feed_rows import FeedRow

LEASE_NS = 120 * NANOSECONDS
RENEW_SECONDS = 30.0
HURRY_NS = 5 * NANOSECONDS
SIGN_IN_REFUSED = "sign_in_refused"


class FeedState(StrEnum):
    """What a feed does now."""

    WAITING = "waiting"
    RUNNING = "running"
    RESTING = "resting"
    NEEDS_YOU = "needs_you"
    PAUSED = "paused"


class FeedEvent(StrEnum):
    """What happens to a feed."""

    BEGINS = "begins"
    SUCCEEDS = "succeeds"
    FAILS = "fails"
    CANNOT_GO_ON = "cannot_go_on"
    PAUSES = "pauses"
    RESUMES = "resumes"
    ASKS = "asks"


_S, _E = FeedState, FeedEvent
TRANSITIONS: Mapping[tuple[FeedState, FeedEvent], FeedState] = MappingProxyType(
    {
        (_S.WAITING, _E.BEGINS): _S.RUNNING,
        (_S.RESTING, _E.BEGINS): _S.RUNNING,
        (_S.RUNNING, _E.BEGINS): _S.RUNNING,  # once the lease of the one before has ended
        (_S.RUNNING, _E.SUCCEEDS): _S.WAITING,
        (_S.RUNNING, _E.FAILS): _S.RESTING,
        (_S.RUNNING, _E.CANNOT_GO_ON): _S.NEEDS_YOU,
        **{(state, _E.PAUSES): _S.PAUSED for state in _S},
        **{(state, _E.RESUMES): _S.WAITING for state in (_S.PAUSED, _S.NEEDS_YOU, _S.RESTING)},
        **{(state, _E.ASKS): _S.WAITING for state in (_S.WAITING, _S.NEEDS_YOU, _S.RESTING)},
    }
)


def after(feed: FeedRow, event: FeedEvent) -> FeedState:
    """The state that an event leads to.  Raises: InvalidState where it cannot happen."""
    found = TRANSITIONS.get((FeedState(feed.state), event))
    if found is None:
        raise InvalidState(
            "This cannot be done with the feed as it is now.",
            next_step="`pdpp feed list` shows the state of each feed.",
        )
    return found


def may_begin(feed: FeedRow, now_ns: int) -> bool:
    """Whether a run may begin by itself: it is due, and nobody has the lease."""
    if feed.state == FeedState.RUNNING:
        return _lease_ended(feed, now_ns)
    began_by_itself = feed.state in (FeedState.WAITING, FeedState.RESTING)
    return began_by_itself and is_due(feed, now_ns)


def begin(feed: FeedRow, holder: str, now_ns: int) -> FeedRow:
    """The feed with the lease of `holder`.  Raises: InvalidState while another has it."""
    if feed.state == FeedState.RUNNING and not _lease_ended(feed, now_ns):
        raise InvalidState(
            "This feed is being run by another process.",
            next_step="Wait until that run ends; `pdpp feed list` shows it.",
        )
    state = after(feed, FeedEvent.BEGINS)
    until_ns = now_ns + LEASE_NS
    return replace(feed, state=state, holder=holder, held_until_ns=until_ns, silent_since_ns=None)


def renew(feed: FeedRow, holder: str, now_ns: int, silent_ns: int = 0) -> FeedRow:
    """The feed with a longer lease; as it is where another has it.

    Shapes: `silent_ns` is how long its server has said nothing, where that is long.
    """
    if not _is_held(feed, holder):
        return feed
    silent_since_ns = now_ns - silent_ns if silent_ns else None
    return replace(feed, held_until_ns=now_ns + LEASE_NS, silent_since_ns=silent_since_ns)


def succeed(feed: FeedRow, holder: str, now_ns: int, due_at_ns: int) -> FeedRow:
    """What a run that succeeded leaves; nothing, where another has the lease."""
    if not _is_held(feed, holder):
        return feed
    return replace(
        _released(feed, FeedEvent.SUCCEEDS),
        code=None,
        failures=0,
        failing_since_ns=None,
        succeeded_at_ns=now_ns,
        due_at_ns=due_at_ns,
    )


def put_off(feed: FeedRow, holder: str, due_at_ns: int) -> FeedRow:
    """What a run leaves that could not begin for no fault of the feed."""
    if not _is_held(feed, holder):
        return feed
    return replace(_released(feed, FeedEvent.SUCCEEDS), due_at_ns=due_at_ns)


def fail(
    feed: FeedRow, holder: str, code: str, now_ns: int, due_at_ns: int, *, needs_owner: bool
) -> FeedRow:
    """What a run that failed leaves; nothing, where another has the lease."""
    if not _is_held(feed, holder):
        return feed
    event = FeedEvent.CANNOT_GO_ON if needs_owner else FeedEvent.FAILS
    since_ns = feed.failing_since_ns if feed.failures else now_ns
    return replace(
        _released(feed, event),
        code=code,
        failures=feed.failures + 1,
        failing_since_ns=since_ns,
        due_at_ns=due_at_ns,
    )


def hurry(feed: FeedRow, now_ns: int) -> FeedRow:
    """A feed whose place says that something changed: due soon, where all is well with it."""
    if feed.state != FeedState.WAITING or feed.code is not None:
        return feed
    soon_ns = max(now_ns, (feed.succeeded_at_ns or 0) + HURRY_NS)
    return replace(feed, due_at_ns=min(feed.due_at_ns, soon_ns))


def may_watch(feed: FeedRow) -> bool:
    """Whether somebody may wait at the place of a feed: its last run could sign in."""
    is_at_work = feed.state in (FeedState.WAITING, FeedState.RUNNING)
    return is_at_work and feed.code is None and feed.succeeded_at_ns is not None


def watch(feed: FeedRow, holder: str, now_ns: int) -> FeedRow:
    """The feed whose place `holder` waits at, for a time; as it is where another does."""
    until_ns = feed.watched_until_ns or 0
    if feed.watched_by not in (None, holder) and now_ns < until_ns <= now_ns + LEASE_NS:
        return feed
    return replace(feed, watched_by=holder, watched_until_ns=now_ns + LEASE_NS)


def leave(feed: FeedRow, holder: str) -> FeedRow:
    """The feed whose place `holder` waits at no more; as it is where another does."""
    if feed.watched_by != holder:
        return feed
    return replace(feed, watched_by=None, watched_until_ns=None)


def refuse(feed: FeedRow, holder: str, code: str, now_ns: int) -> FeedRow:
    """A feed whose place refused who waits there: no run tries the password again."""
    if not may_begin(replace(feed, due_at_ns=now_ns), now_ns):
        return feed
    return fail(begin(feed, holder, now_ns), holder, code, now_ns, now_ns, needs_owner=True)


def refuse_look(feed: FeedRow) -> FeedRow:
    """A feed that is paused, whose place refused its owner's look at it: none tries it again."""
    return replace(feed, code=SIGN_IN_REFUSED) if feed.state == FeedState.PAUSED else feed


def trust(feed: FeedRow, now_ns: int) -> FeedRow:
    """A feed that has a new password: one that failed goes on, due now; one that is paused may be
    looked at again.
    """
    if feed.state in (FeedState.NEEDS_YOU, FeedState.RESTING):
        return resume(feed, now_ns)
    return replace(feed, code=None) if is_refused(feed) else feed


def pause(feed: FeedRow) -> FeedRow:
    """The owner stops it; a run that is under way ends as it ends, and changes no state."""
    return _released(feed, FeedEvent.PAUSES)


def resume(feed: FeedRow, now_ns: int) -> FeedRow:
    """The owner lets it go on, due now.  Raises: InvalidState where it was not stopped."""
    state = after(feed, FeedEvent.RESUMES)
    return replace(
        feed, state=state, code=None, failures=0, failing_since_ns=None, due_at_ns=now_ns
    )


def ask(feed: FeedRow, now_ns: int) -> FeedRow:
    """The owner wants a run now.

    Raises: InvalidState for one that is paused or runs, or whose password was refused: each
        attempt more brings the account nearer to being locked.
    """
    if is_refused(feed):
        raise InvalidState(
            "The server of the account refused the password of this feed.",
            next_step="Give the new one: `pdpp feed password`.",
        )
    return replace(feed, state=after(feed, FeedEvent.ASKS), due_at_ns=now_ns)


def is_refused(feed: FeedRow) -> bool:
    """Whether it waits for another password."""
    is_at_rest = feed.state in (FeedState.NEEDS_YOU, FeedState.PAUSED)
    return is_at_rest and feed.code == SIGN_IN_REFUSED


def _is_held(feed: FeedRow, holder: str) -> bool:
    return feed.state == FeedState.RUNNING and feed.holder == holder


def _lease_ended(feed: FeedRow, now_ns: int) -> bool:
    """A lease further ahead than any can be was written by a clock that was put back since."""
    until_ns = feed.held_until_ns or 0
    return until_ns <= now_ns or until_ns - now_ns > LEASE_NS


def _released(feed: FeedRow, event: FeedEvent) -> FeedRow:
    state = after(feed, event)
    return replace(feed, state=state, holder=None, held_until_ns=None, silent_since_ns=None)
