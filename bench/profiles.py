"""`python -m bench.profiles CHECKOUT`: what five calls spend their time on, here and there.

This checkout and another one serve the same archive.  Five calls are made of one and of the other
in turn: over `/mcp` a page of 25 whole rows, a search for two words that nobody asked for a minute,
a record and the schema, and over HTTP a batch of 500 mails that a collector sends.  What a call
takes is the server's processor time while nothing looks on; then py-spy samples the server during
the same calls, which tells the share of each part (`bench/samples_by_part.py`).  With `--callers`
many ask at once, each over its own connection.  Beside it stands the server's memory.

py-spy is installed from its registry into an environment of its own, in a folder that goes with the
measurement.  It has to be allowed to look into another process, as root is.  Not only what holds
Python's lock is sampled: SQLite lets go of it.  Of too few samples no shares are told: 1.
"""

from __future__ import annotations

import argparse
import itertools
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from bench import beside, mailbox
from bench.__main__ import DOCS, replace_section
from bench.archive import Words
from bench.clients import HostedCaller
from bench.filling import SEED
from bench.operations import ANEW
from bench.peers import installed
from bench.plot import plot_parts
from bench.process_family import held_bytes
from bench.samples_by_part import PARTS, UNSEEN, Folded
from bench.site import Running, source_path
from tests.processes import started, stop

PY_SPY = "py-spy==0.4.3"
SAMPLES_A_SECOND = 150
# Of so many a part of a tenth is told to three hundredths.
FEWEST_SAMPLES = 400
MOST_UNREAD, MOST_UNSEEN = 0.05, 0.1
BATCH = 500
# More than are ever sent.
MAILS = 2_000_000
WARM_UP_SECONDS = 1.0
ATTACHING_SECONDS = 30.0
MEBIBYTE = 2**20
Asked = TypeVar("Asked")
HEADING, IMAGE = "## Where the time goes", "profiles.svg"


@dataclass(frozen=True, slots=True)
class Call:
    """One of the five at one checkout: `caller` opens a connection and answers how to call."""

    name: str
    running: Running
    caller: Callable[[], Callable[[], object]]


@dataclass(frozen=True, slots=True)
class Checkout:
    """What serves: the calls, and the folders of packages that hold its code."""

    name: str
    calls: Sequence[Call]
    source: tuple[Path, ...]


@dataclass(slots=True)
class Profile:
    """What was seen of one call at one checkout.  Units: milliseconds of the server, bytes.

    `before` and `after` are its memory: resident, and with its share of what others have as well.
    """

    folded: Folded = field(default_factory=Folded)
    calls: int = 0
    processor_ms: float = 0.0
    before: tuple[int, int] = (0, 0)
    after: tuple[int, int] = (0, 0)

    @property
    def each_ms(self) -> float:
        """Processor time of a call that nothing looks on."""
        return self.processor_ms / self.calls if self.calls else 0.0

    def ms(self, part: str) -> float:
        """What of it a part takes."""
        return self.each_ms * self.folded.share(part)

    @property
    def faults(self) -> list[str]:
        """Why the shares of the parts tell nothing; empty where they do."""
        folded, found = self.folded, list[str]()
        if folded.samples < FEWEST_SAMPLES:
            found.append(f"{folded.samples} samples, of {FEWEST_SAMPLES} that it takes")
        taken = folded.samples + folded.waiting
        if folded.unread > MOST_UNREAD * (taken + folded.unread):
            found.append(f"py-spy could not read {folded.unread} of {taken + folded.unread} stacks")
        if (unseen := folded.share(UNSEEN)) > MOST_UNSEEN:
            found.append(f"{unseen:.0%} of the processor time is in no sample")
        return found


Profiles = Mapping[tuple[str, int], Sequence[Profile]]
"""By call and number of callers: of this checkout, and of the other."""


def main() -> int:
    """Print the tables; 1 when a sample is too small to tell."""
    options = _options()
    console = Console(highlight=False, width=150)
    with tempfile.TemporaryDirectory(prefix="pdpp-profiles-") as name, ExitStack() as stack:
        folder = Path(name)
        py_spy = installed(folder / "environment", PY_SPY) / "py-spy"
        both = [
            _served(checkout, folder / place, stack, console, options.records)
            for place, checkout in (("here", beside.HERE), ("there", options.checkout.resolve()))
        ]
        profiles: dict[tuple[str, int], Sequence[Profile]] = {}
        for index, callers in itertools.product(range(len(both[0].calls)), options.callers):
            found = [Profile() for _ in both]
            call = both[0].calls[index].name
            console.print(f"  {call}, {_counted(callers)} …")
            for turn in range(options.rounds):
                # Whoever goes first changes from round to round.
                for side in (0, 1) if turn % 2 else (1, 0):
                    _look(both[side], index, callers, found[side], py_spy, folder, options.seconds)
            profiles[call, callers] = found
    names = [each.name for each in both]
    for (call, callers), found in profiles.items():
        console.print(_table(f"{call}, {_counted(callers)}", found, names))
    console.print(_memory(profiles, names))
    faults = [
        f"{call}, {_counted(callers)}, {name}: {fault}"
        for (call, callers), found in profiles.items()
        for name, profile in zip(names, found, strict=True)
        for fault in profile.faults
    ]
    for fault in faults:
        console.print(f"[bold red]tells nothing:[/] {fault}")
    if options.write and not faults:
        write(profiles, names, options.records)
    return 1 if faults else 0


def _served(
    checkout: Path, folder: Path, stack: ExitStack, console: Console, records: int
) -> Checkout:
    """Two servers: one has the archive, the other an empty mailbox that a collector fills."""
    folder.mkdir()
    archive = beside.side(checkout, folder / "archive", records, None, stack, console, 1)
    inbox = mailbox.side(checkout, folder / "inbox", stack)
    calls = [
        *(
            Call(name, archive.running, partial(_hosted, archive, tool, _shared(asked)))
            for name, tool, asked in _asked(archive)
        ),
        Call(
            "ingest of 500 mails", inbox.running, partial(_sender, inbox, _shared(_batches(inbox)))
        ),
    ]
    source = tuple(map(Path, source_path(checkout).split(":")))
    return Checkout("here" if checkout == beside.HERE else _commit(checkout), calls, source)


def _asked(side: beside.Side) -> Iterator[tuple[str, str, Iterator[Mapping[str, Any]]]]:
    """The four tool calls: name, tool, and the arguments of one call after the other."""
    record = next(read for read in side.reads if read.name == "record")
    page = {"stream": "messages", "connection_id": side.mailbox, "limit": 25}
    searches = ({"query": query, "limit": 25} for query in _queries())
    yield "query of 25 rows", "query_records", itertools.repeat(page)
    yield "search, two words anew", "search", searches
    yield "fetch", "fetch", itertools.repeat(record.arguments)
    yield "schema", "schema", itertools.repeat({})


def _queries() -> Iterator[str]:
    """Every pair of common words once, so that no answer is one that was kept."""
    words = Words(SEED).commonest(ANEW)
    for shift in range(1, ANEW // 2):
        for one, other in zip(words, words[shift:] + words[:shift], strict=True):
            yield f"{one} {other}"


def _batches(side: mailbox.Side) -> Iterator[list[bytes]]:
    lines = mailbox.mails(MAILS, side.fields)
    while batch := list(itertools.islice(lines, BATCH)):
        yield batch


def _shared(each: Iterator[Asked]) -> Callable[[], Asked]:
    """What callers take one after the other."""
    lock = threading.Lock()

    def taken() -> Asked:
        with lock:
            return next(each)

    return taken


def _hosted(
    side: beside.Side, tool: str, asked: Callable[[], Mapping[str, Any]]
) -> Callable[[], object]:
    caller = HostedCaller(side.site.origin, side.token)
    return lambda: caller.call(tool, asked())


def _sender(side: mailbox.Side, batches: Callable[[], list[bytes]]) -> Callable[[], object]:
    return lambda: side.send(batches())


def _look(
    checkout: Checkout,
    index: int,
    callers: int,
    profile: Profile,
    py_spy: Path,
    folder: Path,
    seconds: float,
) -> None:
    """Call for so long unseen, then for so long while py-spy samples; add what was seen."""
    call = checkout.calls[index]
    running, made = call.running, [call.caller() for _ in range(callers)]
    if not profile.calls:
        profile.before = _memory_of(running)
    _during(made, WARM_UP_SECONDS)
    begun = running.processor_ms
    profile.calls += _during(made, seconds)
    profile.processor_ms += running.processor_ms - begun
    raw = folder / "raw.txt"
    sampler = _sampling(py_spy, running.pid, raw)
    begun, threads = running.processor_ms, running.threads_ms
    _during(made, seconds)
    spent = {n: ms - threads.get(n, 0.0) for n, ms in running.threads_ms.items()}
    whole = running.processor_ms - begun
    profile.folded.unread += _ended(sampler)
    with raw.open(encoding="utf-8") as lines:
        profile.folded.add(lines, checkout.source, spent, whole)
    raw.unlink()
    profile.after = _memory_of(running)


def _during(callers: Sequence[Callable[[], object]], seconds: float) -> int:
    """Let each of them call until the time is over; how many calls it were.

    Raises whatever a call raised: no error is counted as a call.
    """
    until, counts, errors = monotonic() + seconds, [0] * len(callers), list[Exception]()

    def ask(place: int) -> None:
        try:
            while monotonic() < until and not errors:
                callers[place]()
                counts[place] += 1
        except Exception as error:  # noqa: BLE001 (raised below, in the thread that waits)
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(callers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(counts)


def _sampling(py_spy: Path, pid: int, raw: Path) -> subprocess.Popen[str]:
    """py-spy, once it samples: it says so first, or why it cannot."""
    command = [py_spy, "record", "--pid", str(pid), "--output", raw, "--format", "raw"]
    command += ["--rate", str(SAMPLES_A_SECOND), "--threads", "--duration", "unlimited"]
    sampler = started(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    told = list[str]()
    for line in sampler.stdout or ():
        told.append(line)
        if "Sampling process" in line:
            return sampler
    sys.exit(f"py-spy ended with {sampler.wait()}: {''.join(told)}")


def _ended(sampler: subprocess.Popen[str]) -> int:
    """End py-spy, which then writes its file: how many stacks it could not read."""
    stop(sampler, signal.SIGINT, ATTACHING_SECONDS)
    told = sampler.stdout.read() if sampler.stdout else ""
    found = re.search(r"Samples: \d+ Errors: (\d+)", told)
    if sampler.returncode or found is None:
        sys.exit(f"py-spy ended with {sampler.returncode}: {told}")
    return int(found[1])


def _memory_of(running: Running) -> tuple[int, int]:
    return sum(running.resident_each), held_bytes(running.pid)


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short=8", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return checkout.name if done.returncode else done.stdout.strip()


def _counted(callers: int) -> str:
    return "one caller" if callers == 1 else f"{callers} callers"


def _table(title: str, found: Sequence[Profile], names: Sequence[str]) -> Table:
    here, there = found
    table = Table(title=title)
    table.add_column("processor ms of a call, and shares")
    for column in (names[0], "", names[1], "", "ratio"):
        table.add_column(column, justify="right")
    table.add_row("whole", *_cells(here, there, here.each_ms, there.each_ms), end_section=True)
    for part in PARTS:
        if here.ms(part) or there.ms(part):
            table.add_row(part, *_cells(here, there, here.ms(part), there.ms(part)))
    counts = [f"{each.calls:,} calls, {each.folded.samples:,} samples" for each in found]
    table.caption = f"{names[0]}: {counts[0]}; {names[1]}: {counts[1]}"
    return table


def _cells(here: Profile, there: Profile, one: float, other: float) -> list[str]:
    ratio = f"{one / other:.2f}" if other else ""
    cells = [
        cell
        for profile, ms in ((here, one), (there, other))
        for cell in (f"{ms:.2f}", f"{ms / profile.each_ms:.0%}" if profile.each_ms else "")
    ]
    return [*cells, ratio]


def _memory(profiles: Profiles, names: Sequence[str]) -> Table:
    table = Table(title="MiB of the server's memory, resident (and by its share), before and after")
    table.add_column("calls")
    for name in names:
        table.add_column(name, justify="right")
    for (call, callers), found in profiles.items():
        table.add_row(f"{call}, {_counted(callers)}", *map(_mebibytes, found))
    return table


def _mebibytes(profile: Profile) -> str:
    parts = [
        f"{resident / MEBIBYTE:.0f} ({share / MEBIBYTE:.0f})"
        for resident, share in (profile.before, profile.after)
    ]
    return ", ".join(parts)


def write(profiles: Profiles, names: Sequence[str], records: int) -> None:
    """Keep table and plot in docs/performance.md."""
    lines = [
        f"{HEADING}, {datetime.now(UTC):%Y-%m-%d}",
        "",
        "`python -m bench.profiles CHECKOUT --callers 1 16 --write`: this checkout beside"
        f" {names[1]}, in turn, {records:,} records; milliseconds of the server's processor for a"
        " call over `/mcp`, and for a batch of 500 mails sent over HTTP to a server of its own; the"
        " parts that take most of them here, and in brackets there, by samples of py-spy in other"
        " runs of the same calls. Memory is what the server has resident behind the calls, in MiB.",
        "",
        f"| call | callers | {names[1]} | here | ratio | parts | memory: {names[1]}, here |",
        "|---|---:|---:|---:|---:|---|---:|",
        *(_line(call, callers, found) for (call, callers), found in profiles.items()),
        "",
        f"![processor time of five calls by part, {names[1]} and here]({IMAGE})",
    ]
    panels = [
        (
            f"{call}, {_counted(callers)}",
            "ms",
            {
                name: {part: profile.ms(part) for part in PARTS}
                for name, profile in zip(reversed(names), reversed(found), strict=True)
            },
        )
        for (call, callers), found in profiles.items()
    ]
    columns = len({callers for _, callers in profiles})
    shown = [
        part for part in PARTS if any(bar[part] for _, _, bars in panels for bar in bars.values())
    ]
    plot_parts(panels, shown, columns, DOCS / IMAGE)
    replace_section(HEADING, "\n".join(lines))


def _line(call: str, callers: int, found: Sequence[Profile]) -> str:
    here, there = found
    most = sorted(PARTS, key=here.ms, reverse=True)[:3]
    told = "; ".join(f"{part} {here.ms(part):.2f} ({there.ms(part):.2f})" for part in most)
    memory = ", ".join(f"{each.after[0] / MEBIBYTE:.0f}" for each in (there, here))
    ratio = here.each_ms / there.each_ms
    return (
        f"| {call} | {callers} | {there.each_ms:.2f} | {here.each_ms:.2f} | {ratio:.2f} | {told}"
        f" | {memory} |"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.profiles", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--callers", type=int, nargs="+", default=[1], help="how many at once")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=6, help="of each look, twice a round")
    parser.add_argument("--write", action="store_true", help="keep table and plot in the docs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
