"""What reads is begun before the commands that need it are loaded."""

from __future__ import annotations

import sys

import pytest

from pdpp_sources.started_process import READER, Starter
from personal_server.cli import reading_commands


@pytest.mark.parametrize("name", reading_commands.MODULES)
def test_what_reads_is_begun_before_a_command_is_loaded(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"personal_server.cli.{reading_commands.MODULES[name]}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    begun: list[tuple[object, bool]] = []

    def begin(_: Starter, preloaded: tuple[str, ...]) -> None:
        begun.append((preloaded, module in sys.modules))

    monkeypatch.setattr(Starter, "begin", begin)
    assert callable(getattr(reading_commands, name))
    assert begun == [((READER,), False)]


def test_a_command_that_is_none_begins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Starter, "begin", None)
    assert not hasattr(reading_commands, "exports")
