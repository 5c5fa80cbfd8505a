"""`pdpp move`: progress, a kill in the middle, and what is said."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from server.tests.upkeep.machine import Machine
from tests.postgresql import schema, server

ROWS = 2_000


def test_a_move_is_killed_and_goes_on(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    rows = "".join(f"{number},2026-01-01,{number}\n" for number in range(ROWS))
    (tmp_path / "runs.csv").write_text(f"id,day,km\n{rows}")
    machine.pdpp("import", tmp_path / "runs.csv")
    with schema() as name:
        asked = ("move", "--to", server().url(), "--schema", name)
        moving = machine.begin(*asked)
        for line in moving.stderr or ():
            if line.startswith("  eras:"):  # the records are still to come
                break
        moving.send_signal(signal.SIGKILL)
        moving.communicate()
        there = Machine(
            tmp_path, {"PDPP_DATABASE_URL": server().url(), "PDPP_DATABASE_SCHEMA": name}
        )
        assert "pdpp move" in there.pdpp("export", expected=69).stderr
        done = machine.pdpp(*asked, "--json")
        assert f": {ROWS:,}\n" in done.stderr
        digests = json.loads(done.stdout)["tables"]
        back = there.pdpp("move", "--to", tmp_path / "back", "--json")
        assert json.loads(back.stdout)["tables"] == digests


@pytest.mark.parametrize("to", ["postgresql://db.example", "mysql"])
def test_what_is_no_address_is_refused(to: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (tmp_path / "mysql").write_text("a file")
    refused = machine.pdpp("move", "--to", to, expected=78 if ":" in to else 69)
    assert "Traceback" not in refused.stderr
