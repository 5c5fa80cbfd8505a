"""Renewal: a cached credential that stays current, refreshed once however many processes use it.

Rule: only the holder of the lock refreshes, after reading the file again; a refused refresh leaves
the file as it was.  Source: docs/contract/authorization-server.md 14.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from pdpp_mcp_server.rs_client.credentials import (
    Credential,
    CredentialExpired,
    CredentialInvalid,
    Document,
    MetadataFailure,
    ProviderUnavailable,
    connect_hint,
    refuse_owner,
)
from pdpp_mcp_server.rs_client.discovery import (
    SERVER_PATH,
    ProviderExchange,
    network_exchange,
    unavailable,
)
from pdpp_mcp_server.rs_client.port import HeldToken
from pdpp_mcp_server.rs_client.proof_keys import KeyRing, own_keys

LEAST_SECONDS = 60.0


class ClientTokenEndpoint(Protocol):
    """Where a refresh token becomes a new pair."""

    def refresh(self, credential: Credential) -> Document:
        """The token response.  Raises: CredentialExpired, ProviderUnavailable, MetadataFailure."""
        ...


class HttpTokenEndpoint(msgspec.Struct, frozen=True):
    """The token endpoint that the issuer's metadata names, over HTTP."""

    exchange: ProviderExchange
    keys: KeyRing = msgspec.field(default_factory=own_keys)

    def refresh(self, credential: Credential) -> Document:
        """RFC 6749 section 6.  Raises: CredentialExpired, ProviderUnavailable, MetadataFailure."""
        form = {
            "grant_type": "refresh_token",
            "refresh_token": credential.refresh_token or "",
            "client_id": credential.client_id,
        }
        if credential.resource is not None:
            form["resource"] = credential.resource
        proving = replace(self.exchange, key=self.keys.of(credential))
        answer = proving.post_form(self._endpoint(credential.issuer), form)
        if answer.ok and isinstance(answer.body.get("access_token"), str):
            return dict(answer.body)
        if answer.body.get("error") in ("invalid_grant", "invalid_client"):
            raise CredentialExpired(
                "The server no longer renews the saved credential.",
                connect_hint(credential.provider_url),
            )
        raise unavailable(f"The token endpoint answered with status {answer.status}.")

    def _endpoint(self, issuer: str) -> str:
        origin = issuer.rstrip("/")
        answer = self.exchange.get(origin + SERVER_PATH)
        if not answer.ok:
            raise unavailable(f"The request for the server's metadata got status {answer.status}.")
        endpoint = answer.body.get("token_endpoint")
        if not isinstance(endpoint, str) or not endpoint.startswith(f"{origin}/"):
            raise MetadataFailure(
                "The server's metadata names a token endpoint at another origin.",
                "Check the server's address; do not send a credential there.",
            )
        return endpoint


class NetworkTokenEndpoint(msgspec.Struct, frozen=True):
    """The token endpoint over the network, reached only when there is something to renew."""

    keys: KeyRing = msgspec.field(default_factory=own_keys)

    def refresh(self, credential: Credential) -> Document:
        """One renewal.  Raises: CredentialExpired, ProviderUnavailable, MetadataFailure."""
        exchange = network_exchange()
        try:
            return HttpTokenEndpoint(exchange, self.keys).refresh(credential)
        finally:
            exchange.http.close()


class CachedCredential(msgspec.Struct, frozen=True):
    """A provider's credential in a cache, kept current.  `clock` gives UTC nanoseconds."""

    cache: CredentialCache
    provider_url: str
    endpoint: ClientTokenEndpoint
    clock: Callable[[], int]

    def load(self) -> Credential:
        """The credential as cached, never the owner's.  Raises: CredentialError."""
        return refuse_owner(self.cache.load(self.provider_url))

    def load_usable(self) -> Credential:
        """The credential, if it lives or can be renewed.  Raises: CredentialError."""
        credential = self.load()
        if credential.seconds_left(self.clock()) <= 0 and credential.refresh_token is None:
            raise CredentialExpired(
                "The saved credential has expired.", connect_hint(self.provider_url)
            )
        return credential

    def current(self) -> Credential:
        """A credential good for `LEAST_SECONDS` at least, if it can be renewed.

        Raises: CredentialError.
        """
        credential = self.load_usable()
        return credential if self._fresh(credential) else self._renewed(self._fresh)

    def renewed_after(self, rejected: str) -> Credential | None:
        """Another token than the `rejected` one, or `None`.  Raises: CredentialError."""
        credential = self.load()
        if credential.access_token != rejected:
            return credential
        if credential.refresh_token is None:
            return None
        return self._renewed(lambda credential: credential.access_token != rejected)

    def _fresh(self, credential: Credential) -> bool:
        lasting = credential.seconds_left(self.clock()) >= LEAST_SECONDS
        return lasting or credential.refresh_token is None

    def _renewed(self, settled: Callable[[Credential], bool]) -> Credential:
        """Refresh under the lock, unless another process already did."""
        with self.cache.locked(self.provider_url) as slot:
            credential = refuse_owner(slot.read())
            if settled(credential):
                return credential
            answer = self.endpoint.refresh(credential)
            renewed = credential.renewed(answer, self.clock())
            slot.write(renewed.document)
            return renewed


class CachedBearer(msgspec.Struct, frozen=True):
    """The `BearerSource` of the stdio adapter on a cached credential.

    A refresh that fails does not fail the read: the token at hand is sent, and the server's own
    answer is what the caller sees.
    """

    credential: CachedCredential
    keys: KeyRing = msgspec.field(default_factory=own_keys)

    async def bearer(self) -> HeldToken:
        """The token to send.  Raises: CredentialError if the cache cannot be read."""
        return await anyio.to_thread.run_sync(self._bearer)

    async def renew(self, rejected: str) -> HeldToken | None:
        """A newer bearer of the same grant after a 401, or `None` when there is none."""
        return await anyio.to_thread.run_sync(self._renew, rejected)

    def _bearer(self) -> HeldToken:
        try:
            return self._held(self.credential.current())
        except (CredentialExpired, ProviderUnavailable, MetadataFailure):
            return self._held(self.credential.load())

    def _held(self, credential: Credential) -> HeldToken:
        return HeldToken(credential.access_token, self.keys.of(credential))

    def _renew(self, rejected: str) -> HeldToken | None:
        try:
            renewed = self.credential.renewed_after(rejected)
        except (CredentialExpired, CredentialInvalid, ProviderUnavailable, MetadataFailure):
            return None
        return None if renewed is None else self._held(renewed)
