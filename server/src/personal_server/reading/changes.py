"""Following: what changed in the visible records since a bookmark.

Rule: a bookmark stands for a change number under one projection; when either cannot be honoured
any more the caller starts again, and is told so.
Source: docs/contract/resource-server.md 8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import cast

import msgspec
from msgspec.structs import replace

from pdpp_kernel.errors import CursorExpired, InvalidCursor, PersonalServerError
from pdpp_kernel.record import StoredRecord
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.cursor import (
    CursorPlace,
    TokenUse,
    history_digest,
    open_place,
    request_digest,
    seal_place,
)
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import ReadResult
from personal_server.enforcement.asked_times import moment_of
from personal_server.enforcement.authorize import authorize_changes
from personal_server.enforcement.authorized_reads import AuthorizedRead
from personal_server.enforcement.disclose import disclose_tombstone, discloser
from personal_server.enforcement.page_sizes import PageFill
from personal_server.enforcement.plans import ChangesPlan
from personal_server.enforcement.queries import ChangesQuery, PageSize, Selectors
from personal_server.enforcement.rows import Change
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import unavailable_meta
from personal_server.storage.ports.snapshots import ReadSnapshot

BEGINNING, NOW = "beginning", "now"
# A hint of how much changed is counted no further.
COUNTED_NEWS = 10


class _Feed(msgspec.Struct, frozen=True):
    """A feed between two change numbers, and how far it was read; `start` names its beginning."""

    since: int | None
    horizon: int
    after: int
    start: str


def follow(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    query: ChangesQuery,
) -> ReadResult:
    """A page of a change feed.

    Raises: what `authorize_changes` raises, InvalidCursor, CursorExpired, QueryTimeout.
    """
    read = authorize_changes(authority, query)
    feed = _feed(ports, read, query, snapshot)
    found = snapshot.changes(
        replace(read.plan, since=feed.since, horizon=feed.horizon, after=feed.after)
    )
    history = _history(read, snapshot, feed.horizon)
    items = _disclosed_items(read, found.items, query.size)
    more = found.more or len(items) < len(found.items)
    shown = found.items[: len(items)]
    last = shown[-1].sequence if shown else feed.after
    if found.end is not None and len(items) == len(found.items):
        last = found.end
    cursor = _seal_cursor(ports, read, feed, history, last) if more else None
    return ReadResult(
        data=items,
        next_cursor=cursor,
        next_changes_since=None if more else _seal_bookmark(ports, read, history, feed.horizon),
        meta=unavailable_meta(authority, query.selectors)
        | ({} if query.time_zone is None else {"time_zone": query.time_zone}),
        warnings=read.warnings,
        disclosed=_disclosed(read, shown),
    )


class News(msgspec.Struct, frozen=True):
    """That a feed has items, for who may be told so and no more.

    Shapes: `bookmark` is the `changes_since` of that feed, `count` how many items it has, counted
        up to `COUNTED_NEWS`.
    """

    bookmark: str
    count: int


def news_after(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    stream_key: tuple[str, str],
    number: int,
) -> News | None:
    """What may be told of a (connection, stream) since change `number`; `None` is silence.

    Something may be told exactly if the feed itself, read with this authority from the bookmark
    that is told, has an item; so it is that feed that is read here, and nothing else is asked.
    Where the changes since `number` are not all known any more, it is the feed from `beginning`.
    Source: docs/contract/resource-server.md 15.2.
    Raises: what is no refusal, as QueryTimeout.
    """
    connection_id, stream = stream_key
    query = ChangesQuery(stream, Selectors(connection_id), limit=COUNTED_NEWS)
    try:
        bookmark = BEGINNING
        if number >= snapshot.retained_from:
            read = authorize_changes(authority, query)
            bookmark = _seal_bookmark(ports, read, _history(read, snapshot, number), number)
        feed = follow(ports, snapshot, authority, replace(query, changes_since=bookmark))
    except PersonalServerError as refusal:
        if refusal.status >= 500:
            raise
        return None
    count = sum(part.record_count for part in feed.disclosed)
    return News(bookmark, count) if count else None


def _feed(
    ports: ReadPorts,
    read: AuthorizedRead[ChangesPlan],
    query: ChangesQuery,
    snapshot: ReadSnapshot,
) -> _Feed:
    if query.cursor is not None:
        feed = _continued(ports, read, query, snapshot, query.cursor)
    else:
        feed = _begun(ports, read, query, snapshot)
    if feed.since is not None and not snapshot.retained_from <= feed.since <= snapshot.horizon:
        raise _expired(query)
    if feed.horizon > snapshot.horizon:
        raise _expired(query)
    return feed


def _begun(
    ports: ReadPorts,
    read: AuthorizedRead[ChangesPlan],
    query: ChangesQuery,
    snapshot: ReadSnapshot,
) -> _Feed:
    start = query.changes_since or ""
    horizon, named = snapshot.horizon, _fingerprint(start)
    if start == BEGINNING:
        return _Feed(None, horizon, 0, named)
    if start == NOW:
        return _Feed(horizon, horizon, horizon, named)
    instant = moment_of(start, query.time_zone)
    if instant is not None:
        since = _before(snapshot, read, query, instant)
        return _Feed(since, horizon, since, named)
    request = _request(read)
    place = open_place(ports.sealer, TokenUse.BOOKMARK, start, request, param="changes_since")
    (since,) = cast("tuple[int]", place.position)
    if place.sources != _history(read, snapshot, since):
        raise _expired(query)
    return _Feed(since, horizon, since, named)


def _before(
    snapshot: ReadSnapshot, read: AuthorizedRead[ChangesPlan], query: ChangesQuery, instant_ns: int
) -> int:
    """The number up to which changes were written at an instant."""
    if instant_ns < snapshot.forgotten_until_ns:
        raise _expired(query)
    first = snapshot.first_change_after(read.plan.scopes, instant_ns)
    return snapshot.horizon if first is None else first - 1


def _continued(
    ports: ReadPorts,
    read: AuthorizedRead[ChangesPlan],
    query: ChangesQuery,
    snapshot: ReadSnapshot,
    token: str,
) -> _Feed:
    place = open_place(ports.sealer, TokenUse.FEED, token, _request(read), param="cursor")
    feed = _Feed(*cast("tuple[int | None, int, int, str]", place.position))
    asked = query.changes_since
    if asked is not None and _fingerprint(asked) != feed.start:
        raise InvalidCursor(
            (
                "'changes_since' differs from the one that this feed began with. Send "
                "the cursor alone."
            ),
            param="changes_since",
        )
    if place.sources != _history(read, snapshot, feed.horizon):
        raise _expired(query)
    return feed


def _expired(query: ChangesQuery) -> CursorExpired:
    recovery: dict[str, object] = {"changes_since": BEGINNING}
    if query.cursor is not None:
        recovery["cursor"] = None
    return CursorExpired(
        "This bookmark of the change feed is too old. Delete your copy and start at 'beginning'.",
        param="changes_since",
        retry_with="changes_since",
        recovery=recovery,
    )


def _disclosed_items(
    read: AuthorizedRead[ChangesPlan], items: Sequence[Change], size: PageSize
) -> list[msgspec.Raw]:
    """The items that fit, each already JSON; at least one."""
    sources = {source.connection_id: source for source in read.sources}
    disclosers = {
        cid: discloser(read.authority, source, read.shown[cid]) for cid, source in sources.items()
    }
    fill = PageFill(size)
    for change in items:
        item = change.item
        if isinstance(item, StoredRecord):
            record = disclosers[item.connection_id](item)
        else:
            record = disclose_tombstone(read.authority, sources[item.connection_id], item)
        if not fill.takes(record):
            break
    return fill.items


def _disclosed(read: AuthorizedRead[ChangesPlan], shown: Sequence[Change]) -> list[Disclosed]:
    keys: dict[str, list[str]] = {}
    for change in shown:
        keys.setdefault(change.item.connection_id, []).append(change.item.key)
    return [
        Disclosed(source, read.shown[cid], len(keys[cid]), tuple(keys[cid]))
        for source in read.sources
        if (cid := source.connection_id) in keys
    ]


def _request(read: AuthorizedRead[ChangesPlan]) -> str:
    return request_digest(read.authority.cursor_holder, "changes", read.asked)


def _seal_cursor(
    ports: ReadPorts, read: AuthorizedRead[ChangesPlan], feed: _Feed, history: str, after: int
) -> str:
    position = (feed.since, feed.horizon, after, feed.start)
    place = CursorPlace(_request(read), history, position)
    return seal_place(ports.sealer, TokenUse.FEED, place)


def _seal_bookmark(
    ports: ReadPorts, read: AuthorizedRead[ChangesPlan], history: str, horizon: int
) -> str:
    place = CursorPlace(_request(read), history, (horizon,))
    return seal_place(ports.sealer, TokenUse.BOOKMARK, place)


def _history(read: AuthorizedRead[ChangesPlan], snapshot: ReadSnapshot, number: int) -> str:
    return history_digest(read.sources, snapshot.epoch, snapshot.era(number))


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
