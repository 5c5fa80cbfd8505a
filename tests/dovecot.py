"""A real mail server for tests: Debian's dovecot on a port of this machine, with one mailbox.

`.ci/run` installs `dovecot-imapd`; where it is missing, or this user may not start it, tests that
need it are skipped by name.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.processes import started, stop

PROGRAM = shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin")  # noqa: TID251
IS_HERE = PROGRAM is not None and os.geteuid() == 0
needs_dovecot = pytest.mark.skipif(
    not IS_HERE, reason="needs Debian's dovecot-imapd, started by root"
)
USER, PASSWORD = "ada@example.org", "app-password-7"
_CONFIG = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
{tls}
disable_plaintext_auth = no
auth_failure_delay = 0
auth_verbose = yes
mail_location = maildir:{folder}/mail:LAYOUT=fs
mail_debug = no
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
{capability}
auth_mechanisms = {mechanisms}
{token_passdb}
passdb {{
  driver = static
  mechanisms = plain login
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/home
}}
namespace inbox {{
  inbox = yes
  separator = /
}}
"""
_TOKENS = """
passdb {{
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = {folder}/oauth2.conf
}}
"""
_INTROSPECTION = """
introspection_url = {url}
introspection_mode = post
active_attribute = active
active_value = true
username_attribute = {attribute}
username_format = {called}
"""


@dataclass(frozen=True)
class TokenAsks:
    """How a mail server lets tokens in: whom it asks about them, and by which mechanism.

    Shapes: `called` is what the answer calls the owner of the mailbox (`%u` as they sign in), in
        the member `attribute`.
    """

    url: str
    mechanism: str = "xoauth2"
    attribute: str = "username"
    called: str = "%u"


@dataclass
class MailServer:
    """One that runs, and its mailbox as files.

    Shapes: `root` is what the names of its folders begin with.
    """

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    root: str = ""

    @property
    def place(self) -> str:
        """Where a feed finds it."""
        return f"imap://ada%40example.org@127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it said."""
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Until it answers."""
        assert PROGRAM is not None
        self.process = started(
            [PROGRAM, "-F", "-c", self.folder / "dovecot.conf"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as wire:
                if wire.recv(4) == b"* OK":
                    return
            time.sleep(0.05)
        raise TimeoutError(self.log)

    def stop(self) -> None:
        """With every connection."""
        if self.process is not None:
            stop(self.process, signal.SIGTERM)
            self.process = None


@contextmanager
def mail_server(
    certificate: Path | None = None, tokens: TokenAsks | None = None, can: str | None = None
) -> Generator[MailServer]:
    """A server with an empty inbox; with a certificate and its key in one file it begins TLS.

    Shapes: `can` is what it says that it can do (IMAP's CAPABILITY), else all that it can.
    """
    folder = Path(tempfile.mkdtemp(prefix="pdpp-dovecot-"))
    nobody = pwd.getpwnam("nobody")
    found = MailServer(folder, free_port())
    try:
        folder.chmod(0o755)
        for name in ("mail", "home", "run", "state"):
            (folder / name).mkdir()
        for name in ("mail", "home"):
            os.chown(folder / name, nobody.pw_uid, nobody.pw_gid)
        if tokens is not None:
            (folder / "oauth2.conf").write_text(
                _INTROSPECTION.format(
                    url=tokens.url, attribute=tokens.attribute, called=tokens.called
                )
            )
        (folder / "dovecot.conf").write_text(
            _CONFIG.format(
                mechanisms="plain" if tokens is None else f"plain {tokens.mechanism}",
                token_passdb="" if tokens is None else _TOKENS.format(folder=folder),
                capability="" if can is None else f"imap_capability = {can}",
                folder=folder,
                tls=_tls(certificate),
                port=found.port,
                password=PASSWORD,
                uid=nobody.pw_uid,
                gid=nobody.pw_gid,
            )
        )
        found.start()
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _tls(certificate: Path | None) -> str:
    if certificate is None:
        return "ssl = no"
    return f"ssl = yes\nssl_cert = <{certificate}\nssl_key = <{certificate}"
