"""Listening: from a request for changes to what is sent to the client.

Source: docs/contract/mcp-adapter.md 11.1.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Hashable
from contextlib import contextmanager
from typing import Any

import anyio
import mcp_types as types
import msgspec
from anyio.abc import TaskGroup
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
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
from pdpp_mcp_server.change_bell import Pace
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.followers import SCHEMA_URI, STREAM_NAMES, Follower, Unanswered, is_followed
from pdpp_mcp_server.rs_client.port import RsPort
from pdpp_mcp_server.sdk_results import resource_error

SUBSCRIPTION = "subscription"
"""What the reads of a listener say that they are for."""
MOST_URIS = 32
MOST_OF_ACCESS = 8
MOST_LISTENERS = 128
ENDED_ACCESS = (GrantRevoked, GrantExpired, GrantInvalid, InvalidToken)

Context = ServerRequestContext[Any, Any]
OpenPort = Callable[[], Awaitable[RsPort]]
"""Opens a port for one look, with the token judged anew.  Raises: PersonalServerError."""


class ListenerPlaces(msgspec.Struct):
    """The bound on who listens at once: of one access, and in all."""

    most_of_access: int = MOST_OF_ACCESS
    most: int = MOST_LISTENERS
    _held: Counter[Hashable] = msgspec.field(default_factory=Counter[Hashable])

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
        if self._held[holder] >= self.most_of_access or self._held.total() >= self.most:
            raise too_many(uri, "As many listen already as may. End one, or read again later.")


def too_many(uri: str, message: str) -> MCPError:
    """The refusal of one listener, or one resource, more."""
    error = ToolError("rate_limit_exceeded", message, members={"limit": "subscriptions"})
    return resource_error(uri, error, "2026-07-28")


Publish = Callable[[ServerEvent], Awaitable[None]]


async def tell(follower: Follower, open_port: OpenPort, pace: Pace, publish: Publish) -> None:
    """Look whenever something may have changed, and tell, until the access ends."""
    while not follower.over:
        documents = await pace.wait()
        try:
            try:
                events = await follower.look(await open_port(), documents=documents)
            except ENDED_ACCESS:
                events = follower.end()
        except (Unanswered, PersonalServerError):
            events = []
        except Exception as error:  # noqa: BLE001 - the one boundary: a listener ends by itself
            log_failure(error, new_request_id())
            return
        for event in events:
            await publish(event)


class Listening(msgspec.Struct, frozen=True):
    """`subscriptions/listen`: one call is one stream of notifications.

    Shapes: `source_of` knows, of a Starlette request (None on stdio), by which access it came and
        how its ports are opened; `pace_of` opens a pace.
    """

    source_of: Callable[[Any], tuple[Hashable, OpenPort]]
    pace_of: Callable[[], Awaitable[Pace]]
    listeners: ListenerPlaces = msgspec.field(default_factory=ListenerPlaces)
    _open: set[ListenHandler] = msgspec.field(default_factory=set[ListenHandler])

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


class Subscribing(msgspec.Struct):
    """`resources/subscribe` of one stdio connection, before 2026-07-28.

    Shapes: each resource has a follower of its own, which ends when it is unsubscribed; that of the
        names of streams lives as long as any of them.
    """

    tasks: TaskGroup
    open_port: OpenPort
    pace_of: Callable[[], Awaitable[Pace]]
    _held: dict[str, anyio.CancelScope] = msgspec.field(
        default_factory=dict[str, anyio.CancelScope]
    )

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Tell of changes of one resource from now on.  Raises: MCPError."""
        uri = str(params.uri)
        if not is_followed(uri):
            error = ToolError(
                "not_found", "This server sends no notice when this resource changes.", param="uri"
            )
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


class OfferedSubscriptions(msgspec.Struct, frozen=True):
    """What one server offers: listening on 2026-07-28, subscribing before; `None` is not at all."""

    listening: Listening | None = None
    subscribing: Subscribing | None = None
