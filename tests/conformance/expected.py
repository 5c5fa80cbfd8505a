"""What a run of the public suite is expected to find: `expected.toml`, read."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXPECTED: dict[str, Any] = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
REASONS: dict[str, str] = EXPECTED["reasons"]
PACKAGE: dict[str, Any] = json.loads((HERE / "package.json").read_text(encoding="utf-8"))
VERSION: str = PACKAGE["dependencies"]["@modelcontextprotocol/conformance"]


def not_applicable(revision: str) -> dict[str, list[str]]:
    """Reason → the checks (`scenario:check`) that do not apply to any build."""
    return EXPECTED["not_applicable"][revision]


def needs_fixture(revision: str) -> list[str]:
    """The checks that only the build with the fixtures can pass."""
    return EXPECTED["needs_fixture"][revision]["checks"]


def expected_not_passed(build: str, revision: str) -> set[str]:
    """Every check that one build does not pass."""
    found = {check for checks in not_applicable(revision).values() for check in checks}
    return found | set(needs_fixture(revision)) if build == "real" else found


def passing(build: str, revision: str) -> list[str]:
    """The scenarios in which every check passes."""
    listed: dict[str, list[str]] = EXPECTED["passes"][revision]
    besides = listed["with_fixtures"] if build == "fixtures" else []
    return [*listed["scenarios"], *besides]


def figures(build: str, revision: str) -> dict[str, int]:
    """The counts of one run."""
    return EXPECTED["figures"][build][revision]
