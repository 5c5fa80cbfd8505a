"""The memory that connections keep pages of the file in."""

from __future__ import annotations

import queue
from contextlib import ExitStack, suppress
from typing import Any, Protocol

READER_KIB, FEW_KIB = 8_192, 1_024


class _Connected(Protocol):
    idle: queue.LifoQueue[Any]
    reader_kib: int

    def pragma(self, name: str, value: int | str | bool) -> None: ...


class PageMemory:
    """How much of it a database takes: what is not kept is in the memory of the system.

    Units: `reader_kib` is what each reading connection takes, in KiB.
    """

    reader_kib = READER_KIB

    def let_pages_go(self: _Connected) -> None:
        """Give back the memory of what a large write touched, which nobody needs soon."""
        self.pragma("shrink_memory", 1)

    def let_read_pages_go(self: _Connected) -> None:
        """Give back the memory of what was read, most of which nobody needs soon."""
        _set_idle(self.idle, "shrink_memory", 1)

    def keep_few_pages(self: _Connected) -> None:
        """Take less memory, as a process beside the server does."""
        self.reader_kib = FEW_KIB
        self.pragma("cache_size", -FEW_KIB)
        _set_idle(self.idle, "cache_size", -FEW_KIB)


def _set_idle(idle: queue.LifoQueue[Any], name: str, value: int) -> None:
    """Set a pragma of each reading connection that nobody reads with."""
    with ExitStack() as given_back, suppress(queue.Empty):
        while True:
            reader = idle.get_nowait()
            given_back.callback(idle.put, reader)  # the one that was used last is used next
            if reader is not None:
                reader.pragma(name, value)
