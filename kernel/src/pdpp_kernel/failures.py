"""What is said of an error that nobody meant: the id of its request, its type and its places.

Rule: its own text goes nowhere, since it may quote what it failed on.
Source: docs/contract/resource-server.md 2.1.
"""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from secrets import token_hex

PLACES = 4
_log = logging.getLogger(__name__)


def new_request_id() -> str:
    """A fresh request id."""
    return f"req_{token_hex(12)}"


def places_of(error: BaseException) -> str:
    """The innermost files and lines an error went through."""
    frames = traceback.extract_tb(error.__traceback__)[-PLACES:]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))


def log_failure(error: BaseException, request_id: str) -> None:
    """Where it failed and which kind; never its text."""
    _log.error("defect %s in %s at %s", type(error).__name__, request_id, places_of(error))
