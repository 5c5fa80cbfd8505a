"""A pytest plugin: the requirement table with its tests and how they ended.

`pytest -p tests.requirements.report -m req` prints it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from tests.requirements.manifest import marks_by_row, problems, rows

outcomes: dict[str, dict[str, str]] = defaultdict(dict)
rows_of_test: dict[str, list[str]] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        found = [str(mark.args[0]) for mark in item.iter_markers("req")]
        if found:
            rows_of_test[item.nodeid] = found


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for row in rows_of_test.get(report.nodeid, ()):
        if report.when == "call" or report.failed:
            outcomes[row][report.nodeid] = report.outcome


def pytest_terminal_summary(terminalreporter: Any) -> None:
    marked = marks_by_row()
    write = terminalreporter.write_line
    write("")
    write("requirement  passed  failed  tests")
    for row in rows():
        ended = list(outcomes[row.id].values())
        passed, failed = ended.count("passed"), ended.count("failed")
        names = ", ".join(sorted({name.split("::")[1] for name in marked.get(row.id, [])}))
        write(f"{row.id:<11}  {passed:>6}  {failed:>6}  {names}")
    faults = problems(rows(), marked)
    total = sum(len(found) for found in outcomes.values())
    write(f"{len(rows())} rows, {total} results, {len(faults)} rows or marks without a partner")
    for fault in faults:
        write(fault)
