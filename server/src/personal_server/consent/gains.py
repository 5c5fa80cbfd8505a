"""In what terms reach further than grants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from personal_server.consent.terms import EntryTerms
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.grant import Grant, StreamGrant


class Gain(msgspec.Struct, frozen=True):
    """One dimension in which terms reach further than what is held.

    `what` is purpose, stream, fields, accounts, older, newer, records or values; `names` are those
    of fields or connections.
    """

    source_id: str
    stream: str | None
    what: str
    names: tuple[str, ...] = ()


def gains(entries: Iterable[EntryTerms], grants: Sequence[Grant]) -> Iterator[Gain]:
    """What no grant of `held` reaches, kind by kind of records."""
    purposes = {(grant.source.id, grant.purpose_code) for grant in grants}
    source_ids = {source_id for source_id, _ in purposes}
    for entry in entries:
        source_id = entry.offer.selection.source_id
        if (
            source_id in source_ids
            and (source_id, entry.offer.selection.purpose_code) not in purposes
        ):
            yield Gain(source_id, None, "purpose")
        for stream in entry.streams:
            earlier = [
                before
                for grant in grants
                if grant.source.id == source_id
                for before in grant.streams
                if before.name == stream.name
            ]
            if not earlier:
                yield Gain(source_id, stream.name, "stream")
            else:
                yield from _stream_gains(source_id, stream, earlier)


def _stream_gains(
    source_id: str, stream: StreamGrant, earlier: Sequence[StreamGrant]
) -> Iterator[Gain]:
    fields = {name for before in earlier for name in before.fields}
    if new := tuple(name for name in stream.fields if name not in fields):
        yield Gain(source_id, stream.name, "fields", new)
    accounts = {account for before in earlier for account in before.instance_ids}
    if new := tuple(account for account in stream.instance_ids if account not in accounts):
        yield Gain(source_id, stream.name, "accounts", new)
    bounds = [before.time_constraint for before in earlier]
    if not any(_begins_before(bound, stream.time_constraint) for bound in bounds):
        yield Gain(source_id, stream.name, "older")
    if not any(_ends_after(bound, stream.time_constraint) for bound in bounds):
        yield Gain(source_id, stream.name, "newer")
    keys = {key for before in earlier for key in before.resources or ()}
    if all(before.resources for before in earlier) and not keys.issuperset(
        stream.resources or ("",)
    ):
        yield Gain(source_id, stream.name, "records")
    if not any(_lets_through(before, stream) for before in earlier):
        yield Gain(source_id, stream.name, "values")


def _lets_through(before: StreamGrant, stream: StreamGrant) -> bool:
    """Whether the content limits of an earlier grant leave all of these records."""
    limits = {limit.field: frozenset(limit.values) for limit in stream.only}
    return all(
        limit.field in limits and limits[limit.field] <= frozenset(limit.values)
        for limit in before.only
    )


def _begins_before(bound: TimeConstraint | None, constraint: TimeConstraint | None) -> bool:
    if bound is None or bound.since_ns is None:
        return True
    if constraint is None or constraint.since_ns is None or constraint.field != bound.field:
        return False
    return bound.since_ns <= constraint.since_ns


def _ends_after(bound: TimeConstraint | None, constraint: TimeConstraint | None) -> bool:
    if bound is None or bound.until_ns is None:
        return True
    if constraint is None or constraint.until_ns is None or constraint.field != bound.field:
        return False
    return constraint.until_ns <= bound.until_ns
