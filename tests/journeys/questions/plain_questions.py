"""Questions whose answer is a figure, some records, a text or the way to it."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from datetime import datetime
from typing import Any

from tests.journeys.questions.asking import (
    SINCE,
    ZONE,
    Facts,
    Host,
    Json,
    Question,
    Rows,
    bank,
    by_key,
    chat,
    counted,
    events,
    figure,
    folded,
    found,
    groups,
    holidays,
    ids,
    instant,
    json_key,
    label_of,
    local,
    mail,
    near,
    note,
    persons,
    rank,
    tally,
    value,
)


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


plain_questions: tuple[Question, ...] = (
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
