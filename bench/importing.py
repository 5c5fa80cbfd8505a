"""`python -m bench.importing [COUNT] [messages | rows | places] [--once]`.

Or `… GIGABYTES takeout`, `… GIGABYTES mails`: a generated mailbox, table of CSV, `Records.json` or
Takeout of many parts, or public mails repeated to that size, goes through `pdpp import`: rates, and
the peak memory of each process and of all together. It is imported whole, then (not with `--once`)
anew into another data directory where it is ended with SIGKILL twice and gone on with; both hold
the same records by digest, or the command fails. Then it is repeated, which stores nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import public_mails
from bench.archive import Words
from bench.process_family import (
    family,
    held_bytes,
    orphans_waited_for,
    peak_bytes,
    processor_seconds,
)
from bench.site import UNFINISHED, Site
from bench.takeout import generated_places, write_takeout

GENERATED = Path(__file__).resolve().parent.parent / ".cache" / "generated"
START = datetime(2010, 1, 1, tzinfo=UTC)
PEOPLE = 400
KILLED_AT_SHARES = (0.4, 0.7)
COUNT = "SELECT coalesce(sum(records), 0) FROM sources"
STREAMS = (
    "SELECT connector_key, stream, tables FROM sources JOIN connections"
    " USING (subject_id, connection_id) ORDER BY connector_key, stream"
)


def main(wanted: float, what: str, *, once: bool) -> None:
    """Print what an import of so many entries, or gigabytes, costs."""
    with tempfile.TemporaryDirectory(prefix="pdpp-import-") as scratch:
        paths = _takeout(wanted) if what == "takeout" else [_file(wanted, what)]
        size = sum(path.stat().st_size for path in paths)
        print(f"{len(paths)} file(s), {size / 1e6:,.0f} MB")
        whole = Site(Path(scratch, "whole"))
        cost = timed_import(whole, paths)
        stored, digest = count(whole), digests(whole)
        print(f"whole: {cost.words(stored, size)}")
        print("".join(f"  {name}: {each}\n" for name, each in digest.items()), end="", flush=True)
        if what == "mails":
            print(f"mails in the file, by their marks: {public_mails.marked(paths[0]):,}")
        site = whole if once else _killed(whole, Path(scratch, "killed"), paths, stored, digest)
        print(f"again: {timed_import(site, paths).words(stored)}")
        if digests(site) != digest:
            sys.exit("importing it again changed what it holds")
    if what == "takeout":
        shutil.rmtree(paths[0].parent)


def _killed(
    whole: Site, folder: Path, paths: list[Path], stored: int, digest: dict[str, str]
) -> Site:
    """Import anew, killed twice and gone on with; where the same records are, or this ends."""
    shutil.rmtree(whole.folder)
    site, killed = Site(folder), 0
    for share in KILLED_AT_SHARES:
        killed = killed_import(site, paths, int(stored * share))
        print(f"killed with {killed:,} stored")
    print(f"went on: {timed_import(site, paths).words(stored - killed)}")
    if digests(site) != digest:
        sys.exit("what it holds differs from what was imported at once")
    print(f"stored {count(site):,}, every digest as before", flush=True)
    return site


def _file(size: float, what: str) -> Path:
    if what == "mails":
        return kept(f"public-mails-{size:g}gb.mbox", public_mails.repeated(size))
    wanted = int(size)
    makers = {
        "rows": (f"table-{wanted}.csv", generated_rows),
        "messages": (f"mailbox-{wanted}.mbox", generated),
        "places": (f"Records-{wanted}.json", generated_places),
    }
    name, make = makers[what]
    return kept(name, make(wanted))


def _takeout(gigabytes: float) -> list[Path]:
    folder = GENERATED / f"takeout-{gigabytes:g}"
    if folder.exists():
        return sorted(folder.iterdir())
    return write_takeout(folder, gigabytes)


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


def killed_import(site: Site, paths: list[Path], enough: int) -> int:
    """Import until so many entries are stored, then SIGKILL; how many were."""
    process = subprocess.Popen(_importing(site, paths), stdout=subprocess.DEVNULL)
    while process.poll() is None and count(site) < enough:
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return count(site)


def _importing(site: Site, paths: list[Path]) -> list[str]:
    return site.command("pdpp", "import", *map(str, paths))


@dataclass(frozen=True, slots=True)
class Cost:
    """What an import took; a busy machine stretches the first, not the second."""

    seconds: float
    processor_seconds: float
    peaks_mb: dict[str, float]  # of each process

    def words(self, entries: int, size_bytes: int = 0) -> str:
        """The rates of so many entries, and of so many bytes."""
        peaks = ", ".join(f"{name} {peak:,.0f} MB" for name, peak in self.peaks_mb.items())
        of_bytes = f", {size_bytes / 1e6 / self.seconds:,.1f} MB/s" if size_bytes else ""
        return (
            f"{self.seconds:,.0f} s, {entries:,} records, {entries / self.seconds:,.0f} a second "
            f"({entries / self.processor_seconds:,.0f} per processor second){of_bytes}; "
            f"at their peak: {peaks}"
        )


def timed_import(site: Site, paths: list[Path]) -> Cost:
    """Import, and measure the processes that do it."""
    begun, used = time.perf_counter(), processor_seconds()
    importing, together, readers = 0, 0, dict[int, int]()
    with orphans_waited_for():
        process = subprocess.Popen(_importing(site, paths))
        while process.poll() is None:
            importing = max(importing, peak_bytes(process.pid))
            for pid in family(process.pid)[1:]:
                readers[pid] = max(readers.get(pid, 0), peak_bytes(pid))
            together = max(together, held_bytes(process.pid))
            time.sleep(0.2)
        seconds = time.perf_counter() - begun
    if process.returncode not in (0, UNFINISHED):
        sys.exit(f"pdpp import ended with {process.returncode}")
    peaks = {"import": importing / 2**20}
    peaks |= {f"reader {at}": peak / 2**20 for at, peak in enumerate(readers.values(), 1)}
    peaks["all together (PSS)"] = together / 2**20
    return Cost(seconds, processor_seconds() - used, peaks)


def count(site: Site) -> int:
    """Records stored, looked up beside whoever writes."""
    path = site.data_dir / "personal-server.sqlite3"
    if not path.exists():
        return 0
    try:
        with _database(path) as database:
            return int(database.execute(COUNT).fetchone()[0])
    except sqlite3.Error:
        return 0


def digests(site: Site) -> dict[str, str]:
    """For each stream how many records there are, and what they and their files are, by digest."""
    found: dict[str, str] = {}
    with _database(site.data_dir / "personal-server.sqlite3") as database:
        for key, stream, number in database.execute(STREAMS).fetchall():
            held = f"SELECT r.k, h.data FROM r{number} r JOIN h{number} h ON h.id = r.id"  # noqa: S608
            found[f"{key} {stream}"] = _digest(database.execute(held))
        found["files"] = _digest(database.execute("SELECT blob_id, size_bytes FROM blob_uploads"))
    return found


def _digest(rows: Iterable[tuple[object, ...]]) -> str:
    """Whatever their order."""
    total = number = 0
    for number, row in enumerate(rows, 1):  # noqa: B007 (the last is how many there are)
        total += int.from_bytes(hashlib.sha256(repr(row).encode()).digest())
    return f"{number:,} {total % 2**64:016x}"


@contextmanager
def _database(path: Path) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        yield database


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.importing")
    parser.add_argument("wanted", type=float, nargs="?", default=1_000_000)
    parser.add_argument(
        "what",
        nargs="?",
        default="messages",
        choices=("messages", "rows", "places", "takeout", "mails"),
    )
    parser.add_argument("--once", action="store_true", help="leave out the import that is killed")
    main(**vars(parser.parse_args()))
