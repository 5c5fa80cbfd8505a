"""Times that name no zone are read in the owner's, which is asked for once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_mcp_server.commands.exits import run_app
from personal_server.cli.owner_zone import ConfiguredZone, zone_meant
from personal_server.configuration_file import (
    keep_time_zone,
    read_configuration,
    write_configuration,
)
from server.tests.cli.conftest import Terminal
from server.tests.cli.import_machine import FixedZone, Machine

CHAT = "13/01/2024, 21:05 - Ada: hi\n13/01/2024, 21:06 - Ann: hello\n"


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "WhatsApp Chat with Ada.txt"
    path.write_text(CHAT)
    return path


def sent(machine: Machine) -> str:
    with machine.store.snapshot() as snapshot:
        (held,) = [each for each in snapshot.stored_streams() if each.stream == "messages"]
        rows = snapshot.export(held.connection_id, held.stream)
        return min(str(row.data["sent_at"]) for row in rows)


def test_the_machine_s_zone_is_kept_from_the_first_import_on(chat: Path) -> None:
    zone = FixedZone(None, machine="Europe/Rome")
    machine = Machine(zone=zone)
    _, printed = machine.run("import", chat)
    assert printed["imports"][0]["time_zone"] == "Europe/Rome"
    assert sent(machine) == "2024-01-13T20:05:00Z"
    assert zone.known() == "Europe/Rome"
    travelled = Machine(machine.store, FixedZone(zone.known(), machine="Asia/Tokyo"))
    _, again = travelled.run("import", chat)
    assert again["imports"][0]["streams"]["messages"]["unchanged"] == 2


def test_who_can_be_asked_is_asked_once(chat: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zone = FixedZone(None, machine="UTC", answer="Asia/Kolkata")
    machine = Machine(zone=zone)
    assert run_app(machine.app, ["import", str(chat)]) == 0
    assert run_app(machine.app, ["import", str(chat)]) == 0
    assert capsys.readouterr().out.count("Asia/Kolkata") == 2
    assert (zone.asked, sent(machine)) == (1, "2024-01-13T15:35:00Z")


def test_an_answer_is_kept_where_the_import_is_interrupted(chat: Path) -> None:
    zone = FixedZone(None, machine="UTC", answer="Asia/Kolkata")
    machine = Machine(zone=zone)
    with machine.interrupted_after(0):
        assert run_app(machine.app, ["import", str(chat)]) == 130
    assert zone.known() == "Asia/Kolkata"


def test_nothing_is_said_of_an_answer_that_has_no_place_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class WithoutConfiguration(FixedZone):
        def keep(self, name: str) -> None:
            """Without a data directory there is no `config.toml`."""

    zone = WithoutConfiguration(None, machine="UTC", answer="Asia/Kolkata")
    assert run_app(Machine(zone=zone).app, ["import", str(tmp_path / "none.zip")])
    assert "Asia/Kolkata" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Europe/Rome", "Europe/Rome"),
        ("europe/rome", "Europe/Rome"),
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Louisville", None),
        ("Atlantis", None),
        ("../etc/passwd", None),
    ],
)
def test_a_city_that_one_zone_is_called_by_names_it(written: str, meant: str | None) -> None:
    assert zone_meant(written) == meant


def test_a_zone_that_there_is_not_is_asked_for_again(terminal: Terminal) -> None:
    terminal.patch.setattr("sys.stderr.isatty", lambda: True)
    terminal.types("Atlantis\nrome\n")
    assert ConfiguredZone().ask("UTC") == "Europe/Rome"


def test_a_zone_given_counts_for_this_import_and_a_dry_run_keeps_none(chat: Path) -> None:
    zone = FixedZone(None, machine="UTC")
    machine = Machine(zone=zone)
    machine.run("import", chat, "--dry-run")
    assert (zone.known(), zone.asked) == (None, 0)
    machine.run("import", chat, "--zone", "Asia/Tokyo")
    assert (zone.known(), sent(machine)) == ("Asia/Tokyo", "2024-01-13T12:05:00Z")
    machine.run("import", chat, "--zone", "UTC")
    assert (zone.known(), sent(machine)) == ("Asia/Tokyo", "2024-01-13T21:05:00Z")


def test_an_account_goes_on_in_the_zone_that_was_named_for_it(chat: Path) -> None:
    machine = Machine(zone=FixedZone("UTC"))
    machine.run("import", chat, "--zone", "Asia/Tokyo")
    _, printed = machine.run("import", chat)
    assert printed["imports"][0]["time_zone"] == "Asia/Tokyo"
    assert printed["imports"][0]["streams"]["messages"]["unchanged"] == 2
    machine.run("import", chat, "--zone", "Europe/Rome")
    machine.run("import", chat)
    assert sent(machine) == "2024-01-13T20:05:00Z"


def test_a_zone_in_which_no_time_was_read_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "rides.csv"
    path.write_text("id,began\n1,2024-07-01T08:00:00Z\n2,2024-07-02T08:00:00Z\n")
    zone = FixedZone(None, machine="Asia/Tokyo")
    _, printed = Machine(zone=zone).run("import", path)
    assert printed["imports"][0]["times_without_zone"] is False
    assert zone.known() is None


def test_it_is_kept_beside_what_the_configuration_holds(tmp_path: Path) -> None:
    keep_time_zone(tmp_path, "Europe/Rome")
    assert read_configuration(tmp_path) is None
    write_configuration(tmp_path, "own_1")
    path = tmp_path / "config.toml"
    path.write_text(path.read_text() + '[[clients]]\nclient_id = "a"\n')
    for name in ("Europe/Rome", "Asia/Tokyo"):
        keep_time_zone(tmp_path, name)
    found = read_configuration(tmp_path)
    assert found is not None
    assert (found.subject_id, found.time_zone) == ("own_1", "Europe/Rome")
    assert found.clients == [{"client_id": "a"}]
    assert [each.name for each in tmp_path.iterdir()] == ["config.toml"]
