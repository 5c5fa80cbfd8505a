"""Twenty questions over a real mailbox and a real bank statement, through five views each.

`python -m tests.journeys.questions` imports the samples, grants a slice, serves it, asks over
stdio, and compares every answer with one computed from all records read over REST.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any

import httpx2

from bench.samples import mailbox, statement
from demo.__main__ import Home, free_port, selection
from demo.story import Story
from tests.journeys.views import SmallWindow, View, views
from tests.requirements.doors import Result, StdioWire, environment, greeting_request

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Host:
    """A reader with one view."""

    wire: StdioWire
    view: type[View]

    def call(self, tool: str, arguments: Json) -> View:
        while True:
            raw = self.wire.exchange("tools/call", {"name": tool, "arguments": arguments})
            seen = self.view(tool, arguments, Result(raw))
            if seen.error_code() != "rate_limit_exceeded":
                return seen
            sleep(seen.wait_seconds())

    def page(self, tool: str, arguments: Json) -> View:
        """A page that is wholly in sight."""
        seen = self.call(tool, arguments)
        while not seen.is_whole():
            arguments = {**arguments, "limit": max(1, len(seen.ids()) - 1)}
            seen = self.call(tool, arguments)
        return seen


@dataclass(frozen=True, slots=True)
class Facts:
    """All records, read over REST with the same token."""

    mail: list[Json]
    money: list[Json]
    mail_connection: str
    bank_connection: str

    @property
    def mails(self) -> Json:
        return {"stream": "messages", "connection_id": self.mail_connection}

    @property
    def payments(self) -> Json:
        return {"stream": "transactions", "connection_id": self.bank_connection}

    @property
    def longest(self) -> Json:
        return max(self.mail, key=lambda row: len(row["body"] or ""))

    def mail_id(self, row: Json) -> str:
        return f"{self.mail_connection}/messages:{row['id']}"

    @property
    def senders(self) -> list[tuple[str | None, int]]:
        return Counter(row["from_address"] for row in self.mail).most_common()


Reader = Callable[[Host, Facts], Any]


def count_of(extra: Json) -> Reader:
    def read(host: Host, facts: Facts) -> Any:
        return int(host.call("aggregate", {**facts.mails, "metric": "count", **extra}).value())

    return read


def extreme(metric: str) -> Reader:
    def read(host: Host, facts: Facts) -> Any:
        asked = {**facts.mails, "metric": metric, "field": "sent_at"}
        return host.call("aggregate", asked).value()

    return read


def grouped(extra: Json, *, money: bool = False) -> Reader:
    def read(host: Host, facts: Facts) -> Any:
        base = facts.payments if money else facts.mails
        return dict(host.call("aggregate", {**base, **extra}).groups())

    return read


def top_sender(host: Host, facts: Facts) -> Any:
    asked = {**facts.mails, "metric": "count", "group_by": "from_address", "limit": 5}
    seen = host.call("aggregate", asked)
    assert seen.other_count() > 0
    return seen.groups()[0]


def one_subject(order: str) -> Reader:
    def read(host: Host, facts: Facts) -> Any:
        asked = {**facts.mails, "limit": 1, "order": order, "fields": ["subject"]}
        seen = host.page("query_records", asked)
        return seen.rows()[0]["subject"], seen.ids()[0]

    return read


def by_sender(host: Host, facts: Facts) -> Any:
    sender = next(name for name, count in facts.senders if name and 20 <= count <= 60)
    asked: Json = {**facts.mails, "filter": {"from_address": sender}, "fields": ["subject"]}
    ids: list[str] = []
    while True:
        seen = host.page("query_records", asked)
        ids += seen.ids()
        following = seen.following()
        if following is None or "cursor" not in following.arguments:
            return sorted(ids)
        asked = following.arguments


def found(words: str) -> Reader:
    def read(host: Host, facts: Facts) -> Any:
        seen = host.page("search", {"query": words, "limit": 3})
        return seen.ids()[0], seen.fact("count")

    return read


def opened(host: Host, facts: Facts) -> Any:
    seen = host.page("search", {"query": "razor", "limit": 1})
    document = host.call("fetch", {"id": seen.ids()[0]}).document
    assert document["url"].startswith("http")
    return document["title"], document["text"][:200]


def last_words(host: Host, facts: Facts) -> Any:
    limit = 3_000 if host.view is SmallWindow else 16_384
    asked: Json = {"id": facts.mail_id(facts.longest), "field_path": "body", "limit_chars": limit}
    parts: list[str] = []
    following: Any = ("read_record_field", asked)
    while following is not None:
        seen = host.call(*following)
        parts.append(seen.window())
        call = seen.following()
        following = (call.tool, call.arguments) if call else None
    return len("".join(parts)), "".join(parts)[-100:].split()


def about_a_field(host: Host, facts: Facts) -> Any:
    seen = host.call("query_records", {**facts.mails, "fields": ["to"]})
    assert seen.following() is None
    assert "approve" in seen.values()
    return seen.error_code()


def total(host: Host, facts: Facts) -> Any:
    asked = {**facts.payments, "metric": "sum", "field": "amount"}
    return round(float(host.call("aggregate", asked).value()), 2)


def largest(host: Host, facts: Facts) -> Any:
    seen = host.page("query_records", {**facts.payments, "sort": "amount", "limit": 1})
    return seen.rows()[0]["payee"], round(float(seen.rows()[0]["amount"]), 2)


def payees(host: Host, facts: Facts) -> Any:
    seen = host.page("query_records", {**facts.payments, "fields": ["payee", "amount"]})
    assert all(shown.startswith(facts.bank_connection) for shown in seen.ids())
    return sorted(str(row["payee"]) for row in seen.rows())


def streams(host: Host, facts: Facts) -> Any:
    return sorted(host.call("schema", {}).streams())


def ambiguous(host: Host, facts: Facts) -> Any:
    seen = host.call("query_records", {"stream": "transactions", "limit": 1})
    chosen = seen.connections()[0]
    asked = {"stream": "transactions", "limit": 1, "connection_id": chosen}
    return host.page("query_records", asked).ids()[0].split("/")[0]


def day(row: Json) -> str:
    return row["sent_at"][:10]


def moment(choose: Callable[..., str]) -> Reader:
    return lambda _, facts: choose(str(row["sent_at"]) for row in facts.mail)


def constant(value: Any) -> Reader:
    def compute(host: Host, facts: Facts) -> Any:
        return value

    return compute


october: Json = {"filter": {"sent_at": {"gte": "2002-10-01", "lt": "2002-11-01"}}}
monthly: Json = {"metric": "count", "group_by_time": "sent_at", "granularity": "month"}


def by_month(host: Host, facts: Facts) -> Any:
    counted = Counter(f"{row['sent_at'][:7]}-01" for row in facts.mail)
    return {key: float(value) for key, value in counted.items()}


def ends(last: bool) -> Reader:
    def compute(host: Host, facts: Facts) -> Any:
        rows = sorted(facts.mail, key=lambda row: (row["sent_at"], row["id"]))
        row = rows[-1 if last else 0]
        return row["subject"], facts.mail_id(row)

    return compute


def senders_ids(host: Host, facts: Facts) -> Any:
    sender = next(name for name, count in facts.senders if name and 20 <= count <= 60)
    rows = [row for row in facts.mail if row["from_address"] == sender]
    return sorted(facts.mail_id(row) for row in rows)


def over_rest(words: str) -> Reader:
    """The direct answer; the oracle of search is the resource server itself."""

    def compute(host: Host, facts: Facts) -> Any:
        return rest_hits[words]

    return compute


rest_hits: dict[str, Any] = {}
searched = ("razor", '"open source"', "perl script")


def opened_truth(host: Host, facts: Facts) -> Any:
    shown = rest_hits["razor"][0].rpartition(":")[2]
    row = next(row for row in facts.mail if row["id"] == shown)
    return row["subject"], row["body"][:200]


questions: list[tuple[str, Reader, Reader]] = [
    ("What is shared here?", streams, constant(["messages", "transactions"])),
    ("How many mails are there?", count_of({}), lambda _, f: len(f.mail)),
    ("When was the first?", extreme("min"), moment(min)),
    ("When was the last?", extreme("max"), moment(max)),
    ("Who wrote most, and how often?", top_sender, lambda _, f: f.senders[0]),
    (
        "How many people wrote?",
        count_of({"metric": "count_distinct", "field": "from_address"}),
        lambda _, f: len([name for name, _ in f.senders if name is not None]),
    ),
    ("How many in each month?", grouped(monthly), by_month),
    (
        "How many in October 2002?",
        count_of(october),
        lambda _, f: sum(row["sent_at"].startswith("2002-10") for row in f.mail),
    ),
    ("What is the newest mail about?", one_subject("desc"), ends(True)),
    ("What is the oldest mail about?", one_subject("asc"), ends(False)),
    ("Which mails did one person write?", by_sender, senders_ids),
    ("Where is razor mentioned?", found("razor"), over_rest("razor")),
    ('Where is "open source" mentioned?', found('"open source"'), over_rest('"open source"')),
    ("Where are perl and script together?", found("perl script"), over_rest("perl script")),
    ("What does the first mail on razor say?", opened, opened_truth),
    (
        "How does the longest mail end?",
        last_words,
        lambda _, f: (len(f.longest["body"]), f.longest["body"][-100:].split()),
    ),
    ("To whom were they written?", about_a_field, constant("field_not_granted")),
    (
        "What do all payments add up to?",
        total,
        lambda _, f: round(sum(row["amount"] for row in f.money), 2),
    ),
    (
        "Which is the largest expense?",
        largest,
        lambda _, f: min((round(r["amount"], 2), r["payee"]) for r in f.money)[::-1],
    ),
    (
        "Who was paid, and from which account?",
        payees,
        lambda _, f: sorted(str(row["payee"]) for row in f.money),
    ),
    ("Which source holds payments?", ambiguous, lambda _, f: f.bank_connection),
]  # fmt: skip


def all_records(http: httpx2.Client, stream: str, connection: str) -> list[Json]:
    rows: list[Json] = []
    cursor: str | None = None
    while True:
        params = {"limit": "100", "connection_id": connection}
        answer = http.get(
            f"/v1/streams/{stream}/records", params=params | ({"cursor": cursor} if cursor else {})
        ).json()
        rows += [row["data"] for row in answer["data"]]
        cursor = answer.get("next_cursor")
        if cursor is None:
            return rows


def facts_of(http: httpx2.Client) -> Facts:
    catalog = http.get("/v1/schema", params={"view": "compact"}).json()
    where = {
        item["connector_key"]: item["granted_connections"][0]["connection_id"]
        for item in catalog["connectors"]
    }
    mail, bank = where["mail"], where["bank"]
    for words in searched:
        page = http.get("/v1/search", params={"q": words, "limit": "3"}).json()
        first = page["data"][0]
        count = page["meta"]["count"]
        shown = f"{first['connection_id']}/{first['stream']}:{first['record_id']}"
        rest_hits[words] = (shown, f"{count['kind']}:{count['value']}")
    return Facts(
        all_records(http, "messages", mail), all_records(http, "transactions", bank), mail, bank
    )


def token_of(home: Home) -> str:
    document = json.loads(next((home.cache / "clients").glob("*.json")).read_text())
    return document["credential"]["access_token"]


def answered(host: Host, facts: Facts, ask: Reader, truth: Reader) -> str:
    try:
        answer, wanted = ask(host, facts), truth(host, facts)
    except Exception as error:  # noqa: BLE001 - one question is one line of the table
        return f"failed: {type(error).__name__} {error}"[:80]
    if answer == wanted or str(answer) == str(wanted):
        return "yes"
    return f"no: {str(answer)[:60]} is not {str(wanted)[:60]}"


def main() -> int:
    story = Story()
    with tempfile.TemporaryDirectory(prefix="pdpp-questions-") as folder:
        home = Home(Path(folder), free_port(), story)
        home.pdpp("import", mailbox().path, "--connection", "Mailing lists")
        home.pdpp("import", statement().path, "--connection", "Checking account")
        home.pdpp(
            "grant", "create", "--client", "Reader", "--from", selection(home), "--expires", "30d",
            "--cache-root", home.cache, "--yes",
        )  # fmt: skip
        with home.serving():
            return asked_all(home)


def asked_all(home: Home) -> int:
    headers = {"Authorization": f"Bearer {token_of(home)}"}
    with httpx2.Client(base_url=home.origin, headers=headers, timeout=60) as http:
        facts = facts_of(http)
    arguments = ["--cache-root", str(home.cache), "--provider-url", home.origin]
    wire = StdioWire(arguments, environment())
    wire.exchange(*greeting_request("2025-11-25"))
    wrong = 0
    for words, ask, truth in questions:
        for view in views:
            outcome = answered(Host(wire, view), facts, ask, truth)
            wrong += outcome != "yes"
            print(f"{words:<40} {view.name:<16} {outcome}", flush=True)
    wire.close()
    print(f"{len(questions)} questions, {len(views)} views, {wrong} without the right answer")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
