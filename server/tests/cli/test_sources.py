import json
import re
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

import pytest

from pdpp_mcp_server.commands.exits import run_app
from pdpp_sources.reader_process import ReaderProcess
from pdpp_sources.registry import SOURCES
from personal_server.cli import sources as command
from server.tests.cli.import_machine import Machine, shared_reader

PAGE = Path(__file__).resolve().parents[3] / "docs/recipes.md"


def a_shared_one(*_: object, **__: object) -> AbstractContextManager[ReaderProcess]:
    return shared_reader()


def test_one_source_is_shown_with_every_field(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    # each command starts a process to ask it what there is, which is the same for all
    monkeypatch.setattr(command, "ReaderProcess", a_shared_one)
    monkeypatch.setattr(command, "known_sources", cache(command.known_sources))
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


def test_the_owners_recipes_are_listed_and_those_that_cannot_be_used_named(
    machine: Machine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page, *_ = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    (recipes / "rides.toml").write_text(page)
    (recipes / "broken.toml").write_text(page.replace("time =", "tmie ="))
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path))
    assert run_app(machine.app, ["sources", "--json"]) == 0
    printed = capsys.readouterr()
    by_key = {each["connector_key"]: each for each in json.loads(printed.out)}
    assert by_key["rides"]["recipe"] == str(recipes / "rides.toml")
    assert "broken.toml" in printed.err
