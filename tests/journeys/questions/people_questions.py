"""Questions as people put them: since when, how long, the last time, the slips of their fingers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.journeys.questions.asking import (
    ZONE,
    Facts,
    Host,
    Json,
    Question,
    chat,
    counted,
    events,
    figure,
    found,
    ids,
    instant,
    local,
    mail,
    near,
    value,
)
from tests.journeys.questions.silent_questions import timed, warned

MONTH = "2018-05"
YEAR = 2017


def lab(facts: Facts) -> Json:
    return facts.lab.place


def author(facts: Facts) -> str:
    """Who wrote the first message of all chats."""
    return facts.chat.in_time("sent_at")[0]["author_name"]


def sent_by(facts: Facts) -> list[str]:
    rows = facts.chat.in_time("sent_at")
    return [row["sent_at"] for row in rows if row["author_name"] == author(facts)]


def minutes(row: Json) -> int:
    """By the clocks on the wall."""
    ends, starts = (local(row[name], ZONE) for name in ("ends_at", "starts_at"))
    return int((ends.replace(tzinfo=None) - starts.replace(tzinfo=None)).total_seconds() // 60)


def lengths(facts: Facts) -> list[int]:
    return [m for row in timed(facts.lab) if (m := minutes(row)) >= 0]


def longest_event(facts: Facts) -> Any:
    rows = [row for row in timed(facts.lab) if minutes(row) >= 0]
    row = max(rows, key=lambda each: (minutes(each), each["id"]))
    return [(facts.lab.id(row), row["title"], minutes(row))]


def of_month(rows: Iterable[Json]) -> float:
    return counted(row for row in rows if row["sent_at"].startswith(MONTH))


def in_month(host: Host, facts: Facts) -> Any:
    """Both bounds are a month; the call that is offered mends both."""
    asked = {**facts.chat.place, "since": MONTH, "until": MONTH, "count": "exact", "limit": 1}
    seen = host.follow(host.call("query_records", asked))
    return near(float((seen.fact("count") or "").partition(":")[2]))


def since_year(host: Host, facts: Facts) -> Any:
    asked = {**facts.lab.place, "metric": "count", "filter": {"starts_at": {"gte": str(YEAR)}}}
    return near(float(host.follow(host.call("aggregate", asked)).value()))


def in_order(host: Host, facts: Facts) -> Any:
    """No record holds all words; sorted by time, the way on is by what holds some."""
    asked = {"query": "earliest Sommerfest of them all", "streams": ["events"], "limit": 1}
    seen = host.call("search", {**asked, "sort": "oldest"})
    return seen.ids(), host.follow(seen).ids()


def first_summer(facts: Facts) -> Any:
    return [], [facts.found("Sommerfest", streams="events")[0]]


def since_said(host: Host, facts: Facts) -> Any:
    """No record holds the words of a time; the call that is offered has it as an argument."""
    asked = {"query": "Sommerfest since 2017-01", "exact": True, "limit": 1}
    seen = host.follow(host.call("search", asked))
    return seen.ids()[0], int((seen.fact("count") or "").partition(":")[2])


def subjectless(host: Host, facts: Facts) -> Any:
    """No text is no value, which the call that is offered asks for."""
    asked = {**facts.mail.place, "metric": "count", "filter": {"subject": ""}}
    return near(float(host.follow(host.call("aggregate", asked)).value()))


def without_accents(host: Host, facts: Facts) -> Any:
    """A part of a text has its accents; the call that is offered asks for words in any form."""
    asked = {**facts.lab.place, "metric": "count", "filter": {"title": {"contains": "repair cafe"}}}
    return near(float(host.follow(host.call("aggregate", asked)).value()))


def how_many(host: Host, facts: Facts) -> Any:
    """Of what holds some words the best are shown; that they are a hundred is no count."""
    asked = {"query": "what kind of movie do you like best of all", "streams": ["messages"]}
    seen = host.call("search", {**asked, "connection_id": facts.chat.connection, "limit": 1})
    return seen.fact("count")


people_questions: tuple[Question, ...] = (
    Question("last time", "When did this person last write?",
             value(chat, metric="max", field="sent_at",
                   filter_by=lambda f: {"author_name": author(f)}),
             lambda f: sent_by(f)[-1]),
    Question("since when", "Since when does this person write?",
             value(chat, metric="min", field="sent_at",
                   filter_by=lambda f: {"author_name": author(f)}),
             lambda f: sent_by(f)[0]),
    Question("how long", "How long did all events in the lab take together?",
             figure(lab, metric="sum", field="minutes"), lambda f: near(sum(lengths(f)))),
    Question("how long", "How long does an event in the lab take on average?",
             figure(lab, metric="avg", field="minutes"),
             lambda f: near(sum(lengths(f)) / len(lengths(f)))),
    Question("how long", "Which event in the lab took longest?",
             ids(lab, "title", "minutes", sort="-minutes", limit=1, fields=["title", "minutes"]),
             longest_event),
    Question("a month as a time", "How much was said in May 2018?", in_month,
             lambda f: of_month(f.chat.rows)),
    Question("a year as a bound", "How many events has the lab had since 2017?", since_year,
             lambda f: counted(r for r in f.lab.rows if instant(r["starts_at"]).year >= YEAR)),
    Question("a slip of the finger", "Who spoke of gardning?",
             found("gardning", streams=["messages"]),
             lambda f: f.found("gardening", streams="messages")),
    Question("words of time", "Sommerfest since 2017-01",
             since_said,
             lambda f: f.found("Sommerfest", since="2017-01-01")),
    Question("the earliest", "Which is the earliest Sommerfest of them all?", in_order,
             first_summer),
    Question("how many", "How many messages ask for the movie you like best?", how_many,
             lambda _: "estimated:100"),
    Question("negation", "How many mails of October 2002 are no replies?",
             figure(mail, metric="count",
                    filter={"is_reply": False,
                            "sent_at": {"gte": "2002-10-01", "lt": "2002-11-01"}}),
             lambda f: counted(r for r in f.mail.rows
                               if r["is_reply"] is False and r["sent_at"].startswith("2002-10")),
             needs_mail=True),
    Question("negation", "How many events does somebody else hold than the Fablab?",
             warned("without_value", "aggregate", lab, metric="count",
                    filter={"organizer": {"ne": "Fablab"}}), lambda _: True),
    Question("missing values", "How many mails have an empty subject?", subjectless,
             lambda f: counted(r for r in f.mail.rows if r["subject"] is None), needs_mail=True),
    Question("accents", "How many times was the repair cafe?", without_accents,
             lambda f: near(f.found("repair cafe", streams="events",
                                    connection_id=f.lab.connection)[1])),
    Question("who holds it", "How many events name nobody who holds them, and begin in 2015?",
             figure(events, metric="count", across="connections",
                    filter={"organizer": {"exists": False},
                            "starts_on": {"gte": "2015-01-01", "lt": "2016-01-01"}}),
             lambda f: counted(r for rows in (f.holidays, f.lab) for r in rows.rows
                               if r.get("organizer") is None
                               and r["starts_on"].startswith("2015"))),
)  # fmt: skip
