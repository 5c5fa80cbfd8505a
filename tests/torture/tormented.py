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

from personal_server.app.owner_store import open_owner_store
from personal_server.app.stores import open_stores
from personal_server.consent.selections import parse_selections
from personal_server.granting.audit import Acting
from personal_server.granting.local_grants import LocalRequest
from personal_server.granting.tokens import Issued
from server.tests.app.http_server.served import CALLER, ServedProcess, command, until
from server.tests.console.household import bank_request

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
WITH_FILE = 4
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
    """A server under load.

    Shapes: `sent` are the ids of every batch in their order, `kept` the numbers of those that were
        acknowledged, `promised` the ids of these but for what was erased; `granted` are tokens by
        their grant, `ended` the grants that the owner ended.
    """

    random: Random = field(default_factory=Random)
    sent: list[list[str]] = field(default_factory=list[list[str]])
    kept: list[int] = field(default_factory=list[int])
    promised: set[str] = field(default_factory=set[str])
    erased: set[str] = field(default_factory=set[str])
    granted: dict[str, str] = field(default_factory=dict[str, str])
    ended: set[str] = field(default_factory=set[str])
    follower: Follower = field(default_factory=Follower)
    counts: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])
    refresh_token: str = ""

    def __post_init__(self) -> None:
        self.environ = {
            **UNLIMITED,
            "PYTHONPATH": str(CLOCK),
            "TORTURE_CLOCK": str(self.clock),
            "TMPDIR": str(self.temporary),
            **self.environ,
        }
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.set_clock(0)

    @property
    def temporary(self) -> Path:
        """Where the server puts what it needs for a moment."""
        return self.folder / "temporary"

    @property
    def clock(self) -> Path:
        return self.folder / "clock"

    def set_clock(self, seconds_ahead: int) -> None:
        """How wrong the server's clock is from now on."""
        self.clock.write_text(str(seconds_ahead), "utf-8")

    def furnish(self) -> None:
        super().furnish()
        issued = self._granted("A host")
        self.client_token, self.refresh_token = issued.access_token, str(issued.refresh_token)

    def _granted(self, name: str) -> Issued:
        with open_owner_store(self.settings) as store:
            asked = LocalRequest(name, store.origin, parse_selections(bank_request()))
            shown = store.granting.review(asked)
            return store.granting.approve(asked, shown, Acting("local_cli"))

    def asked(self, path: str, token: str) -> httpx2.Response:
        """A read that has to be answered."""
        return CALLER.get(f"{self.origin}{path}", headers={"Authorization": f"Bearer {token}"})

    def start_again(self) -> None:
        """Start anew on what is there."""
        self.said.clear()
        self.start()

    # The work.  Each does one thing and says whether it was answered.

    def ingest(self) -> bool:
        """One batch; when it is acknowledged it is a promise."""
        number = len(self.sent)
        ids = [f"b{number}-{line}" for line in range(LINES)]
        self.sent.append(ids)
        lines = "\n".join(json.dumps(line_of(each)) for each in ids)
        answer = CALLER.post(
            f"{self.origin}{INGEST}",
            content=lines,
            headers={
                "Authorization": f"Bearer {self.owner_token}",
                "Content-Type": "application/x-ndjson",
            },
        )
        if answer.status_code in UNAVAILABLE:
            return False
        if answer.status_code != 200 or answer.json()["records_accepted"] != LINES:
            self.faults.append(f"ingest {answer.status_code}")
            return False
        self.promised.update(ids)
        self.kept.append(number)
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
        answer = CALLER.post(
            f"{self.origin}/oauth/token",
            data={
                "grant_type": "refresh_token",
                "client_id": "local_a-host",
                "refresh_token": self.refresh_token,
            },
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

    def grant(self) -> None:
        """The owner lets somebody else read as well."""
        issued = self._granted(f"Somebody {len(self.granted)}")
        self.granted[str(issued.grant_id)] = issued.access_token

    def connections(self) -> dict[str, Any]:
        """The owner's connections, by their names."""
        answer = self.asked("/v1/owner/connections?limit=100", self.owner_token)
        return {each["display_name"]: each for each in answer.json()["data"]}

    def connection(self, name: str) -> str:
        """The id of a connection."""
        return self.connections()[name]["connection_id"]

    def follow(self) -> None:
        """A client brings its copy up to date."""
        self.follower.follow(self)

    def erase(self, path: str) -> Any:
        """A delete by the owner; its receipt, if there is one.  Raises: Lost."""
        bearer = {"Authorization": f"Bearer {self.owner_token}"}
        answer = CALLER.delete(f"{self.origin}{path}", headers=bearer)
        if answer.status_code not in (200, 204):
            raise Lost(f"an erasure was answered {answer.status_code}")
        return answer.json() if answer.content else None

    @contextmanager
    def working(self, *more: Callable[[], object]) -> Generator[None]:
        """All of the work, each in a thread, until the block ends."""
        over = threading.Event()
        works = ((self.ingest, 0.02), (self.read, 0.02), (self.refresh, 0.2))
        threads = [
            threading.Thread(target=self._again, args=(over, each, pause), daemon=True)
            for each, pause in (*works, *((each, 0.3) for each in more))
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
        target = len(self.kept) + batches
        until(lambda: len(self.kept) >= target or self.process.poll() is not None, 120)
        if len(self.kept) < target:
            raise Lost(f"the server ended by itself: {self.log[-500:]}")

    def _again(self, over: threading.Event, work: Callable[[], object], pause: float) -> None:
        while not over.wait(pause):
            try:
                work()
            except NO_ANSWER:  # it was ended in between; what was not answered is no promise
                continue
            except Lost as loss:
                self.faults.append(str(loss))

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
        with (self.folder / "command.log").open("a") as log:
            return subprocess.Popen(command(*arguments), env=self._places, stdout=log, stderr=log)

    def told(self, *arguments: str) -> Any:
        """What a command prints with `--json`.  Raises: Lost, where it fails."""
        done = subprocess.run(
            command(*arguments, "--json"),
            env=self._places,
            capture_output=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise Lost(f"pdpp {arguments[0]} ended with {done.returncode}: {done.stderr[-500:]!r}")
        return json.loads(done.stdout)

    @property
    def _places(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PDPP_")}  # noqa: TID251 (a child's)
        data = str(self.folder / "data")
        return {**kept, "PDPP_DATA_DIR": data, "PDPP_PUBLIC_URL": self.origin}

    def mailbox(self, mails: int) -> Path:
        """An export to import; every fourth mail has a file."""
        path = self.folder / f"export-{mails}.mbox"
        if not path.exists():
            box = mailbox.mbox(path)
            for number in range(mails):
                message = EmailMessage()
                message["From"], message["Subject"] = "a@example.org", f"Mail {number}"
                message["Message-ID"] = f"<{number}@example.org>"
                message["Date"] = "Mon, 05 Jan 2026 10:00:00 +0000"
                message.set_content("Some words. " * 40)
                if number % WITH_FILE == 0:
                    message.add_attachment(
                        file_of(number),
                        maintype="application",
                        subtype="octet-stream",
                        filename=f"{number}.bin",
                    )
                box.add(message)
            box.close()
        return path

    def end(self) -> None:
        """Whether it was started or not."""
        if hasattr(self, "process") and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def records_of(self, name: str) -> int:
        """How many records the accounts of that name hold."""
        with open_stores(self.settings, serving=False) as stores:  # noqa: SIM117
            with stores.records.snapshot() as snapshot:
                named = {c.connection_id for c in snapshot.connections() if c.display_name == name}
                stored = snapshot.stored_streams()
        return sum(each.record_count for each in stored if each.connection_id in named)


def file_of(number: int) -> bytes:
    """What is attached to a mail."""
    return f"This came with mail {number}.".encode()


def line_of(record_id: str) -> dict[str, Any]:
    """The line that brings a record."""
    subject = f"Rain on {record_id}"
    record = {"id": record_id, "subject": subject, "sent_at": "2026-01-01T00:00:00Z"}
    return {"key": record_id, "data": record, "emitted_at": "2026-01-01T00:00:00Z"}


@contextmanager
def tormented(folder: Path, seed: int, **environ: str) -> Generator[Tormented]:
    """A server with records, a client that holds a grant, and everything to come."""
    server = Tormented(folder, environ, random=Random(seed))
    server.furnish()
    server.start()
    try:
        yield server
    finally:
        server.end()
