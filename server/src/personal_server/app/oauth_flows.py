"""How an owner lets a feed sign in: with a code on another device, or with a browser on this one.

Source: docs/contract/feeds.md 10; RFC 8628, RFC 8252.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from urllib.parse import urlsplit

import msgspec

from pdpp_kernel.errors import InvalidRequest
from pdpp_kernel.values import NANOSECONDS
from pdpp_mcp_server.rs_client.authorization_flows import (
    DeviceOffer,
    PollWait,
    begin_device,
    code_request,
    listening,
    poll_device,
    redeem_code,
)
from pdpp_mcp_server.rs_client.discovery import Provider, ProviderExchange, authorization_server
from personal_server.app.oauth_access import OAuthAccess, seconds_of
from personal_server.feeds.oauth_providers import OAUTH_PROVIDERS, OAuthProvider
from personal_server.web.public_addresses import is_loopback

BROWSER_SECONDS = 900.0
USUAL_SCOPE = "offline_access"


class OAuthClient(msgspec.Struct, frozen=True):
    """The owner's own client at a provider.

    Shapes: `named` is how its owner names the provider: a word of the table, or the address of an
        authorization server.
    """

    named: str
    provider: OAuthProvider
    client_id: str
    client_secret: str | None

    def by_code(
        self, exchange: ProviderExchange, show: Callable[[DeviceOffer], None], waiting: PollWait
    ) -> Mapping[str, object]:
        """What the provider gives once its owner typed a code there.  Raises: CredentialError."""
        asked = {"client_id": self.client_id, "scope": self.provider.scope}
        if self.client_secret is not None:
            asked["client_secret"] = self.client_secret
        with closing(exchange.http):
            offer = begin_device(exchange, self._endpoints, asked)
            show(offer)
            return poll_device(
                exchange, self._endpoints, self.client_id, offer, waiting, self.client_secret
            )

    def by_browser(
        self,
        exchange: ProviderExchange,
        user: str,
        show: Callable[[str], None],
        random_bytes: Callable[[int], bytes],
    ) -> Mapping[str, object]:
        """What the provider gives once a browser of this machine came back.

        Raises: CredentialError.
        """
        with closing(exchange.http), listening() as listener:
            back = listener.redirect_uri.replace("127.0.0.1", self.provider.returns_to)
            asked = code_request(self.client_id, back, "", self.provider.scope, None, random_bytes)
            carried = asked.parameters | {"login_hint": user} | dict(self.provider.asked)
            del carried["resource"]  # Microsoft refuses it
            show(asked.address(self._endpoints, carried))
            code = asked.code(self._endpoints, listener.answer(BROWSER_SECONDS, asked.state))
            form = {
                "client_id": self.client_id,
                "code": code,
                "redirect_uri": back,
                "code_verifier": asked.verifier,
            }
            if self.client_secret is not None:
                form["client_secret"] = self.client_secret
            return redeem_code(exchange, self._endpoints, form)

    def access(self, given: Mapping[str, object], now_ns: int) -> tuple[OAuthAccess, int | None]:
        """What is kept of it, and when its owner has to sign in again, if the provider said so.

        Raises: InvalidRequest.
        """
        renewal, token = given.get("refresh_token"), given.get("access_token")
        if not isinstance(renewal, str) or not isinstance(token, str):
            raise InvalidRequest(
                "The provider gave nothing to renew the sign-in with.",
                param="oauth",
                next_step="Let the client ask for offline access, and sign in again.",
            )
        access = OAuthAccess(
            provider=self.named,
            scope=self.provider.scope,
            token_url=self.provider.token,
            client_id=self.client_id,
            client_secret=self.client_secret,
            refresh_token=renewal,
            access_token=token,
            access_ends_ns=now_ns + seconds_of(given.get("expires_in")) * NANOSECONDS,
        )
        lasts = seconds_of(given.get("refresh_token_expires_in"), 0)
        return access, now_ns + lasts * NANOSECONDS if lasts else None

    @property
    def _endpoints(self) -> Provider:
        provider = self.provider
        return Provider(
            origin=provider.issuer,
            issuer=provider.issuer,
            token=provider.token,
            authorization=provider.authorization,
            registration=None,
            device_authorization=provider.device,
            pushed_request=None,
            revocation=None,
        )


def provider_named(
    named: str, scope: str | None, exchange: Callable[[], ProviderExchange]
) -> OAuthProvider:
    """A provider of the table, or the authorization server at an address (RFC 8414).

    Raises: InvalidRequest, CredentialError.
    """
    known = OAUTH_PROVIDERS.get(named)
    if known is not None:
        return known
    parts = urlsplit(named)
    is_ours = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if not parts.hostname or (parts.scheme != "https" and not is_ours):
        raise InvalidRequest(
            "This is no provider.",
            param="oauth",
            next_step="Name google, microsoft or the https address of an authorization server.",
        )
    asked = exchange()
    with closing(asked.http):
        found = authorization_server(asked, named)
    return OAuthProvider(
        name=parts.hostname,
        issuer=found.issuer,
        authorization=found.authorization or "",
        token=found.token,
        scope=scope or USUAL_SCOPE,
        device=found.device_authorization,
    )
