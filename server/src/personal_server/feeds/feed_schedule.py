"""When a feed is due: after a success, after failures, and by a clock that jumped.

Source: docs/contract/feeds.md 3.
Units: nanoseconds since 1970 in UTC, so that summer time moves nothing.
"""

from __future__ import annotations

from pdpp_kernel.values import NANOSECONDS
from personal_server.storage.feed_rows import FeedRow

LEAST_EVERY_SECONDS, MOST_EVERY_SECONDS, USUAL_EVERY_SECONDS = 30, 7 * 86_400, 60
FIRST_REST_NS, LONGEST_REST_NS = 60 * NANOSECONDS, 6 * 3_600 * NANOSECONDS
# A run of a minute begins at most every eleven: reading costs at most a tenth of the time.
REST_PER_WORK = 10
MOST_JITTER = 0.1
SHOWN_STEP_SECONDS = 600


def due_after_success(feed: FeedRow, now_ns: int, took_ns: int, chance: float) -> int:
    """When the next run is due; `chance` is from 0 to 1."""
    rest_ns = min(REST_PER_WORK * took_ns, LONGEST_REST_NS)
    pause_ns = max(feed.every_seconds * NANOSECONDS, rest_ns)
    return now_ns + _with_jitter(pause_ns, chance)


def due_after_failure(feed: FeedRow, now_ns: int, chance: float) -> int:
    """When it is tried again: of failures in a row each doubles the pause."""
    pause_ns = min(FIRST_REST_NS << min(feed.failures, 20), LONGEST_REST_NS)
    return now_ns + _with_jitter(pause_ns, chance)


def is_due(feed: FeedRow, now_ns: int) -> bool:
    """Whether the time has come, or lies further ahead than it was ever put."""
    longest_ns = max(feed.every_seconds * NANOSECONDS, LONGEST_REST_NS)
    ahead_ns = feed.due_at_ns - now_ns
    return ahead_ns <= 0 or ahead_ns > _with_jitter(longest_ns, 1.0)


def shown_ns(feed: FeedRow, now_ns: int) -> int:
    """The time of a run as whoever reads the account sees it, rounded down.

    A run that something new set off lies between two that are due: exact times would tell that
    something came, also to who may not read it.
    """
    step_ns = max(feed.every_seconds, SHOWN_STEP_SECONDS) * NANOSECONDS
    return now_ns - now_ns % step_ns


def _with_jitter(pause_ns: int, chance: float) -> int:
    return pause_ns + int(pause_ns * MOST_JITTER * chance)
