"""`python -m bench.timing_leaks`: what a client can learn from how long answers take.

For each probe a client asks two things in turn: one that something it may not see would answer, and
one that nothing would.  Both answers are empty, or (by meaning, `--model`) as long.  The times are
compared by their ranks (Mann and Whitney), which single slow answers do not disturb: between -3 and
3 they tell nothing.  The two words are alike in all that a search of visible records makes of them:
letters, forms, near words and slips, of which no visible record holds any.  By meaning no two are:
so half of the times are of a second server, which hides the other word, and z is of both: what the
words differ in themselves has another sign in each of them, what hidden records tell has the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import chain
from pathlib import Path
from statistics import median
from time import perf_counter_ns, sleep
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from bench.archive import Words
from bench.clients import Refused, RestCaller
from bench.filling import connect, ingest_lines
from bench.site import STORES, Site, database
from personal_server.app.stores import open_stores
from personal_server.collecting.declarations import declare
from personal_server.domain.spelling import near_spellings, slips
from personal_server.domain.word_forms import forms
from personal_server.settings import Settings
from personal_server.storage.sql.source_tables import MOST_READ

SAMPLES = 2_000
WARM_UP = 50
# So many pairs are asked of one server before the other is.
STRETCH = 10
# Embedded by a model they take minutes.
RECORDS = 5_000
RECORDS_HELP = (
    f"of each server; while `most content` shows {MOST_READ:,} or fewer their texts are read, for"
    " each answer, and the word index is not asked"
)
# A record of every so many is among the granted keys, or holds what is probed for.
EVERY = 50
# So many in a row are one conversation.
THREAD = 40
# Both are one token to the model, too, which would else take longer for one of them.
WORDS = ("crops", "claws")
EMBEDDING_SECONDS = 1_800
EMITTED_AT = "2026-11-01T00:00:00Z"
# A search asked again within a minute is not made again: each one leaves out another word.
NUMBER = "NUMBER"
# A letter too many: the hidden word is near.
MISTYPED = "{}x"
# What a busy machine does not find in time; its pair is asked anew, under another number.
TOO_LATE, LATE, MOST_LATE = b"query_timeout", "too late", 0.1
HELD = b"bytes that others know too"
SOURCE = "https://bench.example/connectors/bench_letters"
LEXICAL = ["subject", "body"]
NAMED = ("probe", "grant limited in")
LIMITS = ("fields", "records", "time", "content", "most content")


@dataclass(frozen=True, slots=True)
class Probe:
    """Two paths that a client asks in turn, under one grant."""

    name: str
    grant: str
    hidden: str
    absent: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """Medians in microseconds, how far the ranks lie apart, and how many came too late to count.

    `each`: how far they lie apart at each server.
    """

    hidden_us: float
    absent_us: float
    z: float
    each: Sequence[float]
    late: Sequence[int]


@dataclass(frozen=True, slots=True)
class World:
    """A server that hides one of the words, what is asked of it, and what its grants show."""

    site: Site
    probes: Sequence[Probe]
    grants: dict[str, dict[str, Any]]

    def token(self, probe: Probe) -> str:
        """A new one, since all probes take longer than one lasts."""
        return _grant(self.site, probe.grant, self.grants[probe.grant])


def main() -> int:
    """Print the table; 1 when a probe tells something."""
    parser = argparse.ArgumentParser(prog="python -m bench.timing_leaks", description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--records", type=int, default=RECORDS, help=RECORDS_HELP)
    parser.add_argument("--model", type=Path, help="a folder with a model: by meaning, too")
    parser.add_argument("--store", choices=STORES, help="the database, if not a file")
    parser.add_argument("--only", default="", help="probes whose name and grant have this pattern")
    options = parser.parse_args()
    if _asked_for(WORDS[0]) != _asked_for(WORDS[1]):
        sys.exit("the two words are not alike any more: choose others")
    samples: int = options.samples
    console = Console(highlight=False)
    table = Table(title=f"{samples} interleaved samples each; medians in µs")
    for column in (*NAMED, "present", "absent", "z", *(f"{word} hidden" for word in WORDS), LATE):
        table.add_column(column, justify="left" if column in NAMED else "right")
    progress = Console(stderr=True, highlight=False)
    worst = 0.0
    with ExitStack() as stack:
        worlds = [
            stack.enter_context(_world(hidden, absent, options))
            for hidden, absent in (WORDS, WORDS[::-1])
        ]
        named = [f"{each.name} {each.grant}" for each in worlds[0].probes]
        for index in [at for at, name in enumerate(named) if re.search(options.only, name)]:
            found = _compare_in([(each, each.probes[index]) for each in worlds], samples)
            worst = max(worst, abs(found.z))
            probe = worlds[0].probes[index]
            row = (f"{found.hidden_us:.0f}", f"{found.absent_us:.0f}", f"{found.z:+.2f}")
            row = (*row, *(f"{z:+.2f}" for z in found.each), "{} : {}".format(*found.late))
            table.add_row(probe.name, probe.grant, *row)
            progress.print(probe.name, probe.grant, *row, sep="  ")
    console.print(table)
    return 0 if worst < 3 else 1


@contextmanager
def _world(hidden: str, absent: str, options: argparse.Namespace) -> Generator[World]:
    with (
        database(options.store) as url,
        tempfile.TemporaryDirectory(prefix="pdpp-timing-") as folder,
    ):
        site = Site(Path(folder), database_url=url)
        grants = _grants(_fill(site, options.records, url, hidden))
        if options.model is not None:
            install = site.command("pdpp", "semantic", "install", "--from", str(options.model))
            subprocess.run(install, check=True, capture_output=True)
        with site.serving():
            probes = _probes(hidden, absent)
            if options.model is not None:
                _wait_until_embedded(site, _grant(site, "fields", grants["fields"]))
                probes += _meaning_probes(hidden, absent)
            yield World(site, probes, grants)


def _asked_for(word: str) -> list[tuple[int, ...]]:
    """How much the word index is asked for where a word is looked for, alone or mistyped."""
    return [
        (len(each), _entries([each]), len(near_spellings(each)), len(slipped), _entries(slipped))
        for each in (word, MISTYPED.format(word))
        for slipped in (slips(each),)
    ]


def _entries(words: Iterable[str]) -> int:
    return sum(len(list(chain(found.words, *found.stems.values()))) for found in map(forms, words))


def _grants(keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    visible = ["id", "sent_at", "subject", "thread", "topic", "size"]
    return {
        "fields": {"fields": visible},
        "records": {"fields": [*visible, "body", "file"], "resources": list(keys)},
        "time": {"fields": [*visible, "body"], "time_range": {"since": "2026-01-01T00:00:00Z"}},
        # by content: of few records the texts are read, of most the word index is asked
        "content": {"fields": [*visible, "body", "file"], "only": {"folder": ["kept"]}},
        "most content": {"fields": [*visible, "body"], "only": {"topic": ["weather"]}},
    }


def _probes(hidden: str, absent: str) -> list[Probe]:
    many = "+".join(f"{{}}{n}" for n in range(30))
    asked = {
        "word": "{}",
        "prefix": "{}*",
        "phrase": "%22grey+{}%22",
        "word 32 times": "+".join(["{}"] * 32),
        "30 words": many,
        "mistyped": MISTYPED,
        "most words": "{}+{}1+{}2",
    }
    asked = {name: f"/v1/search?q={text}+-x{NUMBER}" for name, text in asked.items()}
    count = "/v1/streams/letters/records?limit=1&count=exact&filter[topic]={}"
    paths = [(name, grant, path) for grant in LIMITS for name, path in asked.items()]
    paths += [
        ("count with a filter", each, count) for each in ("records", "content", "most content")
    ]
    found = [
        Probe(name, grant, path.replace("{}", hidden), path.replace("{}", absent))
        for name, grant, path in paths
    ]
    for grant in ("fields", "records", "content"):
        blobs = [f"/v1/blobs/{_blob_id(content)}" for content in (HELD, b"never seen")]
        found.append(Probe("blob", grant, *blobs))
    return found


def _meaning_probes(*words: str) -> list[Probe]:
    asked = {
        name: [f"/v1/search?mode={mode}&q={word}+{NUMBER}" for word in words]
        for name, mode in (("meaning", "meaning"), ("words and meaning", "hybrid"))
    }
    return [Probe(name, grant, *paths) for grant in LIMITS for name, paths in asked.items()]


def _wait_until_embedded(site: Site, token: str) -> None:
    """Of a client that sees every record."""
    rest = RestCaller(site.origin, token)
    for _ in range(EMBEDDING_SECONDS):
        with suppress(Refused):  # nothing is embedded yet
            recall = rest.get("/v1/search/semantic", [("q", "anything")])["meta"]["recall"]
            if not recall["unembedded_record_count"]:
                return
        sleep(1)
    sys.exit(f"after {EMBEDDING_SECONDS} s there were records without vectors")


def _compare_in(asked: Sequence[tuple[World, Probe]], samples: int) -> Outcome:
    """One probe at each server in turn, a stretch at a time, so that both see the same load."""
    times = [Times(world.site, world.token(probe), probe) for world, probe in asked]
    wanted, late = samples // len(times), [0, 0]
    while any(len(each.pairs) < wanted for each in times):
        for each in times:
            each.ask(min(STRETCH, wanted - len(each.pairs)))
        late = [sum(counts) for counts in zip(*(each.late for each in times), strict=True)]
        if sum(late) > samples * MOST_LATE:
            sys.exit(f"{times[0].probe.name}: {late} came too late; let the machine do less else")
    pairs = [pair for each in times for pair in each.pairs]
    present, absent = (median(side) / 1e3 for side in zip(*pairs, strict=True))
    found = [_z(*zip(*each.pairs, strict=True)) for each in times]
    return Outcome(present, absent, sum(found) / math.sqrt(len(found)), found, late)


class Times:
    """What a server took for the two sides of a probe, pair for pair, in nanoseconds."""

    def __init__(self, site: Site, token: str, probe: Probe) -> None:
        self.probe = probe
        self.pairs: list[tuple[int, int]] = []
        self.late = [0, 0]
        self._connection = HTTPConnection("127.0.0.1", site.port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._draw, self._order = random.Random(7), [0, 1]
        self._number = 0
        for _ in range(WARM_UP):
            self._ask_both()

    def ask(self, pairs: int) -> None:
        """So many pairs, on a connection of their own; what came too late is in none of them.

        While the other server is asked, for minutes on a busy machine, this one ends a connection
        that says nothing.
        """
        self._connection.close()
        self._connection.connect()
        for _ in range(pairs):
            taken = self._ask_both()
            if len(taken) == len(self._order):
                self.pairs.append((taken[0], taken[1]))

    def _ask_both(self) -> dict[int, int]:
        # in a random order, so that nothing periodic falls on one of them; each as often first,
        # since what both have in common is known to the server when the other is asked
        even = self._number % 2 == 0
        self._order = self._draw.sample((0, 1), 2) if even else self._order[::-1]
        taken: dict[int, int] = {}
        for side in self._order:
            path = (self.probe.hidden, self.probe.absent)[side].replace(NUMBER, str(self._number))
            begin = perf_counter_ns()
            self._connection.request("GET", path, headers=self._headers)
            answer = self._connection.getresponse()
            body = answer.read()
            if answer.status == HTTPStatus.SERVICE_UNAVAILABLE and TOO_LATE in body:
                self.late[side] += 1
            elif not body or answer.status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND):
                said = body[:400].decode()
                sys.exit(f"{self.probe.name} was answered {answer.status}: {said}")
            else:
                taken[side] = perf_counter_ns() - begin
        self._number += 1
        return taken


def _z(one: Sequence[int], other: Sequence[int]) -> float:
    """Mann and Whitney's U as a multiple of its standard deviation; times hardly ever tie."""
    ranked = sorted([(t, 0) for t in one] + [(t, 1) for t in other])
    ranks = sum(rank for rank, (_, side) in enumerate(ranked, 1) if side == 0)
    n, m = len(one), len(other)
    return (ranks - n * (n + m + 1) / 2) / math.sqrt(n * m * (n + m + 1) / 12)


def _fill(site: Site, records: int, database_url: str | None, hidden: str) -> list[str]:
    """Letters, some of which hold what is probed for where no grant shows it; the granted keys."""
    words, keys = Words(7), [f"l{number}" for number in range(0, records, EVERY)]
    settings = Settings(data_dir=site.data_dir, database_url=database_url)
    with open_stores(settings, serving=False) as stores:
        declaration = declare(stores.records, _declaration(), stores.clock()).declaration
        connection_id = connect(stores, declaration, "letters")
        upload, _ = stores.records.receive_blob(
            connection_id, [HELD], "text/plain", stores.clock(), 1_000
        )
        reference = {"blob_id": upload.blob_id, "size_bytes": len(HELD), "mime_type": "text/plain"}
        letters = (_letter(number, words, reference, hidden) for number in range(records))
        lines = [orjson.dumps({"data": each, "emitted_at": EMITTED_AT}) for each in letters]
        for start in range(0, records, 1_000):
            batch = lines[start : start + 1_000]
            ingest_lines(stores, connection_id, declaration, "letters", batch)
    return keys


def _letter(number: int, words: Words, reference: dict[str, Any], hidden: str) -> dict[str, Any]:
    body, holds = words.text(80), number % EVERY == 1
    if holds:
        body += f" grey {hidden} " + " ".join(f"{hidden}{n}" for n in range(30))
    letter: dict[str, Any] = {
        "id": f"l{number}",
        # what holds the words was sent before the time that is granted
        "sent_at": f"{2025 if holds else 2026}-{number % 9 + 1:02}-{number % 27 + 1:02}T08:00:00Z",
        "subject": words.text(5),
        "thread": f"t{number // THREAD}",
        "body": body,
        "topic": hidden if holds else "weather",
        "folder": "kept" if number % EVERY == 0 else "rest",
        "size": number,
    }
    return letter | {"file": reference} if holds else letter


def _grant(site: Site, name: str, stream: dict[str, Any]) -> str:
    request = site.folder / f"{name}.json"
    details = {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": SOURCE},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{"name": "letters"} | stream],
    }
    request.write_text(json.dumps([details]))
    return site.grant(name, "--from", str(request))[0]


def _blob_id(content: bytes) -> str:
    return f"blob_sha256_{hashlib.sha256(content).hexdigest()}"


def _declaration() -> dict[str, Any]:
    string = {"type": "string"}
    properties = {
        "id": string,
        "sent_at": string | {"format": "date-time", "x_pdpp_role": "event-time"},
        "subject": string | {"x_pdpp_role": "primary-title"},
        "body": string | {"x_pdpp_type": "text"},
        "thread": string | {"x_pdpp_role": "conversation"},
        "topic": string,
        "folder": string,
        "size": {"type": "integer"},
        "file": {"type": "object", "x_pdpp_type": "blob"},
    }
    stream = {
        "name": "letters",
        "semantics": "mutable_state",
        "display": {"label": "Your letters"},
        "schema": {"type": "object", "properties": properties, "required": ["id", "sent_at"]},
        "primary_key": ["id"],
        "cursor_field": "sent_at",
        "consent_time_field": "sent_at",
        "selection": {"fields": True, "resources": True},
        "query": {
            "range_filters": {"sent_at": ["gte", "lt"]},
            "search": {"lexical_fields": LEXICAL, "semantic_fields": LEXICAL},
            "aggregations": {"count": True, "group_by": ["topic", "folder"]},
        },
    }
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": SOURCE},
        "connector_key": "bench_letters",
        "declaration_version": "1",
        "display": {"name": "Letters"},
        "streams": [stream],
    }


if __name__ == "__main__":
    sys.exit(main())
