"""Filter operators: a row each, from which all that speaks of operators is made.

Rule: an operator's word is spelled in its row, and in no other source module
(`tests/house/test_operators.py`).  Parsers, refusals, the legend of `schema`, the published
schemas of the tools and the conditions of the pages follow from the rows.  What a row means in SQL
is written by hand (`storage/sql/compiler.py`), and so is the oracle of the tests: they prove it.
Source: docs/contract/resource-server.md 7.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, StrEnum, auto
from operator import ge, gt, le, lt
from typing import Any, Literal, Self, get_args

from pdpp_kernel.values import NUMBERS, SCALARS, TIMES, Comparable, ValueKind, order_key

Kinds = frozenset[ValueKind]
Example = tuple[str, object]
Predicate = Callable[[Any, Sequence[Any]], bool]
"""Whether the comparable of a field meets the values of a condition."""


class Takes(Enum):
    """What is written behind an operator."""

    VALUE = auto()
    VALUES = auto()
    PART = auto()
    """A part of a text, not empty; the case of letters makes no difference."""
    PRESENCE = auto()
    """True or false: whether there is a value.  The only thing that null values can satisfy."""


class FilterFlag(StrEnum):
    """The word of a compact schema (`f=`) for what a field takes beside equality and ranges.

    Each takes what the ones before it take.  Source: docs/contract/resource-server.md 6.4.
    """

    SET = "set"
    TEXT = "text"
    NAME = "name"
    """No operators of its own: names and addresses, equal whatever the case of their letters."""


# As the rows name them.
VALUE, VALUES, PART, PRESENCE = Takes
SET, TEXT = FilterFlag.SET, FilterFlag.TEXT
MEASURES = NUMBERS | TIMES
STRINGS = frozenset({ValueKind.STRING})


def _is_one_of(value: Comparable, values: Sequence[Comparable]) -> bool:
    return value in values


def _ordered(compare: Callable[[Any, Any], bool]) -> Predicate:
    return lambda value, values: compare(order_key(value), order_key(values[0]))


def _is_other(value: Comparable, values: Sequence[Comparable]) -> bool:
    return value != values[0]


def _has_part(text: str, values: Sequence[str]) -> bool:
    return values[0] in text


def _begins(text: str, values: Sequence[str]) -> bool:
    return text.startswith(values[0])


def _is_there(value: Comparable | None, values: Sequence[bool]) -> bool:
    return (value is not None) is values[0]


class Operator(StrEnum):
    """Comparison operators of conditions, each with its row.

    Shapes: `kinds` are those of the fields that may take it; `label` stands between field and value
        on a page, `sign` where `pdpp read` and `pdpp records` write it; `example` is a field with a
        value; `holds` gets folded texts where case makes no difference, and a null value only where
        the operator takes presence.  A `flag` names it in compact schemas, and a server that takes
        it names its `capability`; equality goes everywhere, and ranges where they are declared.
    """

    _value_: str
    kinds: Kinds
    takes: Takes
    label: str
    example: Example
    holds: Predicate
    sign: str | None
    flag: FilterFlag | None
    capability: str | None

    def __new__(
        cls,
        word: str,
        kinds: Kinds,
        takes: Takes,
        label: str,
        example: Example,
        holds: Predicate,
        sign: str | None = None,
        flag: FilterFlag | None = None,
    ) -> Self:
        """A member is its word, and knows its row."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.kinds, member.takes, member.label, member.example = kinds, takes, label, example
        member.holds, member.sign, member.flag = holds, sign, flag
        member.capability = None if flag is None else f"filter_{word}"
        return member

    EQ = "eq", SCALARS, VALUE, "is", ("status", "paid"), _is_one_of, "="
    GTE = "gte", MEASURES, VALUE, "is at least", ("sent_at", "2026-01-01"), _ordered(ge), ">="
    GT = "gt", MEASURES, VALUE, "is more than", ("size_bytes", 1_000), _ordered(gt), ">"
    LTE = "lte", MEASURES, VALUE, "is at most", ("size_bytes", 1_000), _ordered(le), "<="
    LT = "lt", MEASURES, VALUE, "is less than", ("sent_at", "2026-02-01"), _ordered(lt), "<"
    IN = "in", SCALARS, VALUES, "is one of", ("status", ["paid", "open"]), _is_one_of, None, SET
    NE = "ne", SCALARS, VALUE, "is not", ("status", "paid"), _is_other, "!=", SET
    CONTAINS = "contains", STRINGS, PART, "contains", ("payee", "net"), _has_part, "~", TEXT
    STARTS_WITH = "starts_with", STRINGS, PART, "begins with", ("payee", "net"), _begins, None, TEXT
    EXISTS = "exists", SCALARS, PRESENCE, "is there:", ("payee", True), _is_there, None, SET


RangeOperator = Literal[Operator.GTE, Operator.GT, Operator.LTE, Operator.LT]
"""Operators that a field takes where its source declares them."""
RANGES: frozenset[Operator] = frozenset(get_args(RangeOperator))
RANGE_OPERATORS = tuple(operator.value for operator in Operator if operator in RANGES)
FURTHER_OPERATORS = tuple(operator for operator in Operator if operator.flag is not None)
"""Those beside equality and ranges: they follow from a field's kind."""
FILTER_CAPABILITIES = tuple(
    operator.capability for operator in Operator if operator.capability is not None
)
LISTED_OPERATORS = tuple(operator.value for operator in Operator if operator.takes is VALUES)
"""Those that stand several times in a query string."""


def operators_of(flag: FilterFlag) -> tuple[str, ...]:
    """The words of the operators that a flag adds to those of the flags before it."""
    return tuple(operator.value for operator in FURTHER_OPERATORS if operator.flag is flag)


FURTHER_BY_KIND: Mapping[ValueKind, tuple[str, ...]] = {
    kind: tuple(
        word for flag in FilterFlag for word in operators_of(flag) if kind in Operator(word).kinds
    )
    for kind in ValueKind
}
"""What fields of a kind take in filters beside plain equality and declared ranges."""
