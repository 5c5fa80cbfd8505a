"""The public suite's authorization server scenarios, decided by the owner in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from personal_server.console.consent_view import UNKNOWN
from tests.browser.agent import allow_home_mailbox
from tests.browser.site import Owner, Site
from tests.conformance.authorization import run_authorization_scenarios
from tests.conformance.expected import figures
from tests.conformance.suite import REVISIONS, needs_suite
from tests.ports import free_port

pytestmark = [pytest.mark.browser, pytest.mark.conformance, needs_suite]


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_authorization_server_scenario_passes(
    owner: Owner, running: Site, tmp_path: Path, revision: str
) -> None:
    def decide(address: str) -> None:
        allow_home_mailbox(owner, address, UNKNOWN, "Conformance suite")
        assert owner.sees("You can close this page")

    folder = tmp_path / "results"
    run = run_authorization_scenarios(running.origin, revision, free_port(), folder, decide)
    assert run.not_passed == set()
    assert run.ends.keys() == {
        "authorization-server-metadata-endpoint",
        "authorization-code-grant",
    }
    assert run.figures == figures("authorization", revision)
