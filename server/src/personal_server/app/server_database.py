"""What the program asks of a database, whichever it is."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from personal_server.storage.sql.care.integrity import WordIndexes
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.snapshot import SearchableDatabase
from personal_server.storage.writability import Writability


class ServerDatabase(SearchableDatabase, WordIndexes, Protocol):
    """What a server and its commands need of a database."""

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be written, as long as it is open."""
        ...

    @property
    def writability(self) -> Writability:
        """What writes found."""
        ...

    def probe(self) -> None:
        """After a refused write, try a small one.  Raises: StorageUnavailable."""
        ...

    def read_briefly(self) -> AbstractContextManager[Session]:
        """One read snapshot for who must not wait.  Raises: PastBudget."""
        ...

    def sizes(self) -> tuple[int, int]:
        """Its bytes, and those of its journal where that lies beside it."""
        ...

    def keep_few_pages(self) -> None:
        """Take less memory for writes, as a process beside the server does."""
        ...

    def close(self) -> None:
        """When no read or write is under way."""
        ...
