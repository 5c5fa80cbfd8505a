"""`pdpp verify`: whether the logs are as they were written.

Source: docs/contract/authorization-server.md 16.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pdpp_mcp_server.commands.exits import CommandError, print_json
from pdpp_mcp_server.commands.tables import console, words
from personal_server.cli.store import LogOpener, open_logs
from personal_server.domain.log_chain import LogHead
from personal_server.upkeep.logs import (
    ChainReport,
    parse_head,
    render_head,
    signing_key,
    verify_log,
)

TITLES = {"disclosures": "What was read", "audit_events": "What was decided"}


def verify_command(open_logs: LogOpener) -> Callable[..., int]:
    """The command `pdpp verify`."""

    def verify(
        *,
        against: Path | None = None,
        heads: Annotated[bool, Parameter(negative="")] = False,
        json: Annotated[bool, Parameter(negative="")] = False,
    ) -> int:
        """Check that no line of the logs was changed, removed or put elsewhere.

        The server signs each day where its logs stand. Keep what --heads prints on another
        machine; with --against it shows later that not even the whole log was made anew.

        Parameters
        ----------
        against
            A file of such lines.
        heads
            Print the newest signed head of each log, and nothing else.
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
            "The file of heads cannot be read.",
            "Give the lines as `pdpp verify --heads` printed them.",
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
        out.print(f"{TITLES[report.log]}: {report.lines:,} lines, {state}.")
        if report.unlinked:
            out.print(f"  {report.unlinked:,} lines are older than the chain and prove nothing.")
        for fault in report.faults:
            out.print(f"  Line {fault.number:,}: {fault.what}.")
    words().print("Keep the signed heads elsewhere: pdpp verify --heads > heads.txt")


verify = verify_command(open_logs)
