"""The authorization endpoint (RFC 6749 4.1.1, RFC 9207) and pushed requests (RFC 9126).

Rule: before client and redirect URI are known to fit, nothing is redirected; afterwards every
refusal is, but to a website of a client that the owner never approved only by a button: anybody
may register one, and our address would lead wherever they like.
Source: docs/contract/authorization-server.md 5.1, 5.2; RFC 9700 4.11.2.
"""

from __future__ import annotations

from typing import ClassVar

import anyio.to_thread
from msgspec.structs import replace
from starlette.responses import RedirectResponse, Response

from pdpp_kernel.errors import RateLimitExceeded
from pdpp_kernel.oauth_errors import (
    BadRequest,
    InteractionRequired,
    InvalidClient,
    InvalidRedirectUri,
    OAuthRefusal,
    TemporarilyUnavailable,
)
from pdpp_kernel.values import NANOSECONDS
from pdpp_kernel.wire_objects import WireObject
from personal_server.authorization_server.client_authentication import Clients
from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.endpoint_requests import EndpointRequest
from personal_server.consent.authorization_requests import (
    CODE_PARAMETERS,
    CodeRequest,
    parse_code_request,
)
from personal_server.consent.client_registration import CHECK, DOCUMENT, DYNAMIC
from personal_server.consent.redirects import matches, with_parameters
from personal_server.granting.decisions import refusal_parameters
from personal_server.granting.pending_requests import PUSHED_NS, Asking, Requesting
from personal_server.reading.proofs import Proofs
from personal_server.storage.authorization_rows import ClientRow
from personal_server.web.limits import RateLimits
from personal_server.web.replies import NO_STORE, answer

PUSHED_SECONDS = PUSHED_NS // NANOSECONDS
_NEVER_TWICE = frozenset({"client_id", "redirect_uri", "request_uri"})
_KNOWN = _NEVER_TWICE | CODE_PARAMETERS


class PushedRequest(WireObject):
    """Where a pushed request is found, and for how many seconds."""

    component: ClassVar = "PushedRequest"

    request_uri: str
    expires_in: int


class Authorizing:
    """`GET /oauth/authorize` and `POST /oauth/par`."""

    def __init__(
        self,
        clients: Clients,
        requesting: Requesting,
        proofs: Proofs,
        configuration: Configuration,
        limits: RateLimits,
    ) -> None:
        self._clients = clients
        self._requesting = requesting
        self._proofs = proofs
        self._configuration = configuration
        self._limits = limits

    async def get(self, call: EndpointRequest) -> Response:
        """Store a pending request and show it to the owner.

        Raises: InvalidClient, InvalidRequestUri, InvalidRedirectUri, RequestClosed,
            OAuthRefusal where it is not sent to the client (as pages).
        """
        if call.is_loaded_unseen:
            raise BadRequest("A request for access opens in a window of its own.")
        self._limits.authorization.take(await self._clients.counted_as(call))
        repeated = call.repeated & _NEVER_TWICE
        if repeated:
            raise BadRequest("The request gives one parameter twice.", param=min(repeated))
        client_id = call.parameters.get("client_id")
        if client_id is None:
            raise InvalidClient("The request has no client_id.", param="client_id")
        asks = "none" not in call.parameters.get("prompt", "").split()
        client = await self._clients.find(client_id, call, is_kept=asks)
        try:
            return await self._answer(call, client)
        finally:
            await self._clients.forget_check(client)

    async def _answer(self, call: EndpointRequest, client: ClientRow) -> Response:
        pushed = call.parameters.get("request_uri")
        if pushed is not None:
            handle = await anyio.to_thread.run_sync(
                self._requesting.open_pushed, client.client_id, pushed
            )
            return _see_other(f"/consent/{handle}")
        redirect_uri = _redirect_uri(client, call)
        try:
            handle = await self._ask(call, client, redirect_uri)
        except OAuthRefusal as refusal:
            state = None if "state" in call.repeated else call.parameters.get("state")
            answered = refusal_parameters(refusal, state, call.origin)
            location = with_parameters(redirect_uri, answered)
            if _is_stranger(client) and location.startswith("https:"):
                refusal.members["back_to_app"] = location
                raise
            return _see_other(location)
        return _see_other(f"/consent/{handle}")

    async def push(self, call: EndpointRequest) -> Response:
        """Store a pushed request."""
        self._limits.authorization.take(await self._clients.counted_as(call))
        caller = await self._clients.authenticate(call)
        if "request_uri" in call.parameters:
            raise BadRequest("A pushed request cannot contain request_uri.", param="request_uri")
        try:
            redirect_uri = _redirect_uri(caller.client, call)
        except InvalidRedirectUri as refusal:
            raise BadRequest(refusal.message, param="redirect_uri") from None
        request = await self._bound(call, self._parse(call))
        asking = Asking(caller.client, call.origin, caller.auth_method)
        uri = await anyio.to_thread.run_sync(
            self._requesting.push, asking, request, redirect_uri, call.acting()
        )
        return answer(PushedRequest(request_uri=uri, expires_in=PUSHED_SECONDS), 201)

    async def _ask(self, call: EndpointRequest, client: ClientRow, redirect_uri: str) -> str:
        asking = Asking(client, call.origin)
        request = self._parse(call)
        if client.registration == CHECK:
            raise InteractionRequired("A request with prompt=none cannot ask the owner anything.")
        try:
            return await anyio.to_thread.run_sync(
                self._requesting.ask_for_code, asking, request, redirect_uri, call.acting()
            )
        except RateLimitExceeded as full:
            raise TemporarilyUnavailable(full.text) from None

    async def _bound(self, call: EndpointRequest, request: CodeRequest) -> CodeRequest:
        """The request, bound to the key of a proof that came with it.  Source: RFC 9449 10.1."""
        proof = call.request.proof
        if proof is None:
            return request
        jkt = await anyio.to_thread.run_sync(self._proofs.key_of, proof)
        if request.jkt not in (None, jkt):
            raise BadRequest("The DPoP proof was signed with another key.", param="dpop_jkt")
        return replace(request, jkt=jkt)

    def _parse(self, call: EndpointRequest) -> CodeRequest:
        repeated = call.repeated & _KNOWN
        if repeated:
            raise BadRequest("The request gives one parameter twice.", param=min(repeated))
        return parse_code_request(
            call.parameters, call.resources, call.origin, self._configuration.origins
        )


def _redirect_uri(client: ClientRow, call: EndpointRequest) -> str:
    uri = call.parameters.get("redirect_uri")
    if uri is None or not matches(client.redirect_uris, uri):
        raise InvalidRedirectUri(
            ("The request has no redirect URI, or one that is not registered for this app."),
            param="redirect_uri",
        )
    return uri


def _is_stranger(client: ClientRow) -> bool:
    """Whether nobody but the client itself says that it may be trusted."""
    return client.first_approved_at_ns is None and client.registration in (DYNAMIC, DOCUMENT, CHECK)


def _see_other(location: str) -> Response:
    return RedirectResponse(location, 303, NO_STORE)
