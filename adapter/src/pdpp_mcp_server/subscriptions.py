"""Subscriptions: who asked to hear when a resource changes, and what may be told them.

Rule: something is told exactly if a read with the listener's own token would show it: a feed from
the listener's bookmark has an item, or a document is not what it was. What is remembered is digests
and bookmarks, never what was read; it is gone with the listener.
Source: docs/contract/mcp-adapter.md 11.1.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Hashable
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
)
from mcp.shared.exceptions import MCPError

from pdpp_kernel.errors import (
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    InvalidToken,
    PersonalServerError,
)
from pdpp_kernel.failures import log_failure, new_request_id
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.handles import is_part
from pdpp_mcp_server.reads import ENDED_CODES, SCHEMA_PATH
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
from pdpp_mcp_server.sdk_results import resource_error

SCHEMA_URI, GRANT_URI = "pdpp://schema", "pdpp://grant"
SUBSCRIPTION = "subscription"
"""What the reads of a listener say that they are for."""
STREAM_NAMES = ""
"""What the digest of the names that `pdpp://stream/{name}` takes is kept under."""
MOST_URIS = 32
MOST_OF_TOKEN = 8
MOST_LISTENERS = 128
MOST_PAGES = 20
# What comes while a listener was just told is told together.
REST_SECONDS = 2.0
LONGEST_SECONDS = 60.0
# So long a thread outlives the server at most.
THREAD_SECONDS = 1.0
BEGINNING, NOW = "beginning", "now"
ENDED = (GrantRevoked, GrantExpired, GrantInvalid, InvalidToken)
# What says nothing of the access itself: how fresh it is, and how the answer was made.
PASSING = frozenset({"freshness", "visible"})
PASSING_TOP = frozenset({"meta", "links", "today", "detail"})

Context = ServerRequestContext[Any, Any]
OpenPort = Callable[[], Awaitable[RsPort]]
"""Opens a port for one look, with the token judged anew.  Raises: PersonalServerError."""
Place = tuple[str, str | None]
"""A stream, and the connection whose feed it is; `None` is all of them, in one feed."""


class Unanswered(Exception):
    """The resource server did not say; it is asked again at the next look."""


class AccessOver(Exception):
    """The token stands for nothing any more; there is nothing to ask again."""


@dataclass(slots=True)
class FollowedFeed:
    """Where a listener stands in one feed.  Shapes: `keys` are the fields its reads ask for."""

    keys: tuple[str, ...]
    bookmark: str


@dataclass(slots=True)
class Follower:
    """What one listener was told of last.

    Shapes: `uris` are all of `is_followed`; `names` says whether it hears of the names of streams;
        `over` that its access ended, after which nothing is asked.
    """

    uris: frozenset[str]
    names: bool = False
    over: bool = False
    _digests: dict[str, str] = field(default_factory=dict[str, str])
    _feeds: dict[Place, FollowedFeed] = field(default_factory=dict[Place, FollowedFeed])

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
        told: list[ServerEvent] = [
            ResourceUpdated(uri) for uri in sorted(self.uris) if canonical(uri) in changed
        ]
        if self.names and STREAM_NAMES in changed:
            told.append(ResourcesListChanged())
        return told

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
        self._feeds = {place: held for place, held in self._feeds.items() if place in places}
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


# Listening: from a request to what is sent.


class Pace(Protocol):
    """Says when to look; one for each listener."""

    async def wait(self) -> bool:
        """Until something may have changed; whether documents may have, too."""
        ...


@dataclass(slots=True)
class ListenerPlaces:
    """The bound on who listens at once: of one token, and in all."""

    most_of_token: int = MOST_OF_TOKEN
    most: int = MOST_LISTENERS
    _held: Counter[Hashable] = field(default_factory=Counter[Hashable])

    @property
    def count(self) -> int:
        """How many listen."""
        return self._held.total()

    @contextmanager
    def place(self, holder: Hashable, uri: str) -> Generator[None]:
        """One of the places, until the block ends.  Raises: MCPError where none is left."""
        self._check_room(holder, uri)
        self._held[holder] += 1
        try:
            yield
        finally:
            self._held[holder] -= 1
            if not self._held[holder]:
                del self._held[holder]

    def _check_room(self, holder: Hashable, uri: str) -> None:
        if self._held[holder] >= self.most_of_token or self._held.total() >= self.most:
            raise too_many(uri, "As many listen already as may. End one, or read again later.")


def too_many(uri: str, message: str) -> MCPError:
    """The refusal of one listener, or one resource, more."""
    error = ToolError("rate_limit_exceeded", message, members={"limit": "subscriptions"})
    return resource_error(uri, error, "2026-07-28")


class Signal(Protocol):
    """Tells that something was written, by whichever process."""

    @property
    def count(self) -> int:
        """How often something was told."""
        ...

    def wait(self, seen: int, timeout_seconds: float) -> int:
        """Block this thread until the count is beyond `seen`, or so long; the count then."""
        ...


class Bell:
    """Wakes everybody who listens; one thread waits for the signal, while somebody does."""

    def __init__(self, signal: Signal, rest_seconds: float = REST_SECONDS) -> None:
        self._signal = signal
        self._rest_seconds = rest_seconds
        self._seen = 0
        self._waiting = 0
        self._rung, self._asked = anyio.Event(), anyio.Event()

    async def ring(self) -> None:
        """Serve, until cancelled."""
        one = anyio.CapacityLimiter(1)
        while True:
            if not self._waiting:
                self._asked = anyio.Event()
                await self._asked.wait()
            now = await anyio.to_thread.run_sync(
                self._signal.wait, self._seen, THREAD_SECONDS, limiter=one
            )
            if now != self._seen:
                self._seen = now
                rung, self._rung = self._rung, anyio.Event()
                rung.set()

    async def after(self, seen: int) -> int:
        """Until the count is beyond `seen`, or a minute: an access may end by the clock alone."""
        self._waiting += 1
        self._asked.set()
        try:
            with anyio.move_on_after(LONGEST_SECONDS):
                while self._seen <= seen:
                    await self._rung.wait()
        finally:
            self._waiting -= 1
        return max(self._seen, seen)

    async def pace(self) -> Pace:
        """A pace that misses nothing written from now on."""
        seen = await anyio.to_thread.run_sync(lambda: self._signal.count)
        return BellPace(self, seen, self._rest_seconds)


@dataclass(slots=True)
class BellPace:
    """When one listener looks: woken by the bell, but not again before its rest."""

    bell: Bell
    seen: int
    rest_seconds: float
    _woken_at: float = -REST_SECONDS

    async def wait(self) -> bool:
        """As the protocol has it."""
        await anyio.sleep_until(self._woken_at + self.rest_seconds)
        self.seen = await self.bell.after(self.seen)
        self._woken_at = anyio.current_time()
        return True


Publish = Callable[[ServerEvent], Awaitable[None]]


async def tell(follower: Follower, open_port: OpenPort, pace: Pace, publish: Publish) -> None:
    """Look whenever something may have changed, and tell, until the access ends."""
    while not follower.over:
        documents = await pace.wait()
        try:
            try:
                told = await follower.look(await open_port(), documents=documents)
            except ENDED:
                told = follower.end()
        except (Unanswered, PersonalServerError):
            told = []
        except Exception as error:  # noqa: BLE001 - the one boundary: a listener ends by itself
            log_failure(error, new_request_id())
            return
        for event in told:
            await publish(event)


@dataclass(frozen=True, slots=True)
class Listening:
    """`subscriptions/listen`: one call is one stream of notifications.

    Shapes: `source_of` knows, of a Starlette request (None on stdio), whose token it has and how
        its ports are opened; `pace_of` opens a pace.
    """

    source_of: Callable[[Any], tuple[Hashable, OpenPort]]
    pace_of: Callable[[], Awaitable[Pace]]
    listeners: ListenerPlaces = field(default_factory=ListenerPlaces)
    _open: set[ListenHandler] = field(default_factory=set[ListenHandler])

    def end(self) -> None:
        """End every stream as the protocol ends one: nothing more will come."""
        for handler in self._open:
            handler.close()

    async def __call__(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Acknowledge what will be told, and tell it until the client hangs up.

        Raises: MCPError.
        """
        honoured = _honoured(params.notifications)
        uris = frozenset(honoured.resource_subscriptions or ())
        follower = Follower(uris, names=honoured.resources_list_changed is True)
        holder, open_port = self.source_of(context.request)
        bus = InMemorySubscriptionBus()
        handler = ListenHandler(bus)
        with self.listeners.place(holder, SCHEMA_URI):
            pace = await self.pace_of()
            await begin(follower, open_port, SCHEMA_URI)
            answered: list[types.SubscriptionsListenResult] = []
            async with anyio.create_task_group() as tasks:

                async def follow() -> None:
                    await tell(follower, open_port, pace, bus.publish)
                    handler.close()

                tasks.start_soon(follow)
                asked = params.model_copy(update={"notifications": honoured})
                self._open.add(handler)
                try:
                    answered.append(await handler(context, asked))
                finally:
                    self._open.discard(handler)
                tasks.cancel_scope.cancel()
            return answered[0]


async def begin(follower: Follower, open_port: OpenPort, uri: str) -> None:
    """Take the first look, from which all news counts.  Raises: MCPError."""
    try:
        await follower.look(await open_port())
    except (Unanswered, PersonalServerError):
        error = ToolError("rs_unreachable", "The resource server did not answer.")
        raise resource_error(uri, error, "2026-07-28") from None
    if follower.over:
        error = ToolError("invalid_token", "This access cannot be read any more.")
        raise resource_error(uri, error, "2026-07-28")


def _honoured(asked: types.SubscriptionFilter) -> types.SubscriptionFilter:
    """What of a filter is told at all: tools and prompts never change.  Raises: MCPError."""
    uris = [uri for uri in dict.fromkeys(asked.resource_subscriptions or ()) if is_followed(uri)]
    if len(uris) > MOST_URIS:
        raise too_many(uris[MOST_URIS], f"A listener follows at most {MOST_URIS} resources.")
    return types.SubscriptionFilter(
        resources_list_changed=True if asked.resources_list_changed else None,
        resource_subscriptions=uris or None,
    )


@dataclass(slots=True)
class Subscribing:
    """`resources/subscribe` of one stdio connection, before 2026-07-28.

    Shapes: each resource has a follower of its own, which ends when it is unsubscribed; that of the
        names of streams lives as long as any of them.
    """

    tasks: TaskGroup
    open_port: OpenPort
    pace_of: Callable[[], Awaitable[Pace]]
    _held: dict[str, anyio.CancelScope] = field(default_factory=dict[str, anyio.CancelScope])

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell of changes of one resource from now on.  Raises: MCPError."""
        uri = str(params.uri)
        if not is_followed(uri):
            error = ToolError("not_found", "Changes of this resource are not told.", param="uri")
            raise resource_error(uri, error, context.protocol_version)
        if uri not in self._held:
            if len(self._held) > MOST_URIS:
                raise too_many(uri, f"At most {MOST_URIS} resources are followed.")
            if not self._held:
                await self._start(context, STREAM_NAMES, Follower(frozenset(), names=True))
            await self._start(context, uri, Follower(frozenset({uri})))
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """No longer; what was not subscribed is unsubscribed already."""
        del context
        self._stop(str(params.uri))
        return types.EmptyResult()

    async def _start(self, context: Context, name: str, follower: Follower) -> None:
        scope = self._held[name] = anyio.CancelScope()
        session = context.session

        async def publish(event: ServerEvent) -> None:
            if isinstance(event, ResourceUpdated):
                await session.send_resource_updated(event.uri)
            else:
                await session.send_resource_list_changed()

        async def follow() -> None:
            with scope:
                await tell(follower, self.open_port, pace, publish)
            if self._held.get(name) is scope:
                self._stop(name)

        try:
            pace = await self.pace_of()
            await begin(follower, self.open_port, name or SCHEMA_URI)
        except BaseException:
            self._stop(name)
            raise
        self.tasks.start_soon(follow)

    def _stop(self, name: str) -> None:
        scope = self._held.pop(name, None)
        if scope is not None:
            scope.cancel()
        if set(self._held) == {STREAM_NAMES}:
            self._stop(STREAM_NAMES)


@dataclass(frozen=True, slots=True)
class OfferedSubscriptions:
    """What one server offers: listening on 2026-07-28, subscribing before; `None` is not at all."""

    listening: Listening | None = None
    subscribing: Subscribing | None = None
