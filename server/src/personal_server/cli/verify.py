"""`pdpp verify`: whether the logs are as they were written.

Source: docs/contract/authorization-server.md 16.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pdpp_kernel.texts import counted
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, words
from personal_server.cli.kept_data import open_logs
from personal_server.cli.store import LogOpener
from personal_server.domain.log_chain import LogHead
from personal_server.upkeep.logs import (
    ChainReport,
    parse_head,
    render_head,
    signing_key,
    verify_log,
)

TITLES = {"disclosures": "Read log", "audit_events": "Log of decisions"}


def verify_command(open_logs: LogOpener) -> Callable[..., int]:
    """The command `pdpp verify`."""

    def verify(
        *,
        against: Path | None = None,
        heads: Annotated[bool, Parameter(negative="")] = False,
        json: Annotated[bool, Parameter(negative="")] = False,
    ) -> int:
        """Check that no line of the logs was changed, removed or moved.

        Every day the server signs the newest line of each log. Keep what --heads prints on another
        machine; with --against it later proves that nobody rewrote the whole log.

        Parameters
        ----------
        against
            A file with the lines that --heads printed earlier.
        heads
            Print only the newest signed line (head) of each log.
        json
            Print JSON.
        """
        kept = [] if against is None else _read_heads(against)
        with open_logs() as logs:
            public = signing_key(logs, os.urandom).public_key()
            reports = [verify_log(logs, name, public, kept) for name in logs.names]
        if heads:
            for report in reports:
                if report.head is not None:
                    console().print(render_head(report.head), soft_wrap=True)
        elif json:
            print_json([_as_json(report) for report in reports])
        else:
            _print_reports(reports)
        return 65 if any(report.faults for report in reports) else 0

    return verify


def _read_heads(path: Path) -> list[LogHead]:
    try:
        return [parse_head(line) for line in path.read_text().splitlines() if line.strip()]
    except (OSError, ValueError):
        raise CommandError(
            "usage",
            "The file given with --against cannot be read.",
            "Give a file that `pdpp verify --heads` wrote.",
        ) from None


def _as_json(report: ChainReport) -> dict[str, object]:
    return {
        "log": report.log,
        "lines": report.lines,
        "lines_before_the_chain": report.unlinked,
        "unbroken": not report.faults,
        "faults": [{"line": fault.number, "what": fault.what} for fault in report.faults],
        "head": report.head and render_head(report.head),
    }


def _print_reports(reports: Sequence[ChainReport]) -> None:
    out = console()
    for report in reports:
        state = "BROKEN" if report.faults else "unbroken"
        out.print(f"{TITLES[report.log]}: {counted(report.lines, 'line')}, {state}.")
        if report.unlinked:
            older = counted(report.unlinked, "line")
            out.print(f"  Not checked, because older than the hash chain: {older}.")
        for fault in report.faults:
            out.print(f"  Line {fault.number:,}: {fault.what}.")
    words().print("Keep the signed heads on another machine: pdpp verify --heads > heads.txt")


verify = verify_command(open_logs)
