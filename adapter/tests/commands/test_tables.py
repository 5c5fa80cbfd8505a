from __future__ import annotations

import io
import sys

import pytest
from rich.text import Text

from pdpp_mcp_server.commands.tables import words


class Unmade:
    """Words that nobody may lay out."""

    def __rich__(self) -> str:
        raise AssertionError


def test_words_go_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", read := io.StringIO())
    words().print(Text("read"))
    assert read.getvalue() == "read\n"


def test_no_words_are_made_where_there_is_no_standard_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert not words().is_terminal
    words().print(Unmade())
