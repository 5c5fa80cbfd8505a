"""Who waits for a server elsewhere, and that nobody begins to once all were left."""

from __future__ import annotations

from personal_server.feeds.feed_waits import FeedWaits
from server.tests.feeds.test_feed_engine import SilentTalk


def test_a_conversation_that_begins_behind_the_end_of_all_is_left() -> None:
    waits, early, late = FeedWaits(), SilentTalk(), SilentTalk()
    with waits.under_way("fee_1", early):
        assert not early.ended.is_set()
        waits.leave_all()
        with waits.under_way("fee_2", late):
            assert early.ended.is_set()
            assert late.ended.is_set()


def test_silence_tells_while_it_is_long_and_a_conversation_lasts() -> None:
    waits = FeedWaits()
    with waits.under_way("fee_1", SilentTalk(silent_seconds=90.0)):
        assert (waits.silent_seconds("fee_1"), waits.silent_seconds("fee_2")) == (90.0, 0.0)
    with waits.under_way("fee_1", SilentTalk(silent_seconds=30.0)):
        assert waits.silent_seconds("fee_1") == 0.0
    assert waits.silent_seconds("fee_1") == 0.0
