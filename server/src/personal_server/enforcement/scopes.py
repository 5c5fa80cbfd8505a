"""Scopes: whose records exist for a request, as a backend sees it.

Rule: a scope holds no grant, token or client; what it may not see is not in it.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from pdpp_kernel.criteria import Condition, Order
from pdpp_kernel.declaration import Stream
from personal_server.domain.authority import ReadableSource, TimeConstraint


class Scope(msgspec.Struct, frozen=True):
    """One source as a backend sees it: whose records exist for this request.

    `fields` are the granted ones, for what is computed *from* fields (changes, search, dates of
    records); `window` bounds the consent-time field; `resources` are the only keys that exist, and
    only records that satisfy all of `only` do (`eq` and `in`, of fields granted or not).
    Records of a scope that is `made_of` others are computed from what those show
    (`domain.persons`), and from nothing else.
    """

    connection_id: str
    stream: Stream
    fields: tuple[str, ...]
    window: TimeConstraint | None = None
    resources: frozenset[str] | None = None
    made_of: tuple[Scope, ...] | None = None
    connector_key: str = ""
    only: tuple[Condition, ...] = ()

    @property
    def is_picked(self) -> bool:
        """Whether records are picked by key or content, so that no stretch of time is all of it."""
        return self.resources is not None or bool(self.only)

    @property
    def unpicked(self) -> Scope:
        """The scope as its window alone leaves it."""
        return replace(self, resources=None, only=()) if self.is_picked else self


class TimedScope(msgspec.Struct, frozen=True):
    """A scope on a time line: its time is the field of `order`, its conditions bound it."""

    scope: Scope
    order: Order
    conditions: tuple[Condition, ...] = ()


def scope_of(source: ReadableSource) -> Scope:
    """One source as a store sees it."""
    return Scope(
        connection_id=source.connection_id,
        stream=source.declared,
        fields=source.fields,
        window=source.time_constraint,
        resources=source.resources,
        made_of=None if source.made_of is None else scopes_of(source.made_of),
        connector_key=source.connector_key,
        only=source.only,
    )


def scopes_of(sources: tuple[ReadableSource, ...]) -> tuple[Scope, ...]:
    """Several sources, in their order."""
    return tuple(scope_of(source) for source in sources)
