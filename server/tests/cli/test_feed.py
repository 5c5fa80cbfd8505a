"""`pdpp feed` as its owner types it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cyclopts
import pytest

from pdpp_mcp_server.commands.exits import run_app
from personal_server.app.feed_secrets import FILE
from personal_server.cli.feed import feed
from server.tests.app.test_feeding import an_mbox
from tests.oauth_provider import USER_CODE, oauth_provider


@dataclass
class Commands:
    """The commands on a data directory of the test."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch
    out: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.patch.setenv("PDPP_DATA_DIR", str(self.folder / "data"))
        self.patch.setenv("PDPP_TIME_ZONE", "UTC")
        self.types("")

    def types(self, text: str) -> None:
        self.patch.setattr("sys.stdin", io.StringIO(text))

    def run(self, *arguments: str | Path) -> int:
        app = cyclopts.App(name="pdpp")
        app.command(feed)
        code = run_app(app, ["feed", *map(str, arguments)])
        self.out, err = self.capture.readouterr()
        self.out += err
        return code

    def json(self, *arguments: str | Path) -> Any:
        assert self.run(*arguments, "--json") in (0, 65)
        return json.loads(self.out)


@pytest.fixture
def commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Commands:
    return Commands(tmp_path, capsys, monkeypatch)


def states(commands: Commands) -> dict[str, str]:
    return {each["name"]: each["state"] for each in commands.json("list")}


def test_a_folder_is_added_run_checked_paused_resumed_and_removed(
    commands: Commands, tmp_path: Path
) -> None:
    folder = tmp_path / "Downloads"
    folder.mkdir()
    (folder / "mail.mbox").write_bytes(an_mbox(range(3)))
    assert commands.json("add", folder, "--every", "5m")["every_seconds"] == 300
    ran = commands.json("run", "Downloads")
    assert (ran["result"]["records_new"], ran["rejected"]) == (3, {})
    assert commands.json("check", "Downloads") == {"items": 1, "records": 3, "differences": []}
    assert commands.run("pause", "Downloads") == 0
    assert states(commands) == {"Downloads": "paused"}
    assert commands.run("run", "Downloads") != 0
    assert commands.run("resume", "Downloads") == 0
    assert commands.run("resume", "Downloads") != 0
    assert commands.run("list") == 0
    assert str(folder) in commands.out
    kept, (known,) = tmp_path / "data" / "feeds", commands.json("list")
    for name in (f"{known['feed_id']}.names", f"{known['feed_id']}.part", "fee_other.part"):
        (kept / name).touch()
    assert commands.run("remove", "Downloads") == 0
    assert [each.name for each in kept.iterdir()] == ["fee_other.part"]
    assert states(commands) == {}
    assert commands.run("remove", "Downloads") == 5


def test_a_check_lists_what_the_records_lack(commands: Commands, tmp_path: Path) -> None:
    folder = tmp_path / "Downloads"
    folder.mkdir()
    assert commands.run("add", folder) == 0
    (folder / "mail.mbox").write_bytes(an_mbox(range(3)))
    [missing] = commands.json("check", "Downloads")["differences"]
    assert missing == {"item": "mail.mbox", "reason": "new", "code": None}


@pytest.mark.parametrize("options", [("--every", "1s"), ("--every", "x"), ("--layout", "heap")])
def test_what_no_feed_can_be_is_refused(
    commands: Commands, tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "Downloads").mkdir()
    assert commands.run("add", tmp_path / "Downloads", *options) == 64


def test_deletions_are_followed_of_notes_alone(commands: Commands, tmp_path: Path) -> None:
    downloads, vault = tmp_path / "Downloads", tmp_path / "Vault"
    for each in (downloads, vault / ".obsidian"):
        each.mkdir(parents=True)
    assert commands.run("add", downloads, "--deletions", "follow") != 0
    assert commands.run("add", vault, "--deletions", "always") != 0
    assert commands.json("add", downloads)["deletions"] == "keep"
    assert commands.json("add", vault, "--deletions", "follow")["deletions"] == "follow"


def test_the_data_of_the_server_and_what_is_no_folder_are_not_watched(
    commands: Commands, tmp_path: Path
) -> None:
    for place in (tmp_path, tmp_path / "data", tmp_path / "nowhere"):
        assert commands.run("add", place) == 64


def test_a_folder_is_watched_once(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "Downloads").mkdir()
    assert commands.run("add", tmp_path / "Downloads") == 0
    assert commands.run("add", tmp_path / "Downloads", "--name", "again") != 0


def test_the_password_of_a_mailbox_is_read_and_shown_nowhere(
    commands: Commands, tmp_path: Path
) -> None:
    adds = ("add-mailbox", "ada@example.org", "--host", "imap.example.org")
    assert commands.run(*adds) == 64  # nobody gave one
    commands.types("open sesame 42\n")
    assert commands.run(*adds) == 0
    assert "sesame" not in commands.out
    (shown,) = commands.json("list")
    assert shown["place"] == "imaps://ada%40example.org@imap.example.org"
    kept = tmp_path / "data" / FILE
    sealed = kept.read_bytes()
    commands.types("another\n")
    assert commands.run("password", "ada@example.org") == 0
    assert shown["place"] in commands.out
    assert kept.read_bytes() != sealed
    assert commands.run("remove", "ada@example.org") == 0
    assert kept.read_bytes() == b"{}"


def test_a_mailbox_is_signed_in_to_at_its_provider(commands: Commands, tmp_path: Path) -> None:
    with oauth_provider("ada") as provider:
        provider.renewable_seconds = 604_799
        adds = ("add-mailbox", "ada@example.org", "--host", "imap.example.org")
        asks = ("--oauth", provider.address, "--scope", "mail")
        assert commands.run(*adds, *asks) == 64  # without a client
        commands.types("a password\n")
        for alone in (("--client-id", "c"), ("--client-secret",), ("--browser",)):
            assert commands.run(*adds, *alone) == 64  # without a provider
        assert not (tmp_path / "data" / FILE).exists()
        assert commands.run(*adds, "--oauth", "http://auth.example.org", "--client-id", "c") == 64
        assert commands.run(*adds, *asks, "--client-id", "c") == 0
        assert USER_CODE in commands.out
        assert "access-1" not in commands.out
        (shown,) = commands.json("list")
        assert shown["sign_in_ends"]
        assert shown["place"] == "imaps://ada%40example.org@imap.example.org"
        sealed = (tmp_path / "data" / FILE).read_bytes()
        assert commands.run("sign-in", "ada@example.org") == 0
        assert provider.asked == {"client_id": "c", "scope": "mail"}
        assert (tmp_path / "data" / FILE).read_bytes() != sealed
        sealed = (tmp_path / "data" / FILE).read_bytes()
        commands.types("a password\n")
        assert commands.run("password", "ada@example.org") != 0
        assert (tmp_path / "data" / FILE).read_bytes() == sealed
        # the client goes with what is kept, as it does with a restore
        (tmp_path / "data" / FILE).unlink()
        assert commands.run("password", "ada@example.org") != 0
        assert commands.run("sign-in", "ada@example.org") == 64
        assert "pdpp feed password" not in commands.out  # which would be refused
        assert f"--oauth {provider.address}" in commands.out
        assert commands.run("sign-in", "ada@example.org", "--client-id", "d") == 64
        assert commands.run("sign-in", "ada@example.org", *asks, "--client-id", "d") == 0
        assert provider.asked == {"client_id": "d", "scope": "mail"}
        assert commands.json("list")[0]["sign_in_ends"]


@pytest.mark.parametrize(
    "typed",
    [
        ("add-mailbox", "ada@example.org", "--host", "imap.example.org", "--port", "99999"),
        ("add-mailbox", "ada@example.org", "--host", "imap.example.org/inbox"),
        ("add-mailbox", "ada@example.org", "--host", "imap://[x"),
        ("add-calendar", "http://dav.example.org/", "--user", "ada"),
        ("add-calendar", "https://[x/", "--user", "ada"),
        ("add-calendar", "dav.example.org/?work", "--user", "ada"),
        ("add-contacts", "ftp://dav.example.org/", "--user", "ada"),
        ("add-contacts", "dav.example.org", "--user", "ada", "--every", "1s"),
    ],
)
def test_an_address_that_cannot_be_asked_is_refused_before_a_password_is_read(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, typed: tuple[str, ...]
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert commands.run(*typed) == 64


def test_calendars_and_contacts_of_one_user_are_two_feeds(commands: Commands) -> None:
    for command in ("add-calendar", "add-contacts"):
        commands.types("open sesame\n")
        assert commands.run(command, "dav.example.org", "--user", "ada") == 0
    assert states(commands).keys() == {"ada calendars", "ada contacts"}


@pytest.mark.parametrize(
    ("once", "again"),
    [
        (
            ("add-mailbox", "ada@example.org", "--host", "imap.example.org"),
            ("add-mailbox", "ada@example.org", "--host", "IMAP.example.org", "--port", "993"),
        ),
        (
            ("add-calendar", "dav.example.org", "--user", "ada"),
            ("add-calendar", "https://DAV.example.org:443/", "--user", "ada"),
        ),
    ],
)
def test_an_account_has_one_feed_however_its_address_is_spelled(
    commands: Commands, once: tuple[str, ...], again: tuple[str, ...]
) -> None:
    commands.types("open sesame\n")
    assert commands.run(*once) == 0
    commands.types("open sesame\n")
    assert commands.run(*again, "--name", "other") != 0
    assert len(states(commands)) == 1


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("add", "ada@fastmail.com"), "imaps://ada%40fastmail.com@imap.fastmail.com"),
        (("add-mailbox", "ada@icloud.com"), "imaps://ada@imap.mail.me.com"),
        (
            ("add-mailbox", "ada@icloud.com", "--host", "mail.example.org"),
            "imaps://ada%40icloud.com@mail.example.org",
        ),
        (("add-calendar", "ada@gmx.de"), "caldavs://ada%40gmx.de@caldav.gmx.net/"),
        (("add-contacts", "ada@gmx.de", "--user", "ada"), "carddavs://ada@carddav.gmx.net/"),
    ],
)
def test_an_address_is_enough_at_a_provider_that_is_known(
    commands: Commands, arguments: tuple[str, ...], place: str
) -> None:
    commands.types("app-password-7\n")
    assert commands.run(*arguments) == 0
    (shown,) = commands.json("list")
    assert shown["place"] == place


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "ada@example.org"),
        ("add-mailbox", "ada@example.org"),
        ("add-mailbox", "ada@outlook.com"),
        ("add-calendar", "ada@gmail.com"),
        ("add-contacts", "https://dav.example.org"),
    ],
)
def test_where_nobody_knows_an_account_no_password_is_asked_for(
    commands: Commands, arguments: tuple[str, ...]
) -> None:
    commands.types("app-password-7\n")
    assert commands.run(*arguments) == 64
    assert not (commands.folder / "data" / FILE).exists()


def test_a_folder_may_be_called_like_an_address(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "ada@fastmail.com").mkdir()
    assert commands.json("add", tmp_path / "ada@fastmail.com")["kind"] == "folder"
