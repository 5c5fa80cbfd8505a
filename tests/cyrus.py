"""A real JMAP server for tests: Debian's Cyrus, with any number of accounts of one password.

It needs no root: `.ci/cyrus` unpacks the packages into `.cache/cyrus`, and its programs run as an
ordinary user, on loopback; who signs in is told by this module, in the place of `saslauthd`. Where
they cannot be had, tests are skipped by name. It speaks IMAP beside, for the account's owner.
"""

from __future__ import annotations

import getpass
import imaplib
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.dovecot import PASSWORD
from tests.ports import free_port
from tests.processes import started, stop

UNPACKED = Path(__file__).parents[1] / ".cache/cyrus"
PROGRAMS = UNPACKED / "usr/lib/cyrus/bin"
LIBRARIES = ":".join(sorted({str(each.parent) for each in UNPACKED.glob("**/lib/**/lib*.so.*")}))


def _is_here() -> bool:
    """Whether its programs find all that they need."""
    if not (PROGRAMS / "httpd").is_file():
        return False
    found = subprocess.run(
        ["ldd", str(PROGRAMS / "httpd"), str(PROGRAMS / "imapd")],
        env={"LD_LIBRARY_PATH": LIBRARIES, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    return found.returncode == 0 and "not found" not in found.stdout


needs_cyrus = pytest.mark.skipif(
    not _is_here(), reason="needs Debian's Cyrus: .ci/cyrus unpacks it"
)
_IMAPD = """
configdirectory: {folder}/conf
proc_path: {folder}/run/proc
mboxname_lockpath: {folder}/run/lock
defaultpartition: default
partition-default: {folder}/spool
sievedir: {folder}/conf/sieve
lmtpsocket: {folder}/run/lmtp
idlesocket: {folder}/run/idle
notifysocket: {folder}/run/notify
altnamespace: yes
unixhierarchysep: yes
virtdomains: userid
defaultdomain: example.org
httpmodules: jmap
conversations: yes
conversations_max_thread: 100
expunge_mode: delayed
delete_mode: immediate
duplicatesuppression: no
allowplaintext: yes
sasl_pwcheck_method: saslauthd
sasl_saslauthd_path: {folder}/run/mux
sasl_mech_list: PLAIN LOGIN
cyrus_user: {user}
autocreate_quota: 0
autocreate_inbox_folders: Sent|Drafts|Junk|Trash|Archive
autocreate_post: 1
xlist-sent: Sent
xlist-drafts: Drafts
xlist-junk: Junk
xlist-trash: Trash
xlist-archive: Archive
servername: localhost
"""
_SERVICES = """
START {{
  recover cmd="{programs}/ctl_cyrusdb -C {folder}/imapd.conf -r"
}}
SERVICES {{
  imap cmd="{programs}/imapd -C {folder}/imapd.conf" listen="127.0.0.1:{imap}" prefork=0
  http cmd="{programs}/httpd -C {folder}/imapd.conf" listen="127.0.0.1:{http}" prefork=0
}}
EVENTS {{
}}
"""
_LENGTH = struct.Struct("!H")


@dataclass
class CyrusServer:
    """One that runs.

    Shapes: `sign_ins` are the passwords that were tried; `root` is what the names of its folders
        begin with.
    """

    folder: Path
    http: int = field(default_factory=free_port)
    imap: int = field(default_factory=free_port)
    sign_ins: list[str] = field(default_factory=list[str])
    _listener: socket.socket = field(init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    root: ClassVar[str] = ""

    @property
    def port(self) -> int:
        """Where it speaks IMAP."""
        return self.imap

    def place(self, user: str) -> str:
        """Where a feed finds an account."""
        return f"jmap://{user}@127.0.0.1:{self.http}/"

    @contextmanager
    def signed_in(self, user: str) -> Generator[imaplib.IMAP4]:
        """An account's owner's own mail program; the account is made with its first sign-in."""
        with imaplib.IMAP4("127.0.0.1", self.imap) as client:
            client.login(user, PASSWORD)
            yield client

    def start(self) -> None:
        """Until it answers."""
        user = "nobody" if os.geteuid() == 0 else getpass.getuser()
        words = {"folder": self.folder, "user": user, "programs": PROGRAMS}
        (self.folder / "imapd.conf").write_text(_IMAPD.format(**words))
        (self.folder / "cyrus.conf").write_text(
            _SERVICES.format(**words, imap=self.imap, http=self.http)
        )
        for name in ("conf", "spool", "run/lock", "run/proc"):
            (self.folder / name).mkdir(parents=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / "run/mux"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        if os.geteuid() == 0:
            for each in (self.folder, *self.folder.rglob("*")):
                shutil.chown(each, user)
        as_other: dict[str, Any] = {"user": user, "group": "nogroup", "extra_groups": ()}
        if os.geteuid() != 0:
            as_other = {}
        self._process = started(
            [
                PROGRAMS / "master",
                *("-C", self.folder / "imapd.conf", "-M", self.folder / "cyrus.conf"),
                *("-p", self.folder / "run/master.pid"),
            ],
            env={"LD_LIBRARY_PATH": LIBRARIES, "PATH": "/usr/bin:/bin", "CYRUS_USER": user},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **as_other,
        )
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.imap), 1) as wire:
                if wire.recv(4) == b"* OK":
                    return
            time.sleep(0.05)
        raise TimeoutError(str(self.folder))

    def stop(self) -> None:
        """With every connection."""
        self._listener.close()
        if self._process is not None:
            stop(self._process, signal.SIGTERM)

    def _accept(self) -> None:
        """Say who may sign in, as `saslauthd` does: four counted words, and a counted answer."""
        with suppress(OSError):
            while True:
                wire, _ = self._listener.accept()
                with wire:
                    stream = wire.makefile("rb")
                    words = [stream.read(_LENGTH.unpack(stream.read(2))[0]) for _ in range(4)]
                    self.sign_ins.append(words[1].decode())
                    answer = b"OK" if words[1].decode() == PASSWORD else b"NO"
                    wire.sendall(_LENGTH.pack(len(answer)) + answer)


@contextmanager
def cyrus_server() -> Generator[CyrusServer]:
    """A server without accounts."""
    # it has each edit written through to the disk, of which a test wants nothing
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="pdpp-cyrus-", dir=shared))
    folder.chmod(0o755)
    found = CyrusServer(folder)
    try:
        found.start()
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder, ignore_errors=True)
