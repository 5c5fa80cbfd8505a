"""Bars that a terminal shows while exports are imported."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from pdpp_mcp_server.commands.tables import words


@contextmanager
def import_bar(total: int | None, done: int) -> Generator[Callable[[int], None]]:
    """One of bytes, or of the texts of files, which shows itself once it moves.

    Shapes: what moves it takes how much is done.
    """
    columns: tuple[ProgressColumn, ...] = (
        (TextColumn("  "), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        if total is not None
        else (TextColumn("  reading the text of attached files: {task.completed:,.0f}"),)
    )
    with Progress(*columns, console=words(), transient=True) as bar:
        task = bar.add_task("", total=total, completed=done, visible=total is not None)
        yield lambda place: bar.update(task, completed=place, visible=True)
