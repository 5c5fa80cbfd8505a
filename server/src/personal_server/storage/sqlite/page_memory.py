"""The memory that connections keep pages of the file in."""

from __future__ import annotations

import queue
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Protocol

from pdpp_kernel.system.process_resources import give_memory_back

WRITER_KIB, READER_KIB, FEW_KIB = 49_152, 8_192, 1_024


class _Connected(Protocol):
    idle: queue.LifoQueue[Any]
    writer_kib: int
    reader_kib: int

    def pragma(self, name: str, value: int | str | bool) -> None: ...


class PageMemory:
    """How much of it a database takes: what is not kept is in the memory of the system.

    Units: `writer_kib` is what the writing connection takes, `reader_kib` each reading one, in KiB.
    """

    writer_kib, reader_kib = WRITER_KIB, READER_KIB

    def let_read_pages_go(self: _Connected) -> None:
        """Give back the memory of what was read, most of which nobody needs soon."""
        _set_idle(self.idle, "shrink_memory", 1)

    @contextmanager
    def few_pages(self: _Connected) -> Generator[None]:
        """While a block writes all over large tables: it holds few pages, and then none.

        What is beyond lies in the journal already; what was freed is given to the system.
        """
        self.pragma("cache_size", -FEW_KIB)
        try:
            yield
        finally:
            self.pragma("shrink_memory", 1)
            self.pragma("cache_size", -self.writer_kib)
            give_memory_back()

    def keep_few_pages(self: _Connected) -> None:
        """Take less memory, as a process beside the server does."""
        self.writer_kib = self.reader_kib = FEW_KIB
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
