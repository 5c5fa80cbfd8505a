"""`python -m bench.soak`: a day of use in an hour, and whether anything grows.

Usage: python -m bench.soak [--calls 50000] [--records 10000] [--seed 7] [--plot FILE]

One host calls the tools of a real server at /mcp and another those of a stdio adapter, so many
times each, while `pdpp import` brings a mailbox in again and again, each time with other words, and
a collector sends batches to the server itself.  A fifth of the calls is refused (an unknown stream,
an id that is nobody's), since what fails holds on to things as well; every thousand calls the
hosted connection is a new one.

How flat is decided: at every tenth of the calls memory, descriptors and threads of both processes
are read.  The first three points are the warm-up (caches of pages and statements fill).  Memory is
flat when the median slope between any two later points (Theil and Sen) comes to less than 5 % over
all of them; descriptors and threads when the most of the last three points is at most two above the
most of the three behind the warm-up.
"""

from __future__ import annotations

import argparse
import itertools
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
import orjson
from rich.console import Console

from bench.archive import COLLECTIONS, COMMON_TERM, RARE_TERM, records
from bench.clients import HostedCaller, Refused, RestCaller, StdioCaller, ToolCaller
from bench.filling import fill
from bench.importing import generated
from bench.plot import plot_courses
from bench.site import Running, Site

POINTS, WARM_UP = 10, 3
FLAT_SHARE, FLAT_COUNT = 0.05, 2
MAILS, BATCH = 1_000, 500
NEW_CONNECTION = 1_000
NEW_TOKEN_SECONDS = 1_500
PAUSE_SECONDS = 20.0
MEBIBYTE = 1024 * 1024
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Reading:
    """A process as it was after so many calls."""

    calls: int
    memory_bytes: int
    descriptors: int
    threads: int


@dataclass(frozen=True, slots=True)
class Course:
    """The readings of one process, and whether they are flat."""

    name: str
    readings: list[Reading] = field(default_factory=list[Reading])

    @property
    def growth(self) -> float:
        """What memory grows over the points behind the warm-up, as a share of the first."""
        points = [(r.calls, r.memory_bytes) for r in self.readings[WARM_UP - 1 :]]
        slopes = [(b - a) / (y - x) for (x, a), (y, b) in itertools.combinations(points, 2)]
        return median(slopes) * (points[-1][0] - points[0][0]) / points[0][1]

    @property
    def faults(self) -> list[str]:
        """What is not flat."""
        found: list[str] = []
        if self.growth > FLAT_SHARE:
            found.append(f"memory of the {self.name} grows by {self.growth:.1%}")
        early, late = self.readings[WARM_UP - 1 : WARM_UP + 2], self.readings[-3:]
        for what in ("descriptors", "threads"):
            first = max(getattr(reading, what) for reading in early)
            last = max(getattr(reading, what) for reading in late)
            if last > first + FLAT_COUNT:
                found.append(f"{what} of the {self.name}: {first} before, {last} at the end")
        return found


def main() -> int:
    """Soak, and say whether it was flat: 1 if not."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="pdpp-soak-") as folder:
        site = Site(Path(folder))
        filled = fill(site.data_dir, options.records, Console(stderr=True))
        selection = ("--source", "bench_mail", "--connection", filled.mail[0])
        _, own = site.grant("hosted", *selection)
        _, cache = site.grant("stdio", *selection)
        with site.serving() as server:
            adapter = ["pdpp-mcp-server", "--provider-url", site.origin, "--cache-root", str(cache)]
            with StdioCaller(site.command(*adapter)) as stdio:
                soak = Soak(site, own, stdio, options.calls, random.Random(options.seed))
                soak.learn(filled.mail[0])
                begin = time.monotonic()
                with _beside(site, soak):
                    courses = soak.run(server, Running(stdio.pid))
                seconds = time.monotonic() - begin
    return _tell(soak, courses, seconds, options)


@dataclass
class Soak:
    """The calls, and how many were made."""

    site: Site
    cache: Path
    stdio: StdioCaller
    calls: int
    random: random.Random
    answered: dict[str, int] = field(default_factory=lambda: {"hosted": 0, "stdio": 0})
    refused: dict[str, int] = field(default_factory=lambda: {"hosted": 0, "stdio": 0})
    imports: int = 0
    batches: int = 0
    failures: list[str] = field(default_factory=list[str])

    def learn(self, mailbox: str) -> None:
        """Find out what can be asked for."""
        rest = RestCaller(self.site.origin, self.token())
        page = rest.get(
            "/v1/streams/messages/records", (("connection_id", mailbox), ("limit", "100"))
        )
        rest.close()
        self._ids = [f"{mailbox}/messages:{row['record_id']}" for row in page["data"]]
        self._base: dict[str, Any] = {"stream": "messages", "connection_id": mailbox}

    def token(self) -> str:
        """A good access token of the hosted client, renewed when it is over."""
        command = self.site.command("pdpp", "token", self.site.origin, "--cache-root")
        asked = [*command, str(self.cache)]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    def draw(self) -> Call:
        """A call: four of five are answered."""
        chosen, words = self.random, ("meeting", "quokka", RARE_TERM, COMMON_TERM, "nobody")
        some: Sequence[Callable[[], Call]] = (
            lambda: ("schema", {}),
            lambda: ("query_records", {**self._base, "limit": chosen.choice((3, 10, 100))}),
            lambda: ("aggregate", {**self._base, "metric": "count", "group_by": "from_address"}),
            lambda: ("search", {"query": f"{chosen.choice(words)} {chosen.choice(words)}"}),
            lambda: ("search", {"query": f"{chosen.choice(words)[:3]}*", "limit": 5}),
            lambda: ("fetch", {"id": chosen.choice(self._ids)}),
            lambda: ("read_record_field", {"id": chosen.choice(self._ids), "field_path": "body"}),
            lambda: ("query_records", {"stream": f"nothing{chosen.randrange(10**9)}"}),
            lambda: ("fetch", {"id": f"{self._ids[0]}{chosen.randrange(10**9)}"}),
            lambda: ("query_records", {**self._base, "limit": 2, "count": "exact"}),
        )
        return chosen.choice(some)()

    def run(self, server: Running, adapter: Running) -> list[Course]:
        """Every call, at both doors at a time; the readings at every tenth."""
        courses = [Course("server"), Course("adapter")]
        for point in range(1, POINTS + 1):
            target = self.calls * point // POINTS
            doors = [
                threading.Thread(target=self._door, args=(door, target))
                for door in (self._hosted, self._stdio)
            ]
            for thread in doors:
                thread.start()
            for thread in doors:
                thread.join()
            for course, process in zip(courses, (server, adapter), strict=True):
                course.readings.append(_read(2 * target, process))
            print(_line(courses, self), flush=True)
            if self.failures:
                break
        return courses

    def _door(self, calls: Callable[[int], None], target: int) -> None:
        try:
            calls(target)
        except Exception as error:  # noqa: BLE001 (told at the end, whatever it was)
            self.failures.append(f"{type(error).__name__}: {error}")

    def _hosted(self, target: int) -> None:
        token, since = self.token(), time.monotonic()
        caller = HostedCaller(self.site.origin, token)
        while self._made("hosted") < target:
            if self._made("hosted") % NEW_CONNECTION == 0:
                caller.close()
            if time.monotonic() - since > NEW_TOKEN_SECONDS:
                caller.close()
                caller, since = HostedCaller(self.site.origin, self.token()), time.monotonic()
            self._call("hosted", caller)
        caller.close()

    def _stdio(self, target: int) -> None:
        while self._made("stdio") < target:
            self._call("stdio", self.stdio)

    def _made(self, door: str) -> int:
        return self.answered[door] + self.refused[door]

    def _call(self, door: str, caller: ToolCaller) -> None:
        tool, arguments = self.draw()
        try:
            caller.call(tool, arguments)
        except Refused as refusal:
            if "nothing" not in str(arguments) and "not_found" not in str(refusal):
                raise
            self.refused[door] += 1
        else:
            self.answered[door] += 1


def _read(calls: int, process: Running) -> Reading:
    return Reading(calls, process.resident_bytes, process.descriptors, process.threads)


@contextmanager
def _beside(site: Site, soak: Soak) -> Generator[None]:
    """Imports and batches until the block ends."""
    over = threading.Event()
    works = (_import_again, _collect_again)
    threads = [threading.Thread(target=work, args=(site, soak, over)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _import_again(site: Site, soak: Soak, over: threading.Event) -> None:
    """`pdpp import` of a mailbox whose every mail is another each time, over and over."""
    path = site.folder / "again.mbox"
    while not over.wait(PAUSE_SECONDS):
        subject = f"Subject: turn {soak.imports} ".encode()
        with path.open("wb") as file:
            file.writelines(each.replace(b"Subject: ", subject, 1) for each in generated(MAILS))
        command = site.command("pdpp", "import", str(path))
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            soak.failures.append(f"an import ended with {done.returncode}: {done.stderr[-500:]!r}")
            return
        soak.imports += 1


def _collect_again(site: Site, soak: Soak, over: threading.Event) -> None:
    """A collector that sends the same chat over the wire, with other words each time."""
    chat = next(each for each in COLLECTIONS if each.connector_key != "bench_mail")
    command = site.command("pdpp", "collector", "create", chat.name, "--json")
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    collector = orjson.loads(made.stdout)
    while not over.wait(PAUSE_SECONDS):
        batch = records(chat, int(BATCH / chat.share), soak.batches)
        lines = b"\n".join(orjson.dumps(line) for line in batch)
        answer = httpx2.post(
            f"{site.origin}/v1/ingest/{chat.stream}",
            content=lines,
            headers={
                "Authorization": f"Bearer {collector['token']}",
                "Content-Type": "application/x-ndjson",
            },
            timeout=120,
        )
        if answer.status_code != 200 or answer.json()["records_rejected"]:
            soak.failures.append(f"a batch was answered {answer.status_code}: {answer.text[:300]}")
            return
        soak.batches += 1


def _line(courses: Sequence[Course], soak: Soak) -> str:
    parts = [f"{courses[0].readings[-1].calls:>8,} calls"]
    for course in courses:
        last = course.readings[-1]
        parts.append(
            f"{course.name} {last.memory_bytes / MEBIBYTE:.1f} MiB, {last.descriptors} descriptors,"
            f" {last.threads} threads"
        )
    return " | ".join([*parts, f"{soak.imports} imports, {soak.batches} batches"])


def _tell(
    soak: Soak, courses: Sequence[Course], seconds: float, options: argparse.Namespace
) -> int:
    for door, answered in soak.answered.items():
        refused = soak.refused[door]
        print(f"{door}: {answered + refused:,} calls, {refused:,} of them refused")
    print(f"{soak.imports} imports, {soak.batches} batches, {seconds:,.0f} s")
    if options.plot is not None:
        plot_courses(
            {
                course.name: [(r.calls, r.memory_bytes / MEBIBYTE) for r in course.readings]
                for course in courses
            },
            options.plot,
        )
    faults = list(soak.failures)
    if not faults:
        for course in courses:
            print(f"{course.name}: memory {course.growth:+.1%} behind the warm-up")
            faults += course.faults
    print("\n".join(f"NOT FLAT: {fault}" for fault in faults) or "flat")
    return 1 if faults else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--plot", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
