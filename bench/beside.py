"""`python -m bench.beside CHECKOUT`: this program and another checkout of it, call by call in turn.

Both serve a copy of one archive; each read is asked of one and then of the other, so that what
else the machine does falls on both.  A ratio below 1 means that this checkout is faster.  The other
checkout needs its own environment (`make install` there) and must know the layout of the archive.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter_ns

from rich.console import Console
from rich.table import Table

from bench.clients import HostedCaller, RestCaller
from bench.filling import fill
from bench.operations import Read, reads_of
from bench.site import Site

ROUNDS = 200
WARM_UP = 10


@dataclass(frozen=True, slots=True)
class Pair:
    """One read over one door.  Units: milliseconds; `ratios` are this by other, round by round."""

    name: str
    door: str
    here_ms: Sequence[float]
    there_ms: Sequence[float]

    @property
    def ratios(self) -> list[float]:
        """Time here by time there, for each round."""
        return sorted(a / b for a, b in zip(self.here_ms, self.there_ms, strict=True))


def main() -> int:
    """Print the table; 1 when the archive cannot be served by both."""
    options = _options()
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="pdpp-beside-") as folder, ExitStack() as stack:
        here = Site(Path(folder) / "here")
        there = Site(Path(folder) / "there", options.checkout / ".venv" / "bin")
        console.print(f"filling an archive of {options.records:,} records …")
        filled = fill(here.data_dir, options.records, Console(stderr=True))
        shutil.copytree(here.data_dir, there.data_dir)
        selection = ["--source", "bench_mail"]
        for mailbox in filled.mail:
            selection += ["--connection", mailbox]
        tokens = [site.grant("mail", *selection)[0] for site in (here, there)]
        for site in (here, there):
            stack.enter_context(site.serving())
        rest = [RestCaller(s.origin, t) for s, t in zip((here, there), tokens, strict=True)]
        hosted = [HostedCaller(s.origin, t) for s, t in zip((here, there), tokens, strict=True)]
        pairs: list[Pair] = []
        for read in reads_of(filled.mail[0], rest[0]):
            console.print(f"  {read.name} …")
            pairs += _pairs(read, rest, hosted, options.rounds)
        _show(pairs, console)
    return 0


def _pairs(
    read: Read, rest: Sequence[RestCaller], hosted: Sequence[HostedCaller], rounds: int
) -> list[Pair]:
    for caller in (*rest, *hosted):
        caller.close()  # reconnects with its next call; servers end idle connections
    found: list[Pair] = []
    if "cursor" not in dict(read.query):  # a cursor is good at the server that made it only
        found.append(_timed(read.name, "REST", [read.over_rest(c) for c in rest], rounds))
    if read.tool is not None:
        calls = [read.over_tool(caller) for caller in hosted]
        found.append(_timed(read.name, "hosted MCP", calls, rounds))
    return found


def _timed(name: str, door: str, calls: Sequence[Callable[[], object]], rounds: int) -> Pair:
    taken: list[list[float]] = [[], []]
    for number in range(WARM_UP + rounds):
        # Whoever goes first changes from round to round: the second finds warmer caches.
        for side in (0, 1) if number % 2 else (1, 0):
            begin = perf_counter_ns()
            calls[side]()
            if number >= WARM_UP:
                taken[side].append((perf_counter_ns() - begin) / 1e6)
    return Pair(name, door, taken[0], taken[1])


def _show(pairs: Sequence[Pair], console: Console) -> None:
    table = Table(title="medians in ms; ratio: this checkout by the other, round by round")
    for column in ("read", "door", "here", "there", "ratio", "quarter to three quarters"):
        table.add_column(column, justify="left" if column in ("read", "door") else "right")
    for pair in pairs:
        low, middle, high = quantiles(pair.ratios, n=4)
        here, there = median(pair.here_ms), median(pair.there_ms)
        spread = f"{low:.2f} to {high:.2f}"
        row = (f"{here:.2f}", f"{there:.2f}", f"{middle:.2f}", spread)
        table.add_row(pair.name, pair.door, *row)
    console.print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.beside", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
