"""Expansion: which relations a read may follow, and under whose grant.

Rule: children are read through the source of the *same grant and connection*, and the key field
that joins must be granted on each side that holds it.
Source: docs/contract/resource-server.md 6.3, 7.5, 7.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from pdpp_kernel.declaration import Cardinality, Expansion
from pdpp_kernel.errors import FieldNotGranted, GrantStreamNotAllowed, InvalidExpand
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.skipped_sources import without_related
from personal_server.enforcement.fields import near
from personal_server.enforcement.queries import Expand

STREAM_NOT_GRANTED = "related_stream_not_granted"
STREAM_UNKNOWN = "related_stream_unknown"
FIELD_NOT_GRANTED = "field_not_granted"

Sources = tuple[ReadableSource, ...]


class AllowedExpansion(msgspec.Struct, frozen=True):
    """One relation that this read follows.

    Shapes: `children` maps a parent's connection to the source its children are read through;
        connections without one have no entry.
    """

    declared: Expansion
    limit: int
    children: Mapping[str, ReadableSource]

    @property
    def name(self) -> str:
        """The relation's name."""
        return self.declared.relationship.name

    @property
    def is_list(self) -> bool:
        """Whether the relation has many children."""
        return self.declared.relationship.cardinality is Cardinality.HAS_MANY


class Reach(msgspec.Struct, frozen=True):
    """How a source may follow a relation: through `child`, or not, for a `reason`."""

    child: ReadableSource | None
    reason: str | None = None


def reach(authority: ReadAuthority, source: ReadableSource, declared: Expansion) -> Reach:
    """Whether children of this source's records may be read, and through which source."""
    relation = declared.relationship
    child = next(
        (
            other
            for other in authority.sources
            if other.stream == relation.stream
            and other.connection_id == source.connection_id
            and other.grant_id == source.grant_id
        ),
        None,
    )
    if child is None:
        known = relation.stream in source.sibling_streams
        return Reach(None, STREAM_NOT_GRANTED if known else STREAM_UNKNOWN)
    holders = {"self": (source,), "target": (child,)}.get(relation.foreign_key_on, (source, child))
    if any(relation.foreign_key not in holder.fields for holder in holders):
        return Reach(None, FIELD_NOT_GRANTED)
    return Reach(child)


def allowed_expansions(
    authority: ReadAuthority, sources: Sources, asked: Expand
) -> tuple[tuple[AllowedExpansion, ...], tuple[Warning, ...]]:
    """The relations a read follows, and warnings for connections that cannot.

    Raises: InvalidExpand, GrantStreamNotAllowed, FieldNotGranted.
    """
    limits = dict(asked.limits)
    for name in limits:
        if asked.names and name not in asked.names:
            raise InvalidExpand(
                f"'expand' does not name '{name}'; add the name, or leave out its limit.",
                param=f"expand_limit[{name}]",
            )
    names = asked.names or tuple(limits)
    found: list[AllowedExpansion] = []
    warnings: list[Warning] = []
    for name in names:
        param = "expand" if asked.names else f"expand_limit[{name}]"
        declared = _declared(sources[0], name, param)
        limit = _limit(declared, limits.get(name))
        children, lacking = _children(authority, sources, declared)
        stream = declared.relationship.stream
        warnings += [without_related(cid, stream, why) for cid, why in lacking]
        found.append(AllowedExpansion(declared, limit, children))
    return tuple(found), tuple(warnings)


def _declared(source: ReadableSource, name: str, param: str) -> Expansion:
    declared = source.declared.expansion(name)
    if declared is None:
        names = [e.relationship.name for e in source.declared.expansions]
        raise InvalidExpand(
            f"'{source.stream}' has no relation '{name}' to expand.",
            param=param,
            suggestions=near(name, names),
        )
    return declared


def _limit(declared: Expansion, asked: int | None) -> int:
    if asked is None:
        return declared.default_limit
    name = declared.relationship.name
    if declared.relationship.cardinality is Cardinality.HAS_ONE:
        raise InvalidExpand(
            f"'{name}' leads to one record, so it takes no limit.", param=f"expand_limit[{name}]"
        )
    if not 1 <= asked <= declared.max_limit:
        raise InvalidExpand(
            f"The limit of '{name}' must be an integer from 1 to {declared.max_limit}.",
            param=f"expand_limit[{name}]",
        )
    return asked


def _children(
    authority: ReadAuthority, sources: Sources, declared: Expansion
) -> tuple[dict[str, ReadableSource], list[tuple[str, str]]]:
    reached = {s.connection_id: reach(authority, s, declared) for s in sources}
    children = {cid: r.child for cid, r in reached.items() if r.child is not None}
    lacking = [(cid, r.reason or "") for cid, r in reached.items() if r.child is None]
    if not children:
        raise _refused(declared, (reason for _, reason in lacking))
    return children, lacking


def _refused(
    declared: Expansion, reasons: Iterable[str]
) -> GrantStreamNotAllowed | FieldNotGranted:
    relation = declared.relationship
    if FIELD_NOT_GRANTED not in reasons:
        return GrantStreamNotAllowed(
            f"The related stream '{relation.stream}' is not part of this grant.", param="expand"
        )
    return FieldNotGranted(
        f"The key field '{relation.foreign_key}' is not part of this grant.", param="expand"
    )
