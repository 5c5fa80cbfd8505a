"""`pdpp serve` by several processes, and callers of which each has a connection to one of them."""

from __future__ import annotations

import http.client
import os
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from server.tests.app.http_server.served import SECONDS, ServedProcess, served_process, until

LOOPBACK, ESTABLISHED = "0100007F", "01"
"""As the system's table of connections writes 127.0.0.1, and the state of an open one."""


class Caller:
    """One connection that stays."""

    def __init__(self, served: ServedProcess) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=SECONDS)
        try:
            self.ask("/healthz/live")
        except BaseException:
            self.connection.close()
            raise
        self.here = self.connection.sock.getsockname()
        self.there = self.connection.sock.getpeername()

    def ask(
        self,
        path: str,
        token: str = "",
        method: str = "GET",
        body: bytes | None = None,
        **headers: str,
    ) -> tuple[int, bytes]:
        """Status and body.  Raises: OSError, HTTPException where the connection broke."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()


def workers_of(served: ServedProcess) -> list[int]:
    """The processes that serve."""
    pid = served.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [int(child) for child in children.read_text(encoding="ascii").split()]
    except FileNotFoundError:
        return []


def all_serve(served: ServedProcess, number: int) -> bool:
    """Whether as many processes serve, and say so."""
    said: dict[str, Any] = served.health()
    return said["status"] == "ok" and len(said.get("workers", ())) == number


def resident_mib(pid: int) -> int:
    """What a process holds in memory; 0 where there is none any more."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def callers_of_each(served: ServedProcess) -> list[Caller]:
    """As many callers as there are workers, each connected to another one."""
    found: dict[int, Caller] = {}
    workers = workers_of(served)
    for _ in range(500):
        caller = Caller(served)
        worker = _worker_of(caller, workers)
        if found.setdefault(worker, caller) is not caller:
            caller.connection.close()
        if len(found) == len(workers):
            return list(found.values())
    raise AssertionError("one of the workers takes nobody")


def _worker_of(caller: Caller, workers: Sequence[int]) -> int:
    """Which process has the other end of a connection, by the system's table of connections."""
    here, there = (f"{LOOPBACK}:{each[1]:04X}" for each in (caller.here, caller.there))
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    # where connections come and go while the table is read, one may stand in it twice
    [socket] = {
        f"socket:[{columns[9]}]"
        for columns in map(str.split, lines)
        if columns[1:4] == [there, here, ESTABLISHED]
    }
    [worker] = [
        pid
        for pid in workers
        if any(_link(each) == socket for each in Path(f"/proc/{pid}/fd").iterdir())
    ]
    return worker


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except FileNotFoundError:
        return ""


@contextmanager
def several(folder: Path, workers: int, **environ: str) -> Generator[ServedProcess]:
    """A server of as many processes, all of which serve; stopped in the end."""
    with served_process(folder, PDPP_WORKERS=str(workers), **environ) as served:
        until(lambda: all_serve(served, workers), seconds=2 * SECONDS)
        yield served
        if served.process.poll() is None:
            assert served.stop(signal.SIGTERM) == 0, served.log
            assert "Traceback" not in served.log, served.log
