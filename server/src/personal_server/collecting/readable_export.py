"""What an import reads, however it is read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol

from pdpp_kernel.source_item import Data, SourceItem


class ReadableExport(Protocol):
    """The part of an export that one source reads."""

    @property
    def captured_at(self) -> datetime:
        """When the export was made, as far as its files tell."""
        ...

    @property
    def fingerprint(self) -> str:
        """What tells these very files from others."""
        ...

    def items(self, start: int = 0) -> Iterator[SourceItem]:
        """Records and what was passed over, from a place on."""
        ...

    def facts(self) -> Data:
        """What identifies the files that were read."""
        ...
