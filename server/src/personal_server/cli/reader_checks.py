"""What is wrong with a process that reads exports before it reads one."""

from __future__ import annotations

from pdpp_mcp_server.commands.failures_shown import unknown_source
from pdpp_mcp_server.commands.tables import words
from pdpp_sources.reader_messages import Ready
from pdpp_sources.reader_process import ReaderProcess
from personal_server.cli.known_sources import known_sources


def check_reader(reader: ReaderProcess, facts: Ready, connector_key: str | None) -> None:
    """Say what it may do beyond reading; refuse a source that nobody knows.

    Raises: CommandError (`usage`).
    """
    if facts.beyond_limits:
        what = " and ".join(facts.beyond_limits)
        words().print(
            f"  On this system, the process that reads your files is not prevented from: {what}."
        )
    if connector_key is not None and connector_key not in facts.connector_keys:
        known = [each.connector_key for each in known_sources(reader).sources]
        if connector_key not in known:
            raise unknown_source(known)
