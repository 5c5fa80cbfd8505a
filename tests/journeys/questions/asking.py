"""Who asks, what is known of the archives, and the ways of asking and of knowing."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from time import sleep
from typing import Any
from zoneinfo import ZoneInfo

import httpx2

from pdpp_kernel.result_size import RESULT_CHARS
from pdpp_mcp_server.rs_client.json_values import compact
from tests.journeys.views import View
from tests.requirements.doors import Result, StdioWire

Json = dict[str, Any]
MOST_CALLS = 2
CONVERSATIONS = 40
ZONE = "Europe/Berlin"
OFFERED = {
    "mail": {
        "messages": [
            "id", "thread_id", "sent_at", "subject", "from_name", "from_address", "body",
            "is_reply", "size_bytes", "attachment_count", "list_id",
        ],
        "attachments": [
            "id", "message_id", "sent_at", "filename", "mime_type", "size_bytes", "text",
            "text_state",
        ],
    },
    "bank": {
        "transactions": [
            "id", "account_id", "account_name", "posted_on", "payee", "memo", "amount",
            "amount_minor", "currency", "direction",
        ],
    },
    "slack": {"channels": None, "people": None, "messages": None},
    "calendar": {"events": None},
    "notes": {"notes": None},
    "persons": {"persons": None},
}  # fmt: skip
SINCE = "2002-09-01"


@dataclass(slots=True)
class Host:
    """A reader with one view, whose calls and characters are counted for each question."""

    wire: StdioWire
    view: type[View]
    known: dict[str, Json]
    calls: int = 0
    chars: int = 0

    def call(self, tool: str, arguments: Json) -> View:
        self.calls += 1
        seen = self.view(tool, arguments, Result(self._raw(tool, arguments)))
        sizes = len(seen.result.text), len(compact(seen.result.structured))
        self.chars = max(self.chars, *sizes)
        assert self.chars <= RESULT_CHARS, f"{tool} has {sizes} characters"
        return seen

    def records(self, arguments: Json) -> View:
        """A page that is wholly in sight."""
        seen = self.call("query_records", arguments)
        assert seen.is_whole(), "the page is not wholly in sight"
        return seen

    def follow(self, seen: View) -> View:
        """The ready call that a result offers."""
        following = seen.following()
        assert following is not None, "no ready call"
        return self.call(following.tool, following.arguments)

    def _raw(self, tool: str, arguments: Json) -> Json:
        key = f"{tool} {json.dumps(arguments, sort_keys=True)}"
        while key not in self.known:
            raw = self.wire.exchange("tools/call", {"name": tool, "arguments": arguments})
            error = raw["structuredContent"].get("error", {})
            if error.get("code") == "rate_limit_exceeded":
                sleep(error["retry_after_seconds"])
                continue
            self.known[key] = raw
        return self.known[key]


@dataclass(frozen=True, slots=True)
class Rows:
    """All records of one stream of one connection, read over REST with the same token."""

    connection: str
    stream: str
    rows: list[Json]

    @property
    def place(self) -> Json:
        return {"stream": self.stream, "connection_id": self.connection}

    def id(self, row: Json) -> str:
        return f"{self.connection}/{self.stream}:{row['id']}"

    def ids(self, rows: Iterable[Json]) -> list[str]:
        return [self.id(row) for row in rows]

    def in_time(self, time: str) -> list[Json]:
        return sorted(self.rows, key=lambda row: (instant(row[time]), row["id"]))


@dataclass(slots=True)
class Facts:
    """What the answers are computed from."""

    http: httpx2.Client
    streams: dict[tuple[str, str], Rows] = field(default_factory=dict[tuple[str, str], Rows])

    def of(self, name: str, stream: str) -> Rows:
        return self.streams[name, stream]

    @property
    def mail(self) -> Rows:
        return self.of("Mailing lists", "messages")

    @property
    def bank(self) -> Rows:
        return self.of("Checking account", "transactions")

    @property
    def chat(self) -> Rows:
        return self.of("Chats", "messages")

    @property
    def holidays(self) -> Rows:
        return self.of("Holidays", "events")

    @property
    def lab(self) -> Rows:
        return self.of("Lab", "events")

    @property
    def notes(self) -> Rows:
        return self.of("Manual", "notes")

    @property
    def persons(self) -> Rows:
        return self.of("Who is who", "persons")

    @property
    def sender(self) -> str:
        """Somebody who wrote some mails, but not many."""
        senders = Counter(row["from_address"] for row in self.mail.rows).most_common()
        return next(name for name, count in senders if name and count == 12)

    def found(self, words: str, **more: str) -> tuple[str, int]:
        """First hit and count of a search: its oracle is the resource server itself."""
        page = self.http.get("/v1/search", params={"q": words, "limit": "1", **more}).json()
        first = page["data"][0]
        shown = f"{first['connection_id']}/{first['stream']}:{first['record_id']}"
        return shown, page["meta"]["count"]["value"]


Ask = Callable[[Host, Facts], Any]
Truth = Callable[[Facts], Any]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, of which kind it is, how it is asked and what is true; of which archive."""

    kind: str
    words: str
    ask: Ask
    truth: Truth
    needs_mail: bool = False


def instant(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def folded(text: str | None) -> str | None:
    return None if text is None else text.lower()


def near(found: float) -> float:
    return round(float(found), 6)


Place = Callable[[Facts], Json]
"""Arguments that are worked out from the facts: which stream of which connection, which filter."""


def arguments(place: Place, asked: Json, filter_by: Place | None) -> Place:
    more: Place = (lambda facts: {"filter": filter_by(facts)}) if filter_by else lambda _: {}
    return lambda facts: {**place(facts), **asked, **more(facts)}


def value(place: Place, *, filter_by: Place | None = None, **asked: Any) -> Ask:
    """One figure."""
    whole = arguments(place, asked, filter_by)
    return lambda host, facts: host.call("aggregate", whole(facts)).value()


def figure(place: Place, *, filter_by: Place | None = None, **asked: Any) -> Ask:
    """The same, as a number."""
    shown = value(place, filter_by=filter_by, **asked)
    return lambda host, facts: near(float(shown(host, facts)))


def groups(place: Place, *members: str, **asked: Any) -> Ask:
    """Groups by these members of them, with their figure."""

    def ask(host: Host, facts: Facts) -> Any:
        entries = host.call("aggregate", {**place(facts), **asked}).entries()
        return [(*(each.get(name) for name in members), near(each["figure"])) for each in entries]

    return ask


def ids(place: Place, *members: str, filter_by: Place | None = None, **asked: Any) -> Ask:
    """The ids of a page, and these members of its records."""
    whole = arguments(place, asked, filter_by)

    def ask(host: Host, facts: Facts) -> Any:
        seen = host.records(whole(facts))
        rows: list[Json] = seen.rows() if members else [{}] * len(seen.ids())
        pairs = zip(seen.ids(), rows, strict=True)
        return [(shown, *(row.get(name) for name in members)) for shown, row in pairs]

    return ask


def mail(facts: Facts) -> Json:
    return facts.mail.place


def bank(facts: Facts) -> Json:
    return facts.bank.place


def chat(facts: Facts) -> Json:
    return facts.chat.place


def holidays(facts: Facts) -> Json:
    return facts.holidays.place


def note(facts: Facts) -> Json:
    return facts.notes.place


def persons(facts: Facts) -> Json:
    return facts.persons.place


def events(facts: Facts) -> Json:
    return {"stream": "events"}


def found(words: str, **asked: Any) -> Ask:
    """The first hit, and how many there are."""

    def ask(host: Host, facts: Facts) -> Any:
        seen = host.call("search", {"query": words, "limit": 1, **asked})
        kind, _, count = (seen.fact("count") or "").partition(":")
        assert kind == "exact"
        return seen.ids()[0], int(count)

    return ask


def counted(rows: Iterable[Any]) -> float:
    return near(sum(1 for _ in rows))


def tally(keys: Iterable[Any], limit: int = 10) -> list[tuple[Any, float]]:
    """Groups by count, then by the JSON text of their keys, null last among equals."""
    found = Counter(keys).items()
    ordered = sorted(found, key=lambda each: (-each[1], each[0] is None, json_key(each[0])))
    return [(key, near(count)) for key, count in ordered[:limit]]


def json_key(key: Any) -> bytes:
    return json.dumps(key, ensure_ascii=False).encode()


def by_key(keys: Iterable[Any]) -> list[tuple[Any, float]]:
    return [(key, near(count)) for key, count in sorted(Counter(keys).items())]


def rank(numbers: Sequence[float], percent: int) -> float:
    return sorted(numbers)[ceil(percent * len(numbers) / 100) - 1]


def local(text: str, zone: str = "UTC") -> datetime:
    return instant(text).astimezone(ZoneInfo(zone))


def label_of(rows: Iterable[Json], key: str, label: str) -> dict[Any, str | None]:
    """What most records with a key hold as its label."""
    said: dict[Any, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row[label] is not None:
            said[row[key]][row[label]] += 1
    return {own: min(texts, key=lambda text: (-texts[text], text)) for own, texts in said.items()}
