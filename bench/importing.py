"""`python -m bench.importing [COUNT] [messages | rows]`: a generated mailbox, or a table of CSV.

It goes through `pdpp import` and is killed once: measures the rate and the peak memory, ends the
first import with SIGKILL, goes on, and repeats: nothing may be missing or stored twice.
"""

from __future__ import annotations

import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.archive import Words
from bench.site import Site

GENERATED = Path(__file__).resolve().parent.parent / ".cache" / "generated"
START = datetime(2010, 1, 1, tzinfo=UTC)
PEOPLE = 400
KILLED_AT_SHARE = 0.4
# Of mail alone: attachments have a stream of their own.
COUNT = "SELECT coalesce(sum(records), 0) FROM sources WHERE stream != 'attachments'"


def main(wanted: int, what: str) -> None:
    """Print what an import of so many messages or rows costs."""
    is_table = what == "rows"
    name = f"table-{wanted}.csv" if is_table else f"mailbox-{wanted}.mbox"
    path = kept(name, generated_rows(wanted) if is_table else generated(wanted))
    print(f"{path.name}: {wanted:,} {what}, {path.stat().st_size / 1e6:,.0f} MB")
    with tempfile.TemporaryDirectory(prefix="pdpp-import-") as folder:
        site = Site(Path(folder))
        killed = killed_import(site, path, int(wanted * KILLED_AT_SHARE))
        print(f"killed with {killed:,} stored")
        print(f"went on: {timed_import(site, path).words(wanted - killed)}")
        stored = count(site)
        print(f"stored {stored:,}, missing {wanted - stored:,}")
        print(f"again: {timed_import(site, path).words(wanted)}")
        print(f"stored {count(site):,}", flush=True)


def kept(name: str, content: Iterator[bytes]) -> Path:
    """A deterministic file of that content, kept in the cache."""
    path = GENERATED / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".part")
        with scratch.open("wb") as stream:
            stream.writelines(content)
        scratch.rename(path)
    return path


def generated_rows(rows: int) -> Iterator[bytes]:
    """Payments without a key, of which some are alike; the words before a bank's header too."""
    words, chance = Words(7), random.Random(7)
    yield b"Account:;DE00 1234\n\nBooked;Payee;Purpose;Amount\n"
    for number in range(rows):
        day = START + timedelta(minutes=number * 8)
        amount = f"{chance.randrange(-20_000, 5_000) / 100:.2f}".replace(".", ",")
        purpose = "" if number % 9 else words.text(6)
        yield f"{day:%d.%m.%Y};Shop {chance.randrange(400)};{purpose};{amount}\n".encode()


def generated(messages: int) -> Iterator[bytes]:
    """Messages of made-up words: a third are answers, one in fifty has a file."""
    words, chance = Words(7), random.Random(7)
    for number in range(messages):
        moment = START + timedelta(seconds=number * 420)
        sender = chance.randrange(PEOPLE)
        answered = chance.randrange(max(0, number - 500), number) if number % 3 == 2 else None
        yield _message(number, moment, sender, answered, words).encode()


def _message(number: int, moment: datetime, sender: int, answered: int | None, words: Words) -> str:
    kind = "Content-Type: text/plain; charset=utf-8\n"
    body = "\n".join(words.text(12) for _ in range(6))
    if number % 50 == 0:
        kind = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n'
        body = (
            f"--b\nContent-Type: text/plain\n\n{body}\n--b\nContent-Type: text/csv\n"
            f'Content-Disposition: attachment; filename="n{number}.csv"\n\n{number},{sender}\n--b--'
        )
    reply = f"In-Reply-To: <{answered}@bench.example>\n" if answered is not None else ""
    return (
        f"From p{sender}@bench.example {moment:%a %b %d %H:%M:%S %Y}\n"
        f"Message-ID: <{number}@bench.example>\nDate: {moment:%a, %d %b %Y %H:%M:%S} +0000\n"
        f"From: Person {sender} <p{sender}@bench.example>\nTo: owner@bench.example\n"
        f"Subject: {words.text(5)}\n{reply}{kind}\n{body}\n\n"
    )


def killed_import(site: Site, path: Path, enough: int) -> int:
    """Import until so many entries are stored, then SIGKILL; how many were."""
    process = subprocess.Popen(
        site.command("pdpp", "import", str(path)), stdout=subprocess.DEVNULL, stderr=sys.stderr
    )
    while process.poll() is None and count(site) < enough:
        time.sleep(0.5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return count(site)


@dataclass(frozen=True, slots=True)
class Cost:
    """What an import took; a busy machine stretches the first, not the second."""

    seconds: float
    processor_seconds: float
    peak_mb: float

    def words(self, entries: int) -> str:
        """The rates of so many entries."""
        return (
            f"{self.seconds:,.0f} s, {entries / self.seconds:,.0f} a second "
            f"({entries / self.processor_seconds:,.0f} per processor second), "
            f"peak {self.peak_mb:,.0f} MB"
        )


def timed_import(site: Site, path: Path) -> Cost:
    """Import, and measure the process that does it."""
    begun, used = time.perf_counter(), _processor_seconds()
    process = subprocess.Popen(site.command("pdpp", "import", str(path)))
    peak = 0
    while process.poll() is None:
        peak = max(peak, _resident_kb(process.pid))
        time.sleep(0.2)
    if process.returncode:
        sys.exit(f"pdpp import ended with {process.returncode}")
    seconds = time.perf_counter() - begun
    return Cost(seconds, _processor_seconds() - used, peak / 1024)


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _resident_kb(pid: int) -> int:
    """The peak of the process so far, as the kernel counts it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def count(site: Site) -> int:
    """Entries stored, looked up beside whoever writes."""
    path = site.data_dir / "personal-server.sqlite3"
    if not path.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            return int(database.execute(COUNT).fetchone()[0])
    except sqlite3.Error:
        return 0


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000,
        sys.argv[2] if len(sys.argv) > 2 else "messages",
    )
