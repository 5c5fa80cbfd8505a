"""Envelopes: lists and single objects as docs/contract/resource-server.md 2.2 draws them.

Rule: `has_more`, `next_cursor` and `links.next` always agree, because one value makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

import msgspec

from pdpp_kernel.wire_objects import (
    AnyObject,
    ConnectionId,
    Count,
    RoutePath,
    WireObject,
    Word,
)
from personal_server.domain.answer_warnings import Warning, damage_warnings
from personal_server.domain.envelope import UNCOUNTED, Counted, UnavailableConnections, Uncounted
from personal_server.reading.empty_answers import EmptyAnswer, NearValue
from personal_server.reading.freshness import ShownFreshness
from personal_server.reading.relaxing import NearWord, RelaxedSearch
from personal_server.reading.stale_sources import newer_missing
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.web.requests import Request

T = TypeVar("T")
S = TypeVar("S", bound=WireObject)


class Meta(WireObject, kw_only=True):
    """What is said about an answer.  Source: docs/contract/resource-server.md 2.3."""

    component: ClassVar = "Meta"

    count: Uncounted | Counted
    warnings: Sequence[Warning]
    window: AnyObject | None = None
    count_accuracy: str | None = None
    ignored_words: Sequence[str] | None = None
    recall: AnyObject | None = None
    source_mix: Sequence[AnyObject] | None = None
    package: AnyObject | None = None
    freshness: ShownFreshness | None = None
    unavailable_connections: UnavailableConnections | None = None
    unavailable_connection_count: Count | None = None
    empty: EmptyAnswer | None = None
    near: Sequence[NearValue | NearWord] | None = None
    units: dict[str, str] | None = None
    relaxed: RelaxedSearch | None = None
    time_zone: str | None = None
    ranged_by: Word | None = None


class SelfLink(WireObject, kw_only=False, rename={"here": "self"}):
    """The links of a single object."""

    here: RoutePath


class PageLinks(WireObject, kw_only=False, rename={"here": "self"}):
    """The links of a list."""

    here: RoutePath
    next: RoutePath | None


class StreamLabel(WireObject):
    """How a stream is shown."""

    label: str
    detail: str | None = None


class ShownSource(WireObject, kw_only=False):
    """Where data comes from."""

    kind: Literal["connector", "provider_native"]
    id: Word


def shown_source(kind: str, source_id: str) -> ShownSource:
    """A declared source; its kind was checked when it was declared."""
    return ShownSource(cast('Literal["connector", "provider_native"]', kind), source_id)


KeptBackups = Callable[[], Sequence[str]]
"""The file names of backups that are kept."""


class Deletion(WireObject, kw_only=True, tag_field="object", tag="deletion"):
    """What was deleted, in a stream or in a whole connection.

    `kept_backups` are the files of backups that were made before and may still hold it.
    """

    component: ClassVar = "Deletion"

    stream: Word | None = None
    connection_id: ConnectionId
    deleted_count: Count
    kept_backups: list[str]


class ListFront(WireObject, Generic[T], kw_only=True, tag_field="object", tag="list"):
    """What every list begins with."""

    url: RoutePath
    data: Sequence[T]
    has_more: bool
    next_cursor: Word | None = None


class ListOf(ListFront[T], Generic[T], kw_only=True):
    """The list envelope around items.  Source: docs/contract/resource-server.md 2.2."""

    links: PageLinks
    meta: Meta


def meta_of(
    request: Request,
    *,
    count: Uncounted | Counted = UNCOUNTED,
    warnings: Iterable[Warning] = (),
    meta: Mapping[str, Any] | None = None,
) -> Meta:
    """`meta`, with the warnings of the request, of the answer, and of what it read; none twice."""
    snapshot = cast("ReadSnapshot | None", request.snapshot)
    beside = [] if snapshot is None else damage_warnings(snapshot.damaged)
    freshness: ShownFreshness | None = (meta or {}).get("freshness")
    if freshness is not None and freshness.status == "stale":
        beside += newer_missing(freshness)
    distinct: list[Warning] = []
    for warning in (*request.parameters.warnings, *request.warnings, *warnings, *beside):
        if warning not in distinct:
            distinct.append(warning)
    return Meta(count=count, warnings=distinct, **(meta or {}))


def page_links(request: Request, next_cursor: str | None) -> PageLinks:
    """The links of a list, and of its next page."""
    following = None if next_cursor is None else request.next_link(next_cursor)
    return PageLinks(request.self_link, following)


def page_of(
    shape: type[ListOf[T]],
    request: Request,
    data: Sequence[T],
    *,
    next_cursor: str | None = None,
    count: Uncounted | Counted = UNCOUNTED,
    warnings: Iterable[Warning] = (),
    meta: Mapping[str, Any] | None = None,
) -> ListOf[T]:
    """A list envelope.  `meta` are further members of `meta`."""
    return shape(
        url=request.raw_path,
        data=data,
        has_more=next_cursor is not None,
        next_cursor=next_cursor,
        links=page_links(request, next_cursor),
        meta=meta_of(request, count=count, warnings=warnings, meta=meta),
    )


def completed(
    shape: Callable[..., S],
    request: Request,
    part: WireObject,
    *,
    warnings: Iterable[Warning] = (),
    meta: Mapping[str, Any] | None = None,
) -> S:
    """A single object: the members of a part, `links` and `meta`, flat.

    Source: docs/contract/resource-server.md 2.2.
    """
    return shape(
        **msgspec.structs.asdict(part),
        links=SelfLink(request.self_link),
        meta=meta_of(request, warnings=warnings, meta=meta),
    )
