"""The files of an import that are read for what they say: several at once, each by a process.

An import stores records while they are read; what is begun then is known when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, Protocol, Self

from pdpp_kernel.source_item import FileText
from pdpp_kernel.system.cores import cores

MOST_AT_ONCE = 4
"""Each process takes up to 256 MB, with pictures 76 MB of them."""
MOST_BEGUN = 1_000
MOST_CHARS = 4_000_000
"""So much of what was read is kept until it is asked for."""
Read = Callable[[], FileText]


class TextReader(Protocol):
    """Whoever reads what a file says; several threads may ask at once."""

    def text_of(
        self, content: BinaryIO, size_bytes: int, mime_type: str | None, filename: str | None
    ) -> FileText:
        """What it says, or why nothing; it takes a bounded time and fails for no file."""
        ...


def readings_here(reader: TextReader, *, takes_little: bool) -> TextReadings:
    """As many at once as there are processors; one that nobody waits for reads file after file."""
    return TextReadings(reader, 1 if takes_little else min(cores(), MOST_AT_ONCE))


class TextReadings:
    """What is being read, by the id of its bytes; nothing more is begun once the block is left."""

    def __init__(self, reader: TextReader, at_once: int) -> None:
        self.reader = reader
        self.at_once = at_once
        self._pool = ThreadPoolExecutor(at_once, "texts")
        self._begun: dict[str, Future[FileText]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # whoever interrupts waits for no file: the reader's end is that of its processes
        self._pool.shutdown(wait=False, cancel_futures=True)

    def begin(self, blob_id: str, read: Read) -> None:
        """Have it read by and by, if that can be beside other work."""
        if self.at_once > 1 and blob_id not in self._begun:
            self._begun[blob_id] = self._pool.submit(read)

    def take(self, blob_id: str, read: Read) -> FileText:
        """What it says, once it was read."""
        begun = self._begun.pop(blob_id, None) or self._pool.submit(read)
        return begun.result()

    def room(self) -> int:
        """How many more may be begun long before anybody asks for them."""
        done = (each for each in self._begun.values() if each.done() and not each.exception())
        has_room = sum(len(each.result().text or "") for each in done) < MOST_CHARS
        return max(0, MOST_BEGUN - len(self._begun)) if has_room else 0
