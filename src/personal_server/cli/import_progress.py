"""The bar of an import: bytes of the export and the time that is left, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from personal_server.cli.tables import words
from personal_server.sources.common.export import Export

Moved = Callable[[int], None]


@contextmanager
def progress(export: Export, start: int = 0) -> Generator[Moved]:
    """A bar, and what moves it; nothing is drawn where nobody watches."""
    first = export.members[0].offset if export.members else 0
    bar = Progress(
        TextColumn("  "),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=words(),
        transient=True,
        disable=not words().is_terminal,
    )
    with bar:
        task = bar.add_task("", total=export.total_bytes - first, completed=max(0, start - first))
        yield lambda place: bar.update(task, completed=place - first)
