"""Texts and JSON for a terminal, with no character that steers it."""

from __future__ import annotations

import json
import re

from pdpp_mcp_server.safe_text import INVISIBLE, JOINERS

_STEERING = re.compile(f"[{INVISIBLE}\u2028\u2029]")


def quiet_lines(text: str) -> str:
    """Foreign text with its line breaks; each other character that is not printed is a space."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def quiet_json(value: object, indent: int | None = None) -> str:
    """The value as JSON, on one line without `indent`; what steers a terminal is an escape."""
    return _STEERING.sub(_escape, json.dumps(value, ensure_ascii=False, indent=indent))


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in JOINERS:  # they join what is beside them, as in a flag
        return char
    return r"\u007f" if char == "\x7f" else json.dumps(char)[1:-1]
