"""JSON for a terminal: the same values, and no character of theirs that steers it."""

from __future__ import annotations

import json
import re

from pdpp_mcp_server.safe_text import INVISIBLE, JOINERS

_STEERING = re.compile(f"[{INVISIBLE}\u2028\u2029]")


def quiet_json(value: object, indent: int | None = None) -> str:
    """The value as JSON, on one line without `indent`; what steers a terminal is an escape."""
    return _STEERING.sub(_escape, json.dumps(value, ensure_ascii=False, indent=indent))


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in JOINERS:  # they join what is beside them, as in a flag
        return char
    return r"\u007f" if char == "\x7f" else json.dumps(char)[1:-1]
