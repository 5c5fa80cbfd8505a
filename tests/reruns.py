"""A pytest plugin: of the tests of a run one may need a second try, where `--reruns` gives it."""

from __future__ import annotations

from typing import Any

import pytest

MOST_RERUNS = 1


def reruns(config: pytest.Config) -> list[Any]:
    """The reports of tries that were not the last."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return [] if reporter is None else reporter.stats.get("rerun", [])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if len(reruns(session.config)) > MOST_RERUNS and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    count = len(reruns(config))
    if count > MOST_RERUNS:
        terminalreporter.write_line(
            f"{count} tests needed a second try, and {MOST_RERUNS} may: look into each."
        )
