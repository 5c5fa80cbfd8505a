"""What a request would add to what its app holds already.  Pure.

Rule: only active grants count; what none of them reaches is an addition.
Source: AS contract 7, item 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from personal_server.console.consent_who import source_name
from personal_server.console.words import field_words, listed
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.grant import Grant, StreamGrant
from personal_server.granting.reviews import Review

Holdings = Mapping[tuple[str, str], Sequence[StreamGrant]]


def additions(review: Review) -> tuple[str, ...]:
    """One sentence for each purpose and kind of records that is new or reaches further."""
    grants = _active_grants(review)
    held, purposes = _held(grants), {(one.source.id, one.purpose_code) for one in grants}
    said: list[str] = []
    for entry in review.terms.entries:
        source_id, name = entry.offer.selection.source_id, source_name(entry.offer)
        known = source_id in {one for one, _ in purposes}
        if known and (source_id, entry.offer.selection.purpose_code) not in purposes:
            said.append(f"{name}: another purpose")
        names = {
            c.connection_id: c.display_name or c.connection_id for c in entry.offer.connections
        }
        for stream in entry.streams:
            earlier = held.get((source_id, stream.name))
            if earlier is None:
                said.append(f"{stream.name} of {name}")
            elif new := list(_new(stream, earlier, names)):
                said.append(f"{stream.name} of {name}: {', '.join(new)}")
    return tuple(said)


def _active_grants(review: Review) -> list[Grant]:
    held = [one for holding in review.earlier for one in holding.grants]
    return [one.grant for one in held if one.grant is not None and one.status == "active"]


def _held(grants: Sequence[Grant]) -> Holdings:
    held: dict[tuple[str, str], list[StreamGrant]] = {}
    for grant in grants:
        for stream in grant.streams:
            held.setdefault((grant.source.id, stream.name), []).append(stream)
    return held


def _new(
    stream: StreamGrant, earlier: Sequence[StreamGrant], names: Mapping[str, str]
) -> Iterator[str]:
    """Dimension by dimension, what no earlier grant of the stream reaches."""
    fields = {name for before in earlier for name in before.fields}
    if new := [field_words(name) for name in stream.fields if name not in fields]:
        yield f"the fields {listed(new)}"
    accounts = {one for before in earlier for one in before.instance_ids}
    if new := [names.get(one, one) for one in stream.instance_ids if one not in accounts]:
        yield f"the account {listed(new)}"
    bounds = [before.time_constraint for before in earlier]
    if not any(_begins_before(bound, stream.time_constraint) for bound in bounds):
        yield "older records"
    if not any(_ends_after(bound, stream.time_constraint) for bound in bounds):
        yield "newer records"
    named = {key for before in earlier for key in before.resources or ()}
    if all(before.resources for before in earlier) and not named.issuperset(
        stream.resources or ("",)
    ):
        yield "records that were not named before"


def _begins_before(bound: TimeConstraint | None, asked: TimeConstraint | None) -> bool:
    if bound is None or bound.since_ns is None:
        return True
    return asked is not None and asked.since_ns is not None and bound.since_ns <= asked.since_ns


def _ends_after(bound: TimeConstraint | None, asked: TimeConstraint | None) -> bool:
    if bound is None or bound.until_ns is None:
        return True
    return asked is not None and asked.until_ns is not None and asked.until_ns <= bound.until_ns
