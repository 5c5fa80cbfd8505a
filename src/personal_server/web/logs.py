"""Logs: structured lines on standard error, without secrets or record text.

Rule: nothing is ever printed to standard output; any string of a secret's form is masked, and the
HTTP client's own logger, which prints whole URLs, is silenced.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_SECRET = re.compile(
    r"pdpp_(?:at|rt|ac|dc|ol|is)_[A-Za-z0-9_-]+|urn:ietf:params:oauth:request_uri:[A-Za-z0-9_-]+"
)
CHATTY = ("httpx2", "httpcore2", "mcp", "uvicorn")


def mask_secrets(text: str) -> str:
    """The text with every secret of ours replaced.

    Source: docs/contract/authorization-server.md 16.
    """
    return _SECRET.sub("[secret]", text)


def _masking(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {k: mask_secrets(v) if isinstance(v, str) else v for k, v in event.items()}


class _MaskingFilter(logging.Filter):
    """The same rule for lines of libraries."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = mask_secrets(record.getMessage()), None
        return True


def configure_logging(level: str) -> None:
    """Send every log line of the process to standard error, at `level` or above."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_MaskingFilter())
    logging.basicConfig(level=threshold, handlers=[handler], format="%(message)s", force=True)
    for chatty in CHATTY:
        logging.getLogger(chatty).setLevel(max(threshold, logging.WARNING))
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _masking,
            structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
