"""A server to measure: a data directory filled through the real ingest path, and processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from time import clock_gettime_ns, perf_counter, sleep

import psycopg

from tests.ports import free_port
from tests.postgresql import PostgresServer, programs
from tests.processes import started, stop

STARTING_SECONDS = 60
UNLIMITED = (
    "PDPP_RATE_PER_SECOND=0",
    "PDPP_RATE_BURST=0",
    "PDPP_MAX_IN_FLIGHT=0",
    "PDPP_QUOTA_RECORDS_PER_DAY=0",
    "PDPP_QUOTA_BYTES_PER_DAY=0",
    "PDPP_LOG_LEVEL=warning",
)


POSTGRESQL = "postgresql"
STORES = (POSTGRESQL,)
UNFINISHED = 65
"""What a command ends with that did what it could and names what it could not."""


@contextmanager
def database(store: str | None) -> Generator[str | None, None, None]:
    """The address of an empty database, by default none: the file in the data directory.

    Its server is that of the tests, but with the memory of a small one.
    """
    if store is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="pdpp-pg-", dir="/tmp") as name:
        server = PostgresServer(Path(name), programs(), shared_buffers="512MB", fsync="on")
        server.make()
        server.start()
        try:
            yield server.url()
        finally:
            server.stop()


def programs_of(checkout: Path) -> Path:
    """Where the programs of another checkout lie, which has to have an environment of its own."""
    programs = checkout.resolve() / ".venv" / "bin"
    if not (programs / "pdpp").exists():
        sys.exit(f"{checkout} has no environment of its own. Run `make install` there.")
    return programs


def source_path(checkout: Path) -> str:
    """Where the packages of a checkout lie: in its parts, or in one `src` as before them."""
    parts = [checkout / part / "src" for part in ("kernel", "sources", "adapter", "server")]
    whole = checkout / "src"
    return os.pathsep.join(str(each.resolve()) for each in ([whole] if whole.is_dir() else parts))


class Site:
    """One data directory, one port, and the commands that work on them."""

    def __init__(
        self,
        folder: Path,
        programs: Path | None = None,
        database_url: str | None = None,
        workers: int = 1,
    ) -> None:
        """`programs` are those of another checkout, if not this one's (`programs_of`).

        Records lie at `database_url`, if one is given, instead of in the file of the directory.
        """
        self.workers = workers
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        self.data_dir = folder / "data"
        self.database_url = database_url
        self._store = [] if database_url is None else [f"PDPP_DATABASE_URL={database_url}"]
        self._bin = programs or Path(sysconfig.get_path("scripts"))

    def command(self, program: str, *arguments: str) -> list[str]:
        """A command line with the environment of this site."""
        variables = [f"PDPP_DATA_DIR={self.data_dir}", f"PDPP_BIND=127.0.0.1:{self.port}"]
        variables += [f"PDPP_WORKERS={self.workers}", *self._store]
        return ["/usr/bin/env", *variables, *UNLIMITED, str(self._bin / program), *arguments]

    def grant(self, name: str, *selection: str) -> tuple[str, Path]:
        """Make a grant; its access token and the cache that holds it."""
        cache = self.folder / f"cache-{name}"
        arguments = ("--client", f"bench {name}", *selection, "--cache-root", str(cache), "--yes")
        done = subprocess.run(
            self.command("pdpp", "grant", "create", *arguments),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"pdpp grant create ended with {done.returncode}: {done.stderr}")
        [file] = (cache / "clients").glob("*.json")
        credential = json.loads(file.read_text(encoding="utf-8"))["credential"]
        return credential["access_token"], cache

    @contextmanager
    def serving(self, *within: str) -> Generator[Running, None, None]:
        """The server as a process, ready; `within` is a command that runs it."""
        begin = perf_counter()
        log = (self.folder / "serve.log").open("w+")
        command = [*within, *self.command("pdpp", "serve")]
        process = started(command, stdout=log, stderr=log)
        try:
            while not self._answers():
                if process.poll() is not None or perf_counter() - begin > STARTING_SECONDS:
                    log.seek(0)
                    sys.exit(f"the server did not start:\n{log.read()}")
                sleep(0.01)
            yield Running(process.pid, perf_counter() - begin, self._database_running())
        finally:
            stop(process)
            log.close()

    @property
    def size_bytes(self) -> int:
        """What the data directory takes on disk, with the database that lies elsewhere."""
        files = sum(file.stat().st_size for file in self.data_dir.rglob("*") if file.is_file())
        if self.database_url is None:
            return files
        with psycopg.connect(self.database_url) as connection:
            line = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return files + (0 if line is None else int(line[0]))

    @property
    def store(self) -> str | None:
        """The name of the database, where it is not the file."""
        return None if self.database_url is None else POSTGRESQL

    def _database_running(self) -> Running | None:
        if self.database_url is None:
            return None
        with psycopg.connect(self.database_url) as connection:
            [folder] = connection.execute("SHOW data_directory").fetchone() or [""]
        lines = Path(folder, "postmaster.pid").read_text(encoding="utf-8").splitlines()
        return Running(int(lines[0]))

    def _answers(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            said = json.loads(answer.read())
            return answer.status == 200 and len(said.get("workers", "1")) == self.workers
        except OSError:
            return False
        finally:
            connection.close()


class Running:
    """A server that is measured from outside: its process, or that and those it started.

    `database` is the one that works for it alone, if there is one.
    """

    def __init__(
        self, pid: int, ready_seconds: float = 0.0, database: Running | None = None
    ) -> None:
        self.pid = pid
        self.ready_seconds = ready_seconds
        self._database = database

    @property
    def processor_seconds(self) -> float:
        """Processor time so far, of all threads."""
        ticks = 0
        for pid in self.processes:
            line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            fields = line.rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    @property
    def processes(self) -> list[int]:
        """It, and its workers where there are several."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="utf-8")
        return [self.pid, *map(int, children.split())]

    @property
    def processor_ms(self) -> float:
        """The same, exact enough for a few calls, with the database's.

        Threads that ended meanwhile are in it.
        """
        spent = sum(clock_gettime_ns(_processor_clock(pid)) for pid in self.processes) / 1e6
        return spent if self._database is None else spent + self._database.processor_ms

    @property
    def threads_ms(self) -> dict[str, float]:
        """The same of each thread that it has now, by the number of the thread."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        spent = {task.name: (task / "schedstat").read_text(encoding="ascii") for task in tasks}
        return {number: int(line.split()[0]) / 1e6 for number, line in spent.items()}

    @property
    def resident_bytes(self) -> int:
        """Memory that it holds now."""
        return self._status("VmRSS") * 1024

    @property
    def resident_each(self) -> list[int]:
        """The same of each process: of the one that supervises, where there is one, the first."""
        return [Running(pid).resident_bytes for pid in self.processes]

    @property
    def peak_bytes(self) -> int:
        """The most it ever held."""
        return self._status("VmHWM") * 1024

    @property
    def threads(self) -> int:
        """How many threads it has."""
        return self._status("Threads")

    @property
    def descriptors(self) -> int:
        """How many files, pipes and connections it has open."""
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines()
        value = next(line for line in lines if line.startswith(f"{name}:"))
        return int(value.split()[1])


def _processor_clock(pid: int) -> int:
    """The clock of another process, as `clock_getcpuclockid` of Linux makes its number."""
    return (~pid << 3) | 2
