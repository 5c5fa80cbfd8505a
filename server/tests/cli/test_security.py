from __future__ import annotations

import json
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import cyclopts
import pytest
from msgspec.structs import replace

from pdpp_kernel.values import instant_ns
from pdpp_mcp_server.commands.connect import CommandContext
from pdpp_mcp_server.commands.exits import run_app
from personal_server.app.owner_store import OwnerStore
from personal_server.cli.doctor import doctor_command
from personal_server.cli.findings import Finding
from personal_server.cli.security import (
    MOUNT_OF,
    ask_system,
    installed_version,
    read_advisories,
    security_findings,
)
from personal_server.settings import Settings

OWNER, MODES, ENCRYPTION, VERSIONS = "owner", "modes", "encryption", "advisories"
UNUSED, ENDLESS = "unused_access", "endless_access"
PUBLIC = {"public_url": "https://me.example"}


@dataclass
class Site:
    """A data directory, and what the system and the packages around it say."""

    terminal: Any
    settings: Settings
    printed: dict[str, str] = field(default_factory=dict[str, str])
    versions: dict[str, str] = field(default_factory=dict[str, str])
    at: str = "2026-01-01T00:00:00Z"

    def look(self, **changes: Any) -> dict[str, Finding]:
        settings = replace(self.settings, **changes)
        found = security_findings(
            settings, self.opened, self.ask, self.versions.get, "linux", self.clock
        )
        return {finding.code: finding for finding in found}

    def clock(self) -> int:
        return instant_ns(self.at) or 0

    def ask(self, words: Sequence[str]) -> str:
        return self.printed.get(words[0], "")

    @contextmanager
    def opened(self) -> Generator[OwnerStore]:
        yield self.terminal.house.store


@pytest.fixture
def site(terminal: Any, tmp_path: Path) -> Site:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    return Site(terminal, Settings(data_dir=data))


def test_a_new_directory_of_the_owner_has_nothing_wrong(site: Site) -> None:
    found = site.look()
    assert "wrong" not in {finding.state for finding in found.values()}
    assert found[OWNER].state == found[MODES].state == found["sign_in"].state == "good"


def test_what_somebody_else_could_have_planted_is_named_and_the_store_stays_shut(
    site: Site,
) -> None:
    (site.settings.data_dir / "planted").symlink_to("/etc/passwd")
    found = site.look()
    assert found[OWNER].state == "wrong"
    assert "sign_in" not in found


def test_a_directory_that_others_may_enter_is_wrong(site: Site) -> None:
    site.settings.data_dir.chmod(0o750)
    found = site.look()[MODES]
    assert (found.state, "0750" in found.detail) == ("wrong", True)


@pytest.mark.parametrize(
    ("mounted", "devices", "state", "said"),
    [
        ("ext4 /dev/mapper/data\n", "crypt\npart\ndisk\n", "good", "dm-crypt"),
        ("btrfs /dev/mapper/root[/@home]\n", "crypt\ndisk\n", "good", "dm-crypt"),
        ("fuse.gocryptfs /home/me/locked\n", "", "good", "gocryptfs"),
        ("ext4 /dev/sda2\n", "part\ndisk\n", "hint", "not_encrypted"),
        ("zfs tank/home\n", "", "hint", "unknown"),
        ("", "", "hint", "unknown"),
    ],
)
def test_encryption_is_found_where_it_shows(
    site: Site, mounted: str, devices: str, state: str, said: str
) -> None:
    site.printed = {"findmnt": mounted, "lsblk": devices}
    found = site.look()[ENCRYPTION]
    assert (found.state, said in (found.fault or found.detail)) == (state, True)


@pytest.mark.skipif(shutil.which("findmnt") is None, reason="this system has no findmnt")
def test_the_system_is_asked_in_words_that_it_knows(tmp_path: Path) -> None:
    mounted = ask_system([*MOUNT_OF, str(tmp_path)]).splitlines()
    # one above the other, where two are mounted at one place
    assert {len(line.split()) for line in mounted} == {2}
    assert ask_system(["no-such-program"]) == ""


def test_outside_of_loopback_the_owner_needs_a_way_in(site: Site) -> None:
    assert site.look(**PUBLIC)["sign_in"].state == "wrong"
    site.terminal.house.store.sign_in.set_password("a long enough phrase")
    assert site.look(**PUBLIC)["sign_in"].state == "good"


@pytest.mark.parametrize(
    ("network", "state"), [("0.0.0.0/0", "wrong"), ("::/0", "wrong"), ("10.0.0.0/8", "good")]
)
def test_trusting_everybody_as_a_proxy_is_wrong(site: Site, network: str, state: str) -> None:
    found = site.look(**PUBLIC, trusted_proxies=(ip_network(network),))
    assert found["proxies"].state == state


def test_a_port_that_can_be_reached_past_the_proxy_is_told(site: Site) -> None:
    assert site.look(**PUBLIC, bind_host="0.0.0.0")["proxies"].state == "hint"  # noqa: S104


def test_access_without_end_and_never_used_is_named(site: Site) -> None:
    assert site.look()[UNUSED].state == site.look()[ENDLESS].state == "good"
    agent = ("grant", "create", "--client", "My agent", "--source", "bank", "--yes")
    assert site.terminal.run(*agent, "--expires", "none") == 0, site.terminal.err
    found = site.look()
    assert {found[UNUSED].state, found[ENDLESS].state} == {"hint"}
    assert "My agent" in found[ENDLESS].detail


def test_a_backup_that_others_can_read_is_wrong(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    folder.chmod(0o755)
    backup = folder / "2026-11-22.pdpp"
    backup.touch(mode=0o600)
    assert site.look(backup_dir=folder)["backups"].state == "good"
    backup.chmod(0o644)
    assert site.look(backup_dir=folder)["backups"].state == "wrong"
    folder.chmod(0o700)
    assert site.look(backup_dir=folder)["backups"].state == "good"


@pytest.mark.parametrize(("version", "state"), [("0.15.9", "wrong"), ("0.16.0", "good")])
def test_a_package_of_the_list_is_named_with_its_advisory(
    site: Site, version: str, state: str
) -> None:
    site.versions = {"h11": version}
    found = site.look()[VERSIONS]
    assert (found.state, "CVE-2025-43859" in found.detail) == (state, state == "wrong")


def test_what_is_installed_here_is_not_on_the_list(site: Site) -> None:
    known: Any = read_advisories()
    packages = {one["package"] for one in known["advisories"]}
    site.versions = {name: installed_version(name) or "" for name in packages}
    assert all(site.versions.values())
    found = site.look()[VERSIONS]
    assert (found.state, known["newest"] in found.detail) == ("good", True)


@pytest.mark.parametrize(
    ("at", "state", "days"),
    [("2027-11-27T12:00:00Z", "good", "365"), ("2027-11-28T00:00:00Z", "hint", "366")],
)
def test_a_list_says_how_old_it_is_and_warns_after_a_year(
    site: Site, at: str, state: str, days: str
) -> None:
    site.at = at
    found = site.look()[VERSIONS]
    assert (found.state, days in found.detail.split()) == (state, True)
    assert bool(found.mend) == (state == "hint")


def test_a_release_is_not_old_on_its_own_day(site: Site) -> None:
    """However long ago the newest weakness that it knows became known."""
    known = read_advisories()
    site.at = f"{known['released']}T12:00:00Z"
    assert site.look()[VERSIONS].state == "good"
    assert str(known["newest"]) <= str(known["released"])


def test_the_command_ends_with_69_where_something_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    monkeypatch.setenv("PDPP_DATA_DIR", str(data))
    app = cyclopts.App(name="pdpp")
    app.command(doctor_command(CommandContext()), name="doctor")
    assert run_app(app, ["doctor", "--security", "--json"]) == 0
    assert not data.exists()
    capsys.readouterr()
    data.mkdir(mode=0o755)
    data.chmod(0o755)  # whatever the umask
    assert run_app(app, ["doctor", "--security", "--json"]) == 69
    states = {one["code"]: one["state"] for one in json.loads(capsys.readouterr().out)}
    assert states[MODES] == "wrong"
    assert run_app(app, ["doctor", "--security", "--data"]) == 64
    assert run_app(app, ["doctor", "me.example", "--security"]) == 64
