"""Exports whose callers are slow: nobody else waits for them."""

from __future__ import annotations

import hashlib
import socket
import sqlite3
from collections.abc import Generator
from contextlib import ExitStack, closing
from pathlib import Path

import orjson
import pytest

from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.app.stores import open_stores
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.stored import (
    Batch,
    RecordWrite,
)
from server.tests.app.http_server.served import ServedProcess, served_process, until
from server.tests.console.household import HOME, mails

LARGE = "x" * 100_000
RECORDS = 160
EXPORT = (
    "GET /v1/owner/export HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    "Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
)


@pytest.fixture
def served(tmp_path: Path) -> Generator[ServedProcess]:
    with served_process(tmp_path, PDPP_STALLED_SECONDS="3") as made:
        write_large(made)
        yield made


def write_large(served: ServedProcess) -> None:
    """More than the sockets of a stalled export hold."""
    declared = parse_declaration(MAIL).streams["messages"]
    with open_stores(served.settings, serving=False) as stores:
        now_ns = stores.clock()
        rows = [{**row, "body": LARGE} for row in mails(now_ns, RECORDS)]
        writes = [RecordWrite(f"large-{n}", row, now_ns) for n, row in enumerate(rows)]
        stores.records.commit(Batch(HOME, declared, writes, now_ns))


def stalled(served: ServedProcess) -> socket.socket:
    """An export that was begun and is not read."""
    caller = socket.socket()
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
    caller.connect(("127.0.0.1", served.port))
    caller.sendall(EXPORT.format(port=served.port, token=served.owner_token).encode())
    assert caller.recv(100).startswith(b"HTTP/1.1 200 ")
    return caller


def is_pinned(served: ServedProcess) -> bool:
    """Whether somebody keeps the journal from being merged."""
    with closing(sqlite3.connect(served.settings.database_path)) as database:
        return bool(database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])


def test_stalled_exports_hold_up_neither_exports_nor_writers_and_are_cut(
    served: ServedProcess,
) -> None:
    with ExitStack() as held:
        callers = [held.enter_context(stalled(served)) for _ in range(2)]
        until(lambda: served.get("/v1/owner/export", served.owner_token).status_code == 200)
        until(lambda: not is_pinned(served))
        whole = served.get("/v1/owner/export", served.owner_token).content
        until(lambda: not any(is_held(served, caller) for caller in callers))
        taken = [rest_of(caller) for caller in callers]
    assert max(taken) < len(whole)
    *before, end = whole.splitlines(keepends=True)
    assert orjson.loads(end)["sha256"] == hashlib.sha256(b"".join(before)).hexdigest()
    assert orjson.loads(end)["record_count"] >= RECORDS
    assert served.stop() == 0
    assert "Traceback" not in served.log


def rest_of(caller: socket.socket) -> int:
    """How many bytes still come."""
    return sum(map(len, iter(lambda: caller.recv(2**20), b"")))


def is_held(served: ServedProcess, caller: socket.socket) -> bool:
    """Whether the server still has its end of a connection open, by the system's own table."""
    ends = f"0100007F:{served.port:04X} 0100007F:{caller.getsockname()[1]:04X} 01"
    return ends in Path("/proc/net/tcp").read_text(encoding="utf-8")
