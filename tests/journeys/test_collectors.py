"""The program of docs/collectors.md, run as it stands: it goes on where it was."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.site import Site

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "collectors.md").read_text("utf-8")
GOOD: list[dict[str, object]] = [
    {"at": f"2026-11-27T{hour:02}:00:00Z", "steps": 100 * hour} for hour in range(8)
]
BAD: dict[str, object] = {"at": "2026-11-27T09:00:00Z", "steps": "many"}


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


@pytest.mark.timeout(120)
def test_the_program_of_the_page_brings_what_is_new_and_learns_what_was_rejected(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path / "site")
    declaration, rows = tmp_path / "steps.json", tmp_path / "steps.ndjson"
    declaration.write_text(block("json"), encoding="utf-8")
    named = ("My watch", "--json")
    create = ("collector", "create", *named, "--declaration", str(declaration))

    def run(token: str, *lines: dict[str, object]) -> list[str]:
        rows.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        given = (f"PDPP_SERVER={site.origin}", f"PDPP_COLLECTOR_TOKEN={token}")
        program = ["/usr/bin/env", *given, sys.executable, "-c", block("python")]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    with site.serving():
        token = json.loads(subprocess.check_output(site.command("pdpp", *create)))["token"]
        assert run(token, *GOOD) == ["8 new or changed, 0 rejected"]
        assert run(token, *GOOD, BAD)[0] == "0 new or changed, 1 rejected"
        later: dict[str, object] = {"at": "2026-11-27T10:00:00Z", "steps": 7}
        again = run(token, *GOOD, BAD, later)
        given = (f"PDPP_SERVER={site.origin}/", "PDPP_COLLECTOR_TOKEN=pdpp_at_none")
        program = ["/usr/bin/env", *given, sys.executable, "-c", block("python")]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.split(":")[0]) == (1, "invalid_token")
    assert again[0] == "1 new or changed, 0 rejected"
    assert again[1].startswith("rejected before: record_schema_violation /steps in run 20")
    listed = ("collector", "rejected", *named)
    [refused] = json.loads(subprocess.check_output(site.command("pdpp", *listed)))["rejections"]
    assert (refused["code"], refused["path"]) == ("record_schema_violation", "/steps")
    assert "many" not in json.dumps(refused)
