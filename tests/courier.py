"""A real mail server without CONDSTORE for tests: Debian's courier-imap, with one mailbox.

It needs no root and no daemon: what Debian's `courier-imap` runs for a connection once its owner is
known (`imapd`) runs here for each, over the socket, as its own login program has it run; the
greeting and the password are this module's. Where the package is not installed, `.ci/courier`
unpacks it and what it needs into `.cache/courier`; without either, tests are skipped by name.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.dovecot import PASSWORD, USER
from tests.processes import started, stop

UNPACKED = Path(__file__).parents[1] / ".cache/courier"
CAN = "IMAP4rev1 UIDPLUS CHILDREN NAMESPACE SORT QUOTA IDLE"
"""What Debian's configuration of it says that it can do."""
_LINE_BYTES = 4_096


def _program(name: str) -> Path | None:
    return next((each / name for each in (Path("/"), UNPACKED) if (each / name).is_file()), None)


IMAPD, MAILDIRMAKE = _program("usr/bin/imapd"), _program("usr/bin/maildirmake.courier")
WATCHER = _program("usr/libexec/gam_server")
IS_HERE = None not in (IMAPD, MAILDIRMAKE, WATCHER)
needs_courier = pytest.mark.skipif(
    not IS_HERE, reason="needs Debian's courier-imap: .ci/courier unpacks it"
)


@dataclass
class CourierServer:
    """One that runs, and its mailbox as files.

    Shapes: `root` is what the names of its folders begin with.
    """

    folder: Path
    root: str = "INBOX."
    port: int = field(default=0, init=False)
    _listener: socket.socket = field(init=False)
    _serving: list[subprocess.Popen[bytes]] = field(
        default_factory=list[subprocess.Popen[bytes]], init=False
    )

    @property
    def place(self) -> str:
        """Where a feed finds it."""
        return f"imap://ada%40example.org@127.0.0.1:{self.port}"

    def start(self) -> None:
        """With an empty inbox."""
        subprocess.run(
            [str(MAILDIRMAKE), "Maildir"], cwd=self.folder, env=self._environment(), check=True
        )
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        """With every connection."""
        self._listener.close()
        for each in self._serving:
            stop(each, signal.SIGTERM)

    def _environment(self) -> dict[str, str]:
        libraries = sorted({str(each.parent) for each in UNPACKED.glob("**/lib/**/lib*.so.*")})
        return {
            "PATH": "/usr/bin:/bin",
            "LD_LIBRARY_PATH": ":".join(libraries),
            "GAMIN_DEBUG_SERVER": str(WATCHER),
            "GAM_CLIENT_ID": f"pdpp-{os.getpid()}",
            "PROTOCOL": "IMAP",
            "IMAP_CAPABILITY": CAN,
            "IMAP_USELOCKS": "1",
            "IMAP_KEYWORDS": "1",
            "TCPREMOTEIP": "127.0.0.1",
            "TCPREMOTEPORT": "1",
            "AUTHENTICATED": USER,
        }

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                wire, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(wire,), daemon=True).start()

    def _serve(self, wire: socket.socket) -> None:
        """Greet, hear who it is, and hand the connection over."""
        with wire, suppress(OSError, ValueError):
            wire.sendall(f"* OK [CAPABILITY {CAN}] Courier-IMAP ready.\r\n".encode())
            while line := _line(wire):
                tag, command, *words = line.split(" ")
                if command == "LOGIN":
                    if [each.strip('"') for each in words] == [USER, PASSWORD]:
                        break
                    wire.sendall(f"{tag} NO Login failed.\r\n".encode())
                elif command == "CAPABILITY":
                    wire.sendall(f"* CAPABILITY {CAN}\r\n{tag} OK done\r\n".encode())
                else:
                    wire.sendall(f"{tag} NO Error in IMAP command received by server.\r\n".encode())
            else:
                return
            process = started(
                [str(IMAPD), "Maildir"],
                cwd=self.folder,
                env=self._environment() | {"IMAPLOGINTAG": tag},
                stdin=wire,
                stdout=wire,
                stderr=subprocess.DEVNULL,
            )
            self._serving.append(process)
            process.wait()


def _line(wire: socket.socket) -> str:
    """One line and no sign more: what follows is for the next program.  Raises: ValueError."""
    line = bytearray()
    while len(line) < _LINE_BYTES and (sign := wire.recv(1)):
        if sign == b"\n":
            return line.decode("ascii").rstrip("\r")
        line += sign
    return ""


@contextmanager
def courier_server() -> Generator[CourierServer]:
    """A server with an empty inbox.

    Raises: FileNotFoundError, where the package is not here.
    """
    if not IS_HERE:
        raise FileNotFoundError("Debian's courier-imap is not here: run .ci/courier")
    folder = Path(tempfile.mkdtemp(prefix="pdpp-courier-"))
    found = CourierServer(folder)
    try:
        found.start()
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder, ignore_errors=True)
