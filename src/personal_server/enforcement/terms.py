"""The terms of an authorized read: what exactly may be read, per kind of read.

Rule: terms are plain values; every name in them has been found declared and granted.  Only
`authorize` puts them into an `AuthorizedRead`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.criteria import Condition, Grouping, Metric, Order, Term
from personal_server.domain.envelope import Warning
from personal_server.domain.values import ValueKind
from personal_server.enforcement.expansion import AllowedExpansion
from personal_server.enforcement.query import SchemaQuery

T_co = TypeVar("T_co", covariant=True)

# Per connection, the fields of `data` that are shown.
Shown = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AuthorizedRead(Generic[T_co]):
    """A read that may happen.

    Shapes: `sources` is what the request selected of the authority's sources, in source order.
    """

    authority: ReadAuthority
    sources: tuple[ReadableSource, ...]
    terms: T_co
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordsTerms:
    """A page of records; `asked` is what binds its cursor to the request."""

    order: Order
    conditions: tuple[Condition, ...]
    shown: Shown
    expansions: tuple[AllowedExpansion, ...]
    limit: int
    counted: bool
    windowed: bool
    cursor: str | None
    asked: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ChangesTerms:
    """A page of a change feed."""

    shown: Shown
    limit: int
    cursor: str | None
    changes_since: str | None
    asked: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class RecordTerms:
    """One record."""

    key: str
    shown: Shown
    expansions: tuple[AllowedExpansion, ...]


@dataclass(frozen=True, slots=True)
class FieldWindowTerms:
    """A stretch of one field; `text` searches for its place."""

    key: str
    field: str
    limit_chars: int
    offset_chars: int
    text: str | None
    before_chars: int


@dataclass(frozen=True, slots=True)
class AggregateTerms:
    """A metric over the selected sources."""

    metric: Metric
    field: str | None
    field_kind: ValueKind | None
    grouping: Grouping | None
    conditions: tuple[Condition, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class SearchPart:
    """Sources that are searched under the same conditions."""

    sources: tuple[ReadableSource, ...]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """A search; `parts` are the sources that take part."""

    terms: tuple[Term, ...]
    parts: tuple[SearchPart, ...]
    limit: int
    cursor: str | None
    asked: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class SchemaTerms:
    """A description of sources."""

    query: SchemaQuery


@dataclass(frozen=True, slots=True)
class BlobTerms:
    """The bytes of one blob, through a granted blob field."""

    blob_id: str
