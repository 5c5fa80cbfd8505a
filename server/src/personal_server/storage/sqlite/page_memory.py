"""The memory that the writing connection keeps pages of the file in."""

from __future__ import annotations

from typing import Protocol

FEW_KIB = 1_024


class _WithPragmas(Protocol):
    def pragma(self, name: str, value: int | str | bool) -> None: ...


class PageMemory:
    """How much of it a database takes: what is not kept is in the memory of the system."""

    def let_pages_go(self: _WithPragmas) -> None:
        """Give back the memory of what a large write touched, which nobody needs soon."""
        self.pragma("shrink_memory", 1)

    def keep_few_pages(self: _WithPragmas) -> None:
        """Take less memory for writes, as a process beside the server does."""
        self.pragma("cache_size", -FEW_KIB)
