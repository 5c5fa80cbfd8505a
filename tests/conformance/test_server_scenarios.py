"""The public suite's server scenarios, both requirement sets, against both builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.builds import BUILDS
from tests.conformance.expected import (
    REASONS,
    expected_not_passed,
    figures,
    not_applicable,
    passing,
)
from tests.conformance.suite import (
    REVISIONS,
    needs_suite,
    required_scenarios,
    run_server_scenarios,
)


@needs_suite
@pytest.mark.conformance
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("build", BUILDS)
def test_every_scenario_that_applies_passes_and_the_others_are_listed(
    build: str, revision: str, tmp_path: Path
) -> None:
    with BUILDS[build](tmp_path / "server") as url:
        run = run_server_scenarios(url, revision, tmp_path / "results")
    listed = expected_not_passed(build, revision)
    assert set(run.ends) == required_scenarios(revision)
    assert run.invalid_on_the_wire == set()
    assert run.not_passed - listed == set(), "not passed, and not in expected.toml"
    assert listed - run.not_passed == set(), "passed: strike it from expected.toml"
    assert run.passed == set(passing(build, revision))
    assert run.figures == figures(build, revision)


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_check_that_does_not_apply_has_one_known_reason(revision: str) -> None:
    by_reason = not_applicable(revision)
    listed = [check for checks in by_reason.values() for check in checks]
    assert by_reason.keys() <= REASONS.keys()
    assert len(listed) == len(set(listed))
