"""What a terminal is shown of foreign texts."""

from __future__ import annotations

import json

import pytest

from pdpp_mcp_server.commands.quiet_texts import quiet_json, quiet_line, quiet_lines, quiet_text
from pdpp_mcp_server.safe_text import escaped_json


def test_each_character_that_is_not_printed_is_a_space() -> None:
    text = " a\x1b\n\u202eb  "
    assert quiet_text(text) == " a   b  "
    assert quiet_line(text) == "a b"
    assert quiet_lines(text) == " a \n b  "


@pytest.mark.parametrize(
    "text", ["\u200d", "a\ufe00\ufe01", "\U000e0041", "\u2028\x85\x7f", "a\nb"]
)
def test_json_shows_what_json_shows_an_agent(text: str) -> None:
    shown = quiet_json(text)
    assert shown == escaped_json(text)
    assert json.loads(shown) == text


def test_joined_pictures_and_lines_between_members_stay() -> None:
    joined = "\U0001f469\u200d\U0001f469"
    assert quiet_json([joined], indent=1) == f'[\n "{joined}"\n]'
