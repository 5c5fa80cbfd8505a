"""What differs between databases, as text that statements are put together from."""

from __future__ import annotations

from typing import Protocol

from personal_server.domain.values import Comparable, ValueKind
from personal_server.storage.tables import ColumnKind, StoredTable

Value = int | float | str | bytes | None


class Dialect(Protocol):
    """How one database says it."""

    @property
    def numbered_key(self) -> str:
        """What stands behind the name of a key that the database counts."""
        ...

    @property
    def find_table(self) -> str:
        """The statement that gives a line for the table of a name."""
        ...

    @property
    def find_column(self) -> str:
        """The statement that gives a line for a table and a column of it."""
        ...

    def column_type(self, kind: ColumnKind) -> str:
        """The type of a column."""
        ...

    def table_options(self, *, rowid: bool) -> str:
        """What stands behind the columns of a table; `rowid` as in `StoredTable`."""
        ...

    def replacing(self, insert: str, table: StoredTable) -> str:
        """An insert whose row takes the place of the one with its key."""
        ...

    def ignoring(self, insert: str) -> str:
        """An insert that leaves a row with its key as it is."""
        ...

    def word_index(self, name: str) -> str:
        """The statement that makes a word index (`word_index`), whose column is `words`."""
        ...

    def parts_of(self, table: str) -> tuple[str, ...]:
        """The tables whose rows are what a table of a source, or its word index, holds."""
        ...

    def walking(self, index: str) -> str:
        """What stands behind a table to have it read by that index."""
        ...

    def unsteering(self, comparison: str) -> str:
        """A comparison that does not choose the index."""
        ...

    def values(self, parameter: str) -> str:
        """A set of values, from a parameter that holds a JSON array."""
        ...

    def is_json(self, text: str) -> str:
        """Whether functions over JSON can read a text."""
        ...

    def string_at(self, text: str, field: str) -> str:
        """The string at a top-level field of a JSON text; null for anything else."""
        ...

    def folded(self, text: str) -> str:
        """A text in the lower case of its code points (`storage.meaning.fold`)."""
        ...

    def found_in(self, text: str) -> str:
        """Where a parameter begins in a text, both folded; below 0 if nowhere."""
        ...

    def comparable_at(self, text: str, field: str, kind: ValueKind) -> str:
        """The comparable at a top-level field of a JSON text."""
        ...

    def matches(self, index: str) -> str:
        """The condition that a line of a word index answers a parameter (`word_index`)."""
        ...

    def bound(self, value: Comparable | None) -> Value:
        """A comparable as a parameter."""
        ...
