"""Records at the terminal: a real store, a real server in this process, a real grant."""

from __future__ import annotations

import json
import shlex
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pdpp_mcp_server.commands.connect import CommandContext
from pdpp_mcp_server.commands.exits import run_app
from pdpp_mcp_server.commands.main import command_line
from pdpp_mcp_server.commands.read import read_app
from personal_server.app.server import open_server
from personal_server.cli.server_settings import settings_or_exit
from server.tests.storage.released.directory import released_names, unpack

MAIL = "".join(
    f"From x Mon Mar 14 06:30:0{n} 2022\nMessage-ID: <m{n}@example.org>\n"
    f"Date: Mon, 1{n} Mar 2022 07:30:00 +0000\nFrom: {who} <{who.lower()}@example.org>\n"
    f"To: Ada <ada@example.org>\nSubject: {subject}\n\n{text}\n\n"
    for n, who, subject, text in (
        (1, "Ben", "The rooms", "The landlord came about the lease."),
        (2, "Cleo", "Boats", "A boat \x1b[31mlies at the pier. " + "Far out. " * 40),
        (3, "Ben", "More rooms", "Nothing new about them."),
    )
)
FIELDS = "id,sent_at,subject,from_name,from_address,body"


@dataclass
class Desk:
    """A terminal on the machine of the owner, who granted a slice to it."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""
    app: Any = None

    def own(self, *arguments: str) -> int:
        return self._ended(run_app(command_line(), arguments))

    def read(self, *arguments: str) -> int:
        around = CommandContext(
            default_cache=lambda: self.folder / ".pdpp",
            http=lambda: httpx2.AsyncClient(transport=httpx2.ASGITransport(app=self.app)),
        )
        return self._ended(run_app(read_app(around), arguments))

    def _ended(self, code: int) -> int:
        self.out, self.err = self.capture.readouterr()
        return code

    @property
    def printed(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Generator[Desk, None, None]:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PDPP_BIND", "127.0.0.1:7811")
    (tmp_path / "Inbox").write_text(MAIL)
    made = Desk(tmp_path, capsys)
    assert made.own("import", str(tmp_path / "Inbox"), "--zone", "UTC") == 0, made.err
    granted = ["--source", "mail", "--stream", f"messages:{FIELDS}", "--since", "2022-03-12"]
    cache = ["--cache-root", str(tmp_path / ".pdpp"), "--yes"]
    assert made.own("grant", "create", "--client", "desk", *granted, *cache) == 0, made.err
    with open_server(settings_or_exit()) as server:
        made.app = server.app
        yield made


def test_a_grant_is_read_as_an_app_would_read_it(desk: Desk) -> None:
    assert desk.read("schema") == 0
    assert desk.out.splitlines()[1].split()[:3] == ["messages", "mail", "2"]
    assert desk.read("schema", "messages") == 0
    assert ["labels", "mail", "not", "granted"] in [line.split() for line in desk.out.splitlines()]
    assert desk.read("query", "messages", "--fields", "subject", "--jsonl") == 0
    rows = [json.loads(line) for line in desk.out.splitlines()]
    assert [row["data"]["subject"] for row in rows] == ["More rooms", "Boats"]
    assert desk.read("query", "messages", "--where", "from_name=Cleo", "--json") == 0
    assert [row["data"]["subject"] for row in desk.printed["data"]] == ["Boats"]
    assert desk.read("search", "pier", "--json") == 0
    (hit,) = desk.printed["data"]
    assert desk.read("fetch", "messages", hit["id"]) == 0
    assert "Far out. Far out." in desk.out
    assert "\x1b" not in desk.out
    window = ["window", "messages", hit["id"], "body", "--around", "pier", "--chars", "4"]
    assert desk.read(*window) == 0
    assert desk.out.strip() == "pier"
    assert "--at" in desk.err
    assert desk.read("aggregate", "messages", "--by", "from_address") == 0
    assert ["Cleo", "1"] in [line.split() for line in desk.out.splitlines()]


def test_columns_that_are_asked_for_are_all_shown(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    fields = ["subject", "from_name", "from_address", "body"]
    assert desk.read("query", "messages", "--fields", ",".join(fields)) == 0
    assert set(fields) <= set(desk.out.splitlines()[0].split())
    assert "--fields" not in desk.err


def test_what_there_is_more_of_is_told_and_had(desk: Desk) -> None:
    assert desk.read("query", "messages", "--limit", "1") == 0
    assert len(desk.out.splitlines()) == 2
    assert "--all" in desk.err
    assert desk.read("query", "messages", "--limit", "1", "--all", "--jsonl") == 0
    assert len(desk.out.splitlines()) == 2
    assert "--all" not in desk.err


def test_an_empty_answer_says_why(desk: Desk) -> None:
    assert desk.read("search", "zeppelins") == 0
    assert not desk.out.strip()
    assert desk.err.strip()
    assert desk.read("query", "messages", "--until", "2022-03-11") == 0
    assert desk.err.strip()
    assert desk.read("search", "peir") == 0
    assert "pier (1)" in desk.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["query", "attachments"], 4, "grant_stream_not_allowed"),
        (["query", "messages", "--fields", "labels"], 4, "field_not_granted"),
        (["query", "messages", "--where", "subject"], 64, "field>=value"),
        (["query", "messages", "--where", "subject[in]>=a"], 64, "field>=value"),
        (["fetch", "messages", "nothing"], 5, "not_found"),
        (["search", "x", "--mode", "meaning"], 64, "auto, words"),
        (["schema", "--cache-root", "elsewhere"], 78, "pdpp connect"),
    ],
)
def test_a_refusal_is_the_server_s_own_with_what_to_do(
    desk: Desk, arguments: list[str], code: int, words: str
) -> None:
    assert desk.read(*arguments) == code
    assert words in desk.err
    assert not desk.out


def test_the_owner_reads_everything_without_a_grant_and_without_a_line(desk: Desk) -> None:
    assert desk.own("records") == 0
    assert ["E-mail", "messages", "3"] in [line.split()[:3] for line in desk.out.splitlines()]
    assert desk.own("records", "messages", "--jsonl") == 0
    ids = [json.loads(line)["id"] for line in desk.out.splitlines()]
    assert len(ids) == 3
    assert desk.own("search", "landlord", "--json") == 0
    assert [hit["id"] for hit in desk.printed["data"]] == ids[-1:]
    assert desk.own("show", "messages", ids[-1], "--fields", "to") == 0
    assert "ada@example.org" in desk.out
    assert desk.own("disclosures", "--json") == 0
    assert desk.printed == []


@pytest.mark.parametrize("command", [["records"], ["search", "landlord"]])
def test_where_nothing_is_kept_the_command_says_where_it_looked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
) -> None:
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("COLUMNS", "300")
    assert run_app(command_line(), command) == 0
    assert str(tmp_path / "elsewhere") in capsys.readouterr().err


def test_a_search_before_the_index_is_made_anew_says_so_and_claims_no_absence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After an upgrade, until a server ran: the index of an older version knows other words."""
    monkeypatch.setenv("PDPP_DATA_DIR", str(unpack(released_names()[0], tmp_path)))
    assert run_app(command_line(), ["search", "zeppelins", "--json"]) == 0
    meta = json.loads(capsys.readouterr().out)["meta"]
    pending = meta["recall"]["pending_index_count"]
    assert pending > 0
    assert "absent" not in meta["relaxed"]
    assert run_app(command_line(), ["search", "zeppelins"]) == 0
    told = capsys.readouterr().err
    assert f": {pending}." in told
    assert "pdpp serve" in told


CHAT = """\
[13/03/22, 21:05:00] Ben: The boat is at the pier
[13/03/22, 21:06:00] Cleo: I like boats
"""


@pytest.fixture
def two(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Beside the mail a chat: both have `messages`; their owner lives in Los Angeles."""
    monkeypatch.setenv("PDPP_TIME_ZONE", "America/Los_Angeles")
    (desk.folder / "WhatsApp Chat with Ben.txt").write_text(CHAT)
    chat = str(desk.folder / "WhatsApp Chat with Ben.txt")
    assert desk.own("import", chat, "--zone", "America/Los_Angeles") == 0, desk.err
    return desk


def test_what_accounts_contain_is_listed_with_figures_and_opens(two: Desk) -> None:
    assert two.own("records") == 0
    rows = [line.split()[:5] for line in two.out.splitlines()]
    assert ["E-mail", "messages", "3", "2022-03-11", "2022-03-13"] in rows
    assert not any("attachments" in row for row in rows)  # declared, and empty
    assert two.own("records", "mail") == 0
    assert two.out.splitlines()[1:] == [line for line in two.out.splitlines() if "E-mail" in line]
    assert two.own("records", "E-mail/messages", "--jsonl") == 0
    assert len(two.out.splitlines()) == 3


def test_a_stream_of_several_accounts_is_refused_with_the_commands_that_work(two: Desk) -> None:
    assert two.own("records", "messages") == 6
    assert "ambiguous_account" in two.err
    assert "records E-mail/messages" in two.err
    assert two.own("records", "messages", "--connection", "whatsapp", "--json") == 0
    assert len(two.printed["data"]) == 2
    assert two.own("records", "nowhere/messages") == 5
    assert "unknown_account" in two.err


def test_what_a_search_prints_opens_whatever_account_it_is_of(two: Desk) -> None:
    assert two.own("search", "pier") == 0
    headings = [line for line in two.out.splitlines() if "messages" in line and "·" in line]
    assert len(headings) == 2
    for heading in headings:
        stream, key = heading.split(" · ")[-1].split()
        assert two.own("show", stream, key) == 0, two.err
        assert "pier" in two.out
    assert two.own("show", "messages", "nothing") == 5
    assert "not_found" in two.err


def test_a_hit_says_its_text_once_and_the_owner_s_time(two: Desk) -> None:
    assert two.own("search", "pier", "--connection", "whatsapp") == 0
    heading, text = two.out.splitlines()
    assert heading.startswith("Sun 2022-03-13 21:05 · Ben · ")
    assert text.strip() == "The boat is at the pier"


def test_a_day_is_the_owner_s(two: Desk) -> None:
    day = ["--since", "2022-03-13", "--until", "2022-03-14", "--connection", "whatsapp"]
    assert two.own("records", "messages", *day, "--jsonl") == 0
    assert len(two.out.splitlines()) == 2  # in UTC it was the day after


def test_a_hit_names_its_account_where_several_have_the_record(desk: Desk) -> None:
    again = ["--connection", "Work mail", "--zone", "UTC"]
    assert desk.own("import", str(desk.folder / "Inbox"), *again) == 0, desk.err
    assert desk.own("search", "landlord") == 0
    headings = [line for line in desk.out.splitlines() if "/messages" in line]
    assert len(headings) == 2
    commands = [shlex.split(heading.split(" · ")[-1]) for heading in headings]
    for command in commands:
        assert desk.own("show", *command) == 0, desk.err
        assert "landlord" in desk.out
    assert desk.own("show", commands[0][1]) == 6
    assert "ambiguous_account" in desk.err
    assert "'Work mail/messages'" in desk.err


def test_names_as_pages_show_them_are_taken(two: Desk) -> None:
    assert two.own("records", "--connection", "E-mail", "--jsonl") == 0
    (row,) = [json.loads(line) for line in two.out.splitlines()]
    assert row["on pages"] != row["stream"]
    for name in ("E-mail/MESSAGES", f"mail/{row['on pages']}"):
        assert two.own("records", name, "--jsonl") == 0, two.err
        assert len(two.out.splitlines()) == 3
    assert two.own("records", "mail/nothing") == 5
    assert "not_found" in two.err
    found = ["--stream", "mail/messages", "--json"]
    assert two.own("search", "the", "landlord", *found) == 0
    (hit,) = two.printed["data"]
    assert two.own("show", hit["id"]) == 0
    assert "landlord" in two.out
    assert (
        two.own("search", "x", "--stream", "mail/messages", "--stream", "whatsapp/messages") == 64
    )
    assert two.own("search") == 64


def test_without_a_zone_a_time_is_told_in_utc(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PDPP_TIME_ZONE", "UTC")
    assert desk.own("records", "messages", "--limit", "1") == 0
    assert "Sun 2022-03-13 07:30 UTC" in desk.out
    assert desk.own("search", "landlord") == 0
    assert desk.out.startswith("Fri 2022-03-11 07:30 UTC · Ben · ")
