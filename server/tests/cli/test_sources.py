import pytest

from pdpp_mcp_server.commands.exits import run_app
from pdpp_sources.registry import SOURCES
from server.tests.cli.import_machine import Machine


def test_one_source_is_shown_with_every_field(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for source in SOURCES:
        assert run_app(machine.app, ["sources", source.connector_key]) == 0
        printed = capsys.readouterr().out
        assert max(map(len, printed.splitlines())) <= 80
        for stream in source.declaration["streams"]:
            assert all(field in printed for field in stream["schema"]["properties"])


def test_programs_get_the_same(machine: Machine) -> None:
    code, (mail,) = machine.run("sources", "mail")
    assert code == 0
    assert mail["how_to_export"]
    assert mail["streams"][0]["fields"]["subject"] == "Subject line"


def test_a_source_of_no_such_name(machine: Machine) -> None:
    code, printed = machine.run("sources", "gazette")
    assert (code, printed["error"]["code"]) == (64, "usage")
