"""`python -m bench.hostile_files [WORD]`: import every hostile file (those with the word in it).

Each is imported by a process of its own, then all of them again by one. Printed are what became of
it, the processor time of all processes, the largest of them, and the good entries stored. Ends with
1 if a good entry is missing, a bad one is not named, or a bound is broken. The time that is bounded
is that of the processor: what else the machine does is no fault of the files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from bench.process_family import (
    family,
    orphans_waited_for,
    peak_bytes,
    processor_seconds,
)
from bench.site import UNFINISHED, Site
from sources.tests.hostile_corpus import HostileFile, hostile_files

MOST_MB = 300
MOST_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an import of some files did, and what it took."""

    exit_code: int
    report: dict[str, Any]
    seconds: float
    processor_seconds: float
    peak_mb: float

    @property
    def read(self) -> int:
        """Records that are stored, whether they were there before or not."""
        listed = (each["streams"].values() for each in self.report.get("imports", ()))
        return sum(stream["read"] - stream["rejected"] for each in listed for stream in each)

    @property
    def named(self) -> str:
        """What was left out, by its codes, or the refusal of the whole path."""
        found = {each["code"]: each["count"] for one in self.imports for each in one["skipped"]}
        words = [f"{code} {count}" for code, count in found.items()]
        listed = (stream for each in self.imports for stream in each["streams"].values())
        texts = (each.get("texts", {}).items() for each in listed)
        words += [f"{state} {count}" for each in texts for state, count in each if state != "read"]
        words += [sort for one in self.report.get("not_read", ()) for sort in one if sort != "path"]
        words += [each["code"] for each in self.report.get("errors", ())]
        words += [self.report["error"]["code"]] if "error" in self.report else []
        return ", ".join(words)

    @property
    def imports(self) -> list[dict[str, Any]]:
        """The reports of what was read."""
        return self.report.get("imports", [])


def main(word: str) -> int:
    """Print the table."""
    chosen = [each for each in hostile_files() if word in each.name]
    if not chosen:
        print("no hostile file has that word in its name")
        return 2
    with tempfile.TemporaryDirectory(prefix="pdpp-hostile-") as folder:
        site = Site(Path(folder))
        begun = time.perf_counter()
        rows = [_row(site, each) for each in chosen]
        broken = [each.name for each, (fine, _) in zip(chosen, rows, strict=True) if not fine]
        seconds = sum(done.processor_seconds for _, done in rows)
        print(
            f"{len(chosen)} files, one process each: {seconds:,.0f} s of processor time, "
            f"{time.perf_counter() - begun:,.0f} s in all, largest process "
            f"{max(done.peak_mb for _, done in rows):,.0f} MB, load {os.getloadavg()[0]:.1f}"
        )
        again = imported(site, [site.folder / each.name for each in chosen])
        wanted = sum(each.good for each in chosen)
        print(
            f"all again by one process: {again.processor_seconds:,.0f} s of processor time, "
            f"{again.read:,} records "
            f"(at least {wanted:,} good), peak {again.peak_mb:,.0f} MB"
        )
    broken += [] if again.read >= wanted and again.peak_mb <= MOST_MB else ["all again"]
    broken += [] if seconds <= MOST_SECONDS else ["all: too slow"]
    print("\n".join(["not as it should be:", *broken] if broken else ["all as it should be"]))
    return 1 if broken else 0


def _row(site: Site, file: HostileFile) -> tuple[bool, Outcome]:
    """One line; whether it is as it should be, and what was done."""
    path = site.folder / file.name
    path.write_bytes(file.content())
    done = imported(site, [path], "--connection", file.name)  # whose it is, they all leave open
    fine = done.read >= file.good and done.peak_mb <= MOST_MB and done.exit_code in (0, UNFINISHED)
    fine &= done.read > 0 or bool(done.named)
    print(
        f"{'ok ' if fine else 'BAD'} {file.name:<45} {path.stat().st_size / 1e6:6.1f} MB "
        f"{done.processor_seconds:6.1f} s {done.peak_mb:5.0f} MB  good {file.good}  "
        f"read {done.read:>6}  {done.named or 'all read'}",
        flush=True,
    )
    return fine, done


def imported(site: Site, paths: Sequence[Path], *options: str) -> Outcome:
    """Import some files, and measure the processes that do it."""
    begun, used = time.perf_counter(), processor_seconds()
    peaks: list[int] = []
    with orphans_waited_for():
        process = subprocess.Popen(
            site.command("pdpp", "import", *map(str, paths), *options, "--json"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        watch = Thread(target=_watch, args=(process.pid, peaks))
        watch.start()
        printed = process.stdout.read() if process.stdout else b""
        process.wait()
        watch.join()
    report: dict[str, Any] = json.loads(printed) if printed.startswith(b"{") else {}
    return Outcome(
        process.returncode,
        report,
        time.perf_counter() - begun,
        processor_seconds() - used,
        max(peaks, default=0) / 2**20,
    )


def _watch(pid: int, peaks: list[int]) -> None:
    """Note the largest size of a process and of all that come from it, until it ends."""
    while peak := peak_bytes(pid):
        peaks.append(peak)
        peaks.extend(map(peak_bytes, family(pid)[1:]))
        time.sleep(0.01)


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("word", nargs="?", default="", help="only files with it in their names")
    sys.exit(main(parser.parse_args().word))
