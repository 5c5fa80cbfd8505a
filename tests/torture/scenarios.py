"""What is done to the server, each beside ingest, reads and token refreshes.

A scenario returns when the server stands again and nothing is lost; else it raises `Lost`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from personal_server.app.stores import open_stores
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from server.tests.app.http_server.served import CALLER, until
from tests.ports import free_port
from tests.torture.erasing import erase
from tests.torture.interrupting import (
    code_killed,
    imports_queued,
    rebuild_killed,
    upload_killed,
)
from tests.torture.restoring import restore
from tests.torture.rotting import rot
from tests.torture.tormented import NO_ANSWER, WITH_FILE, Lost, Tormented

FLOOD = 1_500
MAILS = 400
YEAR_SECONDS = 400 * 86_400


class Unable(Exception):
    """This machine cannot do that."""


def kill(server: Tormented) -> None:
    """kill -9, in the middle of everything, and again while it comes up."""
    with server.working():
        server.work_for(server.random.randrange(1, 25))
        server.process.kill()
        server.process.wait()
        server.start_again()
        server.work_for(1)
    server.check()


def terminate(server: Tormented) -> None:
    """SIGTERM: what was answered is in the log, and everything in the one file."""
    logged, answered = _logged_reads(server), server.counts["reads answered"]
    with server.working():
        server.work_for(server.random.randrange(1, 25))
        code = server.stop(signal.SIGTERM)
    journal = server.settings.database_path.with_name(f"{server.settings.database_path.name}-wal")
    left = journal.exists() and journal.stat().st_size
    logged, answered = _logged_reads(server) - logged, server.counts["reads answered"] - answered
    server.start_again()
    if code != 0:
        raise Lost(f"it ended with {code}")
    if left:
        raise Lost("writes were left in the journal")
    if logged < answered:
        raise Lost(f"{answered - logged} reads were answered and not logged")
    server.check()


def _logged_reads(server: Tormented) -> int:
    query = DisclosureQuery(limit=1_000_000, equal=(("outcome", "served"),))
    with open_stores(server.settings, serving=False) as stores:
        return len({entry.request_id for _, entry in stores.disclosures.disclosures(query)})


def write_errors(server: Tormented) -> None:
    """No file may grow: writes are refused, not lost, and taken again afterwards."""
    with server.working():
        server.work_for(3)
        server.write_limit(1)
        refused = len(server.sent) + 5
        until(lambda: len(server.sent) >= refused or server.process.poll() is not None)
        server.write_limit(-1)
        server.work_for(3)
    server.check()


def full_disk(server: Tormented) -> None:
    """The file system has no room left, and then has again."""
    ballast = server.folder / "ballast"
    if not os.path.ismount(server.folder):
        raise Unable("no file system could be mounted")
    with server.working():
        server.work_for(3)
        _fill(ballast)
        refused = len(server.sent) + 5
        until(lambda: len(server.sent) >= refused or server.process.poll() is not None)
        ballast.unlink()
        server.work_for(3)
    server.check()


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


def clock_jump(server: Tormented) -> None:
    """The clock is a year ahead at a start, and right again at the next."""
    server.stop()
    server.set_clock(YEAR_SECONDS)
    server.start_again()
    server.get("/healthz")
    server.stop()
    server.set_clock(0)
    server.start_again()
    server.check()


def import_killed(server: Tormented) -> None:
    """An import is killed again and again; in the end every mail is there once."""
    name = f"Box {server.counts['imports']}"
    server.counts["imports"] += 1
    arguments = ("import", str(server.mailbox(MAILS)), "--connection", name)
    with server.working():
        for _ in range(2):
            importing = server.command(*arguments)
            server.work_for(server.random.randrange(20, 60))
            importing.kill()
            importing.wait()
        if server.command(*arguments).wait(timeout=120) != 0:
            raise Lost("an import that was killed cannot be repeated")
    expected = MAILS + MAILS // WITH_FILE
    if server.records_of(name) != expected:
        raise Lost(f"{server.records_of(name)} of {expected} mails and files are there")
    server.check()


def flood(server: Tormented) -> None:
    """Fifteen hundred connections that say nothing, or half a request."""
    with server.working(), ExitStack() as stack:
        server.work_for(2)
        for number in range(FLOOD):
            try:
                connection = stack.enter_context(server.connect())
                if number % 2:
                    connection.sendall(b"GET /v1/streams HTTP/1.1\r\nHost: ")
            except OSError:
                continue  # refused or cut off, as it should be
        server.get("/healthz/live")
    server.check()


def proxy(server: Tormented) -> None:
    """A proxy in front is killed in the middle of requests."""
    if shutil.which("nginx") is None:
        raise Unable("nginx is not installed")
    port = server.port
    with _nginx(server) as (behind, running):
        server.port = behind
        try:
            with server.working():
                server.work_for(5)
                running.kill()
                running.wait()
                server.port = port
                server.work_for(2)
        finally:
            server.port = port
    server.check()


@contextmanager
def _nginx(server: Tormented) -> Generator[tuple[int, subprocess.Popen[bytes]]]:
    folder, port = server.folder, free_port()
    scratch = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{name}_temp_path {folder}/nginx-{name}; " for name in scratch)
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off; {places}\n"
        f"server {{ listen 127.0.0.1:{port}; location / {{"
        f" proxy_pass http://127.0.0.1:{server.port};"
        f" proxy_set_header Host 127.0.0.1:{server.port}; }} }} }}\n"
    )
    with (folder / "nginx.log").open("a") as log:
        running = subprocess.Popen(
            ["nginx", "-e", "stderr", "-c", str(folder / "nginx.conf")], stdout=log, stderr=log
        )
    try:
        until(lambda: _answers(port) or running.poll() is not None)
        yield port, running
    finally:
        running.kill()
        running.wait()


def _answers(port: int) -> bool:
    try:
        return CALLER.get(f"http://127.0.0.1:{port}/healthz/live").status_code == 200
    except NO_ANSWER:
        return False


SCENARIOS: Mapping[str, Callable[[Tormented], None]] = {
    "kill -9": kill,
    "SIGTERM": terminate,
    "write errors": write_errors,
    "full disk": full_disk,
    "clock a year ahead": clock_jump,
    "import killed": import_killed,
    "backup and restore": restore,
    "upload killed": upload_killed,
    "imports queued": imports_queued,
    "code killed": code_killed,
    "rebuild killed": rebuild_killed,
    "erasure": erase,
    "rot": rot,
    "connection flood": flood,
    "proxy killed": proxy,
}
