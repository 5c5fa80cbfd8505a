"""Which sources there are, asked of the process that reads exports.

Rule: readers of other packages are imported there only; this process sees what they declare.
"""

from __future__ import annotations

from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_sources.common.errors import ExportError
from pdpp_sources.reader_messages import KnownSources
from pdpp_sources.reader_process import ReaderProcess


def known_sources(reader: ReaderProcess) -> KnownSources:
    """All sources, those of other packages among them.  Raises: CommandError (`unavailable`)."""
    try:
        return reader.sources()
    except ExportError:
        raise CommandError(
            "unavailable",
            "The process that reads exports ended while it loaded readers of other packages.",
            "Remove the package that you installed last, or name a source with --as.",
        ) from None
