"""Access to a mailbox by tokens: kept in the place of a password, renewed before it ends.

Rule: one process renews at a time, after reading again what is kept, since a provider may take a
refresh token once only; no token is in a log, an argument, the environment or a page.
Source: docs/contract/feeds.md 10; RFC 6749, 6.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing

import msgspec

from pdpp_kernel.system.file_locks import lock
from pdpp_kernel.values import NANOSECONDS
from pdpp_mcp_server.rs_client.credentials import ProviderUnavailable
from pdpp_mcp_server.rs_client.discovery import ProviderExchange, network_exchange
from personal_server.app.feed_secrets import TOKENS_BEGIN, FeedSecrets
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.storage.feed_rows import FeedRow

ENDED, PROVIDER_UNREACHABLE = "sign_in_ended", "provider_unreachable"
USUAL_SECONDS, LEAST_SECONDS = 3_600, 60
_REFUSALS = frozenset(
    {"invalid_grant", "invalid_client", "unauthorized_client", "interaction_required"}
)


class OAuthAccess(msgspec.Struct, frozen=True):
    """What signs in, and what it is renewed with.

    Shapes: `provider` is how the owner named it.
    Units: `access_ends_ns` by the server's clock.
    """

    provider: str
    scope: str
    token_url: str
    client_id: str
    client_secret: str | None
    refresh_token: str
    access_token: str
    access_ends_ns: int

    @property
    def text(self) -> str:
        """As it is kept."""
        return TOKENS_BEGIN + msgspec.json.encode(self).decode()


def access_of(kept: str) -> OAuthAccess | None:
    """What is kept in the place of a password; None of a password."""
    if not kept.startswith(TOKENS_BEGIN):
        return None
    try:
        return msgspec.json.decode(kept.removeprefix(TOKENS_BEGIN), type=OAuthAccess)
    except msgspec.MsgspecError:
        return None


def access_token(
    secrets: FeedSecrets,
    feed: FeedRow,
    exchange: Callable[[], ProviderExchange] = network_exchange,
) -> str:
    """One that lasts for a minute at least.  Raises: FetchTrouble."""
    path = secrets.path.with_suffix(".renewal")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as turn:
        lock(turn)
        kept = secrets.password(feed)
        access = access_of(kept or "")
        if access is None:
            raise FetchTrouble("sign_in_missing")
        if access.access_ends_ns - LEAST_SECONDS * NANOSECONDS < secrets.clock():
            access = _renewed(access, exchange(), secrets.clock())
            if secrets.password(feed) != kept:  # signed in anew meanwhile, or the feed removed
                raise FetchTrouble(PROVIDER_UNREACHABLE)
            secrets.keep(feed, access.text)
        return access.access_token


def _renewed(access: OAuthAccess, exchange: ProviderExchange, now_ns: int) -> OAuthAccess:
    """Raises: FetchTrouble."""
    form = {
        "grant_type": "refresh_token",
        "refresh_token": access.refresh_token,
        "client_id": access.client_id,
    }
    if access.client_secret is not None:
        form["client_secret"] = access.client_secret
    try:
        with closing(exchange.http):
            reply = exchange.post_form(access.token_url, form)
    except ProviderUnavailable:
        raise FetchTrouble(PROVIDER_UNREACHABLE) from None
    token = reply.text("access_token")
    if reply.ok and token is not None:
        return msgspec.structs.replace(
            access,
            access_token=token,
            access_ends_ns=now_ns + seconds_of(reply.body.get("expires_in")) * NANOSECONDS,
            refresh_token=reply.text("refresh_token") or access.refresh_token,
        )
    raise FetchTrouble(ENDED if reply.error in _REFUSALS else PROVIDER_UNREACHABLE)


def seconds_of(value: object, usual: int = USUAL_SECONDS) -> int:
    """How long something lasts, as a provider says it."""
    return value if type(value) is int and value > 0 else usual
