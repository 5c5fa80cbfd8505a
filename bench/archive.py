"""A deterministic personal archive: two mailboxes, four chats and a bank, of any size.

Rule: the same size gives the same bytes on every machine; nothing here is anybody's data.  Word
frequencies follow Zipf's law, so that searches have very common terms; the rare one stands in the
same number of mails at every size.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

RARE_TERM = "quokka"
RARE_RECORDS = 20
COMMON_TERM = "meeting"
START = datetime(2016, 1, 1, tzinfo=UTC)
YEARS = 10
CATEGORIES = ("groceries", "rent", "travel", "books", "health", "salary", "insurance", "dining")

_SYLLABLES = (
    "ka",
    "lo",
    "mi",
    "ren",
    "tas",
    "vel",
    "dor",
    "fin",
    "gar",
    "hup",
    "jel",
    "sor",
    "nam",
    "bir",
)
_TIME = {
    "type": "string",
    "format": "date-time",
    "x_pdpp_type": "timestamp",
    "x_pdpp_role": "event-time",
}
_DAY = {"type": "string", "format": "date", "x_pdpp_role": "event-time"}
_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}
_TEXT = {"type": "string", "x_pdpp_type": "text"}
_TITLE = {**_TEXT, "x_pdpp_role": "primary-title"}
_RANGE = ["gte", "gt", "lte", "lt"]


@dataclass(frozen=True, slots=True)
class Collection:
    """One connection's stream of the archive and its share of all records."""

    name: str
    connector_key: str
    stream: str
    share: float


COLLECTIONS = (
    Collection("Home mail", "bench_mail", "messages", 0.3),
    Collection("Work mail", "bench_mail", "messages", 0.3),
    *(Collection(f"Chat {n}", "bench_chat", "messages", 0.075) for n in (1, 2, 3, 4)),
    Collection("Bank", "bench_bank", "transactions", 0.1),
)


class Words:
    """Zipf-distributed words of a made-up language, with one very common and one rare word."""

    def __init__(self, seed: int, size: int = 20_000) -> None:
        self._random = random.Random(seed)
        made = (
            "".join(self._random.choice(_SYLLABLES) for _ in range(self._random.randint(2, 4)))
            for _ in range(2 * size)
        )
        self._words = [COMMON_TERM, *list(dict.fromkeys(made))[:size]]
        self._weights = list(accumulate(1 / (rank + 8) for rank in range(len(self._words))))

    def commonest(self, count: int) -> tuple[str, ...]:
        """The words that stand in most texts."""
        return tuple(self._words[:count])

    def text(self, count: int) -> str:
        """`count` words as prose, in sentences."""
        words = self._random.choices(self._words, cum_weights=self._weights, k=count)
        return ". ".join(
            " ".join(words[start : start + 12]).capitalize() for start in range(0, count, 12)
        )


def records(collection: Collection, total: int, seed: int) -> Iterator[dict[str, Any]]:
    """Ingest lines (data, emitted_at) of one collection of an archive of `total` records."""
    count = int(total * collection.share)
    draw = random.Random(f"{seed}:{collection.name}")
    words = Words(seed)
    step = timedelta(days=365.25 * YEARS) / max(count, 1)
    rare_every = max(1, count // RARE_RECORDS)
    make = {"bench_mail": _mail, "bench_chat": _chat, "bench_bank": _transaction}
    for number in range(count):
        at = START + step * number + timedelta(seconds=draw.randrange(60))
        data = make[collection.connector_key](number, at, draw, words)
        if "body" in data and number % rare_every == 0:
            data["body"] += f" {RARE_TERM}"
        yield {"data": data, "emitted_at": "2026-11-01T00:00:00Z"}


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _mail(number: int, at: datetime, draw: random.Random, words: Words) -> dict[str, Any]:
    return {
        "id": f"m{number:08d}",
        "thread_id": f"t{number // 4:08d}",
        "subject": words.text(draw.randint(3, 9)),
        "from_address": f"person{draw.randrange(400)}@example.org",
        "sent_at": _stamp(at),
        "body": words.text(draw.choice((30, 60, 120, 200))),
        "labels": draw.sample(("inbox", "family", "travel", "money", "lists"), 2),
        "size_bytes": draw.randrange(500, 90_000),
        "is_read": draw.random() < 0.9,
    }


def _chat(number: int, at: datetime, draw: random.Random, words: Words) -> dict[str, Any]:
    return {
        "id": f"c{number:08d}",
        "chat": f"chat {draw.randrange(40)}",
        "sender": f"person{draw.randrange(60)}",
        "sent_at": _stamp(at),
        "text": words.text(draw.randint(3, 25)),
    }


def _transaction(number: int, at: datetime, draw: random.Random, words: Words) -> dict[str, Any]:
    return {
        "id": f"b{number:08d}",
        "booked_on": at.strftime("%Y-%m-%d"),
        "amount_minor": draw.randrange(-30_000, 5_000),
        "currency": "EUR",
        "category": draw.choice(CATEGORIES),
        "payee": words.text(2),
        "memo": words.text(draw.randint(2, 10)),
    }


def declarations() -> tuple[dict[str, Any], ...]:
    """The source declarations of the archive."""
    return (
        _declaration("bench_mail", "Mail", _mail_stream()),
        _declaration("bench_chat", "Chat", _chat_stream()),
        _declaration("bench_bank", "Bank", _bank_stream()),
    )


def _mail_stream() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "id": _STRING,
        "thread_id": _STRING,
        "subject": _TITLE,
        "from_address": _STRING,
        "sent_at": _TIME,
        "body": _TEXT,
        "labels": {"type": "array", "items": _STRING},
        "size_bytes": _INTEGER,
        "is_read": {"type": "boolean"},
    }
    aggregations: dict[str, Any] = {
        "count": True,
        "sum": ["size_bytes"],
        "max": ["size_bytes", "sent_at"],
        "count_distinct": ["thread_id"],
        "group_by": ["from_address", "is_read"],
        "group_by_time": ["sent_at"],
    }
    query = {
        "range_filters": {"sent_at": _RANGE, "size_bytes": _RANGE},
        "search": {"lexical_fields": ["subject", "body"]},
        "aggregations": aggregations,
    }
    return _stream("messages", properties, "sent_at", query)


def _chat_stream() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "id": _STRING,
        "chat": _STRING,
        "sender": _STRING,
        "sent_at": _TIME,
        "text": _TEXT,
    }
    grouped = {"count": True, "group_by": ["chat", "sender"], "group_by_time": ["sent_at"]}
    query = {
        "range_filters": {"sent_at": _RANGE},
        "search": {"lexical_fields": ["text"]},
        "aggregations": grouped,
    }
    return _stream("messages", properties, "sent_at", query)


def _bank_stream() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "id": _STRING,
        "booked_on": _DAY,
        "amount_minor": _INTEGER,
        "currency": _STRING,
        "category": _STRING,
        "payee": _TITLE,
        "memo": _TEXT,
    }
    aggregations: dict[str, Any] = {
        "count": True,
        "sum": ["amount_minor"],
        "min": ["amount_minor"],
        "max": ["amount_minor"],
        "group_by": ["category"],
        "group_by_time": ["booked_on"],
    }
    query = {
        "range_filters": {"booked_on": _RANGE, "amount_minor": _RANGE},
        "search": {"lexical_fields": ["payee", "memo"]},
        "aggregations": aggregations,
    }
    return _stream("transactions", properties, "booked_on", query)


def _stream(
    name: str, properties: dict[str, Any], time_field: str, query: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "semantics": "mutable_state",
        "display": {"label": f"Your {name}"},
        "schema": {"type": "object", "properties": properties, "required": ["id", time_field]},
        "primary_key": ["id"],
        "cursor_field": time_field,
        "consent_time_field": time_field,
        "selection": {"fields": True, "resources": True},
        "query": query,
    }


def _declaration(key: str, name: str, stream: dict[str, Any]) -> dict[str, Any]:
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": f"https://bench.example/connectors/{key}"},
        "connector_key": key,
        "declaration_version": "1",
        "display": {"name": name},
        "streams": [stream],
    }
