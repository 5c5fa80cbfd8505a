"""The states of a feed: the table is the whole of it, and of two who want the lease one has it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_kernel.errors import InvalidState
from pdpp_kernel.values import NANOSECONDS
from personal_server.feeds import feed_states
from personal_server.feeds.feed_schedule import (
    FIRST_REST_NS,
    LONGEST_REST_NS,
    due_after_failure,
    due_after_success,
    is_due,
)
from personal_server.feeds.feed_states import LEASE_NS, TRANSITIONS, FeedEvent, FeedState
from personal_server.storage.feed_rows import FeedRow

OF_RUN = (FeedEvent.SUCCEEDS, FeedEvent.FAILS, FeedEvent.CANNOT_GO_ON)
NOW = 1_795_000_000 * NANOSECONDS


def a_feed(**over: object) -> FeedRow:
    row = FeedRow(
        feed_id="fee_1",
        name="Downloads",
        kind="folder",
        place="/home/ada/Downloads",
        layout="exports",
        every_seconds=60,
        state=FeedState.WAITING,
        created_at_ns=NOW,
        due_at_ns=NOW,
    )
    return replace(row, **over)


def happen(feed: FeedRow, event: FeedEvent, holder: str, now: int) -> FeedRow:
    """An event as its function does it."""
    match event:
        case FeedEvent.BEGINS:
            return feed_states.begin(feed, holder, now)
        case FeedEvent.SUCCEEDS:
            return feed_states.succeed(feed, holder, now, now + 60)
        case FeedEvent.FAILS:
            return feed_states.fail(feed, holder, "folder_gone", now, now + 60, needs_owner=False)
        case FeedEvent.CANNOT_GO_ON:
            return feed_states.fail(feed, holder, "account_gone", now, now + 60, needs_owner=True)
        case FeedEvent.PAUSES:
            return feed_states.pause(feed)
        case FeedEvent.RESUMES:
            return feed_states.resume(feed, now)
        case FeedEvent.ASKS:
            return feed_states.ask(feed, now)


@pytest.mark.parametrize("state", FeedState)
@pytest.mark.parametrize("event", FeedEvent)
def test_every_event_does_what_the_table_says(state: FeedState, event: FeedEvent) -> None:
    holder = "one" if state is FeedState.RUNNING else None
    feed = a_feed(state=state, holder=holder, held_until_ns=0 if holder else None)
    wanted = TRANSITIONS.get((state, event))
    if wanted is None and event not in OF_RUN:
        with pytest.raises(InvalidState):
            happen(feed, event, "one", NOW)
        return
    # what ends a run that is not there any more changes nothing
    assert happen(feed, event, "one", NOW).state == (wanted or state)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(FeedEvent), st.sampled_from(["one", "two"]), st.integers(0, 3 * LEASE_NS)
    ),
    max_size=40,
)


@settings(max_examples=300)
@given(STEPS)
def test_of_two_processes_one_has_the_lease(steps: list[tuple[FeedEvent, str, int]]) -> None:
    """Whatever happens in whatever order: no run begins beside a lease that lasts."""
    feed, now, lasts_until, holding = a_feed(), NOW, 0, ""
    for event, holder, later in steps:
        now += later
        before = feed
        try:
            feed = happen(feed, event, holder, now)
        except InvalidState:
            assert feed == before
            continue
        if event is FeedEvent.BEGINS:
            assert before.state != FeedState.RUNNING or lasts_until <= now
            lasts_until, holding = now + LEASE_NS, holder
        elif event in OF_RUN and (before.state != FeedState.RUNNING or holder != holding):
            assert feed == before
        assert (feed.holder is not None) == (feed.state == FeedState.RUNNING)
        assert (feed.failures > 0) == (feed.failing_since_ns is not None)
        if feed.state == FeedState.PAUSED:
            assert not feed_states.may_begin(feed, now + 10 * LONGEST_REST_NS)


def test_a_lease_that_ended_is_taken_over_and_the_late_end_is_not_heeded() -> None:
    first = feed_states.begin(a_feed(), "one", NOW)
    with pytest.raises(InvalidState):
        feed_states.begin(first, "two", NOW + LEASE_NS - 1)
    second = feed_states.begin(first, "two", NOW + LEASE_NS)
    assert feed_states.succeed(second, "one", NOW, NOW) == second
    assert feed_states.renew(second, "one", NOW) == second
    assert feed_states.renew(second, "two", NOW + LEASE_NS).held_until_ns == NOW + 2 * LEASE_NS


def test_a_lease_of_a_clock_that_was_put_back_ends() -> None:
    held = feed_states.begin(a_feed(), "one", NOW)
    assert feed_states.may_begin(held, NOW - 10 * LEASE_NS)


@given(st.integers(0, 200), st.floats(0, 1))
def test_failures_double_the_pause_up_to_a_bound(failures: int, chance: float) -> None:
    pause = due_after_failure(a_feed(failures=failures), NOW, chance) - NOW
    least = min(FIRST_REST_NS * 2**failures, LONGEST_REST_NS)
    assert least <= pause <= least * 1.1


@given(
    st.integers(30, 7 * 86_400),
    st.integers(0, 10**15),
    st.floats(0, 1),
    st.integers(-(10**18), 10**18),
)
def test_every_due_time_comes_whatever_the_clock_does(
    every: int, took: int, chance: float, jump: int
) -> None:
    feed = a_feed(every_seconds=every)
    due = due_after_success(feed, NOW, took, chance)
    assert due >= NOW + every * NANOSECONDS
    feed = replace(feed, due_at_ns=due)
    assert not is_due(feed, NOW)
    longest = int(1.1 * max(every * NANOSECONDS, LONGEST_REST_NS)) + 1
    # from any time that the clock may show now, it is due after the longest pause at most
    assert is_due(feed, NOW + jump) or is_due(feed, NOW + jump + longest)


def test_a_password_that_was_refused_is_not_tried_again_by_asking() -> None:
    refused = a_feed(state="needs_you", code="sign_in_refused")
    with pytest.raises(InvalidState):
        feed_states.ask(refused, NOW)
    assert feed_states.ask(a_feed(state="needs_you", code="folder_gone"), NOW).due_at_ns == NOW
    assert feed_states.ask(feed_states.resume(refused, NOW), NOW).state == "waiting"
