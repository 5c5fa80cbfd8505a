"""A pytest plugin: a run of the whole suite meets each error and event of the contract.

`pytest --reached` says for any run which ones were not.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.overheard import EVENTS, LISTENERS, Answer
from tests.reached.rows import Row, row_of, unreached

REACHED: set[Row] = set()
ALL_BUT_LONG = "not long"
"""What `pyproject.toml` leaves out of every run that does not say otherwise."""


def listen(answer: Answer) -> None:
    """Remember the error that was answered."""
    row = row_of(answer)
    if row is not None:
        REACHED.add(row)


def pytest_configure() -> None:
    LISTENERS.append(listen)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reached", action="store_true", help="list what no test reached")


def pytest_sessionfinish(session: pytest.Session) -> None:
    workeroutput: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        workeroutput["reached"] = [tuple(row) for row in REACHED]
        workeroutput["events"] = sorted(EVENTS)
    elif _is_whole(session.config) and unreached(REACHED, EVENTS) and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output: dict[str, Any] = getattr(node, "workeroutput", {})  # a crashed worker has none
    REACHED.update(Row(*row) for row in output.get("reached", ()))
    EVENTS.update(output.get("events", ()))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not (_is_whole(config) or config.getoption("--reached")):
        return
    for row in unreached(REACHED, EVENTS):
        terminalreporter.write_line(f"no test reached: {row}")


def _is_whole(config: pytest.Config) -> bool:
    is_marked = config.option.markexpr not in ("", ALL_BUT_LONG)
    chosen = config.option.keyword or is_marked or config.option.collectonly
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen
