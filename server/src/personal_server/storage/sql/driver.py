"""The ports of a database: a session inside a transaction, and who opens one.

Everything in this room asks these; the room of a database answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from personal_server.storage.damage import DamageNotes
from personal_server.storage.sql.dialect import Dialect, Value

Line = tuple[Any, ...]
T = TypeVar("T")


class Session(Protocol):
    """A connection inside a transaction.  Cursors are read to their end before the next write.

    Raises: UnicodeDecodeError for a line with a text that is none; the ones behind it can be read.
    """

    @property
    def dialect(self) -> Dialect:
        """How this database says it."""
        ...

    @property
    def derived(self) -> MutableMapping[object, Any]:
        """What was made of this state of the database before; another state has none of it."""
        ...

    def run(self, sql: str, params: Sequence[Value] = ()) -> Iterator[Line]:
        """Execute, and give the lines as they come."""
        ...

    def rows(self, sql: str, params: Sequence[Value] = ()) -> list[Line]:
        """Execute, and give all lines."""
        ...

    def first(self, sql: str, params: Sequence[Value] = ()) -> Line | None:
        """The first line, if there is one."""
        ...

    def value(self, sql: str, params: Sequence[Value] = ()) -> Any:
        """The first column of the first line, `None` without lines."""
        ...

    def several(self, statements: Sequence[tuple[str, Sequence[Value]]]) -> list[list[Line]]:
        """Execute all, and give the lines of each."""
        ...

    def many(self, sql: str, params: Iterable[Sequence[Value]]) -> None:
        """Execute once per parameter list."""
        ...

    def add(self, table: str, columns: Sequence[str], lines: Iterable[Sequence[Value]]) -> None:
        """Insert lines whose keys are free, however many, in few messages."""
        ...

    @property
    def changed(self) -> int:
        """How many lines the last statement wrote."""
        ...

    def scratch(self) -> AbstractContextManager[None]:
        """Make and fill tables that no other session sees and that end with the snapshot."""
        ...

    def check(self) -> None:
        """Whether the time limit allows more work between lines.  Raises like a statement."""
        ...

    def attempt(self, timeout_seconds: float, read: Callable[[], T]) -> T | None:
        """What reads find that have less time than the rest; `None` when it was too little."""
        ...


class Database(Protocol):
    """Who opens sessions.  One writer at a time, readers beside it on one consistent state each.

    Raises: QueryTimeout, StorageUnavailable.
    """

    @property
    def damage(self) -> DamageNotes:
        """What was met of damaged records and blobs."""
        ...

    def read(self, timeout_seconds: float | None = None) -> AbstractContextManager[Session]:
        """One read snapshot, interrupted when its statements pass the time limit."""
        ...

    def write(self) -> AbstractContextManager[Session]:
        """One write transaction: committed when the block ends, undone when it raises."""
        ...

    def write_soon(self) -> AbstractContextManager[Session]:
        """A write that a power cut may undo: it does not wait for the disk."""
        ...

    def erase(self) -> AbstractContextManager[Session]:
        """A write whose removed content leaves the journal, too, as it leaves the file."""
        ...

    def await_write(self, timeout_seconds: float) -> bool:
        """Return when somebody wrote, or after so long; whether somebody may have.

        Called by one thread at a time; tells of writes since it was called before.
        """
        ...

    def empty_journal(self) -> None:
        """Take out of the journal what was erased while others read, as soon as that can be."""
        ...

    def let_read_pages_go(self) -> None:
        """Give back the memory of what was read, most of which nobody needs soon."""
        ...

    def few_pages(self) -> AbstractContextManager[None]:
        """While a block writes all over large tables: it holds few pages, and then none."""
        ...

    def merge_words(self, index: str) -> bool:
        """Merge a little of what a word index lies in, so that a word is looked up in few places.

        Whether there was anything to do.
        """
        ...

    def wipe_words(self, index: str) -> None:
        """Overwrite the words of a word index that no search finds any more."""
        ...
