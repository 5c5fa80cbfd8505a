"""The server that is tortured: a real process, its disk, its clock, and the work it is given.

Rule: what was acknowledged is written down here; whatever of it cannot be found again is lost.
"""

from __future__ import annotations

import json
import mailbox
import os
import resource
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from random import Random
from typing import Any

import httpx2

from personal_server.app.stores import open_owner_store, open_stores
from personal_server.consent.selections import parse_selections
from personal_server.granting.audit import Acting
from personal_server.granting.local_grants import LocalRequest
from tests.app.http_server.served import ServedProcess, command, until
from tests.console.household import bank_request

UNLIMITED = {
    "PDPP_RATE_PER_SECOND": "0",
    "PDPP_RATE_BURST": "0",
    "PDPP_MAX_IN_FLIGHT": "0",
    "PDPP_QUOTA_RECORDS_PER_DAY": "0",
    "PDPP_QUOTA_BYTES_PER_DAY": "0",
    "PDPP_LOG_LEVEL": "warning",
}
CLOCK = Path(__file__).parent / "clock"
INGEST = "/v1/ingest/messages?connection_id=cin_home"
FEED = "/v1/streams/messages/records?connection_id=cin_home&limit=500&changes_since="
PAYMENTS = "/v1/streams/transactions/records?limit=5"
LINES = 5
NO_ANSWER = httpx2.TransportError
UNAVAILABLE = (429, 503, 507)


class Lost(Exception):
    """Something that was acknowledged is not there, or somebody is locked out."""


@dataclass
class Follower:
    """A client that keeps a copy by the change feed."""

    bookmark: str = "beginning"
    copy: set[str] = field(default_factory=set[str])

    def follow(self, server: Tormented) -> None:
        """Everything up to now.  Raises: Lost if the bookmark is not taken."""
        path: str | None = FEED + self.bookmark
        while path is not None:
            answer = server.asked(path, server.owner_token)
            if answer.status_code != 200:
                raise Lost(f"the change feed answered {answer.status_code}")
            page = answer.json()
            for item in page["data"]:
                (self.copy.discard if item.get("deleted") else self.copy.add)(item["id"])
            self.bookmark = page.get("next_changes_since") or self.bookmark
            path = page["links"]["next"]


@dataclass
class Tormented(ServedProcess):
    """A server under load.  `promised` are the ids whose batches were acknowledged."""

    random: Random = field(default_factory=Random)
    promised: set[str] = field(default_factory=set[str])
    follower: Follower = field(default_factory=Follower)
    counts: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])
    refresh_token: str = ""
    batches: int = 0

    def __post_init__(self) -> None:
        self.environ = {
            **UNLIMITED,
            "PYTHONPATH": str(CLOCK),
            "TORTURE_CLOCK": str(self.clock),
            **self.environ,
        }
        self.set_clock(0)

    @property
    def clock(self) -> Path:
        return self.folder / "clock"

    def set_clock(self, seconds_ahead: int) -> None:
        """How wrong the server's clock is from now on."""
        self.clock.write_text(str(seconds_ahead), "utf-8")

    def furnish(self) -> None:
        super().furnish()
        with open_owner_store(self.settings) as store:
            asked = LocalRequest("A host", store.origin, parse_selections(bank_request()))
            shown = store.granting.preview(asked)
            issued = store.granting.approve(asked, shown, Acting("local_cli"))
        self.client_token, self.refresh_token = issued.access_token, str(issued.refresh_token)

    def asked(self, path: str, token: str) -> httpx2.Response:
        """A read that has to be answered."""
        return httpx2.get(
            f"{self.origin}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=60
        )

    def start_again(self) -> None:
        """Start anew on what is there."""
        self.said.clear()
        self.start()

    # The work.  Each does one thing and says whether it was answered.

    def ingest(self) -> bool:
        """One batch; when it is acknowledged it is a promise."""
        first = self.counts["batches sent"]
        self.counts["batches sent"] += 1
        ids = [f"b{first}-{number}" for number in range(LINES)]
        lines = "\n".join(json.dumps(_line(each)) for each in ids)
        answer = httpx2.post(
            f"{self.origin}{INGEST}",
            content=lines,
            headers={
                "Authorization": f"Bearer {self.owner_token}",
                "Content-Type": "application/x-ndjson",
            },
            timeout=30,
        )
        if answer.status_code in UNAVAILABLE:
            return False
        if answer.status_code != 200 or answer.json()["records_accepted"] != LINES:
            self.faults.append(f"ingest {answer.status_code}")
            return False
        self.promised.update(ids)
        self.batches += 1
        return True

    def read(self) -> bool:
        """A client's read."""
        answer = self.asked(PAYMENTS, self.client_token)
        if answer.status_code == 200:
            self.counts["reads answered"] += 1
        elif answer.status_code not in (*UNAVAILABLE, 401):  # 401: its token was just renewed
            self.faults.append(f"read {answer.status_code}")
        return answer.status_code == 200

    def refresh(self) -> bool:
        """A host renews its token, and again with the same one where no answer came."""
        answer = httpx2.post(
            f"{self.origin}/oauth/token",
            data={
                "grant_type": "refresh_token",
                "client_id": "local_a-host",
                "refresh_token": self.refresh_token,
            },
            timeout=30,
        )
        if answer.status_code in UNAVAILABLE:
            return False
        if answer.status_code != 200:
            self.faults.append(f"refresh {answer.status_code} {answer.json().get('error')}")
            return False
        self.client_token = answer.json()["access_token"]
        self.refresh_token = answer.json()["refresh_token"]
        self.counts["tokens renewed"] += 1
        return True

    @contextmanager
    def working(self) -> Generator[None]:
        """All of the work, each in a thread, until the block ends."""
        over = threading.Event()
        threads = [
            threading.Thread(target=_again, args=(over, each, pause), daemon=True)
            for each, pause in ((self.ingest, 0.02), (self.read, 0.02), (self.refresh, 0.2))
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def work_for(self, batches: int) -> None:
        """Wait until that many more batches were acknowledged."""
        target = self.batches + batches
        until(lambda: self.batches >= target or self.process.poll() is not None, 120)
        if self.batches < target:
            raise Lost(f"the server ended by itself: {self.log[-500:]}")

    # What must hold whenever it answers again.

    def check(self) -> None:
        """Everything promised is there, and nobody is locked out.  Raises: Lost."""
        self.follower.follow(self)
        missing = self.promised - self.follower.copy
        if missing:
            raise Lost(f"{len(missing)} acknowledged records are gone")
        if not self.refresh() or not self.read():
            raise Lost(f"a client is locked out: {self.faults[-1:]}")
        if not self.ingest():
            raise Lost(f"nothing can be brought in any more: {self.faults[-1:]}")
        if self.faults:
            raise Lost(f"answers that nobody can use: {self.faults}")

    def write_limit(self, size_bytes: int) -> None:
        """No file of the server may grow beyond that any more (-1: as it likes)."""
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (size_bytes, -1))

    def command(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A command on the same store, beside the server."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PDPP_")}  # noqa: TID251 (a child's)
        places = {"PDPP_DATA_DIR": str(self.folder / "data"), "PDPP_PUBLIC_URL": self.origin}
        with (self.folder / "command.log").open("a") as log:
            return subprocess.Popen(
                command(*arguments), env={**kept, **places}, stdout=log, stderr=log
            )

    def mailbox(self, mails: int) -> Path:
        """An export to import."""
        path = self.folder / "export.mbox"
        if not path.exists():
            box = mailbox.mbox(path)
            for number in range(mails):
                message = EmailMessage()
                message["From"], message["Subject"] = "a@example.org", f"Mail {number}"
                message["Message-ID"] = f"<{number}@example.org>"
                message["Date"] = "Mon, 05 Jan 2026 10:00:00 +0000"
                message.set_content("Some words. " * 40)
                box.add(message)
            box.close()
        return path

    def records_of(self, name: str) -> int:
        """How many records the accounts of that name hold."""
        with open_stores(self.settings, serving=False) as stores:  # noqa: SIM117
            with stores.records.snapshot() as snapshot:
                named = {c.connection_id for c in snapshot.connections() if c.display_name == name}
                stored = snapshot.stored_streams()
        return sum(each.record_count for each in stored if each.connection_id in named)


def _again(over: threading.Event, work: Callable[[], Any], pause_seconds: float) -> None:
    while not over.wait(pause_seconds):
        try:
            work()
        except NO_ANSWER:  # it was ended in between; what was not answered is no promise
            continue


def _line(record_id: str) -> dict[str, Any]:
    record = {"id": record_id, "subject": "Rain", "sent_at": "2026-01-01T00:00:00Z"}
    return {"key": record_id, "data": record, "emitted_at": "2026-01-01T00:00:00Z"}


@contextmanager
def tormented(folder: Path, seed: int) -> Generator[Tormented]:
    """A server with records, a client that holds a grant, and everything to come."""
    server = Tormented(folder, {}, random=Random(seed))
    server.furnish()
    server.start()
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
