"""When a feed is stale: the reasons, and what is none."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from pdpp_kernel.values import DAY_NANOSECONDS as DAY
from personal_server.feeds.feed_sentences import advice
from personal_server.feeds.feed_trouble import (
    LEAST_ARRIVALS,
    LEAST_SILENCE_NS,
    FeedTrouble,
    trouble_of,
    with_arrival,
)
from server.tests.feeds.test_feed_states import NOW, a_feed


@pytest.mark.parametrize(
    ("state", "failures", "reason"),
    [
        ("needs_you", 1, FeedTrouble.NEEDS_YOU),
        ("resting", 3, FeedTrouble.FAILING),
        ("running", 3, FeedTrouble.FAILING),
        ("resting", 2, None),
        ("paused", 9, None),
        ("waiting", 0, None),
    ],
)
def test_a_feed_is_stale_that_needs_its_owner_or_failed_three_times(
    state: str, failures: int, reason: FeedTrouble | None
) -> None:
    assert trouble_of(a_feed(state=state, failures=failures)) == reason


def test_a_sign_in_that_ends_is_told_before_it_does() -> None:
    feed = a_feed(succeeded_at_ns=NOW, sign_in_ends_ns=NOW + 2 * DAY)
    assert trouble_of(feed) is None
    feed = dataclasses.replace(feed, sign_in_ends_ns=NOW + 2 * DAY - 1)
    assert trouble_of(feed) == FeedTrouble.SIGN_IN_ENDS
    assert advice(feed)
    assert trouble_of(replace(feed, failures=3, state="resting")) == FeedTrouble.FAILING
    assert trouble_of(replace(feed, succeeded_at_ns=None)) is None


def test_silence_is_measured_by_the_longest_there_ever_was() -> None:
    feed = a_feed()
    for day in (0, 1, 11, 12, 13):
        feed = with_arrival(feed, NOW + day * DAY)
    assert (feed.arrivals, feed.longest_silence_ns) == (5, 10 * DAY)
    last = NOW + 13 * DAY
    quiet = dataclasses.replace(feed, succeeded_at_ns=last + 10 * DAY)
    assert trouble_of(quiet) is None
    silent = dataclasses.replace(feed, succeeded_at_ns=last + 10 * DAY + 1)
    assert trouble_of(silent) == FeedTrouble.SILENT
    assert trouble_of(replace(silent, state="paused")) is None
    assert trouble_of(with_arrival(silent, last + 11 * DAY)) is None


def test_a_feed_that_brought_little_yet_or_rests_for_a_weekend_is_not_silent() -> None:
    silence = LEAST_SILENCE_NS
    feed = a_feed(brought_at_ns=NOW, succeeded_at_ns=NOW + silence, arrivals=LEAST_ARRIVALS)
    assert trouble_of(feed) is None
    feed = dataclasses.replace(feed, succeeded_at_ns=NOW + silence + 1)
    assert trouble_of(feed) == FeedTrouble.SILENT
    assert trouble_of(replace(feed, arrivals=LEAST_ARRIVALS - 1)) is None
    # the server was off: no run, no silence
    assert trouble_of(replace(feed, succeeded_at_ns=None)) is None


def test_an_account_of_which_nobody_knows_whose_it_is_has_no_file_to_import() -> None:
    of_folder = advice(a_feed(code="ambiguous_connection"))
    of_mailbox = advice(a_feed(kind="mailbox", code="ambiguous_connection"))
    assert of_folder != of_mailbox
