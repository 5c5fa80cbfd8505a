"""`python -m bench.beside CHECKOUT`: this program and another checkout of it, in turn.

Each serves an archive of the same records that it filled itself, so that a checkout of another
layout can be compared.  A read is asked of one and then of the other, a few times each, so that
what else the machine does falls on both; the processor time of the server stands beside the time by
the clock.  A ratio below 1 means that this checkout is faster.  With `--callers` both are asked by
`wrk` too, which is written in C and takes little of the machine.  With `--peers` programs of others
(`bench/peers.py`) are installed and asked the same searches beside this checkout.  The other
checkout needs its own environment (`make install` there).  `. --records 10000000 --records-there
100000` asks two sizes of one checkout.  With `--store` the records of this checkout lie in another
database than the file, with `--store-there` those of the other one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter_ns, sleep
from urllib.parse import urlencode

from rich.console import Console
from rich.table import Table

from bench.clients import HostedCaller, Refused, RestCaller
from bench.load import Load, load, lua_of, wrk_path
from bench.operations import Read, change_feed, reads_of, searches_anew
from bench.peers import PEERS, Peer, serving
from bench.process_family import share_bytes
from bench.site import STORES, Running, Site, database, programs_of

ROUNDS = 200
WARM_UP = 10
BLOCK = 10
STILL_SECONDS = 1.0
FILL = """
import json, sys
from pathlib import Path
from rich.console import Console
from bench.filling import fill
filled = fill(Path(sys.argv[1]), int(sys.argv[2]), Console(stderr=True, quiet=True), *sys.argv[3:])
print(json.dumps([filled.mail, filled.seconds]))
"""
HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Pair:
    """One read over one door.

    Units: milliseconds; `ratios` are this by other, round by round; processor time is by block.
    """

    name: str
    door: str
    here_ms: Sequence[float]
    there_ms: Sequence[float]
    here_processor_ms: Sequence[float]
    there_processor_ms: Sequence[float]

    @property
    def ratios(self) -> list[float]:
        """Time here by time there, for each round."""
        return sorted(a / b for a, b in zip(self.here_ms, self.there_ms, strict=True))


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two while it serves."""

    site: Site
    running: Running
    start: Start
    mailbox: str
    token: str

    @property
    def reads(self) -> Sequence[Read]:
        """Every read, of its own archive."""
        rest = RestCaller(self.site.origin, self.token)
        feed = change_feed(self.mailbox)
        return [*reads_of(self.mailbox, rest), feed, *searches_anew()]


@dataclass(frozen=True, slots=True)
class Start:
    """What a server took until its first answer, and the memory of all its processes a while later.

    Units: milliseconds and MiB.
    """

    ready_ms: float
    processor_ms: float
    idle_mib: float

    @classmethod
    def of(cls, running: Running) -> Start:
        """Of a server that has just answered; those of its workers that come later are waited for.

        A process whose processor time stands still for a second is idle.
        """
        first, before = running.processor_seconds, -1.0
        while (spent := running.processor_seconds) > before:
            before = spent
            sleep(STILL_SECONDS)
        idle = sum(map(share_bytes, running.processes)) / 2**20
        return cls(running.ready_seconds * 1e3, first * 1e3, idle)


def main() -> int:
    """Print the tables."""
    options = _options()
    console = Console(highlight=False, width=150)
    with tempfile.TemporaryDirectory(prefix="pdpp-beside-") as folder, ExitStack() as stack:
        sides = [
            side(checkout, Path(folder) / name, records, store, stack, console, options.workers)
            for name, checkout, records, store in (
                ("here", HERE, options.records, options.store),
                (
                    "there",
                    options.checkout.resolve(),
                    options.records_there or options.records,
                    options.store_there,
                ),
            )
        ]
        _show_starts(sides, console)
        pairs: list[Pair] = []
        # ratios are told as they come: at ten million records the last read takes long
        for reads in zip(*(side.reads for side in sides), strict=True):
            if not _is_wanted(reads[0], options):
                continue
            console.print(f"  {reads[0].name} …")
            try:
                for pair in _pairs(reads, sides, options.rounds):
                    console.print(f"    {pair.door}: {median(pair.ratios):.2f}")
                    pairs.append(pair)
            except Refused:
                console.print("    refused by one of the two")
        _show(pairs, console)
        if options.callers:
            _show_loads(sides, options, console)
        for name in options.peers:
            peer = stack.enter_context(serving(name, Path(folder) / name, options.records))
            _show_beside(sides[0], peer, options, console)
    return 0


def side(
    checkout: Path,
    folder: Path,
    records: int,
    store: str | None,
    stack: ExitStack,
    console: Console,
    workers: int,
) -> Side:
    """A checkout that serves an archive of so many records until the stack ends."""
    programs = programs_of(checkout)
    url = stack.enter_context(database(store))
    site = Site(folder, programs, database_url=url, workers=workers)
    console.print(f"{checkout}: filling an archive of {records:,} records …")
    done = subprocess.run(
        [programs / "python", "-c", FILL, site.data_dir, str(records), *([url] if url else [])],
        cwd=checkout,
        stdout=subprocess.PIPE,
        check=True,
    )
    mail, seconds = json.loads(done.stdout)
    chosen = [part for mailbox in mail for part in ("--connection", mailbox)]
    token, _ = site.grant("mail", "--source", "bench_mail", *chosen)
    running = stack.enter_context(site.serving())
    console.print(
        f"  {seconds:.1f} s of ingest in process, index on; {site.size_bytes / 2**20:,.0f} MiB;"
        f" ready in {running.ready_seconds:.2f} s"
    )
    return Side(site, running, Start.of(running), mail[0], token)


def _show_starts(sides: Sequence[Side], console: Console) -> None:
    table = Table(title="from the start of `pdpp serve` to its first answer")
    for column in ("start", "here", "there", "ratio"):
        table.add_column(column, justify="left" if column == "start" else "right")
    here, there = (side.start for side in sides)
    for name, one, other in (
        ("ms by the clock", here.ready_ms, there.ready_ms),
        ("ms of processor time, all processes", here.processor_ms, there.processor_ms),
        ("MiB of memory, idle, all processes", here.idle_mib, there.idle_mib),
    ):
        table.add_row(name, f"{one:,.0f}", f"{other:,.0f}", f"{one / other:.2f}")
    console.print(table)


def _show_beside(side: Side, peer: Peer, options: argparse.Namespace, console: Console) -> None:
    """Searches of this checkout and of a program of others, in turn."""
    caller = RestCaller(side.site.origin, side.token)
    pairs = [
        _timed(read.name, "REST", (read.over_rest(caller), asked), (side, peer), options.rounds)
        for read in side.reads
        if _is_wanted(read, options) and (asked := peer.asked(read)) is not None
    ]
    console.print(f"here: this checkout; there: {peer.name} {peer.version}")
    _show(pairs, console)


def _is_wanted(read: Read, options: argparse.Namespace) -> bool:
    return not options.only or any(word in read.name for word in options.only)


def _pairs(reads: Sequence[Read], sides: Sequence[Side], rounds: int) -> Iterator[Pair]:
    both = list(zip(reads, sides, strict=True))
    for door, encoding in (("REST", "identity"), ("REST, gzip", "gzip")):
        callers = [RestCaller(side.site.origin, side.token, encoding) for side in sides]
        rest = [read.over_rest(caller) for read, caller in zip(reads, callers, strict=True)]
        yield _timed(reads[0].name, door, rest, sides, rounds)
    if reads[0].tool is not None:
        hosted = [read.over_tool(HostedCaller(side.site.origin, side.token)) for read, side in both]
        yield _timed(reads[0].name, "hosted MCP", hosted, sides, rounds)


def _timed(
    name: str,
    door: str,
    calls: Sequence[Callable[[], object]],
    sides: Sequence[Side | Peer],
    rounds: int,
) -> Pair:
    taken: list[list[float]] = [[], []]
    processor: list[list[float]] = [[], []]
    for call in calls:
        for _ in range(WARM_UP):
            call()
    for number in range(max(1, rounds // BLOCK)):
        # Whoever goes first changes from round to round: the second finds warmer caches.
        for side in (0, 1) if number % 2 else (1, 0):
            before = sides[side].running.processor_ms
            for _ in range(BLOCK):
                begin = perf_counter_ns()
                calls[side]()
                taken[side].append((perf_counter_ns() - begin) / 1e6)
            processor[side].append((sides[side].running.processor_ms - before) / BLOCK)
    return Pair(name, door, *taken, *processor)


def _show(pairs: Sequence[Pair], console: Console) -> None:
    table = Table(title="medians in ms: by the clock, then of the server's processor time")
    columns = ("read", "door", "here", "there", "ratio", "quarter to three quarters")
    for column in (*columns, "processor here", "there", "ratio"):
        table.add_column(column, justify="left" if column in ("read", "door") else "right")
    for pair in pairs:
        low, middle, high = quantiles(pair.ratios, n=4)
        here, there = median(pair.here_ms), median(pair.there_ms)
        spread = f"{low:.2f} to {high:.2f}"
        row = [f"{here:.2f}", f"{there:.2f}", f"{middle:.2f}", spread]
        here, there = median(pair.here_processor_ms), median(pair.there_processor_ms)
        row += [f"{here:.2f}", f"{there:.2f}", f"{here / there:.2f}"]
        table.add_row(pair.name, pair.door, *row)
    console.print(table)


def _show_loads(sides: Sequence[Side], options: argparse.Namespace, console: Console) -> None:
    table = Table(title="answers a second by wrk; processor time of the server for each, in ms")
    columns = ("read", "callers", "here", "refused", "processor", "p99", "wrk's own")
    for column in (*columns, "there", "refused", "processor", "p99", "wrk's own"):
        table.add_column(column, justify="left" if column == "read" else "right")
    reads = [(each, tool) for each in LOADED for tool in (False, True)]
    for name, over_tool in reads:
        for callers in options.callers:
            row = [f"{name}, hosted" if over_tool else name, str(callers)]
            for side in sides:
                read = next(each for each in side.reads if each.name == name)
                row += _cells(_load(side, read, callers, options.seconds, over_tool=over_tool))
            table.add_row(*row)
    console.print(table)


LOADED = (
    "page of 25, two fields",
    "record",
    "page of 100",
    "change feed",
    "schema",
    "search, common term",
)


def _load(side: Side, read: Read, callers: int, seconds: int, *, over_tool: bool) -> Load:
    message = None
    if over_tool:
        params = {"name": read.tool, "arguments": dict(read.arguments)}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    target = "/mcp" if over_tool else f"{read.path}?{urlencode(read.query)}"
    script = lua_of(side.site.folder, side.token, message)
    return load(side.running, side.site.origin + target, script, callers, seconds)


def _cells(found: Load) -> list[str]:
    return [
        f"{found.answers_a_second:,.0f}",
        f"{found.refused:,}",
        f"{found.processor_ms:.2f}",
        found.p99,
        f"{found.own_seconds:.2f} s",
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.beside", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--records-there", type=int, help="if they are to differ")
    parser.add_argument("--store", choices=STORES, help="where this checkout keeps its records")
    parser.add_argument("--store-there", choices=STORES, help="where the other one does")
    parser.add_argument("--workers", type=int, default=1, help="processes of each server")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", nargs="*", help="reads whose names hold one of these words")
    parser.add_argument("--callers", type=int, nargs="*", default=[], help="how many for wrk")
    parser.add_argument("--seconds", type=int, default=5, help="how long each of its runs takes")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=[], help="programs of others")
    options = parser.parse_args()
    if options.callers and wrk_path() is None:
        sys.exit("wrk is not installed; it is a package of Debian")
    return options


if __name__ == "__main__":
    sys.exit(main())
