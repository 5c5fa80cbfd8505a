"""What differs between databases, as text that statements are put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from pdpp_kernel.criteria import WordQuery
from pdpp_kernel.values import Comparable, ValueKind
from personal_server.enforcement.plans import FieldWindowPlan
from personal_server.storage.tables import ColumnKind

Value = int | float | str | bytes | None
Lines = Iterable[Sequence[Value]]
Conditions = tuple[tuple[str, ...], tuple[Value, ...]]
"""Conditions that hold together, and their parameters."""


class Dialect(Protocol):
    """How one database says it."""

    @property
    def numbered_key(self) -> str:
        """What stands behind the name of a key that the database counts."""
        ...

    @property
    def line(self) -> str:
        """The column of every table by which lines are told apart."""
        ...

    @property
    def looked_at_seconds(self) -> float:
        """How long a search may take, with all its questions, for a record that the index of words
        led to: more than was measured (docs/performance.md).
        """
        ...

    @property
    def ordered_join(self) -> str:
        """A join whose first table is read first, where there is a choice."""
        ...

    @property
    def steers(self) -> bool:
        """Whether it pays to find out by which index lines are best read (`walking`)."""
        ...

    @property
    def waits(self) -> bool:
        """Whether a statement more costs more than some lines more."""
        ...

    @property
    def packs(self) -> bool:
        """Whether signs are compared soonest in this process, many at once (`sign_blocks`)."""
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

    def comparable_type(self, kind: ValueKind) -> str:
        """The type of a column of comparables."""
        ...

    def create_table(self, name: str, *, scratch: bool = False) -> str:
        """What stands before the columns; a `scratch` table ends with the snapshot."""
        ...

    def create_index(self, name: str, *, unique: bool = False, scratch: bool = False) -> str:
        """What stands before the table of an index."""
        ...

    def word_index(self, name: str, *, scratch: bool = False) -> list[str]:
        """The statements that make a word index (`word_index`), whose key is `rowid`."""
        ...

    def drop_words(self, name: str) -> list[str]:
        """The statements that remove a word index, if it is there."""
        ...

    def listed(self, array: str) -> str:
        """The texts of a JSON array as a table `asked` with a column `value`."""
        ...

    def indexed_lines(
        self, index: str, words: Sequence[tuple[int, str]]
    ) -> Iterator[tuple[str, Sequence[str], Lines]]:
        """What a word index gets of (key, marked words), in the order of the keys: tables, their
        columns and lines.
        """
        ...

    def parts_of(self, table: str) -> tuple[str, ...]:
        """The tables whose rows are what a table of a source, or its word index, holds."""
        ...

    def last_number(self, table: str, column: str) -> str:
        """The statement that gives the last number of a numbered key, null before the first."""
        ...

    def set_last_number(self, table: str, column: str) -> str:
        """The statement that has it count on behind a number."""
        ...

    def walking(self, index: str) -> str:
        """What stands behind a table to have it read by that index."""
        ...

    def unsteering(self, comparison: str) -> str:
        """A comparison that does not choose the index."""
        ...

    def one_of_keys(self, key: str, array: str) -> str:
        """That a key is in an array of texts in JSON: a condition by whose index lines are read."""
        ...

    def behind_index(self, condition: str) -> str:
        """A condition by whose index no lines are read, where another one's is to lead."""
        ...

    def with_line(self, number: str, lines: str) -> str:
        """The join of the line `r` with a number, looked up for each that stands before it."""
        ...

    def of_each(self, ids: str, table: str, where: str) -> str:
        """What stands behind FROM to have the lines `b` of a table looked up for each id of a
        statement, and no others; `where` compares the columns that stand before the id in its key.
        """
        ...

    def values(self, array: str, kind: ColumnKind) -> str:
        """A set of values, from a JSON array."""
        ...

    def bytes_of(self, text: str) -> str:
        """A text as the bytes that it is stored in, which a damaged one may be told by."""
        ...

    def as_stored(self, column: str, kind: ValueKind) -> str:
        """A comparable, a string likewise."""
        ...

    def rounded(self, number: str) -> str:
        """The nearest whole number, as an integer."""
        ...

    def quotient(self, number: str, divisor: str) -> str:
        """How often a number is contained in another that is not negative."""
        ...

    def integer_sums(self, integer: str) -> tuple[str, ...]:
        """The sum over lines as two columns: how many times 2^32, and the rest."""
        ...

    def is_dated(self, changes: str, sequence: str) -> str:
        """Whether a change is among those that date the fields of a line."""
        ...

    def is_json(self, text: str) -> str:
        """Whether functions over JSON can read a text."""
        ...

    def string_at(self, text: str, field: str) -> str:
        """The string at a top-level field of a JSON text; null for anything else."""
        ...

    def alike(
        self, text: str, sought: str, *, starts: bool = False, ends: bool = False
    ) -> tuple[str, Value]:
        """The condition that a text has a part, both folded (`storage.folding.fold`), with its
        parameter; the text `starts` and `ends` with it, if so asked.
        """
        ...

    def window(
        self, texts: str, params: Sequence[Value], plan: FieldWindowPlan
    ) -> tuple[str, tuple[Value, ...]]:
        """The window of a field of each of some JSON texts.

        Shapes: lines are (JSON type, where the match begins, where the window begins, characters
            of the field, window, SHA-256 of the field in hex).  Of type "json" are texts that the
            database cannot cut; they stand whole in the place of the window.
        """
        ...

    def comparable_at(self, text: str, field: str, kind: ValueKind | None) -> str:
        """The comparable at a top-level field of a JSON text; without a kind that of a list."""
        ...

    def matches(
        self,
        index: str,
        words: WordQuery,
        indexes: Mapping[str, int],
        among: Mapping[str, int] | None = None,
        visible: Conditions = ((), ()),
    ) -> tuple[tuple[str, ...], tuple[Value, ...]]:
        """The conditions that a line `f` of a word index holds words in one of the fields at these
        places, with their parameters; what is excluded is sought `among` others, if so asked.

        `seen` are conditions on stretches of lines, from `p.first` to `p.last`, that hold visible
        ones: an index that lies in such stretches reads no other.
        """
        ...

    def bits(self, content: str) -> str:
        """The bits of bytes, as a column of `ColumnKind.BITS` holds them."""
        ...

    def sign_distance(self, signs: str) -> str:
        """How far signs are from those of a parameter (`pdpp_kernel.vectors.sign_distance`)."""
        ...

    def vector_distance(
        self, column: str, vector: bytes
    ) -> tuple[str, tuple[Value, ...], Callable[[Any], float]]:
        """What to select of a column of vectors, with parameters, and how far from a vector one is
        whose value that was (`pdpp_kernel.vectors.distance`).
        """
        ...

    def bound(self, value: Comparable | None) -> Value:
        """A comparable as a parameter."""
        ...
