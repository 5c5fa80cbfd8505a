"""What a person reads of a command on a disk that takes nothing, or without a data directory."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from pdpp_mcp_server.commands.exits import run_app
from pdpp_mcp_server.commands.main import command_line
from personal_server.app.stores import open_stores
from personal_server.cli.store import local_acting
from personal_server.settings import Settings
from tests.browser.site import fill
from tests.small_disk import full, only_read, small_disk

pytestmark = pytest.mark.of_files("the disk is the one that the file lies on")


def test_a_user_without_a_name_acts_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    assert local_acting().user == "4000000000"


class Commands:
    """Runs commands on a data directory, and keeps what they print."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.out = self.err = ""

    def run(self, *words: object) -> int:
        self._capture.readouterr()
        code = run_app(command_line(), [str(word) for word in words])
        self.out, self.err = self._capture.readouterr()
        return code


@pytest.fixture
def commands(capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(capsys)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    with small_disk(tmp_path / "disk") as place:
        monkeypatch.setenv("PDPP_DATA_DIR", str(place / "data"))
        with open_stores(Settings(data_dir=place / "data"), serving=False) as stores:
            fill(stores.records, stores.clock())
        yield place


TAKING_NOTHING: Any = pytest.mark.parametrize("taking_nothing", [full, only_read])


@TAKING_NOTHING
def test_a_command_that_reads_says_nothing_of_the_disk(
    taking_nothing: Any, disk: Path, commands: Commands
) -> None:
    refusing: AbstractContextManager[None] = taking_nothing(disk)
    with refusing:
        assert (commands.run("connection", "list"), commands.err) == (0, "")
        assert "Home mailbox" in commands.out
        assert commands.run("doctor", "--data") == 0
        assert "40" in commands.out.split()


@TAKING_NOTHING
def test_a_command_that_writes_says_once_why_it_cannot(
    taking_nothing: Any, disk: Path, tmp_path: Path, commands: Commands
) -> None:
    statement = tmp_path / "payments.csv"
    statement.write_text("id,when\n1,2026-01-01\n")
    backup = tmp_path / "backup.tar"
    refusing: AbstractContextManager[None] = taking_nothing(disk)
    with refusing:
        for words in (["backup", backup], ["import", statement]):
            assert commands.run(*words) == 69, words
            assert commands.err.count("storage_read_only") == 1, commands.err
    assert not backup.exists()


def test_what_a_command_finds_nothing_in_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Commands
) -> None:
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "nowhere"))
    for words in (["grant", "list"], ["connection", "list"], ["feed", "list"]):
        monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / words[0]))
        assert commands.run(*words) == 0
        assert str(tmp_path / words[0]) in commands.err.replace("\n", "")


def test_a_database_of_a_newer_version_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commands: Commands
) -> None:
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "data"))
    settings = Settings(data_dir=tmp_path / "data")
    with open_stores(settings, serving=False) as stores, stores.database.write() as session:
        session.run("INSERT INTO schema_version VALUES ('999_of_tomorrow', 1)")
    for words in (["grant", "list"], ["records"], ["backup", tmp_path / "backup.tar"]):
        assert commands.run(*words) == 69
        assert commands.err.count("storage_unavailable") == 1
