"""A command line on a household in memory."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cyclopts
import pytest

from pdpp_mcp_server.commands.exits import run_app
from personal_server.app.owner_store import OwnerStore
from personal_server.cli.admin import admin_app
from personal_server.cli.canary import canary_app
from personal_server.cli.collector import collector_app
from personal_server.cli.disclosures import disclosures_command
from personal_server.cli.export import export_command
from personal_server.cli.grant import granting_app
from personal_server.cli.owner import owner_app
from personal_server.cli.owner_notices import notices_app
from personal_server.cli.person import person_app
from personal_server.cli.subscription import subscription_app
from personal_server.delivery.callbacks import Callbacks
from server.tests.cli.import_machine import Machine
from server.tests.console.household import Household

SECRET = re.compile(r"pdpp_(at|rt|ac|dc|ol|is)_")
SHOWING = (["owner", "link"], ["admin", "add-introspection-client"], ["collector", "create"])


@dataclass
class Terminal:
    """Runs commands and keeps what they print."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch
    house: Household = field(default_factory=Household)
    is_running: bool = True
    served_at: str | None = None
    out: str = ""
    err: str = ""

    def __post_init__(self) -> None:
        self.patch.setenv("COLUMNS", "160")
        self.types(None)

    @property
    def cache(self) -> Path:
        return self.folder / ".pdpp"

    @property
    def cached(self) -> Path:
        return self.cache / "clients" / "127.0.0.1_7662.json"

    def types(self, text: str | None) -> None:
        """What stands on standard input; `None`: it is no terminal."""
        typed = io.StringIO(text or "")
        typed.isatty = lambda: text is not None  # type: ignore[method-assign]
        self.patch.setattr("sys.stdin", typed)

    def file(self, request: object) -> Path:
        path = self.folder / "request.json"
        path.write_text(json.dumps(request))
        return path

    def run(self, *arguments: str | Path) -> int:
        app = cyclopts.App(name="pdpp")
        app.command(granting_app(self._opened, lambda: self.cache))
        app.command(owner_app(self._opened, lambda: self.is_running, lambda: self.served_at))
        app.command(admin_app(self._opened))
        app.command(collector_app(self._opened, self._opened))
        app.command(canary_app(self._opened))
        app.command(person_app(self._opened, self._opened))
        app.command(subscription_app(self._opened))
        named = self.folder / "show-notice"
        callbacks = Callbacks(resolver=lambda _: ["93.184.215.14"])
        app.command(notices_app(self._opened, self._opened, lambda: callbacks, lambda: named))
        app.command(disclosures_command(self._opened), name="disclosures")
        app.command(export_command(self._opened), name="export")
        words = [str(argument) for argument in arguments]
        code = run_app(app, words)
        self.out, self.err = self.capture.readouterr()
        shown = self.err if words[:2] in SHOWING else self.out + self.err
        assert not SECRET.search(shown), "This command may show no secret."
        return code

    def json(self, *arguments: str | Path) -> Any:
        assert self.run(*arguments, "--json") == 0, self.err
        return json.loads(self.out)

    @contextmanager
    def _opened(self) -> Generator[OwnerStore]:
        yield self.house.store


@pytest.fixture
def terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    return Terminal(tmp_path, capsys, monkeypatch)


@pytest.fixture
def machine() -> Machine:
    return Machine()
