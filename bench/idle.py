"""What a server costs that nobody asks anything: processor time, and what it writes.

Usage: python -m bench.idle [SECONDS]

Fills a store with records and a grant, serves it, waits until what a start brings is done, looks
for SECONDS (300) at its processor time and at what it writes by the system's own count, and then,
where strace is installed, for two minutes at each call that writes.  Ends with 1 past a bound.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.filling import fill
from bench.site import Running, Site
from tests.processes import started, stop

BOUND_SHARE, BOUND_WRITES = 0.005, 0
RECORDS = 10_000
SETTLING_SECONDS, TRACING_SECONDS = 30, 120
# sockets and pipes of the process itself are woken by `sendto` and `eventfd`, which are not here
WRITING = "write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,ftruncate,rename,unlink,mkdir"


@dataclass(frozen=True, slots=True)
class Idleness:
    """What a process has used so far, as the system counts it."""

    processor_seconds: float
    writing_calls: int
    disk_bytes: int
    wakes: int

    @classmethod
    def of(cls, running: Running) -> Idleness:
        """Read it."""
        folder = Path(f"/proc/{running.pid}")
        counts = _members(folder / "io")
        wakes = sum(
            _members(task / "status")["voluntary_ctxt_switches"]
            for task in (folder / "task").iterdir()
        )
        return cls(running.processor_seconds, counts["syscw"], counts["write_bytes"], wakes)


def main(seconds: int = 300) -> int:
    """Measure and print; 1 past a bound."""
    with tempfile.TemporaryDirectory(prefix="bench-idle-") as name:
        site = Site(Path(name))
        fill(site.data_dir, RECORDS, Console(stderr=True))
        site.grant("idle", "--source", "bench_bank")
        with site.serving() as running:
            time.sleep(SETTLING_SECONDS)
            before = Idleness.of(running)
            time.sleep(seconds)
            after = Idleness.of(running)
            traced = _traced(running.pid, Path(name) / "trace")
    share = (after.processor_seconds - before.processor_seconds) / seconds
    writes = after.writing_calls - before.writing_calls
    print(f"{'share of a core':24} {share:.2%}   bound {BOUND_SHARE:.1%}")
    print(f"{'calls that write':24} {writes} in {seconds} s   bound {BOUND_WRITES}")
    print(f"{'bytes to the disk':24} {after.disk_bytes - before.disk_bytes}")
    print(f"{'wakes':24} {(after.wakes - before.wakes) / seconds:.1f} a second")
    told = "strace is not installed" if traced is None else f"{traced} in {TRACING_SECONDS} s"
    print(f"{'by strace':24} {told}   ({WRITING})")
    return int(share > BOUND_SHARE or writes + (traced or 0) > BOUND_WRITES)


def _members(path: Path) -> dict[str, int]:
    """The members of a file of /proc that are one number."""
    pairs = (line.split(":", 1) for line in path.read_text(encoding="utf-8").splitlines())
    return {name: int(value) for name, value in pairs if value.strip().isdecimal()}


def _traced(pid: int, out: Path) -> int | None:
    """How many calls that write a process makes in a while."""
    program = shutil.which("strace")
    if program is None:
        return None
    words = [program, "-f", "-qq", "-e", f"trace={WRITING}", "-o", str(out), "-p", str(pid)]
    tracing = started(words)
    time.sleep(TRACING_SECONDS)
    stop(tracing)
    lines = out.read_text(encoding="utf-8").splitlines()
    return sum("(" in line and "resumed" not in line for line in lines)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
