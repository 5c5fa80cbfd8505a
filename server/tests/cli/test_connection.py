from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pdpp_mcp_server.commands.exits import run_app
from pdpp_mcp_server.commands.main import command_line

MAIL = b"From x Mon Mar 14 06:30:00 2022\nMessage-ID: <m@example.org>\nSubject: Hi\n\nyes\n\n"


class Desk:
    """A terminal at a store with two accounts."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.capture, self.out, self.err = capture, "", ""

    def run(self, *arguments: str) -> int:
        code = run_app(command_line(), arguments)
        self.out, self.err = self.capture.readouterr()
        return code

    def listed(self) -> list[dict[str, Any]]:
        assert self.run("connection", "list", "--json") == 0
        found: list[dict[str, Any]] = json.loads(self.out)
        return found


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "Inbox").write_bytes(MAIL)
    made = Desk(capsys)
    for name in ("Home", "Work"):
        file = str(tmp_path / "Inbox")
        assert made.run("import", file, "--connection", name, "--zone", "UTC") == 0, made.err
    return made


def test_accounts_are_named_paused_and_closed_by_name_or_id(desk: Desk) -> None:
    home, work = desk.listed()
    assert (home["display_name"], home["status"], home["record_count"]) == ("Home", "active", 1)
    assert desk.run("connection", "rename", "home", "Private") == 0
    walk = [("pause", "paused"), ("resume", "active"), ("close", "revoked"), ("reopen", "active")]
    for command, status in walk:
        assert desk.run("connection", command, home["connection_id"]) == 0
        assert desk.listed()[0]["status"] == status
    assert desk.run("connection", "reopen", "Private") == 6
    assert "pause, revoke" in desk.err
    assert desk.listed()[0]["display_name"] == "Private"
    assert desk.listed()[1] == work


def test_an_unknown_name_is_answered_with_what_there_is(desk: Desk) -> None:
    assert desk.run("connection", "pause", "Nowhere") == 5
    assert "(Home)" in desk.err
    assert "(Work)" in desk.err
    assert desk.run("connection", "rename", "Work", "Home") == 0
    assert desk.run("connection", "pause", "home") == 6
    assert desk.err.count("(Home)") == 2


def test_a_grant_names_an_account_as_its_owner_does(desk: Desk, tmp_path: Path) -> None:
    grant = ["grant", "create", "--client", "x", "--source", "mail", "--stream", "messages"]
    cache = ["--yes", "--cache-root", str(tmp_path / "cache")]
    assert desk.run(*grant, "--connection", "Nowhere", *cache) == 5
    assert "(Work)" in desk.err
    assert desk.run(*grant, "--connection", "work", *cache, "--json") == 0
    assert desk.run("grant", "list", "--json") == 0
    granted = desk.out
    home, work = desk.listed()
    assert work["connection_id"] in granted
    assert home["connection_id"] not in granted


def test_erasing_asks_and_tells_what_is_gone(desk: Desk) -> None:
    assert desk.run("connection", "erase", "Work") == 64
    assert "--yes" in desk.err
    assert len(desk.listed()) == 2
    work = desk.listed()[1]["connection_id"]
    assert desk.run("connection", "erase", "Work", "--yes", "--json") == 0
    told = json.loads(desk.out)
    assert (told["connection_id"], told["deleted_count"], told["kept_backups"]) == (work, 1, [])
    assert [each["display_name"] for each in desk.listed()] == ["Home"]


def test_two_accounts_that_are_one_are_joined(desk: Desk) -> None:
    home, work = desk.listed()
    assert desk.run("connection", "merge", "Home", "Work") == 64
    assert desk.run("connection", "merge", "Home", "Home", "--yes") == 6
    assert desk.run("connection", "merge", "Home", "Work", "--yes", "--json") == 0
    done = json.loads(desk.out)
    assert (done["erased_connection_id"], done["connection_id"]) == (
        home["connection_id"],
        work["connection_id"],
    )
    assert (done["moved_count"], done["deleted_count"]) == (0, 1)
    assert [each["connection_id"] for each in desk.listed()] == [work["connection_id"]]


def test_what_was_another_account_is_taken_out(desk: Desk) -> None:
    assert desk.run("connection", "split", "Home", "--from", "Work") == 64
    assert desk.run("connection", "split", "Home", "--from", "Work", "--yes", "--json") == 0
    assert json.loads(desk.out)["deleted_count"] == 1
    assert [each["record_count"] for each in desk.listed()] == [0, 1]
