"""Ninety-four questions over five real archives, through five views each, two calls at most.

`python -m tests.journeys.questions` imports a mailbox, a bank statement, chats, two calendars and
notes, grants a slice of each, serves it and asks over stdio, after one call of `schema`.  Every
answer is compared with one computed from all records read over REST; one that is made of records
names them by their ids.  No question takes more than two calls, no face of a result more than
20,000 characters.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path
from time import sleep
from typing import Any
from zoneinfo import ZoneInfo

import httpx2

from bench.samples import RECURRING, Sample, mailbox, notes, statement, statements, unpacked
from bench.workspace import workspace
from demo.__main__ import Home, free_port
from demo.story import Story
from pdpp_kernel.result_size import RESULT_CHARS
from pdpp_mcp_server.rs_client.json_values import compact
from tests.journeys.views import StructuredOnly, View, views
from tests.requirements.doors import Result, StdioWire, environment, greeting_request

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
            "id", "account_id", "posted_on", "payee", "memo", "amount", "amount_minor", "currency",
            "direction",
        ],
    },
    "slack": {"channels": None, "people": None, "messages": None},
    "calendar": {"events": None},
    "notes": {"notes": None},
    "persons": {"persons": None},
}  # fmt: skip
SINCE = "2002-09-01"


# Asking -----------------------------------------------------------------------------------------
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


# Ways of asking ---------------------------------------------------------------------------------
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


# Ways of knowing --------------------------------------------------------------------------------
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


# Questions that take more than one way -----------------------------------------------------------
def opened(host: Host, facts: Facts) -> Any:
    seen = host.call("search", {"query": "razor", "limit": 1, "streams": ["messages"]})
    document = host.call("fetch", {"id": seen.ids()[0]}).document
    return document["id"], document["title"], document["text"][:200]


def opened_truth(facts: Facts) -> Any:
    shown, _ = facts.found("razor", streams="messages")
    row = next(row for row in facts.mail.rows if facts.mail.id(row) == shown)
    return shown, row["subject"], row["body"][:200]


def longest(rows: Rows, name: str) -> Json:
    return max(rows.rows, key=lambda row: len(row[name] or ""))


def last_words(host: Host, facts: Facts) -> Any:
    """How long the text is, then its end."""
    asked: Json = {"id": facts.notes.id(longest(facts.notes, "body")), "field_path": "body"}
    size = host.call("read_record_field", {**asked, "limit_chars": 1}).size_chars()
    end = host.call("read_record_field", {**asked, "offset_chars": size - 100, "limit_chars": 100})
    return size, end.window().split()


def last_words_truth(facts: Facts) -> Any:
    body = longest(facts.notes, "body")["body"]
    return len(body), body[-100:].split()


def mention(host: Host, facts: Facts) -> Any:
    """Where a long text says something, without what stands before it."""
    row = longest(facts.notes, "body")
    asked = {"id": facts.notes.id(row), "field_path": "body", "q": "registry", "after_chars": 40}
    return host.call("read_record_field", asked).window()


def mention_truth(facts: Facts) -> Any:
    body = longest(facts.notes, "body")["body"]
    at = body.lower().find("registry")
    return body[at : at + len("registry") + 40]


def ambiguous(host: Host, facts: Facts) -> Any:
    """Without a connection; the error has the very call."""
    seen = host.call("query_records", {"stream": "notes", "limit": 1})
    return (host.follow(seen) if seen.error_code() else seen).ids()


def not_granted(host: Host, facts: Facts) -> Any:
    seen = host.call("query_records", {**facts.mail.place, "fields": ["to"]})
    return seen.error_code()


def nothing_but_near(host: Host, facts: Facts) -> Any:
    """A payee nobody paid: nothing, and the nearest."""
    asked = {**facts.bank.place, "filter": {"payee": misspelt(facts)}}
    seen = host.records(asked)
    return seen.ids(), seen.near()[0]


def misspelt(facts: Facts) -> str:
    """One letter of a payee is missing, and no payee is called so."""
    name = facts.bank.rows[0]["payee"]
    return name[:-2] + name[-1]


def nearest_truth(facts: Facts) -> Any:
    name = facts.bank.rows[0]["payee"]
    return [], ("payee", name, sum(row["payee"] == name for row in facts.bank.rows))


def beyond(host: Host, facts: Facts) -> Any:
    """Before the granted time: nothing to see, and said so."""
    asked = {**facts.mail.place, "metric": "count", "filter": {"sent_at": {"lt": SINCE}}}
    seen = host.call("aggregate", asked)
    return near(float(seen.value())), "outside_time_constraint" in seen.warnings()


def bookmark(host: Host, facts: Facts) -> Any:
    """A bookmark in one call; nothing came since."""
    seen = host.call("query_records", {**facts.bank.place, "changes_since": "now"})
    later = host.follow(seen)
    return seen.ids(), later.ids()


def came_in(host: Host, facts: Facts) -> Any:
    asked = {**facts.bank.place, "changes_since": "2020-01-01", "fields": ["payee"]}
    return sorted(host.records(asked).ids())


def file_text(host: Host, facts: Facts) -> Any:
    """What a file says: which is read, then how it begins."""
    files = facts.of("Mailing lists", "attachments")
    asked = {**files.place, "filter": {"text_state": "read"}, "limit": 1, "fields": ["filename"]}
    shown = host.records({**asked, "sort": "-sent_at"}).ids()[0]
    window = {"id": shown, "field_path": "text", "limit_chars": 300}
    return shown, host.call("read_record_field", window).window().split()


def file_text_truth(facts: Facts) -> Any:
    files = facts.of("Mailing lists", "attachments")
    read = [row for row in files.in_time("sent_at") if row["text_state"] == "read"]
    return files.id(read[-1]), read[-1]["text"][:300].split()


def thread_of(facts: Facts) -> list[Json]:
    """A conversation of some mails."""
    threads = Counter(row["thread_id"] for row in facts.mail.rows)
    own = min(name for name, count in threads.items() if count == 8)
    return [row for row in facts.mail.in_time("sent_at") if row["thread_id"] == own]


def unfolded(host: Host, facts: Facts) -> Any:
    """A message, and the conversation around it."""
    asked = {"id": facts.mail.id(thread_of(facts)[0]), "expand": ["thread"]}
    shown = host.call("fetch", asked).document["metadata"]["expanded"]["thread"]["data"]
    return [each["id"] for each in shown]


def related(host: Host, facts: Facts) -> Any:
    """A channel with the first things said in it."""
    channels = facts.of("Chats", "channels")
    asked = {"id": channels.id(channels.rows[0]), "expand": ["messages"]}
    document = host.call("fetch", {**asked, "expand_limit": {"messages": 3}}).document
    return [each["id"] for each in document["metadata"]["expanded"]["messages"]["data"]]


def related_truth(facts: Facts) -> Any:
    channels = facts.of("Chats", "channels")
    own = channels.rows[0]["id"]
    said = [row for row in facts.chat.in_time("sent_at") if row["channel_id"] == own]
    return facts.chat.ids(said[:3])


def line_of(facts: Facts, since: str, until: str) -> list[tuple[datetime, str, str, str]]:
    """All entries of the time line in a range, oldest first."""
    times = {"messages": "sent_at", "attachments": "sent_at", "transactions": "posted_on",
             "channels": "created_at", "files": "sent_at", "events": "starts_at",
             "notes": "modified_at"}  # fmt: skip
    found: list[tuple[datetime, str, str, str]] = []
    for (_, stream), rows in facts.streams.items():
        time = times.get(stream)
        if time is None or stream == "channels":
            continue
        found += [
            (at, row["id"], rows.connection, rows.id(row))
            for row in rows.rows
            if row.get(time) and instant(since) <= (at := instant(row[time])) < instant(until)
        ]
    return sorted(found)


def busiest(facts: Facts) -> str:
    """A channel where much was said."""
    return Counter(row["channel_name"] for row in facts.chat.rows).most_common(1)[0][0]


def day_of_talk(facts: Facts) -> tuple[str, str]:
    days = Counter(row["sent_at"][:10] for row in facts.chat.rows)
    day = min(name for name, count in days.items() if count >= 8)
    return f"{day}T00:00:00Z", f"{day}T23:59:59Z"


def amounts(facts: Facts) -> list[float]:
    return [row["amount"] for row in facts.bank.rows]


def of_author(facts: Facts) -> str:
    return Counter(row["author_name"] for row in facts.chat.rows).most_common(1)[0][0]


def histogram(facts: Facts) -> list[tuple[Any, Any, float]]:
    sizes = Counter(row["word_count"] // 500 * 500 for row in facts.notes.rows)
    return [(low, low + 500, near(count)) for low, count in sorted(sizes.items())]


WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def weekday(text: str, zone: str = "UTC") -> str:
    return WEEKDAYS[local(text, zone).weekday()]


def averages(facts: Facts) -> list[tuple[str, float]]:
    sizes: dict[str, list[int]] = defaultdict(list)
    for row in facts.mail.rows:
        sizes[f"{row['sent_at'][:7]}-01"].append(row["size_bytes"])
    return [(key, near(statistics.fmean(each))) for key, each in sorted(sizes.items())]


def talkers(facts: Facts) -> list[tuple[str, float]]:
    people: dict[str, set[str]] = defaultdict(set)
    for row in facts.chat.rows:
        people[row["channel_name"]].add(row["author_id"])
    ordered = sorted(people.items(), key=lambda each: (-len(each[1]), json_key(each[0])))
    return [(name, near(len(each))) for name, each in ordered[:5]]


def labelled_truth(facts: Facts) -> Any:
    labels = label_of(facts.chat.rows, "author_id", "author_name")
    return [
        (key, labels[key], count)
        for key, count in tally((row["author_id"] for row in facts.chat.rows), 3)
    ]


def with_connections(facts: Facts, *rows: Rows) -> list[tuple[str, float]]:
    found = [(each.connection, near(len(each.rows))) for each in rows]
    return sorted(found, key=lambda each: (-each[1], json_key(each[0])))


questions: tuple[Question, ...] = (
    Question(
        "schema", "What is shared here?",
        lambda host, _: sorted(set(host.call("schema", {}).streams())),
        lambda f: sorted({stream for _, stream in f.streams}),
    ),
    Question("count", "How many mails are there?", figure(mail, metric="count"),
             lambda f: counted(f.mail.rows), needs_mail=True),
    Question("count", "How many chat messages?", figure(chat, metric="count"),
             lambda f: counted(f.chat.rows)),
    Question("earliest", "When was the first mail sent?",
             value(mail, metric="min", field="sent_at"),
             lambda f: f.mail.in_time("sent_at")[0]["sent_at"], needs_mail=True),
    Question("latest", "When was the last chat message?",
             value(chat, metric="max", field="sent_at"),
             lambda f: f.chat.in_time("sent_at")[-1]["sent_at"]),
    Question("grouping by author", "Who wrote most mails?",
             groups(mail, "key", metric="count", group_by="from_address", limit=3),
             lambda f: tally((r["from_address"] for r in f.mail.rows), 3), needs_mail=True),
    Question("grouping by author with label", "Who talks most?",
             groups(chat, "key", "label", metric="count", group_by="author_id", limit=3),
             labelled_truth),
    Question("distinct", "How many people wrote mails?",
             figure(mail, metric="count_distinct", field="from_address"),
             lambda f: near(len({r["from_address"] for r in f.mail.rows} - {None})),
             needs_mail=True),
    Question("distinct, grouped", "In which channels do most people talk?",
             groups(chat, "key", metric="count_distinct", field="author_id",
                    group_by="channel_name", limit=5), talkers),
    Question("by month", "How many mails in each month?",
             groups(mail, "key", metric="count", group_by_time="sent_at", granularity="month"),
             lambda f: by_key(f"{r['sent_at'][:7]}-01" for r in f.mail.rows), needs_mail=True),
    Question("by year", "How many holidays in each year?",
             groups(holidays, "key", metric="count", group_by_time="starts_at",
                    granularity="year", limit=100),
             lambda f: by_key(f"{r['starts_at'][:4]}-01-01" for r in f.holidays.rows)),
    Question("range", "How many mails in October 2002?",
             figure(mail, metric="count",
                    filter={"sent_at": {"gte": "2002-10-01", "lt": "2002-11-01"}}),
             lambda f: counted(r for r in f.mail.rows if r["sent_at"].startswith("2002-10")),
             needs_mail=True),
    Question("newest", "What is the newest mail about?",
             ids(mail, "subject", limit=1, fields=["subject"]),
             lambda f: [(f.mail.id(r := f.mail.in_time("sent_at")[-1]), r["subject"])],
             needs_mail=True),
    Question("oldest", "What is the oldest mail about?",
             ids(mail, "subject", limit=1, order="asc", fields=["subject"]),
             lambda f: [(f.mail.id(r := f.mail.in_time("sent_at")[0]), r["subject"])],
             needs_mail=True),
    Question("newest", "What was said last in the chats?",
             ids(chat, "text", limit=1, fields=["text"]),
             lambda f: [(f.chat.id(r := f.chat.in_time("sent_at")[-1]), r["text"])]),
    Question("exact filter", "Which mails did one person write?",
             ids(mail, limit=100, fields=["subject"],
                 filter_by=lambda f: {"from_address": f.sender}),
             lambda f: [(i,) for i in f.mail.ids(
                 r for r in reversed(f.mail.in_time("sent_at")) if r["from_address"] == f.sender)],
             needs_mail=True),
    Question("case-insensitive name", "The same, with the address in capitals?",
             figure(mail, metric="count", filter_by=lambda f: {"from_address": f.sender.upper()}),
             lambda f: counted(r for r in f.mail.rows if folded(r["from_address"]) == f.sender),
             needs_mail=True),
    Question("case-insensitive name", "What did one person say, whose name I write in capitals?",
             figure(chat, metric="count",
                    filter_by=lambda f: {"author_name": of_author(f).upper()}),
             lambda f: counted(
                 r for r in f.chat.rows if folded(r["author_name"]) == of_author(f).lower())),
    Question("case-insensitive name", "Was a payee paid, however it is written?",
             ids(bank, limit=5, fields=["payee"],
                 filter_by=lambda f: {"payee": f.bank.rows[0]["payee"].swapcase()}),
             lambda f: [(i,) for i in f.bank.ids(
                 r for r in sorted(f.bank.rows, key=lambda r: (r["posted_on"], r["id"]),
                                   reverse=True)
                 if folded(r["payee"]) == folded(f.bank.rows[0]["payee"]))]),
    Question("search", "Where is razor mentioned?", found("razor", streams=["messages"]),
             lambda f: f.found("razor", streams="messages"), needs_mail=True),
    Question("search, phrase", 'Where is "open source" mentioned?', found('"open source"'),
             lambda f: f.found('"open source"'), needs_mail=True),
    Question("search, two words", "Where are perl and script together?", found("perl script"),
             lambda f: f.found("perl script"), needs_mail=True),
    Question("search, one stream", "Which notes speak of workspaces?",
             found("workspaces", streams=["notes"]),
             lambda f: f.found("workspaces", streams="notes")),
    Question("search in a time range", "Who wrote of linux in the first week of October 2002?",
             found("linux", since="2002-10-01", until="2002-10-08"),
             lambda f: f.found("linux", since="2002-10-01", until="2002-10-08"), needs_mail=True),
    Question("search, then read", "What does the first mail on razor say?", opened, opened_truth,
             needs_mail=True),
    Question("field windows", "How does the longest note end?", last_words, last_words_truth),
    Question("field windows, by word", "What does it say of the registry?", mention,
             mention_truth),
    Question("not granted", "To whom were the mails written?", not_granted,
             lambda _: "field_not_granted", needs_mail=True),
    Question("beyond the grant's time", "How many mails came before September?", beyond,
             lambda _: (0.0, True), needs_mail=True),
    Question("ambiguous", "Which note was changed last, whichever the account?", ambiguous,
             lambda f: [f.notes.id(f.notes.in_time("modified_at")[-1])]),
    Question("sum", "What do all payments add up to?",
             figure(bank, metric="sum", field="amount"), lambda f: near(sum(amounts(f)))),
    Question("average", "What is a payment on average?",
             figure(bank, metric="avg", field="amount"),
             lambda f: near(statistics.fmean(amounts(f)))),
    Question("median", "What is a payment in the middle?",
             figure(bank, metric="median", field="amount"),
             lambda f: near(statistics.median(amounts(f)))),
    Question("percentile", "Below which size are 95 of 100 mails?",
             figure(mail, metric="p95", field="size_bytes"),
             lambda f: near(rank([r["size_bytes"] for r in f.mail.rows], 95)), needs_mail=True),
    Question("percentile", "Below how many words are nine of ten notes?",
             figure(note, metric="p90", field="word_count"),
             lambda f: near(rank([r["word_count"] for r in f.notes.rows], 90))),
    Question("histogram", "How long are the notes, in steps of 500 words?",
             groups(note, "key", "until", metric="count", group_by="word_count", bin=500),
             histogram),
    Question("average over time", "How large were mails, month by month?",
             groups(mail, "key", metric="avg", field="size_bytes", group_by_time="sent_at",
                    granularity="month"), averages, needs_mail=True),
    Question("sum by group", "What came in and what went out?",
             groups(bank, "key", metric="sum", field="amount", group_by="direction", sort="key"),
             lambda f: [
                 (key, near(sum(r["amount"] for r in f.bank.rows if r["direction"] == key)))
                 for key in sorted({r["direction"] for r in f.bank.rows})]),
    Question("largest", "Which is the largest expense?",
             ids(bank, "payee", sort="amount", limit=1, fields=["payee"]),
             lambda f: [(f.bank.id(r := min(f.bank.rows, key=lambda r: (r["amount"], r["id"]))),
                         r["payee"])]),
    Question("list", "Who was paid?", ids(bank, "payee", fields=["payee"]),
             lambda f: [(f.bank.id(r), r["payee"]) for r in sorted(
                 f.bank.rows, key=lambda r: (r["posted_on"], r["id"]), reverse=True)]),
    Question("two groupings", "How many answers, and others, have how many attachments?",
             groups(mail, "key", "then", metric="count", group_by="is_reply",
                    then_by="attachment_count", sort="key"),
             lambda f: [(*key, count) for key, count in by_key(
                 (r["is_reply"], r["attachment_count"]) for r in f.mail.rows)], needs_mail=True),
    Question("two groupings, one of time", "Payments in and out, by month?",
             groups(bank, "key", "then", metric="count", group_by="direction",
                    group_by_time="posted_on", granularity="month", sort="key"),
             lambda f: [(then, key, count) for (key, then), count in sorted(Counter(
                 (f"{r['posted_on'][:7]}-01", r["direction"]) for r in f.bank.rows).items())]),
    Question("hour of day", "At which hours are mails written?",
             groups(mail, "key", metric="count", group_by_time="sent_at",
                    granularity="hour_of_day"),
             lambda f: by_key(f"{local(r['sent_at']).hour:02}:00" for r in f.mail.rows),
             needs_mail=True),
    Question("hour of day, in a zone", "At which hours in Berlin do people chat?",
             groups(chat, "key", metric="count", group_by_time="sent_at",
                    granularity="hour_of_day", time_zone=ZONE),
             lambda f: by_key(f"{local(r['sent_at'], ZONE).hour:02}:00" for r in f.chat.rows)),
    Question("weekday", "On which days of the week do people chat?",
             groups(chat, "key", metric="count", group_by_time="sent_at", granularity="weekday"),
             lambda f: sorted(by_key(weekday(r["sent_at"]) for r in f.chat.rows),
                              key=lambda each: WEEKDAYS.index(each[0]))),
    Question("weekday", "On which days of the week are holidays?",
             groups(holidays, "key", metric="count", group_by_time="starts_at",
                    granularity="weekday", sort="-value", limit=2),
             lambda f: sorted(by_key(weekday(r["starts_at"]) for r in f.holidays.rows),
                              key=lambda each: (-each[1], json_key(each[0])))[:2]),
    Question("filter in", "How many messages have two people written together?",
             figure(chat, metric="count", filter_by=lambda f: {"author_id": {
                 "in": [key for key, _ in tally((r["author_id"] for r in f.chat.rows), 2)]}}),
             lambda f: near(sum(c for _, c in tally((r["author_id"] for r in f.chat.rows), 2)))),
    Question("filter ne", "How many payments were not incoming?",
             figure(bank, metric="count", filter={"direction": {"ne": "in"}}),
             lambda f: counted(r for r in f.bank.rows if r["direction"] not in (None, "in"))),
    Question("filter contains", "How many messages ask something with 'why'?",
             figure(chat, metric="count", filter={"text": {"contains": "WHY"}}),
             lambda f: counted(r for r in f.chat.rows if "why" in (r["text"] or "").lower())),
    Question("filter starts_with", "How many subjects begin with Re:?",
             figure(mail, metric="count", filter={"subject": {"starts_with": "re:"}}),
             lambda f: counted(
                 r for r in f.mail.rows if (r["subject"] or "").lower().startswith("re:")),
             needs_mail=True),
    Question("filter starts_with", "Which commands are called npm-a…?",
             ids(note, "title", fields=["title"], limit=20,
                 filter={"title": {"starts_with": "npm-a"}}),
             lambda f: [(f.notes.id(r), r["title"])
                        for r in reversed(f.notes.in_time("modified_at"))
                        if (r["title"] or "").lower().startswith("npm-a")]),
    Question("filter exists", "How many mails came through no list?",
             figure(mail, metric="count", filter={"list_id": {"exists": False}}),
             lambda f: counted(r for r in f.mail.rows if r.get("list_id") is None),
             needs_mail=True),
    Question("filter exists", "How many events say where they are?",
             figure(events, metric="count", across="connections",
                    filter={"location": {"exists": True}}),
             lambda f: counted(r for rows in (f.holidays, f.lab) for r in rows.rows
                               if r.get("location") is not None)),
    Question("time line without a stream", "What happened first on one day, anywhere?",
             lambda host, f: host.records(
                 {"since": day_of_talk(f)[0], "until": day_of_talk(f)[1], "order": "asc",
                  "limit": 8}).ids(),
             lambda f: [each[3] for each in line_of(f, *day_of_talk(f))[:8]]),
    Question("time line without a stream", "What is the newest before 2015, anywhere?",
             lambda host, _: host.records({"until": "2015-01-01", "limit": 5}).ids(),
             lambda f: [each[3] for each in reversed(
                 line_of(f, "1900-01-01", "2015-01-01")[-5:])]),
    Question("new since an instant", "What payments came in since 2020?", came_in,
             lambda f: sorted(f.bank.ids(f.bank.rows))),
    Question("`now` bookmark", "What comes from now on?", bookmark, lambda _: ([], [])),
    Question("threads", "How did one conversation go?",
             ids(mail, limit=20, order="asc", sort="sent_at", fields=["from_name", "subject"],
                 filter_by=lambda f: {"thread_id": thread_of(f)[0]["thread_id"]}),
             lambda f: [(i,) for i in f.mail.ids(thread_of(f))], needs_mail=True),
    Question("threads", "What belongs to this mail?", unfolded,
             lambda f: f.mail.ids(thread_of(f)), needs_mail=True),
    Question("attachments' text", "What does the newest readable attachment say?", file_text,
             file_text_truth, needs_mail=True),
    Question("near values", "What was paid to somebody whose name I misspell?", nothing_but_near,
             nearest_truth),
    Question("several connections", "Which calendar has how many events?",
             groups(events, "key", metric="count", group_by="connection_id",
                    across="connections"),
             lambda f: with_connections(f, f.holidays, f.lab)),
    Question("several connections", "Messages of mail and chat together, by account?",
             groups(lambda _: {"stream": "messages"}, "key", metric="count",
                    group_by="connection_id", across="connections"),
             lambda f: with_connections(f, f.mail, f.chat), needs_mail=True),
    Question("query in figures", "In which years is linux written of?",
             groups(mail, "key", metric="count", query="linux", group_by_time="sent_at",
                    granularity="year"),
             lambda f: [("2002-01-01", near(f.found(
                 "linux", streams="messages", connection_id=f.mail.connection)[1]))],
             needs_mail=True),
    Question("relations with expand", "How did a channel begin?", related, related_truth),
    Question("relation by filter", "What was said first in the busiest channel?",
             ids(chat, "text", limit=3, order="asc", fields=["text"],
                 filter_by=lambda f: {"channel_name": busiest(f)}),
             lambda f: [(f.chat.id(r), r["text"]) for r in f.chat.in_time("sent_at")
                        if r["channel_name"] == busiest(f)][:3]),
    Question("persons", "Who is mentioned most?",
             ids(persons, "name", sort="-mention_count", limit=1, fields=["name"]),
             lambda f: [(f.persons.id(r := max(
                 f.persons.rows, key=lambda r: (r["mention_count"], r["id"]))), r["name"])]),
    Question("persons", "Who writes from this address?",
             ids(persons, "name", limit=1, fields=["name"],
                 filter_by=lambda f: {"address": f.sender.upper()}),
             lambda f: [(f.persons.id(r), r["name"]) for r in f.persons.rows
                        if r["address"] == f.sender], needs_mail=True),
    Question("by folder", "How many notes in each folder?",
             groups(note, "key", metric="count", group_by="folder"),
             lambda f: tally(r["folder"] for r in f.notes.rows)),
)  # fmt: skip


# What an answer may leave out without a word ------------------------------------------------------
def warned(code: str, tool: str, place: Place, **asked: Any) -> Ask:
    """Whether an answer says what limits it."""

    def ask(host: Host, facts: Facts) -> Any:
        return code in host.call(tool, {**place(facts), **asked}).warnings()

    return ask


def meant(words: str) -> Ask:
    """What a search finds by the call that it offers in place of its own."""

    def ask(host: Host, facts: Facts) -> Any:
        seen = host.follow(host.call("search", {"query": words, "limit": 1}))
        _, _, count = (seen.fact("count") or "").partition(":")
        return seen.ids()[0], int(count)

    return ask


def nothing(host: Host, facts: Facts) -> Any:
    """What nobody wrote of, and what is near it."""
    seen = host.call("search", {"query": "zebrafish"})
    return seen.ids(), seen.near()


def with_unit(host: Host, facts: Facts) -> Any:
    """A sum and its currency, which the first line has."""
    seen = host.call("aggregate", {**facts.bank.place, "metric": "sum", "field": "amount"})
    if isinstance(seen, StructuredOnly):
        return near(seen.seen["data"]["value"]), seen.seen["data"]["unit"]
    figure_text, unit = seen.text.head.partition(" = ")[2].partition(";")[0].split()
    return near(float(figure_text)), unit


def mixed(metric: str) -> Ask:
    """A figure over two currencies: that it is none, and what each of them has."""

    def ask(host: Host, facts: Facts) -> Any:
        asked = {"stream": "transactions", "metric": metric, "field": "amount"}
        seen = host.call("aggregate", {**asked, "across": "connections"})
        groups = host.follow(seen).entries()
        return "mixed_currencies" in seen.warnings(), sorted(
            (each["key"], near(each["figure"])) for each in groups
        )

    return ask


def by_currency(facts: Facts, of: Callable[[list[float]], float]) -> Any:
    found: dict[str, list[float]] = defaultdict(list)
    for row in (*facts.bank.rows, *facts.of("Abroad", "transactions").rows):
        found[row["currency"]].append(row["amount"])
    assert len(found) == 2
    return True, sorted((key, near(of(each))) for key, each in found.items())


def gone(host: Host, facts: Facts) -> Any:
    """A message that is not there any more."""
    return host.call("fetch", {"id": f"{facts.mail.id(facts.mail.rows[0])}0"}).error_code()


def during(host: Host, facts: Facts) -> Any:
    """What is going on in the middle of an event."""
    since, until = middle_of_event(facts)
    asked = {**facts.lab.place, "since": since, "until": until, "fields": ["title"]}
    return sorted(host.records(asked).ids())


def middle_of_event(facts: Facts) -> tuple[str, str]:
    """A minute in the middle of the longest event of a day."""
    spans = [(instant(r["starts_at"]), instant(r["ends_at"])) for r in timed(facts.lab)]
    begin, end = max(spans, key=lambda span: (span[1] - span[0], span[0]))
    at = begin + (end - begin) / 2
    return f"{at:%Y-%m-%dT%H:%M:00Z}", f"{at + timedelta(minutes=1):%Y-%m-%dT%H:%M:00Z}"


def timed(rows: Rows) -> list[Json]:
    """Events that are no whole days and have an end."""
    return [row for row in rows.rows if not row["all_day"] and row["ends_at"]]


def lasting(facts: Facts) -> Any:
    since, until = map(instant, middle_of_event(facts))
    return sorted(
        facts.lab.id(row)
        for row in timed(facts.lab)
        if instant(row["starts_at"]) < until and instant(row["ends_at"]) > since
    )


def by_local_day(rows: Rows, zone: str, limit: int) -> list[tuple[str, float]]:
    days = Counter(f"{local(row['sent_at'], zone):%Y-%m-%d}" for row in rows.rows)
    ordered = sorted(days.items(), key=lambda each: (-each[1], each[0]))
    return [(day, near(count)) for day, count in ordered[:limit]]


def busiest_days(place: Place, zone: str) -> Ask:
    return groups(place, "key", metric="count", group_by_time="sent_at", granularity="day",
                  time_zone=zone, sort="-value", limit=3)  # fmt: skip


silent_questions: tuple[Question, ...] = (
    Question("days in a zone", "On which days, by the clocks of Los Angeles, was most said?",
             busiest_days(chat, "America/Los_Angeles"),
             lambda f: by_local_day(f.chat, "America/Los_Angeles", 3)),
    Question("days in a zone", "And by those of Kolkata, half an hour off?",
             busiest_days(chat, "Asia/Kolkata"), lambda f: by_local_day(f.chat, "Asia/Kolkata", 3)),
    Question("days in a zone", "On which days, by the clocks of Apia, came most mails?",
             busiest_days(mail, "Pacific/Apia"), lambda f: by_local_day(f.mail, "Pacific/Apia", 3),
             needs_mail=True),
    Question("a day of 25 hours", "How many mails on 27 October 2002 in Berlin?",
             figure(mail, metric="count", time_zone=ZONE,
                    filter={"sent_at": {"gte": "2002-10-27", "lt": "2002-10-28"}}),
             lambda f: counted(r for r in f.mail.rows
                               if f"{local(r['sent_at'], ZONE):%Y-%m-%d}" == "2002-10-27"),
             needs_mail=True),
    Question("whole days in a zone", "On which days of the week are holidays, told in Honolulu?",
             groups(holidays, "key", metric="count", group_by_time="starts_at",
                    granularity="weekday", time_zone="Pacific/Honolulu"),
             lambda f: sorted(by_key(weekday(r["starts_on"]) for r in f.holidays.rows),
                              key=lambda each: WEEKDAYS.index(each[0]))),
    Question("whole days in a zone", "How many holidays has each year, told in Honolulu?",
             groups(holidays, "key", metric="count", group_by_time="starts_at",
                    granularity="year", time_zone="Pacific/Honolulu"),
             lambda f: by_key(f"{r['starts_on'][:4]}-01-01" for r in f.holidays.rows)),
    Question("overlap", "What goes on in the lab at this minute?", during, lasting),
    Question("overlap", "Is New Year 2015 a holiday?",
             ids(holidays, "title", since="2015-01-01", until="2015-01-02", fields=["title"]),
             lambda f: [(f.holidays.id(r), r["title"]) for r in f.holidays.rows
                        if r["starts_on"] == "2015-01-01"]),
    Question("currency", "What do all payments add up to, in which money?", with_unit,
             lambda f: (near(sum(amounts(f))), f.bank.rows[0]["currency"])),
    Question("currency", "What do the payments of all accounts add up to?", mixed("sum"),
             lambda f: by_currency(f, sum)),
    Question("currency", "Which is the largest payment, of whichever account?", mixed("max"),
             lambda f: by_currency(f, max)),
    Question("possessive", "What of Razor's?", found("Razor's", streams=["messages"]),
             lambda f: f.found("razor", streams="messages"), needs_mail=True),
    Question("question words", "Where is the razor problem?",
             found("where is the razor problem", streams=["messages"]),
             lambda f: f.found("razor problem", streams="messages"), needs_mail=True),
    Question("another language", "Wann ist das Sommerfest?",
             found("Wann ist das Sommerfest?", streams=["events"]),
             lambda f: f.found("Sommerfest", streams="events")),
    Question("another language", "Wo sind die Workshops?",
             found("Wo sind die Workshops", streams=["events"]),
             lambda f: f.found("Workshops", streams="events")),
    Question("operators of mail", "razor before:2002-10-01", meant("razor before:2002-10-01"),
             lambda f: f.found("razor", until="2002-10-01"), needs_mail=True),
    Question("operators of mail", "has:attachment perl", meant("has:attachment perl"),
             lambda f: f.found("perl", streams="messages", connection_id=f.mail.connection,
                               **{"filter[attachment_count][gte]": "1"}), needs_mail=True),
    Question("absent", "What of zebrafish?", nothing, lambda _: ([], [])),
    Question("missing values", "How many events do not say who holds them?",
             figure(events, metric="count", across="connections",
                    filter={"organizer": {"exists": False}}),
             lambda f: counted(r for rows in (f.holidays, f.lab) for r in rows.rows
                               if r.get("organizer") is None)),
    Question("missing values", "How many mails came through each list, and through none?",
             groups(mail, "key", metric="count", group_by="list_id", limit=5),
             lambda f: tally((r.get("list_id") for r in f.mail.rows), 5), needs_mail=True),
    Question("bounds", "Is the first mail really the first?",
             warned("limited_access", "aggregate", mail, metric="min", field="sent_at"),
             lambda _: True, needs_mail=True),
    Question("bounds", "Are all mails on razor found?",
             warned("limited_access", "search", lambda _: {"query": "razor"}),
             lambda _: True, needs_mail=True),
    Question("bounds", "Is a feed of mails all of them?",
             warned("limited_access", "query_records", mail, changes_since="now"),
             lambda _: True, needs_mail=True),
    Question("bounds", "And of payments, which nothing limits?",
             warned("limited_access", "query_records", bank, changes_since="now"),
             lambda _: False),
    Question("deleted", "What did a message say that is gone?", gone, lambda _: "not_found",
             needs_mail=True),
)  # fmt: skip
questions = (*questions, *silent_questions)


# The archives -----------------------------------------------------------------------------------
def archives(*, with_mail: bool) -> list[tuple[str, Sample]]:
    """What is imported, and how its connection is called."""
    calendars = unpacked(RECURRING) / "recurring_ical_events" / "test" / "calendars"
    listed = [
        ("Checking account", statement()),
        ("Abroad", Sample(statements().path / "bank_medium.ofx", statements().title)),
        ("Chats", workspace(CONVERSATIONS)),
        ("Holidays", Sample(calendars / "Germany.ics", RECURRING.title)),
        ("Lab", Sample(calendars / "fablab_cottbus.ics", RECURRING.title)),
        ("Manual", notes()),
    ]
    return [*([("Mailing lists", mailbox())] if with_mail else []), *listed]


def selection(folder: Path, held: Mapping[str, list[str]]) -> Path:
    """The grant: these streams of all connections, mail since September without its recipients.

    `held` are the connections of each connector; those of the server's own are not named.
    """
    details = [
        {
            "type": "https://pdpp.dev/data-access",
            "source": {"id": f"https://registry.pdpp.dev/connectors/{connector}"},
            "purpose_code": "https://pdpp.dev/purpose/agent_context",
            "access_mode": "continuous",
            "streams": [
                {"name": name}
                | ({"instance_ids": held[connector]} if connector in held else {})
                | ({"fields": fields} if fields else {})
                | ({"time_range": {"since": SINCE}} if connector == "mail" else {})
                for name, fields in streams.items()
            ],
        }
        for connector, streams in OFFERED.items()
        if connector in held or connector == "persons"
    ]
    path = folder / "selection.json"
    path.write_text(json.dumps(details), encoding="utf-8")
    return path


@contextmanager
def served(folder: Path, *, with_mail: bool) -> Generator[Home]:
    """A server with the archives and a client that was granted them."""
    home = Home(folder, free_port(), Story(), ())
    held: dict[str, list[str]] = defaultdict(list)
    for name, sample in archives(with_mail=with_mail):
        told = home.pdpp("import", sample.path, "--connection", name, "--zone", "UTC", "--json")
        (report,) = json.loads(told)["imports"]
        held[report["connector_key"]].append(report["connection"]["connection_id"])
    home.pdpp("person", "on")
    home.pdpp(
        "grant", "create", "--client", "Reader", "--from", selection(folder, held),
        "--expires", "30d", "--cache-root", home.cache, "--yes",
    )  # fmt: skip
    with home.serving():
        yield home


def facts_of(http: httpx2.Client) -> Facts:
    catalog = http.get("/v1/schema").json()
    facts = Facts(http)
    for connector in catalog["connectors"]:
        for row in connector["streams"]:
            held = row.get("granted_connections") or connector["granted_connections"]
            for each in held:
                name, stream = each["display_name"], row["name"]
                read = all_records(http, stream, each["connection_id"])
                facts.streams[name, stream] = Rows(each["connection_id"], stream, read)
    return facts


def all_records(http: httpx2.Client, stream: str, connection: str) -> list[Json]:
    rows: list[Json] = []
    params = {"limit": "100", "connection_id": connection}
    while True:
        answer = http.get(f"/v1/streams/{stream}/records", params=params)
        if answer.status_code == 429:
            sleep(int(answer.headers["retry-after"]))
            continue
        body = answer.json()
        rows += [row["data"] for row in body["data"]]
        if not body.get("next_cursor"):
            return rows
        params = {**params, "cursor": body["next_cursor"]}


def token_of(home: Home) -> str:
    document = json.loads(next((home.cache / "clients").glob("*.json")).read_text())
    return document["credential"]["access_token"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one question went in one view: calls, the longest face, what is wrong if anything."""

    question: Question
    view: type[View]
    calls: int
    chars: int
    fault: str


def asked(host: Host, facts: Facts, question: Question) -> Outcome:
    try:
        answer, wanted = question.ask(host, facts), question.truth(facts)
        fault = "" if answer == wanted else f"{str(answer)[:150]} is not {str(wanted)[:150]}"
        if not fault and host.calls > MOST_CALLS:
            fault = f"{host.calls} calls"
    except Exception as error:  # noqa: BLE001 - one question is one line of the table
        fault = f"{type(error).__name__} {error}"[:300]
    return Outcome(question, host.view, host.calls, host.chars, fault)


def all_asked(home: Home, *, with_mail: bool) -> Generator[Outcome]:
    """Every question of the archives that are there, in every view."""
    headers = {"Authorization": f"Bearer {token_of(home)}"}
    wire = StdioWire(
        ["--cache-root", str(home.cache), "--provider-url", home.origin], environment()
    )
    with httpx2.Client(base_url=home.origin, headers=headers, timeout=240) as http:
        facts, known = facts_of(http), dict[str, Json]()
        wire.exchange(*greeting_request("2025-11-25"))
        schema = wire.exchange("tools/call", {"name": "schema", "arguments": {}})
        for told in (Result(schema).text, json.dumps(Result(schema).structured)):
            assert all(rows.connection in told for rows in facts.streams.values())
        for question in questions:
            if with_mail or not question.needs_mail:
                for view in views:
                    yield asked(Host(wire, view, known), facts, question)
    wire.close()


def main() -> int:
    outcomes: list[Outcome] = []
    with (
        tempfile.TemporaryDirectory(prefix="pdpp-questions-") as folder,
        served(Path(folder), with_mail=True) as home,
    ):
        for outcome in all_asked(home, with_mail=True):
            outcomes.append(outcome)
            told = outcome.fault or f"yes, {outcome.calls} calls, {outcome.chars} characters"
            words = f"{outcome.question.kind}: {outcome.question.words}"
            print(f"{words:<95} {outcome.view.name:<16} {told}", flush=True)
    wrong = sum(bool(each.fault) for each in outcomes)
    print(
        f"{len(questions)} questions, {len(views)} views, {wrong} without the right answer; at most"
        f" {max(o.calls for o in outcomes)} calls and {max(o.chars for o in outcomes)} characters"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
