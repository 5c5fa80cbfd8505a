"""What `pdpp search` finds is opened by the command that it prints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from pdpp_mcp_server.commands.exits import run_app
from pdpp_mcp_server.commands.main import command_line
from personal_server.app.stores import open_stores
from personal_server.settings import Settings
from server.tests.resource_server.journal import DIARY, LETTERS, furnished

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command over two accounts of one name; what it printed."""
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "data"))
    with open_stores(Settings(data_dir=tmp_path / "data"), serving=False) as stores:
        furnished(stores.records)
        for connection_id in (DIARY, LETTERS):
            stores.records.update_connection(
                connection_id, lambda c: replace(c, display_name="Paper · diary")
            )

    def once(*words: str) -> str:
        assert run_app(command_line(), list(words)) == 0
        printed = capsys.readouterr()
        return printed.out + printed.err

    return once


@pytest.mark.parametrize("words", ["again", "Winter"])
def test_the_command_that_opens_a_hit_works(run: Run, words: str) -> None:
    found = run("search", words)
    opened = re.search(r"pdpp (show .+)", found)
    assert opened is not None, found
    assert words in run(*shlex.split(opened[1]))
