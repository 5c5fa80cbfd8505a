"""A real server of calendars and address books for tests: Radicale on a port of this machine."""

from __future__ import annotations

import base64
import http.client
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port
from tests.processes import started, stop

USER, PASSWORD = "ada@example.org", "app-password-7"
_CONFIG = """
[server]
hosts = 127.0.0.1:{port}
[auth]
type = htpasswd
htpasswd_filename = {folder}/users
htpasswd_encryption = plain
delay = 0
[storage]
filesystem_folder = {folder}/collections
[logging]
level = info
"""
_MAKE = """<?xml version="1.0"?>
<d:mkcol xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"
  xmlns:p="urn:ietf:params:xml:ns:carddav"><d:set><d:prop>
<d:resourcetype><d:collection/>{kind}</d:resourcetype><d:displayname>{name}</d:displayname>
</d:prop></d:set></d:mkcol>"""
CALENDAR, ADDRESS_BOOK = "<c:calendar/>", "<p:addressbook/>"


@dataclass
class DavServer:
    """One that runs, and its owner's own program."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}/"

    def place(self, kind: str) -> str:
        """Where a feed finds it."""
        return f"{kind}://ada%40example.org@127.0.0.1:{self.port}/"

    @property
    def log(self) -> str:
        """What it said."""
        return (self.folder / "log").read_text(errors="replace")

    def send(self, method: str, path: str, body: str = "") -> bytes:
        """A request of its owner."""
        signed = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            wire.request(method, path, body.encode(), {"Authorization": f"Basic {signed}"})
            response = wire.getresponse()
            content = response.read()
        finally:
            wire.close()
        assert response.status < 300, (method, path, response.status, content)
        return content

    def make(self, path: str, kind: str, name: str) -> None:
        """A new collection."""
        self.send("MKCOL", f"/{USER}/{path}/", _MAKE.format(kind=kind, name=name))

    def put(self, path: str, content: str) -> None:
        """A new or changed item."""
        self.send("PUT", f"/{USER}/{path}", content)

    def delete(self, path: str) -> None:
        """An item or a collection less."""
        self.send("DELETE", f"/{USER}/{path}")

    def export(self, path: str) -> bytes:
        """What its owner downloads of a collection."""
        return self.send("GET", f"/{USER}/{path}/")

    def start(self) -> None:
        """Until it answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = started(
                [sys.executable, "-m", "radicale", "--config", self.folder / "config"],
                stdout=log,
                stderr=log,
            )
        if not answers(self.port):
            raise TimeoutError(self.log)

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            stop(self.process, signal.SIGTERM)
            self.process = None


def answers(port: int, seconds: float = 60) -> bool:
    """Whether somebody listens on a port of this machine within so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        time.sleep(0.05)
    return False


def configured(folder: Path, port: int, user: str) -> Path:
    """A configuration file for one account, written into a folder."""
    (folder / "users").write_text(f"{user}:{PASSWORD}\n")
    (folder / "users").chmod(0o600)
    config = folder / "config"
    config.write_text(_CONFIG.format(folder=folder, port=port))
    return config


@contextmanager
def dav_server(folder: Path) -> Generator[DavServer]:
    """A server with one account and no collection."""
    folder.mkdir(parents=True, exist_ok=True)
    found = DavServer(folder, free_port())
    configured(folder, found.port, USER)
    found.start()
    try:
        yield found
    finally:
        found.stop()
