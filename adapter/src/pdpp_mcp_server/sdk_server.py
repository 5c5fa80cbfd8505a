"""The SDK's server of an offer: tools, resources, prompts and completions over one port per call.

Source: docs/contract/mcp-adapter.md 2.4. Both transports and both protocol eras are built so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server

from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import AdapterOptions
from pdpp_mcp_server.contract import published_contract
from pdpp_mcp_server.listeners import OfferedSubscriptions
from pdpp_mcp_server.metrics import Counts
from pdpp_mcp_server.sdk_skills import add_skills
from pdpp_mcp_server.server import Adapter, Context, Listed
from pdpp_mcp_server.server_offer import ServerOffer, personal_data
from pdpp_mcp_server.tool_runs import Callers

PUBLIC_HINT = CacheHint(ttl_ms=contract.TTL_MS, scope="public")


def build_server(
    callers: Callers,
    *,
    name: str,
    version: str,
    icon_url: str | None = None,
    settings: AdapterOptions | None = None,
    offer: ServerOffer = personal_data,
    counts: Counts | None = None,
    subscriptions: OfferedSubscriptions | None = None,
) -> Server[dict[str, Any]]:
    """The server of one origin (hosted) or one process (stdio).

    Shapes: `subscriptions` are those that this transport can tell; where it can send at any time,
        progress is told too.
    """
    served = subscriptions or OfferedSubscriptions()
    subscribing = served.subscribing
    adapter = Adapter(
        callers,
        settings or AdapterOptions(),
        offer,
        counts or Counts(),
        tells_progress=subscribing is not None,
    )
    icons = None
    if icon_url is not None:
        icons = [types.Icon(src=icon_url, mime_type="image/svg+xml", sizes=["any"])]
    server: Server[dict[str, Any]] = Server(
        name,
        version=version,
        title=contract.TITLE_OF_SERVER,
        instructions=published_contract().instructions,
        icons=icons,
        cache_hints={"server/discover": PUBLIC_HINT},
        get_tool_input_schema=no_header_parameters,
        on_list_tools=listing(offer.list_tools),
        on_call_tool=adapter.call_tool,
        on_list_resources=listing(offer.list_resources),
        on_list_resource_templates=listing(offer.list_templates),
        on_read_resource=adapter.read_resource,
        on_list_prompts=listing(offer.list_prompts),
        on_get_prompt=adapter.get_prompt,
        on_completion=adapter.complete,
        on_subscriptions_listen=served.listening,
        on_subscribe_resource=subscribing and subscribing.subscribe,
        on_unsubscribe_resource=subscribing and subscribing.unsubscribe,
    )
    add_skills(server)
    return server


def listing(make: Callable[[], Listed]) -> Callable[[Context, Any], Awaitable[Listed]]:
    """The handler of a list, which is the same for every client."""

    async def handler(context: Context, params: Any) -> Listed:
        del context, params
        return make()

    return handler


def no_header_parameters(name: str) -> None:
    """No tool takes an argument by header, so there is nothing to look up."""
    del name
