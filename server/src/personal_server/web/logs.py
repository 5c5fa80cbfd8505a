"""Logs: a line for what happened, without secrets or record text.

Rule: nothing is ever printed to standard output; any string of a secret's form is masked, and the
HTTP client's own logger, which prints whole URLs, is silenced.  An exception is its type and its
places, never its text, which may quote what it failed on; and whatever happens again and again is
said so often and then counted, so that nobody fills a disk from outside.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from collections.abc import Callable

from pdpp_kernel.failures import places_of

_SECRET = re.compile(
    r"pdpp_(?:at|rt|ac|dc|ol|is)_[A-Za-z0-9_-]+|urn:ietf:params:oauth:request_uri:[A-Za-z0-9_-]+|(?<=/)~[A-Za-z0-9_-]{22}"
)
CHATTY = ("httpx2", "httpcore2", "mcp", "uvicorn")


def mask_secrets(text: str) -> str:
    """The text with every secret of ours replaced.

    Source: docs/contract/authorization-server.md 16.
    """
    return _SECRET.sub("[secret]", text)


REPEATS = 10
WINDOW_SECONDS = 60.0


class _MaskingFilter(logging.Filter):
    """Masks what a line says, whoever wrote it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = mask_secrets(record.getMessage()), None
        return True


class RepeatLimit(logging.Filter):
    """Lets so many lines of one place in the code through in a minute, then counts the others."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._begun: dict[tuple[str, int], float] = {}
        self._seen: dict[tuple[str, int], int] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written; the first of a new minute says how many were not."""
        line_key, now = (record.pathname, record.lineno), self._monotonic()
        with self._lock:
            if now - self._begun.get(line_key, -WINDOW_SECONDS) >= WINDOW_SECONDS:
                left_out = self._seen.get(line_key, 0) - REPEATS
                self._begun[line_key], self._seen[line_key] = now, 0
                if left_out > 0:
                    record.msg = f"{record.getMessage()} ({left_out} more of these since)"
                    record.args = None
            self._seen[line_key] += 1
            return self._seen[line_key] <= REPEATS


class OneLine(logging.Formatter):
    """A line for each record, its exception included."""

    def format(self, record: logging.LogRecord) -> str:
        """The message; of an exception its type and its places."""
        line = " ".join(record.getMessage().split())
        error = record.exc_info[1] if record.exc_info else None
        return f"{line} ({type(error).__name__} at {places_of(error)})" if error else line


def configure_logging(level: str, handler: logging.Handler | None = None) -> None:
    """Send every log line of the process, at `level` or above, to standard error or a handler."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    if handler is None:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(OneLine())
    handler.addFilter(RepeatLimit())
    handler.addFilter(_MaskingFilter())
    logging.basicConfig(level=threshold, handlers=[handler], force=True)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(max(threshold, logging.WARNING))
