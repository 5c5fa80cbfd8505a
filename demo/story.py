"""How the demo speaks: chapters, commands, and what an agent saw."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

WIDTH = 100


class Story:
    """One telling, on standard output."""

    def __init__(self) -> None:
        self._console = Console(width=WIDTH, highlight=False)

    def chapter(self, title: str, what: str) -> None:
        """Begin a part of the story."""
        self._console.print()
        self._console.print(Rule(f"[bold]{escape(title)}", align="left", style="cyan"))
        self._console.print(escape(what), style="dim")

    def command(self, line: str) -> None:
        """Show a command as the owner would type it."""
        self._console.print(f"\n[bold green]$[/] {escape(line)}")

    def output(self, text: str) -> None:
        """Show what a command said."""
        for line in text.rstrip().splitlines():
            self._folded("  ", escape(line))

    def ask(self, question: str, tool: str, arguments: Mapping[str, Any]) -> None:
        """Show what the agent wants to know and the call it makes."""
        self._console.print(f"\n[bold magenta]agent[/] {escape(question)}")
        self._folded("  ", f"[blue]{tool}[/] {escape(json.dumps(arguments))}")

    def face(self, text: str, lines: int = 12) -> None:
        """Show the text face of a result, shortened for reading, and how long it really is."""
        all_lines = text.splitlines()
        shown = [line if len(line) <= WIDTH * 2 else f"{line[: WIDTH * 2]} …" for line in all_lines]
        for line in shown[:lines]:
            self._folded("  [dim]│[/] ", escape(line))
        if len(all_lines) > lines:
            rest = len(all_lines) - lines
            self._console.print(
                f"  [dim]│ … {rest} more lines ({len(text):,} characters in all)[/]"
            )

    def _folded(self, mark: str, markup: str) -> None:
        """Print what may be longer than a line, with the mark before each part of it."""
        begins = Text.from_markup(mark)
        room = WIDTH - begins.cell_len
        for part in Text.from_markup(markup).wrap(self._console, room, overflow="fold"):
            self._console.print(begins + part)

    def remark(self, text: str) -> None:
        """Say what that means."""
        self._console.print(f"  [cyan]→[/] {escape(text)}")

    def ending(self, text: str) -> None:
        """End with what to do next."""
        self._console.print()
        self._console.print(Panel(text, border_style="green", width=WIDTH))
