"""Tables, each written once: a row class is its columns, typed.

    class GrantRow(Row, table="grants"):
        grant_id: Cell[str] = column(key=True)
        revoked_at_ns: Cell[int | None] = column(default=None)

A row has values (`row.grant_id`: str), its class has columns (`GrantRow.grant_id`), of which
conditions and assignments are made: `GrantRow.grant_id.equals("gra_1")`.  A column that does not
exist, a column of another table, and a value of another type are errors of the type checker.

Rule: this room has no SQL; `storage/sql/statements` turns row classes into it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from functools import cached_property
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    overload,
)

import msgspec

T = TypeVar("T")
R = TypeVar("R", bound="StoredRow")


class ColumnKind(StrEnum):
    """What a column holds.  `scalar` takes a number or a text; `json` any JSON value, as text;
    `bits` what a database counts different bits of.
    """

    TEXT = auto()
    INTEGER = auto()
    FLAG = auto()
    BYTES = auto()
    BITS = auto()
    SCALAR = auto()
    JSON = auto()


_TOLD_OTHERWISE = frozenset({ColumnKind.JSON, ColumnKind.FLAG, ColumnKind.SCALAR})


class Bits(bytes):
    """Bytes whose bits are compared.  They are written and asked for by `Dialect.bits`."""


class Comparison(StrEnum):
    """How a condition compares; null meets `is null` only."""

    EQUALS = "="
    AT_MOST = "<="
    ABOVE = ">"
    BELOW = "<"
    IS_NULL = "IS NULL"


class ColumnCondition(msgspec.Struct, Generic[R], frozen=True):
    """What a column of a row must be."""

    column: StoredColumn[R, Any]
    comparison: Comparison
    value: object = None


class Assignment(msgspec.Struct, Generic[R], frozen=True):
    """What a column of a row becomes."""

    column: StoredColumn[R, Any]
    value: object


class StoredColumn(Generic[R, T]):
    """A column of a table.  As text it is its name."""

    def __init__(self, name: str, hint: Any, options: Mapping[str, Any]) -> None:
        members = set(get_args(hint)) if isinstance(hint, UnionType) else {hint}
        self.name = name
        self.optional = type(None) in members
        self.kind = _kind(members - {type(None)})
        self.as_it_is = self.kind not in _TOLD_OTHERWISE
        self.is_tuple = any(get_origin(member) is tuple for member in members)
        self.key: bool = options.get("key", False)
        self.numbered: bool = options.get("numbered", False)
        self.unique: bool | str = options.get("unique", False)
        self.indexed: bool = options.get("indexed", False)

    def __str__(self) -> str:
        return self.name

    def equals(self, value: T) -> ColumnCondition[R]:
        """The column has that value (`None`: it is null)."""
        comparison = Comparison.IS_NULL if value is None else Comparison.EQUALS
        return ColumnCondition(self, comparison, value)

    @overload
    def at_most(self: StoredColumn[R, int], value: int) -> ColumnCondition[R]: ...
    @overload
    def at_most(self: StoredColumn[R, int | None], value: int) -> ColumnCondition[R]: ...
    def at_most(self: StoredColumn[R, Any], value: int) -> ColumnCondition[R]:
        """The column is a number up to that one."""
        return ColumnCondition(self, Comparison.AT_MOST, value)

    @overload
    def above(self: StoredColumn[R, int], value: int) -> ColumnCondition[R]: ...
    @overload
    def above(self: StoredColumn[R, int | None], value: int) -> ColumnCondition[R]: ...
    def above(self: StoredColumn[R, Any], value: int) -> ColumnCondition[R]:
        """The column is a number above that one."""
        return ColumnCondition(self, Comparison.ABOVE, value)

    def below(self: StoredColumn[R, int], value: int) -> ColumnCondition[R]:
        """The column is a number below that one."""
        return ColumnCondition(self, Comparison.BELOW, value)

    def to(self, value: T) -> Assignment[R]:
        """The column gets that value."""
        return Assignment(self, value)


def _kind(members: set[Any]) -> ColumnKind:
    if len(members) > 1:
        return ColumnKind.SCALAR
    (member,) = members
    if not isinstance(member, type):
        return ColumnKind.JSON
    kinds: dict[Any, ColumnKind] = {
        bool: ColumnKind.FLAG,
        int: ColumnKind.INTEGER,
        bytes: ColumnKind.BYTES,
        Bits: ColumnKind.BITS,
    }
    if issubclass(member, str):
        return ColumnKind.TEXT
    return kinds.get(member, ColumnKind.JSON)


class Cell(Generic[T]):
    """The type of a field of a row class: a value on a row, a column on the class.

    Only the type checker reads it.  The value lies in the row and the column in the class, as
    attributes without a descriptor, so that reading a value costs what it costs anywhere.
    """

    if TYPE_CHECKING:

        @overload
        def __get__(self, row: None, table: type[R]) -> StoredColumn[R, T]: ...
        @overload
        def __get__(self, row: StoredRow, table: type[R]) -> T: ...
        def __get__(self, row: object, table: object) -> object: ...
        def __set__(self, row: StoredRow, value: T) -> None: ...


@overload
def column(
    *,
    default: T,
    key: bool = False,
    numbered: bool = False,
    unique: bool | str = False,
    indexed: bool = False,
) -> Cell[T]: ...
@overload
def column(
    *,
    default_factory: Callable[[], T],
    key: bool = False,
    numbered: bool = False,
    unique: bool | str = False,
    indexed: bool = False,
) -> Cell[T]: ...
@overload
def column(
    *,
    key: bool = False,
    numbered: bool = False,
    unique: bool | str = False,
    indexed: bool = False,
) -> Cell[Any]: ...
def column(**options: Any) -> Any:
    """What stands beside a field of a row class.

    `key`: of the primary key, in the order of the fields; `numbered`: the key, which the database
    counts; `unique`: alone, or together with those of the same word.
    """
    names = ("default", "default_factory")
    defaults = {name: options.pop(name) for name in names if name in options}
    return dataclasses.field(**defaults, metadata=options)


@dataclass(frozen=True)
class StoredTable:
    """What the row classes say about their table.  As text it is its name.

    `by_subject`: the subject leads every key and condition, and rows do not carry it.
    `rowid`: lines lie by a number of the database, not by their key.
    """

    name: str
    columns: tuple[StoredColumn[Any, Any], ...]
    by_subject: bool
    rowid: bool

    def __str__(self) -> str:
        return self.name

    def column(self, name: str) -> StoredColumn[Any, Any]:
        """The column of that name, where a table of states names it."""
        (column,) = (column for column in self.columns if column.name == name)
        return column

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key (after the subject)."""
        return tuple(column.name for column in self.columns if column.key or column.numbered)

    @cached_property
    def unique(self) -> tuple[tuple[str, ...], ...]:
        """Columns that are unique together (within the subject)."""
        groups: dict[str, list[str]] = {}
        for column in self.columns:
            if column.unique:
                word = column.name if column.unique is True else column.unique
                groups.setdefault(word, []).append(column.name)
        return tuple(tuple(group) for group in groups.values())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, in the order of the fields."""
        return tuple(column.name for column in self.columns)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(column,))
class StoredRow:
    """A row of a table.  A subclass that names its table is frozen and built by keywords.

    Its module has no `from __future__ import annotations`: columns are made of what these say.
    """

    table: ClassVar[StoredTable]
    by_subject: ClassVar[bool] = False

    def __init_subclass__(cls, table: str | None = None, *, rowid: bool = False) -> None:
        super().__init_subclass__()
        if table is None:
            return
        # Each method that is generated costs every start of the program 40 µs a table.
        dataclass(frozen=True, kw_only=True, eq=False, repr=False)(cls)
        columns = [
            StoredColumn[Any, Any](field.name, get_args(field.type)[0], field.metadata)
            for field in dataclasses.fields(cast("Any", cls))
        ]
        for column in columns:
            setattr(cls, column.name, column)
        is_numbered = any(column.numbered for column in columns)
        cls.table = StoredTable(table, tuple(columns), cls.by_subject, rowid or is_numbered)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self)})"
