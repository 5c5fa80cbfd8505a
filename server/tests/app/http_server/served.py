"""`pdpp serve` as a process of its own, on a store with two mailboxes and a bank account."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from personal_server.app.owner_store import OwnerStore, open_owner_store
from personal_server.app.stores import open_stores
from personal_server.consent.selections import parse_selections
from personal_server.granting.audit import Acting
from personal_server.granting.local_grants import LocalRequest
from personal_server.granting.tokens import Entitlement, mint
from personal_server.settings import Settings
from server.tests.console.household import bank_request
from tests.browser.site import fill
from tests.new_files import begin_database
from tests.ports import free_port
from tests.processes import started, stop
from tests.secrecy.plugin import WATCH

SECONDS = 120
START_SECONDS = 120  # a second or two, but on a machine that is busy with much else
PAYMENTS = "/v1/streams/transactions/records?limit=1"
# Each call has a connection of its own, as its server may have been killed since the last one.
CALLER = httpx2.Client(timeout=240, limits=httpx2.Limits(max_keepalive_connections=0))


def command(*arguments: str) -> list[str]:
    return [str(Path(sysconfig.get_path("scripts")) / "pdpp"), *arguments]


def until(
    holds: Callable[[], object], seconds: float = SECONDS, pause_seconds: float = 0.02
) -> None:
    """Wait for a condition.  Raises: TimeoutError."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(pause_seconds)


@dataclass
class ServedProcess:
    """A server process, what it says, and whom it serves."""

    folder: Path
    environ: Mapping[str, str]
    process: subprocess.Popen[str] = field(init=False)
    said: list[str] = field(default_factory=list[str])
    port: int = field(default_factory=free_port)
    client_token: str = ""
    owner_token: str = ""
    program: Sequence[str] = field(default_factory=command)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> Settings:
        return Settings(
            data_dir=self.folder / "data",
            public_url=self.origin,
            bind_port=self.port,
            database_url=self.environ.get("PDPP_DATABASE_URL"),
            database_schema=self.environ.get("PDPP_DATABASE_SCHEMA", "pdpp"),
        )

    @property
    def log(self) -> str:
        return "".join(self.said)

    def furnish(self) -> None:
        """Records, a grant of a client, and a token of the owner."""
        begin_database(self.settings)
        with open_stores(self.settings, serving=False) as stores:
            fill(stores.records, stores.clock())
        with open_owner_store(self.settings) as store:
            self.client_token = client_token(store)
            self.owner_token = mint_owner_token(store)

    def start(self, *arguments: str) -> None:
        """Start, and wait until it answers."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PDPP_")}  # noqa: TID251 (a child's environment)
        variables = {
            "PDPP_DATA_DIR": str(self.folder / "data"),
            "PDPP_BIND": f"127.0.0.1:{self.port}",
            "PDPP_WORKERS": "1",
        }
        self.process = started(
            [*self.program, "serve", *arguments],
            env={**kept, **variables, **self.environ},
            stderr=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()
        # each look is a request, and the server that starts needs the core
        until(lambda: self._answers() or self.process.poll() is not None, START_SECONDS, 0.1)
        assert self.process.poll() is None, self.log

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end: the exit code."""
        code = stop(self.process, number, SECONDS)
        until(lambda: self.said and self.said[-1] == "")
        return code

    def get(self, path: str, token: str = "") -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return CALLER.get(f"{self.origin}{path}", headers=headers)

    def health(self) -> dict[str, Any]:
        return self.get("/healthz").json()

    def connect(self) -> socket.socket:
        """A connection that says nothing yet."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def copied_database(self) -> Settings:
        """The settings of a copy of the one file of the database, and of nothing beside it."""
        copy = self.folder / "copy"
        copy.mkdir()
        for name in ("config.toml", self.settings.database_path.name):
            shutil.copy(self.folder / "data" / name, copy / name)
        return Settings(data_dir=copy)

    def _answers(self) -> bool:
        try:
            return self.get("/healthz/live").status_code == 200
        except httpx2.TransportError:
            return False

    def _listen(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            self.said.extend(lines)
        self.said.append("")
        WATCH.log(self.log, "standard error of pdpp serve")


def environ_of(data_dir: Path) -> Mapping[str, str]:  # `tests.on_postgresql` has its own
    """Which database a data directory has: the file in it."""
    return {}


@contextmanager
def served_process(folder: Path, **environ: str) -> Generator[ServedProcess]:
    """A server that answers, and is stopped in the end if it was not."""
    served = ServedProcess(folder, {**environ_of(folder / "data"), **environ})
    served.furnish()
    served.start()
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.process.kill()
            served.process.wait()


def client_token(store: OwnerStore) -> str:
    asked = LocalRequest("An agent", store.origin, parse_selections(bank_request()))
    shown = store.granting.review(asked)
    return store.granting.approve(asked, shown, Acting("local_cli")).access_token


def mint_owner_token(store: OwnerStore) -> str:
    """A token that reads and writes everything."""
    entitled = Entitlement(
        kind="owner",
        client_id="pdpp-owner-cli",
        origin=store.origin,
        resource=store.origin,
        scope="pdpp:owner",
        access_mode="continuous",
    )
    with store.authorization.write() as writer:
        return mint(writer, entitled, store.random_bytes, store.clock()).access_token
