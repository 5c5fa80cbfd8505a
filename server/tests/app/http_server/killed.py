"""`python -m server.tests.app.http_server.killed SECONDS [postgresql]`: workers killed.

One worker after the other is ended with SIGKILL, as soon as all serve.  Each of 64 callers, who do
not wait, has a connection that stays; some write records under keys that nobody else uses, the
others read.  A request whose connection breaks was of a worker that was killed, and may or may not
have been done; whatever was acknowledged is there, nothing is there twice, and nobody is refused a
connection.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from server.tests.app.http_server.served import PAYMENTS, ServedProcess, until
from server.tests.app.http_server.several import (
    Caller,
    all_serve,
    resident_mib,
    several,
    workers_of,
)
from server.tests.console.household import CHECKING
from tests.postgresql import server

WORKERS, CALLERS = 2, 64
BETWEEN_SECONDS = (0.5, 3.0)
GROWTH = 1.25
UNLIMITED = {
    "PDPP_RATE_PER_SECOND": "0",
    "PDPP_RATE_BURST": "0",
    "PDPP_MAX_IN_FLIGHT": "0",
    "PDPP_QUOTA_RECORDS_PER_DAY": "0",
    "PDPP_QUOTA_BYTES_PER_DAY": "0",
    "PDPP_LOG_LEVEL": "warning",
}
INGEST = f"/v1/ingest/transactions?connection_id={CHECKING}"
KIND = {"Content-Type": "application/x-ndjson"}


@dataclass
class Found:
    """What came of it.  Units: MiB; `broken` are requests whose connection broke."""

    callers: int
    kills: int = 0
    answered: Counter[int] = field(default_factory=Counter[int])
    untyped: list[str] = field(default_factory=list[str])
    broken: int = 0
    not_connected: int = 0
    acknowledged: set[str] = field(default_factory=set[str])
    attempted: set[str] = field(default_factory=set[str])
    stored: Counter[str] = field(default_factory=Counter[str])
    changes: Counter[str] = field(default_factory=Counter[str])
    supervisor_mib: list[int] = field(default_factory=list[int])
    worker_mib: list[int] = field(default_factory=list[int])

    def problems(self) -> list[str]:
        """What should not be."""
        found = list(self.untyped[:5])
        if self.broken > self.kills * self.callers:
            found.append(f"{self.broken} requests broke by {self.kills} kills")
        if self.not_connected:
            found.append(f"{self.not_connected} connections were refused")
        if not (self.answered[200] and self.acknowledged):
            found.append("nothing was answered")
        if lost := self.acknowledged - self.stored.keys():
            found.append(f"{len(lost)} acknowledged records are not there")
        if strange := self.stored.keys() - self.attempted:
            found.append(f"{len(strange)} records were never sent")
        if max((self.stored | self.changes).values(), default=0) > 1:
            found.append("records were written twice")
        if self.supervisor_mib[-1] > self.supervisor_mib[0] * GROWTH:
            found.append(f"the supervisor grew: {self.supervisor_mib}")
        if max(self.worker_mib) > 250:
            found.append(f"a worker grew to {max(self.worker_mib)} MiB")
        return found

    def __str__(self) -> str:
        """One line for each figure."""
        answered = ", ".join(f"{status}: {count:,}" for status, count in self.answered.items())
        return (
            f"{self.kills} kills under {self.callers} callers\n"
            f"answered {answered}; broken with their worker {self.broken};"
            f" connections refused {self.not_connected}\n"
            f"records sent {len(self.attempted):,}, acknowledged {len(self.acknowledged):,},"
            f" there {len(self.stored):,}, twice"
            f" {sum(count > 1 for count in self.stored.values())},"
            f" changed twice {sum(count > 1 for count in self.changes.values())}\n"
            f"MiB of the supervisor {self.supervisor_mib[0]} to {self.supervisor_mib[-1]},"
            f" of a worker at most {max(self.worker_mib)}\n"
            f"problems: {self.problems() or 'none'}"
        )


class _Load(threading.Thread):
    """One caller."""

    def __init__(self, served: ServedProcess, found: Found, number: int, over: threading.Event):
        super().__init__(daemon=True)
        self._served, self._found, self._number, self._over = served, found, number, over
        self._sent = 0
        self._caller: Caller | None = None

    def run(self) -> None:
        """Ask again and again."""
        while not self._over.is_set():
            if self._number % 4:
                self._count(PAYMENTS, self._served.client_token, None, None)
            else:
                self._sent += 1
                key = f"k_{self._number}_{self._sent}"
                self._found.attempted.add(key)
                self._count(INGEST, self._served.owner_token, json.dumps(_record(key)), key)
        self._hang_up()

    def _hang_up(self) -> None:
        if self._caller is not None:
            self._caller.connection.close()
            self._caller = None

    def _count(self, path: str, token: str, line: str | None, key: str | None) -> None:
        caller = self._caller
        try:
            if caller is None:
                self._caller = caller = Caller(self._served)
        except ConnectionRefusedError:
            self._found.not_connected += 1
            return
        except (OSError, http.client.HTTPException):
            self._found.broken += 1
            return
        method, headers = ("GET", {}) if line is None else ("POST", KIND)
        content = None if line is None else line.encode()
        try:
            status, body = caller.ask(path, token, method, content, **headers)
        except (OSError, http.client.HTTPException):
            self._found.broken += 1
            self._hang_up()
            return
        self._found.answered[status] += 1
        said = json.loads(body)
        if status >= 300 and "code" not in said.get("error", {}):
            self._found.untyped.append(f"{status}: {body[:200]!r}")
        if status < 300 and key is not None and said["records_accepted"]:
            self._found.acknowledged.add(key)


def _record(key: str) -> dict[str, object]:
    data = {
        "id": key,
        "account_id": "a1",
        "posted_on": "2026-03-01",
        "payee": "Bakery",
        "amount": -1.0,
        "amount_minor": -100,
        "currency": "EUR",
        "direction": "out",
    }
    return {"key": key, "data": data, "emitted_at": "2026-03-01T00:00:00Z"}


def run(folder: Path, seconds: float, callers: int = CALLERS, **environ: str) -> Found:
    """Kill workers for so long."""
    found, over, chance = Found(callers), threading.Event(), random.Random(callers)
    with several(folder, WORKERS, **UNLIMITED, **environ) as served:
        known = set(_keys(served))
        loads = [_Load(served, found, number, over) for number in range(callers)]
        for load in loads:
            load.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(chance.uniform(*BETWEEN_SECONDS))
            found.supervisor_mib.append(resident_mib(served.process.pid))
            found.worker_mib += [resident_mib(pid) for pid in workers_of(served)]
            killed = chance.choice(workers_of(served))
            os.kill(killed, signal.SIGKILL)
            found.kills += 1
            until(partial(_is_followed, served, killed), seconds=90)
        over.set()
        for load in loads:
            load.join(timeout=60)
        until(lambda: all_serve(served, WORKERS), seconds=90)
        found.stored = Counter(key for key in _keys(served) if key not in known)
        found.changes = Counter(key for key in _changed(served) if key not in known)
    return found


def _is_followed(served: ServedProcess, killed: int) -> bool:
    """Whether another has its place: that may be so before anyone sees that it was empty."""
    workers = workers_of(served)
    return killed not in workers and len(workers) == WORKERS and all_serve(served, WORKERS)


def _keys(served: ServedProcess) -> list[str]:
    return _walked(served, "/v1/streams/transactions/records?limit=100")


def _changed(served: ServedProcess) -> list[str]:
    return _walked(served, "/v1/streams/transactions/records?changes_since=beginning&limit=100")


def _walked(served: ServedProcess, path: str | None) -> list[str]:
    keys: list[str] = []
    while path:
        answer = served.get(path, served.owner_token)
        assert answer.status_code == 200, answer.text
        said = answer.json()
        keys += [each["id"] for each in said["data"]]
        path = said["links"].get("next")
    return keys


def main() -> int:
    """Print what came of it."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 300
    environ = {"PDPP_DATABASE_URL": server().url()} if "postgresql" in sys.argv else {}
    with tempfile.TemporaryDirectory(prefix="pdpp-killed-") as folder:
        found = run(Path(folder), seconds, CALLERS, **environ)
    print(found)
    return 1 if found.problems() else 0


if __name__ == "__main__":
    sys.exit(main())
