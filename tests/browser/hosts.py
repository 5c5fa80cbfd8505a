"""Claude Code and Codex, as npm installs them, connect to a server that has no internet.

`python -m tests.browser.hosts FOLDER`, where `npm install @anthropic-ai/claude-code @openai/codex`
ran in the folder; needs Chromium and a Linux that gives its users a network of their own.  Server,
browser and hosts share a network in which there is nothing else; then `pdpp doctor` says the same.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from personal_server.console.consent_view import CLAIMED
from personal_server.storage.authorization_rows import ClientRow, RequestRow
from tests.browser.agent import allow_home_mailbox
from tests.browser.chromium import chromium
from tests.browser.site import Owner, Site, site

INSIDE = "--inside"
SECONDS = 60
_ADDRESS = re.compile(rb"http://\S+/oauth/authorize\?[^\s\x1b]+")


@dataclass(frozen=True, slots=True)
class Shown:
    """A host: its command, what connects it, and what its consent page says of it."""

    name: str
    command: str
    add: str
    login: str
    then: str
    connected: str
    says: tuple[str, ...]


HOSTS = (
    Shown(
        "Claude Code",
        "claude",
        "mcp add --transport http records {url}",
        "mcp login records --no-browser",
        "mcp list",
        "Connected",
        ("claude.ai",),
    ),
    Shown(
        "Codex",
        "codex",
        "-c mcp_servers.records.url={url} mcp list",
        "-c mcp_servers.records.url={url} mcp login records --no-browser",
        "-c mcp_servers.records.url={url} mcp list",
        "OAuth",
        ("chatgpt.com",),
    ),
)


@dataclass
class Terminal:
    """A program at a terminal of its own; what it printed is read as it comes."""

    process: subprocess.Popen[bytes]
    descriptor: int
    printed: bytearray = field(default_factory=bytearray)
    more: threading.Condition = field(default_factory=threading.Condition)

    @classmethod
    def start(cls, command: list[str], environment: Mapping[str, str]) -> Terminal:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=dict(environment)
        )
        os.close(theirs)
        made = cls(process, ours)
        threading.Thread(target=made._read, daemon=True).start()
        return made

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # how a terminal ends whose program has ended
            while chunk := os.read(self.descriptor, 65_536):
                with self.more:
                    self.printed += chunk
                    self.more.notify_all()

    def address(self) -> str:
        """The address it wants opened."""
        with self.more:
            self.more.wait_for(lambda: _ADDRESS.search(self.printed), SECONDS)
            found = _ADDRESS.search(self.printed)
        assert found is not None, self.printed.decode(errors="replace")
        return found.group().decode()

    def end(self) -> int:
        return self.process.wait(SECONDS)


def connect(host: Shown, folder: Path, home: Path, owner: Owner) -> None:
    """From nothing to a token, by the host's own commands."""
    url = f"{owner.site.origin}/mcp"
    inherited = os.environ  # noqa: TID251 - what a terminal hands on
    environment = {**inherited, "HOME": str(home), "CODEX_HOME": str(home), "TERM": "dumb"}
    program = str(folder / "node_modules" / ".bin" / host.command)

    def run(words: str) -> str:
        command = [program, *shlex.split(words.format(url=url))]
        done = subprocess.run(
            command,
            env=environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return done.stdout

    version = subprocess.run(
        [program, "--version"], env=environment, capture_output=True, text=True, check=True
    )
    run(host.add)
    os.chdir(home)
    terminal = Terminal.start([program, *shlex.split(host.login.format(url=url))], environment)
    address = terminal.address()
    allow_home_mailbox(owner, address, CLAIMED, host.name, *host.says)
    assert terminal.end() == 0, terminal.printed.decode(errors="replace")
    listed = run(host.then)
    assert host.connected in listed, listed
    print(f"{host.name} {version.stdout.split()[0 if host.command == 'claude' else -1]}: connected")


def agrees(running: Site) -> None:
    """The doctor finds the same hosts well, and leaves nothing behind."""
    before = state(running)
    command = [sys.executable, "-m", "personal_server.cli", "doctor", running.origin]
    done = subprocess.run(
        [*command, "--no-authorize"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    said = done.stdout.splitlines()
    for host in HOSTS:
        (line,) = [line for line in said if line.lstrip("✓✗!– ").startswith(f"{host.name}:")]
        print(f"pdpp doctor: {line}")
        assert line.startswith("✓"), done.stdout
    assert state(running) == before
    print(f"pdpp doctor left {len(before[0])} clients and {before[1]} requests, as it found them")


def state(running: Site) -> tuple[set[str], int]:
    """Who is known, and how many requests there are."""
    with running.server.stores.authorization.read() as reader:
        return {row.client_id for row in reader.rows(ClientRow)}, reader.count(RequestRow)


def main() -> None:
    """Outside, make the network; inside, connect."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(INSIDE, action="store_true")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if not options.inside:
        again = [sys.executable, "-m", "tests.browser.hosts", INSIDE, str(folder)]
        script = f"ip link set lo up && exec {shlex.join(again)}"
        command = ["unshare", "--map-root-user", "--net", "sh", "-c", script]
        os.execvp(command[0], command)  # noqa: S606 - no shell between
    with tempfile.TemporaryDirectory() as made, site(Path(made)) as running, chromium() as driver:
        agrees(running)
        owner = Owner(driver, running)
        owner.sign_in()
        for host in HOSTS:
            home = Path(made) / host.command
            home.mkdir()
            connect(host, folder, home, owner)
        agrees(running)


if __name__ == "__main__":
    main()
