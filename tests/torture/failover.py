"""The primary of PostgreSQL is killed under load, and its standby takes its place.

    python -m tests.torture.failover [SECONDS]

Both are started here, on sockets; the standby follows by streaming replication, and a write is
acknowledged when both have it.  Prints what was acknowledged before, during and after, how long
nothing was answered, and ends with 1 if anything acknowledged was lost.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import psycopg

from tests.postgresql import PostgresServer, new_cluster
from tests.torture.tormented import PAYMENTS, UNAVAILABLE, Tormented, tormented

# How long nobody notices that the primary is gone.
UNNOTICED_SECONDS = 2.0
BOTH = {"synchronous_standby_names": "*", "wal_receiver_status_interval": "1s"}


@dataclass
class Failover:
    """What was met.

    Shapes: seconds are from the kill to the end of the promotion, and to the first read and write
        that succeeded; `statuses` are of reads while the database was gone, `unannounced` refusals
        without a `Retry-After`.
    """

    before: int = 0
    during: int = 0
    after: int = 0
    lost: int = 0
    promoted_seconds: float = 0.0
    read_seconds: float = 0.0
    write_seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter[int])
    unannounced: int = 0
    faults: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return (
            f"acknowledged writes: {self.before} before, {self.during} during, {self.after} after;"
            f" lost {self.lost}\n"
            f"promoted {self.promoted_seconds:.1f} s after the kill; reads answered again after"
            f" {self.read_seconds:.1f} s, writes after {self.write_seconds:.1f} s\n"
            f"reads meanwhile: {dict(self.statuses)}; refusals without Retry-After:"
            f" {self.unannounced}; other faults: {self.faults}"
        )


@contextmanager
def primary_and_standby() -> Generator[tuple[PostgresServer, PostgresServer], None, None]:
    """Both running, and a write waits for both."""
    with new_cluster(**BOTH) as primary, new_cluster() as standby:
        primary.make()
        primary.start()
        standby.copy_from(primary)
        standby.start()
        yield primary, standby


def address_of(*servers: PostgresServer, role: str = "read-write") -> str:
    """One address of all of them: whoever takes writes is asked."""
    hosts = ",".join(str(each.folder) for each in servers)
    return f"postgresql://owner@/postgres?host={hosts}&target_session_attrs={role}"


def fail_over(folder: Path, seconds: float) -> Failover:
    """Work, kill, promote, work on, and look whether everything is there."""
    with primary_and_standby() as (primary, standby):
        url = address_of(primary, standby)
        with tormented(folder, 1, PDPP_DATABASE_URL=url) as server:
            found = Failover()
            with server.working():
                server.work_for(10)
                time.sleep(seconds / 2)
                found.before = len(server.kept)
                began = time.monotonic()
                primary.kill()
                with _reading(server, found) as first_read:
                    time.sleep(UNNOTICED_SECONDS)
                    found.during = len(server.kept) - found.before
                    standby.promote()
                    found.promoted_seconds = time.monotonic() - began
                    server.work_for(1)
                    found.write_seconds = time.monotonic() - began
                    first_read.wait(60)
                time.sleep(seconds / 2)
                server.work_for(10)
                found.after = len(server.kept) - found.before - found.during
            server.follower.follow(server)
            found.lost = len(server.promised - server.follower.copy)
            found.faults = server.faults
        with psycopg.connect(standby.url()) as connection:
            assert connection.execute("SELECT pg_is_in_recovery()").fetchall() == [(False,)]
    return found


@contextmanager
def _reading(server: Tormented, found: Failover) -> Generator[threading.Event, None, None]:
    """Somebody who reads again and again, until a read is answered."""
    over = threading.Event()
    began = time.monotonic()
    refused = threading.Event()

    def read() -> None:
        while not over.wait(0.02):
            try:
                answer = server.asked(PAYMENTS, server.owner_token)
            except httpx2.TransportError:
                found.statuses[0] += 1
                continue
            found.statuses[answer.status_code] += 1
            if answer.status_code in UNAVAILABLE:
                refused.set()
                found.unannounced += "retry-after" not in answer.headers
            elif refused.is_set():
                found.read_seconds = time.monotonic() - began
                over.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield over
    finally:
        over.set()
        reader.join()


def main() -> int:
    """Fail over, and print what was met."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    with tempfile.TemporaryDirectory(prefix="pdpp-failover-") as folder:
        found = fail_over(Path(folder), seconds)
    print(found)
    return 1 if found.lost or found.unannounced or found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
