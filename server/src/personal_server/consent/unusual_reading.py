"""Unusual reading: plain rules over figures of what was read.  Pure.

Rule: a rule needs figures that an ordinary agent's day does not come near, or a history to compare
with; each is a sentence that its owner understands.
Source: docs/contract/resource-server.md 14.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from personal_server.domain.reading_history import ReadingCount

UnusualRule = Literal[
    "empty_searches", "new_words", "unknown_keys", "unseen_hour", "volume", "canary"
]
CANARY: UnusualRule = "canary"
REFRESH_REPEATED = "refresh_repeated"
"""The one alarm that is not about records: raised where refresh tokens are judged."""

LATELY_MINUTES = 10
EMPTY_SEARCHES, NEW_WORDS, UNKNOWN_KEYS = 30, 200, 20
NEW_WORDS_A_DAY, UNKNOWN_KEYS_A_DAY = 2_000, 200
KNOWN_DAYS, HOUR_REQUESTS = 14, 10
VOLUME_DAYS, VOLUME_RECORDS, VOLUME_FACTOR = 7, 1_000, 5


class ReadingPast(msgspec.Struct, frozen=True):
    """The days before today: how many had reading, the most records of one, hours of day (UTC)."""

    days: int = 0
    most_records: int = 0
    hours: frozenset[int] = frozenset()


class ReadingNow(msgspec.Struct, frozen=True):
    """The last minutes, this hour and today, and which hour of the day it is (UTC)."""

    lately: ReadingCount
    this_hour: ReadingCount
    today: ReadingCount
    hour: int


class UnusualReading(msgspec.Struct, frozen=True):
    """What is unusual, and by which figures."""

    rule: UnusualRule
    figures: Mapping[str, int]


def unusual(now: ReadingNow, past: ReadingPast) -> Iterator[UnusualReading]:
    """Every rule that the figures meet."""
    lately, today = now.lately, now.today
    empty, searches = lately.empty_searches, lately.searches
    if empty >= EMPTY_SEARCHES and 4 * empty >= 3 * searches:
        yield UnusualReading("empty_searches", {"empty": empty, "searches": searches})
    if lately.new_words >= NEW_WORDS or today.new_words >= NEW_WORDS_A_DAY:
        yield UnusualReading("new_words", {"lately": lately.new_words, "today": today.new_words})
    if lately.unknown_keys >= UNKNOWN_KEYS or today.unknown_keys >= UNKNOWN_KEYS_A_DAY:
        figures = {"lately": lately.unknown_keys, "today": today.unknown_keys}
        yield UnusualReading("unknown_keys", figures)
    near = {(now.hour + step) % 24 for step in (-1, 0, 1)}
    new_hour = past.days >= KNOWN_DAYS and not near & past.hours
    if new_hour and now.this_hour.requests >= HOUR_REQUESTS:
        figures = {"hour": now.hour, "requests": now.this_hour.requests, "days": past.days}
        yield UnusualReading("unseen_hour", figures)
    most = VOLUME_FACTOR * past.most_records
    if past.days >= VOLUME_DAYS and today.records >= VOLUME_RECORDS and today.records > most:
        figures = {"records": today.records, "most": past.most_records, "days": past.days}
        yield UnusualReading("volume", figures)


def said_of(rule: str, figures: Mapping[str, object]) -> str:
    """An alarm in a sentence for its owner."""
    sentence = SENTENCES.get(rule)
    return sentence % figures if sentence else rule


_LATELY = f"in {LATELY_MINUTES} minutes"
SENTENCES: Mapping[str, str] = {
    "empty_searches": f"%(empty)s of the app's %(searches)s searches found nothing {_LATELY}",
    "new_words": (
        "the app searched for %(lately)s words that the app never searched before "
        f"{_LATELY}, %(today)s today"
    ),
    "unknown_keys": (
        f"the app asked for %(lately)s records that do not exist {_LATELY}, %(today)s today"
    ),
    "unseen_hour": (
        "the app is reading at %(hour)s:00 UTC, an hour at which the app never "
        "read in %(days)s days"
    ),
    "volume": "the app read %(records)s records today; the most on an earlier day was %(most)s",
    "canary": "the app read one of your bait records (in %(stream)s)",
    REFRESH_REPEATED: (
        "the app asked %(repeats)s times for tokens that it had got before; somebody else may hold"
        " a copy of the app's refresh token. If you do not know why, end this access and"
        " connect the app again"
    ),
}
