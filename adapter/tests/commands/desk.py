"""A computer from which somebody connects, for tests of commands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import cyclopts
import pytest

from adapter.tests.rs_client.provider import FakeProvider, FakeTime
from pdpp_mcp_server.commands.connect import CommandContext, connect_command
from pdpp_mcp_server.commands.exits import run_app
from pdpp_mcp_server.commands.status import add_cached_access
from pdpp_mcp_server.rs_client.authorization_flows import PollWait
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache

SECRET = re.compile(r"pdpp_(at|rt|ac|dc|ol|is)_")
NOW_NS = 1_795_000_000_000_000_000


@dataclass
class Desk:
    """A computer from which somebody connects."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    provider: FakeProvider = field(default_factory=FakeProvider)
    time: FakeTime = field(default_factory=FakeTime)
    visited: list[str] = field(default_factory=list[str])
    now_ns: int = NOW_NS
    out: str = ""
    err: str = ""

    @property
    def cache(self) -> CredentialCache:
        return CredentialCache(self.folder / ".pdpp")

    def browse(self, address: str) -> None:
        self.visited.append(address)

    def add_commands(self, app: cyclopts.App, around: CommandContext) -> None:
        app.command(connect_command(around), name="connect")
        add_cached_access(app, around)

    def run(self, *arguments: str) -> int:
        around = CommandContext(
            default_cache=lambda: self.folder / ".pdpp",
            exchange=lambda: self.provider.exchange,
            open_browser=self.browse,
            clock=lambda: self.now_ns,
            waiting=PollWait(self.time.sleep, self.time.monotonic),
        )
        app = cyclopts.App(name="pdpp")
        self.add_commands(app, around)
        code = run_app(app, arguments)
        self.out, self.err = self.capture.readouterr()
        shown = self.err if arguments[:1] == ("token",) else self.out + self.err
        assert not SECRET.search(shown), "Only `pdpp token` may show a token, and nothing else."
        return code
