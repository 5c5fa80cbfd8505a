"""Questions about signs, pasted text, shares, first and last times, and days far from here."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from tests.journeys.questions.asking import (
    Ask,
    Facts,
    Host,
    Json,
    Question,
    Rows,
    bank,
    by_key,
    chat,
    counted,
    figure,
    found,
    groups,
    holidays,
    local,
    mail,
    near,
    tally,
    value,
)
from tests.journeys.questions.silent_questions import busiest_days, by_local_day

PASTED_CHARS = 300
SMILE = ":)"
_C = re.compile(r"(?<![^\W_])c(?![^\W_])", re.IGNORECASE)
_SEARCHED = ("subject", "body", "from_name")


def with_signs(facts: Facts) -> float:
    """Mails that hold the word `c`, and somewhere `c++` as it is written."""
    texts = ([str(row.get(name) or "") for name in _SEARCHED] for row in facts.mail.rows)
    return counted(
        each
        for each in texts
        if any(map(_C.search, each)) and any("c++" in text.lower() for text in each)
    )


def smiling(host: Host, facts: Facts) -> Any:
    """Signs are no words: the refusal has the filter that finds them."""
    return host.follow(host.call("search", {"query": SMILE, "limit": 3})).ids()


def smiles(facts: Facts) -> list[str]:
    rows = facts.chat.in_time("sent_at")[::-1]
    return facts.chat.ids([row for row in rows if SMILE in (row["text"] or "")][:3])


def longest(facts: Facts) -> Json:
    return max(facts.chat.rows, key=lambda row: (len(row["text"] or ""), row["id"]))


def pasted(host: Host, facts: Facts) -> Any:
    """A stretch of a message, as one copies it."""
    words = longest(facts)["text"][:PASTED_CHARS]
    return host.call("search", {"query": words, "streams": ["messages"], "limit": 1}).ids()


def days_of_talk(host: Host, facts: Facts) -> Any:
    asked = {"metric": "count", "group_by_time": "sent_at", "granularity": "day", "limit": 1}
    return int(host.call("aggregate", {**facts.chat.place, **asked}).fact("group_count") or 0)


def first_times(host: Host, facts: Facts) -> Any:
    """When each of three people wrote for the first time."""
    asked = {"metric": "min", "field": "sent_at", "group_by": "author_name", "limit": 3}
    entries = host.call("aggregate", {**facts.chat.place, **asked}).entries()
    return [(each["key"], str(each["figure"]).strip('"')) for each in entries]


def first_by_author(rows: Rows) -> list[tuple[str, str]]:
    firsts: dict[str, str] = {}
    for row in rows.in_time("sent_at"):
        firsts.setdefault(row["author_name"], row["sent_at"])
    return sorted(firsts.items(), key=lambda each: (each[1], each[0]))[:3]


def months(rows: Rows) -> list[tuple[str, float]]:
    written = (f"{local(row['sent_at']):%Y-%m}-01" for row in rows.rows)
    return by_key(month for month in written if month in ("2002-09-01", "2002-10-01"))


def last_of(words: str, facts: Facts) -> str:
    """When the newest mail with these words was sent: its id is the resource server's."""
    page = facts.http.get(
        "/v1/search",
        params={
            "q": words,
            "streams": "messages",
            "connection_id": facts.mail.connection,
            "sort": "newest",
            "limit": "1",
        },
    ).json()
    key = page["data"][0]["record_id"]
    return next(row["sent_at"] for row in facts.mail.rows if row["id"] == key)


def sums_by_account(facts: Facts) -> list[tuple[str, float]]:
    sums: dict[str, float] = defaultdict(float)
    for row in facts.bank.rows:
        sums[row["account_name"]] += row["amount"]
    return [(name, near(amount)) for name, amount in sums.items()]


def as_document(rows: Callable[[Facts], Rows], *, by: str, told: Callable[[Json], Any]) -> Ask:
    """What a document says of the last record by a field."""

    def ask(host: Host, facts: Facts) -> Any:
        found = rows(facts)
        last = max(found.rows, key=lambda row: (row[by], row["id"]))
        return told(host.call("fetch", {"id": found.id(last)}).document)

    return ask


def last_holiday(facts: Facts) -> str:
    last = max(facts.holidays.rows, key=lambda row: (row["starts_on"], row["id"]))
    return f"{local(last['starts_on']):%a} {last['starts_on']} (whole day)"


def last_payee(facts: Facts) -> str:
    return max(facts.bank.rows, key=lambda row: (row["posted_on"], row["id"]))["payee"]


def hours_of_talk(facts: Facts, zone: str) -> list[tuple[str, float]]:
    hours = Counter(f"{local(row['sent_at'], zone):%H}:00" for row in facts.chat.rows)
    ordered = sorted(hours.items(), key=lambda each: (-each[1], each[0]))
    return [(hour, near(count)) for hour, count in ordered[:3]]


asked_again_questions: tuple[Question, ...] = (
    Question("signs", "How many mails speak of C++?",
             figure(mail, metric="count", query="C++"),
             with_signs, needs_mail=True),
    Question("signs", "Who smiled last?", smiling, smiles),
    Question("contractions", "Which mails haven't a razor problem?",
             found("which mails haven't a razor problem", streams=["messages"]),
             lambda f: f.found("mails razor problem", streams="messages"), needs_mail=True),
    Question("pasted text", "Where does this stand?", pasted,
             lambda f: [f.chat.id(longest(f))]),
    Question("two periods", "More mails in September or in October 2002?",
             groups(mail, "key", metric="count", group_by_time="sent_at", granularity="month",
                    filter={"sent_at": {"gte": "2002-09-01", "lt": "2002-11-01"}}),
             lambda f: months(f.mail), needs_mail=True),
    Question("share", "Which share of the payments went out?",
             groups(bank, "key", metric="count", group_by="direction"),
             lambda f: tally(row["direction"] for row in f.bank.rows)),
    Question("first times", "When did people write for the first time?", first_times,
             lambda f: first_by_author(f.chat)),
    Question("days", "On how many days did anybody chat?", days_of_talk,
             lambda f: len({f"{local(row['sent_at']):%Y-%m-%d}" for row in f.chat.rows})),
    Question("last time", "When was razor last written of?",
             value(mail, metric="max", field="sent_at", query="razor"),
             lambda f: last_of("razor", f), needs_mail=True),
    Question("account by name", "What came to which account?",
             groups(bank, "label", metric="sum", field="amount", group_by="account_id"),
             sums_by_account),
    Question("kinds of attachment", "What kinds of files were attached, and how many of each?",
             groups(lambda f: f.of("Mailing lists", "attachments").place, "key",
                    metric="count", group_by="mime_type", limit=5),
             lambda f: tally((row["mime_type"]
                              for row in f.of("Mailing lists", "attachments").rows), 5),
             needs_mail=True),
    Question("days in a zone", "On which days, by the clocks of Kiritimati, was most said?",
             busiest_days(chat, "Pacific/Kiritimati"),
             lambda f: by_local_day(f.chat, "Pacific/Kiritimati", 3)),
    Question("days in a zone", "And by those of Lord Howe, half an hour of summer time?",
             busiest_days(chat, "Australia/Lord_Howe"),
             lambda f: by_local_day(f.chat, "Australia/Lord_Howe", 3)),
    Question("another language", "Wie viele Feiertage hatte der Mai 2015?",
             figure(holidays, metric="count",
                    filter={"starts_on": {"gte": "2015-05-01", "lt": "2015-06-01"}}),
             lambda f: counted(r for r in f.holidays.rows if r["starts_on"][:7] == "2015-05")),
    Question("negation", "How many mails speak of perl and not of a script?",
             figure(mail, metric="count", query="perl -script"),
             lambda f: near(f.found("perl -script", streams="messages",
                                    connection_id=f.mail.connection)[1]), needs_mail=True),
    Question("who says most where", "Who said how much in the channels?",
             groups(chat, "key", "then", metric="count", group_by="channel_name",
                    then_by="author_name", limit=5),
             lambda f: most_said(f)),
    Question("a document", "When is the last holiday, as a document tells it?",
             as_document(lambda f: f.holidays, by="starts_on",
                         told=lambda d: d["metadata"]["when"]), last_holiday),
    Question("a document", "Whom did the last payment go to, as its document is called?",
             as_document(lambda f: f.bank, by="posted_on", told=lambda d: d["title"]), last_payee),
    Question("hours in a zone", "At which hours, by the clocks of Kathmandu, is most said?",
             groups(chat, "key", metric="count", group_by_time="sent_at",
                    granularity="hour_of_day", time_zone="Asia/Kathmandu", sort="-value", limit=3),
             lambda f: hours_of_talk(f, "Asia/Kathmandu")),
    Question("days in a zone", "On which days, on Lord Howe, half an hour off in summer?",
             busiest_days(chat, "Australia/Lord_Howe"),
             lambda f: by_local_day(f.chat, "Australia/Lord_Howe", 3)),
    Question("days in a zone", "And on Kiritimati, where the day begins?",
             busiest_days(chat, "Pacific/Kiritimati"),
             lambda f: by_local_day(f.chat, "Pacific/Kiritimati", 3)),
    Question("another language", "¿Cuándo es el Sommerfest?",
             found("¿Cuándo es el Sommerfest?", streams=["events"]),
             lambda f: f.found("Sommerfest", streams="events")),
    Question("another language", "Когда Sommerfest?",
             found("Когда Sommerfest?", streams=["events"]),
             lambda f: f.found("Sommerfest", streams="events")),
    Question("another language", "Quand est la Sommerfest ?",
             found("Quand est la Sommerfest ?", streams=["events"]),
             lambda f: f.found("Sommerfest", streams="events")),
    Question("another language", "Sommerfestはいつですか",
             found("Sommerfestはいつですか", streams=["events"]),
             lambda f: f.found("Sommerfest", streams="events")),
)  # fmt: skip


def most_said(facts: Facts) -> list[tuple[str, str, float]]:
    """The five largest pairs of a channel and an author."""
    pairs = Counter((row["channel_name"], row["author_name"]) for row in facts.chat.rows)
    ordered = sorted(pairs.items(), key=lambda each: (-each[1], each[0]))
    return [(*pair, near(count)) for pair, count in ordered[:5]]
