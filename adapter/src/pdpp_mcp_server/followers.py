"""What one listener follows, and what may be told of it.

Rule: something is told exactly if a read with the listener's own token would show it: a feed from
the listener's bookmark has an item, or a document is not what it was. What is remembered is digests
and bookmarks, never what was read; it is gone with the listener.
Source: docs/contract/mcp-adapter.md 11.1.
"""

from hashlib import blake2b
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent

from pdpp_mcp_server.handles import is_part
from pdpp_mcp_server.read_refusals import ENDED_CODES
from pdpp_mcp_server.reads import SCHEMA_PATH
from pdpp_mcp_server.resources import STREAM_PREFIX
from pdpp_mcp_server.rs_client.answers import error_of
from pdpp_mcp_server.rs_client.json_values import Json, as_list, as_object, as_text, compact
from pdpp_mcp_server.rs_client.port import Query, RsFailure, RsPort, RsResponse
from pdpp_mcp_server.schema_document import (
    CatalogRow,
    all_connections,
    catalog_rows,
    each_row,
    rows_of_stream,
    unavailable_in,
    without_alias,
)

SCHEMA_URI, GRANT_URI = "pdpp://schema", "pdpp://grant"
STREAM_NAMES = ""
"""What the digest of the names that `pdpp://stream/{name}` takes is kept under."""
MOST_PAGES = 20
BEGINNING, NOW = "beginning", "now"
# What says nothing of the access itself: how fresh it is, and how the answer was made.
PASSING = frozenset({"freshness", "visible"})
PASSING_TOP = frozenset({"meta", "links", "today", "detail"})
Place = tuple[str, str | None]
"""A stream, and the connection whose feed it is; `None` is all of them, in one feed."""


class Unanswered(Exception):
    """The resource server did not say; it is asked again at the next look."""


class AccessOver(Exception):
    """The token stands for nothing any more; there is nothing to ask again."""


class FollowedFeed(msgspec.Struct):
    """Where a listener stands in one feed.  Shapes: `keys` are the fields its reads ask for."""

    keys: tuple[str, ...]
    bookmark: str


class Follower(msgspec.Struct):
    """What one listener was told of last.

    Shapes: `uris` are all of `is_followed`; `names` says whether it hears of the names of streams;
        `over` that its access ended, after which nothing is asked.
    """

    uris: frozenset[str]
    names: bool = False
    over: bool = False
    _digests: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    _feeds: dict[Place, FollowedFeed] = msgspec.field(default_factory=dict[Place, FollowedFeed])

    async def look(self, port: RsPort, *, documents: bool = True) -> list[ServerEvent]:
        """What to tell since the look before; the first one tells nothing.

        Raises: Unanswered.
        """
        try:
            changed = await self._changed_documents(port) if documents else set[str]()
            for place, feed in self._feeds.items():
                if await self._has_news(port, place, feed):
                    changed.add(stream_uri(place[0]))
        except RsFailure as failure:
            raise Unanswered from failure
        except AccessOver:
            return self.end()
        return self._events(changed)

    def end(self) -> list[ServerEvent]:
        """The access ended: every resource would be refused now."""
        self.over = True
        return self._events({*self.uris, STREAM_NAMES})

    def _events(self, changed: set[str]) -> list[ServerEvent]:
        events: list[ServerEvent] = [
            ResourceUpdated(uri) for uri in sorted(self.uris) if canonical(uri) in changed
        ]
        if self.names and STREAM_NAMES in changed:
            events.append(ResourcesListChanged())
        return events

    async def _changed_documents(self, port: RsPort) -> set[str]:
        response = await port.get(SCHEMA_PATH)
        wanted = {canonical(uri) for uri in self.uris} | {STREAM_NAMES}
        if response.ok:
            catalog = without_alias(as_object(response.body))
            found = {name: _digest(_document(catalog, name)) for name in wanted}
            await self._follow_feeds(port, catalog)
        else:
            found = dict.fromkeys(wanted, _digest(_refused(response)))
        before, self._digests = self._digests, found
        return {name for name in wanted if before.get(name, found[name]) != found[name]}

    async def _follow_feeds(self, port: RsPort, catalog: Json) -> None:
        """Take up the feeds of the streams that are there now, and leave those that went."""
        package = as_object(catalog.get("bearer")).get("token_kind") == "mcp_package"
        places: dict[Place, tuple[str, ...]] = {}
        for uri in self.uris:
            stream = stream_of(uri)
            for row in rows_of_stream(catalog, stream) if stream is not None else ():
                each = [c.connection_id for c in row.connections] if package else [None]
                places.update({(row.name, connection): _keys(row) for connection in each})
        self._feeds = {place: feed for place, feed in self._feeds.items() if place in places}
        for place, keys in places.items():
            if place not in self._feeds:
                bookmark = await _bookmark_now(port, place)
                if bookmark is not None:
                    self._feeds[place] = FollowedFeed(keys, bookmark)

    async def _has_news(self, port: RsPort, place: Place, feed: FollowedFeed) -> bool:
        """Whether the feed from the bookmark has an item; then it goes on from now."""
        start, query = feed.bookmark, _query(place, feed.bookmark, feed.keys)
        for _ in range(MOST_PAGES):
            response = await port.get(_path(place), query)
            if response.status in (400, 410) and start != BEGINNING:
                start, query = BEGINNING, _query(place, BEGINNING, feed.keys)
                continue
            if not response.ok:
                _refused(response)  # that the stream is refused now is told by its document
                return False
            body = as_object(response.body)
            if as_list(body.get("data")):
                feed.bookmark = await _bookmark_now(port, place) or feed.bookmark
                return True
            cursor = as_text(body.get("next_cursor"))
            if cursor is None:
                feed.bookmark = as_text(body.get("next_changes_since")) or feed.bookmark
                return False
            query = (*_query(place, start, feed.keys), ("cursor", cursor))
        raise Unanswered


def is_followed(uri: str) -> bool:
    """Whether changes of this resource are told."""
    return uri in (SCHEMA_URI, GRANT_URI) or stream_of(uri) is not None


def stream_of(uri: str) -> str | None:
    """The stream that a URI names, if it names one."""
    rest = uri.removeprefix(STREAM_PREFIX)
    if rest == uri or not rest or any(char in "/?#" for char in rest):
        return None
    stream = unquote(rest)
    return stream if is_part(stream) and unquote(stream) == stream else None


def stream_uri(stream: str) -> str:
    """The one spelling that digests are kept under."""
    return STREAM_PREFIX + quote(stream, safe="")


def canonical(uri: str) -> str:
    """A URI as its digest is kept."""
    stream = stream_of(uri)
    return uri if stream is None else stream_uri(stream)


def _document(catalog: Json, name: str) -> object:
    """What a resource says of the access, without what passes."""
    rows = catalog_rows(catalog)
    streams = sorted({(row.connector_key or "", row.name) for row in rows})
    if name == STREAM_NAMES:
        return [stream for _, stream in streams]
    if name == GRANT_URI:
        connections = [[*_label(found), key] for found, key in all_connections(catalog).values()]
        return [catalog.get("bearer"), streams, connections, unavailable_in(catalog)]
    if name == SCHEMA_URI:
        kept = {key: value for key, value in catalog.items() if key not in PASSING_TOP}
        return each_row(kept, _lasting)
    found = rows_of_stream(catalog, stream_of(name) or "")
    return [[_lasting(row.row), [_label(label) for label in row.connections]] for row in found]


def _label(connection: Any) -> list[str | None]:
    return [connection.connection_id, connection.display_name, connection.grant_id]


def _lasting(row: Json) -> Json:
    return {name: value for name, value in row.items() if name not in PASSING}


def _digest(value: object) -> str:
    return blake2b(compact(value).encode(), digest_size=16).hexdigest()


def _keys(row: CatalogRow) -> tuple[str, ...]:
    """The granted fields of the primary key: a read for news asks for nothing else."""
    known = as_object(row.row.get("field_capabilities"))
    return tuple(
        name
        for name in as_list(row.row.get("primary_key"))
        if isinstance(name, str) and as_object(known.get(name)).get("granted") is True
    )


def _path(place: Place) -> tuple[str, ...]:
    return ("v1", "streams", place[0], "records")


def _query(place: Place, since: str, keys: tuple[str, ...] = ()) -> Query:
    connection = () if place[1] is None else (("connection_id", place[1]),)
    fields = (("fields", ",".join(keys)),) if keys else ()
    return (("changes_since", since), ("limit", "1"), *fields, *connection)


async def _bookmark_now(port: RsPort, place: Place) -> str | None:
    response = await port.get(_path(place), _query(place, NOW))
    if not response.ok:
        _refused(response)
        return None
    return as_text(as_object(response.body).get("next_changes_since"))


def _refused(response: RsResponse) -> str:
    """The code of a refusal that another look may not meet.  Raises: Unanswered, AccessOver."""
    if response.status >= 500 or response.status == 429:
        raise Unanswered
    code = str(error_of(response)["code"])
    if response.status == 401 or code in ENDED_CODES:
        raise AccessOver
    return code
