"""Criteria: the words of a question that queries, authorized reads and plans share.

Rule: every value here is already *comparable* (`domain.values.comparable`), so nobody below
parses anything.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

import msgspec

from pdpp_kernel.aggregations import Granularity
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import Comparable, ValueKind


class Condition(msgspec.Struct, frozen=True):
    """`field operator value`; all conditions of a plan hold together.

    Exact conditions on strings compare whole strings; on `date-time`, instants; on `date`, days.
    Shapes: `further` are the other values of `in`; `value` of `exists` is a boolean; `caseless`:
        `eq`, `in` and `ne` compare folded strings, as `contains` and `starts_with` always do.
        With `any_of`, one of these has to hold whole, and nothing else is compared.
    """

    field: str
    kind: ValueKind
    operator: Operator
    value: Comparable
    further: tuple[Comparable, ...] = ()
    caseless: bool = False
    any_of: tuple[tuple[Condition, ...], ...] = ()

    @property
    def values(self) -> tuple[Comparable, ...]:
        """All values, of `in` several."""
        return (self.value, *self.further)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that decide it."""
        return (self.field, *(n for each in self.any_of for one in each for n in one.fields))


class WholeDays(NamedTuple):
    """Which records are days of a zone, not midnights (UTC) as they are stored: those whose `flag`
    is true.
    """

    flag: str
    time_zone: str


class Order(msgspec.Struct, frozen=True):
    """Total order (sort value, key, connection); nulls last in both directions.

    `field` `None`: (key, connection) alone.  Key and connection follow `descending`.
    """

    field: str | None
    kind: ValueKind | None
    descending: bool
    days: WholeDays | None = None


class HitOrder(StrEnum):
    """What the hits of a search are ordered by."""

    RELEVANCE = "relevance"
    NEWEST = "newest"
    OLDEST = "oldest"


class Grouping(msgspec.Struct, frozen=True):
    """By a scalar field's values, by time buckets in `time_zone` (with `granularity`), by steps of
    a number (with `bin_width`; 0: as wide as the values ask for), or by connection (no `field`).
    `days` are whole ones among time buckets.

    `is_list`: the field lists strings, and a record is in the group of each of them.

    `label_field` says how people see the value of the field, `mark_field` whether that is none of
    a person; where they are granted.
    """

    field: str | None
    kind: ValueKind
    granularity: Granularity | None = None
    time_zone: str = "UTC"
    bin_width: Decimal | None = None
    label_field: str | None = None
    mark_field: str | None = None
    days: WholeDays | None = None
    is_list: bool = False

    @property
    def is_time_line(self) -> bool:
        """Whether groups are stretches of time, one after the other."""
        return self.granularity is not None and not self.granularity.is_cyclic

    @property
    def has_natural_order(self) -> bool:
        """Whether groups stand by their keys unless told otherwise."""
        return self.granularity is not None or self.bin_width is not None


class GroupOrder(StrEnum):
    """What groups are ordered by."""

    KEY = "key"
    KEY_DOWN = "-key"
    VALUE = "value"
    VALUE_DOWN = "-value"

    @property
    def is_by_key(self) -> bool:
        """By key, or else by value."""
        return self in (GroupOrder.KEY, GroupOrder.KEY_DOWN)

    @property
    def is_descending(self) -> bool:
        """Null keys and values stand last in both directions."""
        return self.value.startswith("-")


class NamedPiece(NamedTuple):
    """`name:value` as typed, until a source says whether the name means fields of its own."""

    name: str
    value: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """One search term: adjacent tokens (a phrase if several); `prefix`: the last token begins so.

    Tokens are normalized (`domain.search_words`).  `inflected`, of a single token only: its other
    forms match as well (`domain.word_forms`).  `others` match in its place.  It stands in one of
    `fields`, or without any in whichever is searched.  `named`: what it may mean in a source
    instead of its words.  One without tokens asks for no word.  `literal`: how it has to stand
    there, its signs too (`c++`).  `said` is how it was written, `quoted` whether it is meant as it
    is, as in quotation marks: neither makes it another term.
    """

    tokens: tuple[str, ...]
    prefix: bool = False
    inflected: bool = False
    others: tuple[Term, ...] = ()
    fields: tuple[str, ...] = ()
    named: NamedPiece | None = None
    literal: str = ""
    said: str = field(default="", compare=False)
    quoted: bool = field(default=False, compare=False)

    @property
    def is_plain(self) -> bool:
        """Whether it means one word, as it is written."""
        is_more = self.prefix or self.inflected or self.others or self.fields or self.named
        return not is_more and not self.literal and len(self.tokens) == 1

    @property
    def alternatives(self) -> tuple[Term, ...]:
        """Itself and the others."""
        return (self, *self.others)

    def alternatives_in(self, field: str) -> tuple[Term, ...]:
        """Those that may stand in a field."""
        if not self.others and not self.fields:
            return (self,)
        return tuple(each for each in self.alternatives if not each.fields or field in each.fields)


class WordQuery(msgspec.Struct, frozen=True):
    """What a text has to hold: every one of the terms, and none that is excluded.

    `least`: so many of the terms are enough, with those in quotation marks among them; `telling`
    are the places of terms of which one has to be held then, where not any will do.  `ignored`
    are words that every text of the query's language holds: not looked for.  `phrase` is all that
    was written, where that is plain words.
    """

    terms: tuple[Term, ...]
    excluded: tuple[Term, ...] = ()
    least: int | None = None
    ignored: tuple[str, ...] = ()
    phrase: Term | None = None
    telling: tuple[int, ...] = ()

    def is_met(self, occurring: AbstractSet[int]) -> bool:
        """Whether these of the terms, by their places, are enough."""
        if self.least is None:
            return len(occurring) == len(self.asked)
        is_told = not self.telling or not occurring.isdisjoint(self.telling)
        return len(occurring) >= self.needed and self.quoted <= occurring and is_told

    @property
    def asked(self) -> tuple[Term, ...]:
        """The terms that ask for words."""
        return tuple(term for term in self.terms if term.tokens)

    @property
    def needed(self) -> int:
        """How many of these are enough where not all are needed."""
        return (self.least or 0) - len(self.terms) + len(self.asked)

    @property
    def quoted(self) -> AbstractSet[int]:
        """The places of the terms in quotation marks."""
        return {place for place, term in enumerate(self.terms) if term.quoted and term.tokens}
