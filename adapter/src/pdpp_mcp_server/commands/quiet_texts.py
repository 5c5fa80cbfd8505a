"""Texts and JSON for a terminal, with no character that steers it."""

from __future__ import annotations

import json

from pdpp_mcp_server.safe_text import escape_steering


def quiet_text(text: str) -> str:
    """Foreign text as it is, but a space for each character that is not printed."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def quiet_line(text: str) -> str:
    """Foreign text on one line, with single spaces."""
    return " ".join(quiet_text(text).split())


def quiet_lines(text: str) -> str:
    """Foreign text with its line breaks."""
    return "\n".join(map(quiet_text, text.split("\n")))


def quiet_json(value: object, indent: int | None = None) -> str:
    """The value as JSON, on one line without `indent`; what steers a display is an escape."""
    return escape_steering(json.dumps(value, ensure_ascii=False, indent=indent))
