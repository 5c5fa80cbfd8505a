"""Two server processes on one database, written to and followed through both at once.

    python -m tests.torture.following [SECONDS] [CALLERS]

Half of the callers write batches of new records, each to one of the servers; the others follow the
change feed, asking now one server, now the other.  Every follower has to be told every record that
was acknowledged, and each once.  Prints what was met, and ends with 1 after a gap or a repeat.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path

import httpx2

from tests.postgresql import schema, server
from tests.torture.tormented import (
    FEED,
    INGEST,
    LINES,
    UNAVAILABLE,
    Tormented,
    line_of,
    tormented,
)


@dataclass
class Followed:
    """What was met.  `gaps` and `repeats` are of all followers together."""

    written: int
    followers: int
    pages: int
    gaps: int
    repeats: int

    def __str__(self) -> str:
        return (
            f"{self.written} records written through two servers, {self.followers} followers took"
            f" {self.pages} pages: {self.gaps} gaps, {self.repeats} repeats"
        )


@dataclass
class Caller:
    """Somebody with connections of its own to both servers."""

    servers: tuple[Tormented, ...]
    told: Counter[str] = field(default_factory=Counter[str])
    pages: int = 0

    def __post_init__(self) -> None:
        first = self.servers[0]
        # both stand for one origin, as behind a proxy
        headers = {
            "Authorization": f"Bearer {first.owner_token}",
            "Host": f"127.0.0.1:{first.port}",
        }
        self.client = httpx2.Client(headers=headers, timeout=60)
        self.origins = cycle([each.origin for each in self.servers])

    def write(self, numbers: count[int], over: threading.Event) -> list[str]:
        """Batches of new records, until it is over; those that were acknowledged."""
        kept: list[str] = []
        while not over.is_set():
            ids = [f"w{next(numbers)}" for _ in range(LINES)]
            answer = self.client.post(
                f"{next(self.origins)}{INGEST}",
                content="\n".join(json.dumps(line_of(each)) for each in ids),
                headers={"Content-Type": "application/x-ndjson"},
            )
            if answer.status_code not in UNAVAILABLE:
                answer.raise_for_status()
                kept += ids
        return kept

    def follow(self, over: threading.Event) -> Counter[str]:
        """Every change, until it is over and none is left; how often each record was told."""
        bookmark, path, is_last = "beginning", "", False
        while True:
            answer = self.client.get(f"{next(self.origins)}{path or FEED + bookmark}")
            if answer.status_code in UNAVAILABLE:
                continue
            page = answer.raise_for_status().json()
            self.pages += 1
            self.told.update(item["id"] for item in page["data"])
            path = page["links"]["next"] or ""
            if not path:
                if is_last:
                    return self.told
                bookmark, is_last = page["next_changes_since"], over.is_set()


@contextmanager
def two_servers(folder: Path) -> Generator[tuple[Tormented, Tormented], None, None]:
    """Two processes on one schema, which stand for one origin."""
    with schema() as name:
        environ = {"PDPP_DATABASE_URL": server().url(), "PDPP_DATABASE_SCHEMA": name}
        with tormented(folder, 1, **environ) as one:
            other = Tormented(folder, {**environ, "PDPP_PUBLIC_URL": one.origin})
            other.start()
            try:
                yield one, other
            finally:
                other.end()


def follow_two_servers(folder: Path, seconds: float, callers: int) -> Followed:
    """Write and follow for so long."""
    over, written = threading.Event(), threading.Event()
    numbers = count()
    with (
        two_servers(folder) as servers,
        ExitStack() as closing_all,
        ThreadPoolExecutor(callers) as pool,
    ):
        everybody = [Caller(servers) for _ in range(callers)]
        for each in everybody:
            closing_all.callback(each.client.close)
        writers, followers = everybody[::2], everybody[1::2]
        writing = [pool.submit(each.write, numbers, over) for each in writers]
        following = [pool.submit(each.follow, written) for each in followers]
        time.sleep(seconds)
        over.set()
        kept = [name for each in writing for name in each.result()]
        written.set()
        told = [each.result() for each in following]
    return Followed(
        len(kept),
        len(followers),
        sum(each.pages for each in followers),
        sum(name not in each for each in told for name in kept),
        sum(times - 1 for each in told for times in each.values()),
    )


def main() -> int:
    """Follow, and print what was met."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    callers = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    with tempfile.TemporaryDirectory(prefix="pdpp-following-") as folder:
        found = follow_two_servers(Path(folder), seconds, callers)
    print(found)
    return 1 if found.gaps or found.repeats else 0


if __name__ == "__main__":
    sys.exit(main())
