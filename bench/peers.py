"""Programs of others that serve the same mails, asked beside this one.

Each is installed from its registry into an environment of its own, in a folder that goes with the
measurement.  Datasette is asked by the search of its own table pages, without the counts, facets
and suggestions that a page would have: all columns of 25 rows in the order of the table, not
ranked, without excerpts.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import venv
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from time import perf_counter, sleep

from bench.archive import COLLECTIONS, records
from bench.clients import Refused, RestCaller
from bench.filling import SEED
from bench.operations import Read
from bench.site import STARTING_SECONDS, Running
from tests.ports import free_port
from tests.processes import started, stop

DATASETTE = "datasette==0.65.5"
PEERS = ("datasette",)
MAIL = "bench_mail"
_COLUMNS = ("id", "thread_id", "subject", "from_address", "sent_at", "body", "size_bytes")
_TABLES = f"""
CREATE TABLE messages (number INTEGER PRIMARY KEY, {", ".join(_COLUMNS)});
CREATE VIRTUAL TABLE messages_fts
  USING fts5 (subject, from_address, body, content='messages', content_rowid='number');
"""
_INDEX = "INSERT INTO messages_fts (messages_fts) VALUES ('rebuild')"
_PLAIN = (("_size", "25"), ("_shape", "objects"), ("_nocount", "1"), ("_nofacet", "1"))


@dataclass(frozen=True, slots=True)
class Peer:
    """One of them while it serves."""

    name: str
    version: str
    origin: str
    running: Running

    def asked(self, read: Read) -> Callable[[], object] | None:
        """The same search, word for word; `None` where the read is no search by words."""
        turns = read.turns or (read.query,)
        words = [sought for turn in turns if (sought := dict(turn).get("q"))]
        if read.path != "/v1/search" or not words:
            return None
        caller, asked = RestCaller(self.origin, ""), cycle(words)
        return lambda: caller.get("/mail/messages.json", (("_search", next(asked)), *_PLAIN))


@contextmanager
def serving(name: str, folder: Path, total: int) -> Generator[Peer]:
    """The program of that name with the mails of an archive of so many records."""
    if name not in PEERS:
        sys.exit(f"Nobody here knows how to serve mails by {name}.")
    folder.mkdir()
    programs = installed(folder / "environment", DATASETTE)
    _fill(folder / "mail.db", total)
    port = free_port()
    place = ("--host", "127.0.0.1", "--port", str(port))
    command = [programs / "datasette", "serve", folder / "mail.db", *place]
    process = started(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        begun = perf_counter()
        while not _answers(port):
            if process.poll() is not None or perf_counter() - begun > STARTING_SECONDS:
                sys.exit(f"{name} did not start")
            sleep(0.05)
        running = Running(process.pid, perf_counter() - begun)
        yield Peer(name, DATASETTE.partition("==")[2], f"http://127.0.0.1:{port}", running)
    finally:
        stop(process)


def installed(folder: Path, requirement: str) -> Path:
    """Where the programs of a new environment with that are."""
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "install", requirement], check=False).returncode:
        sys.exit(f"{requirement} could not be installed. Is the network there?")
    return folder / "bin"


def _fill(path: Path, total: int) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(_TABLES)
        marks = ", ".join("?" * len(_COLUMNS))
        insert = f"INSERT INTO messages ({', '.join(_COLUMNS)}) VALUES ({marks})"  # noqa: S608
        database.executemany(insert, _mails(total))
        database.execute(_INDEX)
        database.commit()


def _mails(total: int) -> Iterator[Sequence[object]]:
    of_mail: Iterable[dict[str, object]] = (
        record["data"]
        for collection in COLLECTIONS
        if collection.connector_key == MAIL
        for record in records(collection, total, SEED)
    )
    for data in of_mail:
        yield [data[name] for name in _COLUMNS]


def _answers(port: int) -> bool:
    with suppress(OSError, Refused), closing(HTTPConnection("127.0.0.1", port, timeout=2)) as asked:
        asked.request("GET", "/-/versions.json")
        return asked.getresponse().status == 200
    return False
