"""Questions about what an answer may leave out: zones, units, bounds, what is gone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.journeys.questions.asking import (
    ZONE,
    Ask,
    Facts,
    Host,
    Json,
    Place,
    Question,
    Rows,
    bank,
    by_key,
    chat,
    counted,
    events,
    figure,
    found,
    groups,
    holidays,
    ids,
    instant,
    local,
    mail,
    near,
    tally,
)
from tests.journeys.questions.plain_questions import WEEKDAYS, amounts, weekday
from tests.journeys.views import StructuredOnly


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
