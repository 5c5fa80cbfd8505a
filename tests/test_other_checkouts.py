"""Measurements run another checkout by its own programs, and say so where it has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.site import Site, programs_of


def test_another_checkout_runs_by_its_own_programs(tmp_path: Path) -> None:
    programs = tmp_path / "checkout" / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "pdpp").touch()
    command = Site(tmp_path / "site", programs_of(tmp_path / "checkout")).command("pdpp", "serve")
    assert command[-2:] == [str(programs / "pdpp"), "serve"]
    assert not any(word.startswith("PYTHONPATH=") for word in command)


def test_a_checkout_without_an_environment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        programs_of(tmp_path)
