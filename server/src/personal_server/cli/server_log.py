"""Where the lines of a server's log go."""

from __future__ import annotations

from pdpp_mcp_server.commands.failures_shown import CommandError
from personal_server.settings import Settings
from personal_server.web.log_file import LogFile
from personal_server.web.logs import configure_logging


def open_log(settings: Settings) -> LogFile | None:
    """Log as the settings say; the file of PDPP_LOG_FILE.  Raises: CommandError (`config`)."""
    file = None
    if settings.log_file is not None:
        try:
            file = LogFile(settings.log_file, settings.log_file_bytes, settings.log_files_kept)
        except OSError:
            raise CommandError(
                "config",
                "The server cannot write to the file that PDPP_LOG_FILE names.",
                "Name a file of your own in an existing folder.",
            ) from None
    configure_logging(settings.log_level, file)
    return file
