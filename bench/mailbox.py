"""`python -m bench.mailbox [CHECKOUT …]`: a mailbox as people have it, sent in over HTTP and read.

One connection of the mail that `pdpp sources` declares: every field, texts as long as mails are,
keys that say nothing of the order in which they come.  It is sent in batches of 500 until it has
`--records`; the first and the last of them give the rates, empty and full.  Then batches of 100,
500 and 5,000, a writer beside `--readers`, and each read, of this checkout and the named ones in
turn: medians by the clock and of the server's processor time.  `--callers` let `wrk` ask too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from urllib.parse import urlsplit

import orjson
from rich.console import Console
from rich.table import Table

from bench.archive import RARE_TERM, Words
from bench.clients import Refused, RestCaller
from bench.load import load, lua_of, wrk_path
from bench.operations import Query, Read
from bench.site import Running, Site, programs_of

START = datetime(2011, 1, 1, tzinfo=UTC)
YEARS = 15
PEOPLE = 2_000
BATCHES = (100, 500, 5_000)
FILLED_WITH = 500
# So many records tell a rate.
SAMPLE = 20_000
RARE_RECORDS = 20
ROUNDS = 15
LABELS = ("Inbox", "Archive", "Family", "Travel", "Receipts", "Newsletters", "Work")
FIRST = (
    b"From a@b Thu Jan  1 00:00:00 2009\nFrom: Ann <ann@example.org>\nTo: bob@example.org\n"
    b"Date: Thu, 01 Jan 2009 00:00:00 +0000\nMessage-ID: <1@example.org>\nSubject: first\n\nHello\n"
)
PATH = "/v1/streams/messages/records"
FIGURES = "/v1/streams/messages/aggregate"


def mails(total: int, fields: frozenset[str]) -> Iterator[bytes]:
    """The lines of a mailbox: the same for the same size, with the fields that are declared."""
    draw, words = random.Random(11), Words(11)
    pool = words.text(400_000)
    step = timedelta(days=365.25 * YEARS) / max(total, 1)
    rare_every = max(1, total // RARE_RECORDS)
    for number in range(total):
        sent = START + step * number + timedelta(seconds=draw.randrange(3_600))
        data = _mail(number, sent, draw, pool)
        if number % rare_every == 7 % rare_every:
            data["body"] = f"{data['body']} {RARE_TERM}"
        shown = {name: value for name, value in data.items() if name in fields}
        yield orjson.dumps({"data": shown, "emitted_at": "2026-11-01T00:00:00Z"})


def _mail(number: int, sent: datetime, draw: random.Random, pool: str) -> dict[str, object]:
    """Half of all mails are short, some are very long, as in real mailboxes."""
    is_reply = draw.random() < 0.35
    thread = draw.randrange(max(0, number - 400), number + 1) if is_reply else number
    length = min(30_000, int(draw.lognormvariate(6.6, 1.0)))
    at, title = draw.randrange(len(pool) - 30_100), draw.randrange(len(pool) - 200)
    name, address = _person(draw)
    to_name, to_address = _person(draw)
    labels = draw.sample(LABELS, draw.choice((1, 1, 2)))
    to = f"{to_name} <{to_address}>"
    return {
        "id": _digest("mail", number),
        "thread_id": _digest("mail", thread),
        "sent_at": f"{sent:%Y-%m-%dT%H:%M:%SZ}",
        "subject": pool[title : title + draw.randrange(15, 80)],
        "from_name": name,
        "from_address": address,
        "to": [to],
        "cc": [f"{n} <{a}>" for n, a in (_person(draw) for _ in range(draw.choice((0, 0, 1, 3))))],
        "bcc": [],
        "to_address": to_address,
        "recipients": to,
        "reply_to": address if draw.random() < 0.1 else None,
        "body": pool[at : at + length],
        "links": [],
        "labels": labels,
        "labelled": " ".join(labels),
        "mailbox": labels[0],
        "list_id": f"list{draw.randrange(40)}.example.org" if draw.random() < 0.2 else None,
        "is_reply": is_reply,
        "attachment_count": draw.choice((0,) * 9 + (1,)),
        "size_bytes": length + draw.randrange(1_500, 6_000),
        "internet_message_id": f"{_digest('id', number)}@example.org",
        "in_reply_to": f"{_digest('id', thread)}@example.org" if is_reply else None,
    }


def _person(draw: random.Random) -> tuple[str, str]:
    """A few write most of it."""
    number = int(PEOPLE * draw.random() ** 3)
    return f"Person {number}", f"person{number}@example.org"


def _digest(what: str, number: int) -> str:
    return hashlib.sha256(f"{what}{number}".encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Side:
    """One checkout while it serves; `write_token` may send, `token` read."""

    name: str
    site: Site
    running: Running
    fields: frozenset[str]
    write_token: str
    token: str
    connection_id: str

    def send(self, lines: Sequence[bytes]) -> None:
        """One call of ingest; all lines must be accepted."""
        parts = urlsplit(self.site.origin)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=300)
        headers = {
            "Authorization": f"Bearer {self.write_token}",
            "Content-Type": "application/x-ndjson",
        }
        path = f"/v1/ingest/messages?connection_id={self.connection_id}"
        connection.request("POST", path, b"\n".join(lines), headers)
        answer = connection.getresponse()
        told = orjson.loads(answer.read())
        connection.close()
        if answer.status != 200 or told["records_rejected"]:
            raise Refused(f"{answer.status} {str(told)[:300]}")

    @property
    def reads(self) -> tuple[Read, ...]:
        """What is asked of the mailbox, in the order of the table."""
        first = RestCaller(self.site.origin, self.token).get(PATH, (("limit", "1"),))["data"][0]
        data, key = first["data"], first["record_id"]
        buckets: Query = (("group_by_time", "sent_at"), ("granularity", "month"))
        count: Query = (("metric", "count"), ("limit", "100"))
        exact = (("filter[internet_message_id]", data["internet_message_id"]), ("limit", "25"))
        return (
            Read("page of 100", PATH, (("limit", "100"),)),
            Read("page of 25, two fields", PATH, (("limit", "25"), ("fields", "subject,sent_at"))),
            Read("record", f"{PATH}/{key}"),
            Read("month buckets", FIGURES, (*count, *buckets)),
            Read(
                "month buckets in Rome", FIGURES, (*count, *buckets, ("time_zone", "Europe/Rome"))
            ),
            Read("sum", FIGURES, (("metric", "sum"), ("field", "size_bytes"))),
            Read("group by a boolean", FIGURES, (*count, ("group_by", "is_reply"))),
            Read("group by mailbox", FIGURES, (*count, ("group_by", "mailbox"))),
            Read("group by sender", FIGURES, (*count, ("group_by", "from_address"))),
            Read("group by thread", FIGURES, (*count, ("group_by", "thread_id"))),
            Read("filter without an index", PATH, exact),
            Read("filter by a boolean", PATH, (("filter[is_reply]", "true"), ("limit", "25"))),
            Read("search, rare term", "/v1/search", (("q", RARE_TERM), ("limit", "25"))),
            Read("schema", "/v1/schema", (("view", "compact"),)),
        )


def side(checkout: Path | None, folder: Path, stack: ExitStack) -> Side:
    """An empty mailbox: the source comes with one message that is imported."""
    programs = None if checkout is None else programs_of(checkout)
    site = Site(folder, programs)
    first = folder / "first.mbox"
    first.write_bytes(FIRST)
    _run(site, "import", first.name)
    token, _ = site.grant("mail", "--source", "mail")
    [told] = json.loads(_run(site, "sources", "mail", "--json"))
    fields = frozenset(told["streams"][0]["fields"])
    collector = json.loads(_run(site, "collector", "create", "E-mail", "--json"))
    running = stack.enter_context(site.serving())
    name = "here" if checkout is None else checkout.name
    return Side(name, site, running, fields, collector["token"], token, collector["connection_id"])


def _run(site: Site, *arguments: str) -> str:
    command = site.command("pdpp", *arguments)
    return subprocess.run(
        command, cwd=site.folder, capture_output=True, text=True, check=True
    ).stdout


# Writing ------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Rate:
    """What was sent.  Units: seconds by the clock, of the server's processor time."""

    records: int = 0
    seconds: float = 0.0
    processor: float = 0.0

    def cells(self) -> tuple[str, str]:
        """Records a second, by the clock and by processor time."""
        return (
            f"{self.records / max(self.seconds, 1e-9):,.0f}",
            f"{self.records / max(self.processor, 1e-9):,.0f}",
        )


def sent(to: Side, lines: Sequence[bytes], rate: Rate, batch: int) -> None:
    """Send lines in batches, and count what they take."""
    for start in range(0, len(lines), batch):
        before, began = to.running.processor_seconds, perf_counter()
        part = lines[start : start + batch]
        to.send(part)
        rate.seconds += perf_counter() - began
        rate.processor += to.running.processor_seconds - before
        rate.records += len(part)


def filled(sides: Sequence[Side], options: argparse.Namespace, table: Table) -> None:
    """Fill both in turn, and tell the rates."""
    sample = options.sample
    more = sample * len(BATCHES) + options.beside
    streams = [mails(options.records + more, each.fields) for each in sides]
    empty, full = [Rate() for _ in sides], [Rate() for _ in sides]
    for start in range(0, options.records, sample):
        for place, (to, stream) in enumerate(zip(sides, streams, strict=True)):
            lines = list(islice(stream, min(sample, options.records - start)))
            rates = empty if start == 0 else full
            rates[place] = Rate()
            sent(to, lines, rates[place], FILLED_WITH)
    _row(table, f"empty, batches of {FILLED_WITH}", empty)
    if options.records > sample:
        _row(table, f"at {options.records:,}, batches of {FILLED_WITH}", full)
    for batch in BATCHES:
        rates = [Rate() for _ in sides]
        for place, (to, stream) in enumerate(zip(sides, streams, strict=True)):
            sent(to, list(islice(stream, sample)), rates[place], batch)
        _row(table, f"at {options.records:,}, batches of {batch}", rates)
    rates = [Rate() for _ in sides]
    for place, (to, stream) in enumerate(zip(sides, streams, strict=True)):
        lines = list(islice(stream, options.beside))
        _beside_readers(to, lines, rates[place], options.readers)
    _row(table, f"beside {options.readers} readers, batches of {FILLED_WITH}", rates)


def _beside_readers(to: Side, lines: Sequence[bytes], rate: Rate, readers: int) -> None:
    over, reads = threading.Event(), to.reads[:4]

    def ask(turn: int) -> None:
        caller = RestCaller(to.site.origin, to.token)
        while not over.is_set():
            reads[turn % len(reads)].over_rest(caller)()
            turn += 1

    threads = [threading.Thread(target=ask, args=(turn,)) for turn in range(readers)]
    for thread in threads:
        thread.start()
    try:
        sent(to, lines, rate, FILLED_WITH)
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _row(table: Table, name: str, rates: Sequence[Rate]) -> None:
    table.add_row(name, *(cell for rate in rates for cell in rate.cells()))


# Reading ------------------------------------------------------------------------------------------
def asked(sides: Sequence[Side], options: argparse.Namespace, table: Table) -> None:
    """Each read of all sides in turn; who comes first changes with the round."""
    callers = [RestCaller(each.site.origin, each.token) for each in sides]
    for reads in zip(*(each.reads for each in sides), strict=True):
        calls = [read.over_rest(caller) for read, caller in zip(reads, callers, strict=True)]
        clock: list[list[float]] = [[] for _ in sides]
        processor: list[list[float]] = [[] for _ in sides]
        for call in calls:
            call()
        for turn in range(options.rounds):
            for place in sorted(range(len(sides)), key=lambda n: (n + turn) % len(sides)):
                before, began = sides[place].running.processor_ms, perf_counter()
                calls[place]()
                clock[place].append((perf_counter() - began) * 1e3)
                processor[place].append(sides[place].running.processor_ms - before)
        cells = [
            f"{median(each):.2f}" for pair in zip(clock, processor, strict=True) for each in pair
        ]
        table.add_row(reads[0].name, *cells)


def loaded(sides: Sequence[Side], options: argparse.Namespace, table: Table) -> None:
    """A page of 25 by so many callers of `wrk`: answers a second, processor time of each."""
    for callers in options.callers:
        cells: list[str] = []
        for each in sides:
            read = each.reads[1]
            target = f"{each.site.origin}{read.path}?" + "&".join(f"{n}={v}" for n, v in read.query)
            script = lua_of(each.site.folder, each.token, None)
            found = load(each.running, target, script, callers, options.seconds)
            cells += [f"{found.answers_a_second:,.0f}", f"{found.processor_ms:.2f}"]
        table.add_row(f"{callers} callers", *cells)


def main() -> int:
    """Fill, send, ask."""
    options, console = _options(), Console(highlight=False, width=160)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pdpp-mailbox-")))
        checkouts = [None, *options.checkouts]
        sides = [
            side(checkout, folder / str(place), stack) for place, checkout in enumerate(checkouts)
        ]
        parts = [(filled, "records a second", "clock", "processor")]
        parts += [(asked, "medians in ms", "clock", "processor")]
        if options.callers:
            parts += [(loaded, "page of 25", "answers/s", "processor ms")]
        for work, title, *units in parts:
            columns = [f"{each.name}, {unit}" for each in sides for unit in units]
            table = Table("", *columns, title=title)
            work(sides, options, table)
            console.print(table)
        for each in sides:
            peak, size = each.running.peak_bytes / 2**20, each.site.size_bytes / 2**20
            console.print(
                f"{each.name}: {peak:,.0f} MiB of memory at its peak, {size:,.0f} on disk"
            )
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.mailbox", description=__doc__)
    parser.add_argument("checkouts", type=Path, nargs="*")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--sample", type=int, default=SAMPLE, help="how many tell a rate")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--readers", type=int, default=16)
    parser.add_argument("--beside", type=int, default=5_000, help="how many to send beside readers")
    parser.add_argument("--callers", type=int, nargs="*", default=[], help="how many for wrk")
    parser.add_argument("--seconds", type=int, default=5, help="how long each of its runs takes")
    options = parser.parse_args()
    if options.callers and wrk_path() is None:
        sys.exit("wrk is not installed; it is a package of Debian")
    return options


if __name__ == "__main__":
    sys.exit(main())
