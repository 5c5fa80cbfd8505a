"""What commands print for people: one look for tables, and text that cannot steer a terminal."""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pdpp_kernel.values import NANOSECONDS
from pdpp_mcp_server.commands.quiet_texts import quiet_lines, quiet_text
from pdpp_mcp_server.commands.spelled_commands import spelled

NO_END = "no end date"
LABEL_CHARS = 9
LEAST_CHARS = 20
WHOLE = frozenset({"until", "last used", "how", "stream"})


class PlainConsole(Console):
    """A console whose words name each command as it works here; foreign `Text` stays as it is."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, as rich does; what nobody reads is not made."""
        if self.quiet:
            return
        super().print(*(spelled(e) if isinstance(e, str) else e for e in objects), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """What is printed, in which no text of others steers the terminal, wherever it stands."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(quiet_lines(text), style)

    def on_broken_pipe(self) -> None:
        """Whoever reads has enough, as `head` has: no fault, which rich would exit for."""
        raise BrokenPipeError


def console(stream: TextIO | None = None) -> Console:
    """A console on that stream (else standard output); plain when it is not a terminal."""
    return PlainConsole(file=stream or sys.stdout, highlight=False, soft_wrap=False)


def words() -> Console:
    """The console for words: standard error; one that is silent where there is none."""
    return _silent() if sys.stderr is None else console(sys.stderr)


@cache
def _silent() -> Console:
    return PlainConsole(file=io.StringIO(), quiet=True)


def plain(text: object) -> Text:
    """Foreign text as it is, without markup and control characters."""
    return Text(quiet_text(str(text)))


def tell_nothing_kept(folder: Path) -> None:
    """Say that a data directory is empty, and where records may be instead."""
    words().print(
        (f"There are no records in {escape(str(folder))} yet. Import some: pdpp import FILE"),
        soft_wrap=True,
    )
    words().print("If your records are in another folder, set PDPP_DATA_DIR to that folder.")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A quiet table; ids and dates stay whole, so that they can be read and copied."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for position, name in enumerate(columns):
        made.add_column(plain(name), overflow="fold", no_wrap=position == 0 or name in WHOLE)
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else plain(cell) for cell in row))
    return made


def indented(text: str | Text, columns: int, out: Console) -> None:
    """A paragraph whose every line stands in by so many columns."""
    words = text if isinstance(text, Text) else plain(text)
    out.print(Padding(words, (0, 0, 0, columns), expand=False))


def print_facts(facts: Iterable[tuple[str, object]], out: Console, indent: str = "") -> None:
    """Labels and what they say: long lists go on under themselves, long words stay whole."""
    for label, text in facts:
        start = f"{indent}{label:<{LABEL_CHARS}} "
        room = max(out.width - len(start), LEAST_CHARS)
        lines = textwrap.wrap(
            quiet_text(str(text)), room, break_long_words=False, break_on_hyphens=False
        )
        for line in lines or [""]:
            out.print(Text.assemble((start, "bold"), line), soft_wrap=True)
            start = " " * len(start)


def day(ns: int | None) -> str:
    """`2026-11-21`, or that there is no end."""
    return NO_END if ns is None else f"{datetime.fromtimestamp(ns // NANOSECONDS, UTC):%Y-%m-%d}"


def minute(ns: int | None) -> str:
    """`2026-11-21 14:05`, or a dash."""
    if ns is None:
        return "–"
    return f"{datetime.fromtimestamp(ns // NANOSECONDS, UTC):%Y-%m-%d %H:%M}"
