"""The authorization server put together; the composition root mounts it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from personal_server.authorization_server.authorization_endpoint import Authorizing
from personal_server.authorization_server.client_authentication import Clients
from personal_server.authorization_server.client_metadata import Documents
from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.device import DeviceAuthorizing
from personal_server.authorization_server.endpoints import (
    FORM_BODY,
    REGISTRATION_BODY,
    AuthorizationApplication,
    EndpointRoute,
    no_owner_session,
)
from personal_server.authorization_server.grants import Grants, OwnerSession
from personal_server.authorization_server.introspection import Introspecting
from personal_server.authorization_server.metadata import KEYS_PATH, Metadata
from personal_server.authorization_server.registration import Registering
from personal_server.authorization_server.revocation import Revoking
from personal_server.authorization_server.token_endpoint import TokenEndpoint
from personal_server.consent.credentials import RandomBytes
from personal_server.domain.keyed_values import ValueSpace
from personal_server.domain.own_values import OwnSpace
from personal_server.granting.codes import Redeeming
from personal_server.granting.consent_receipts import ConsentReceipts
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.pending_requests import Requesting
from personal_server.granting.tokens import Rotating
from personal_server.reading.proofs import Proofs
from personal_server.reading.tokens import TokenUses
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.web.error_responses import ErrorPage, plain_page
from personal_server.web.guarded_fetch import GuardedFetch
from personal_server.web.limits import RateLimits


class AuthorizationParts(msgspec.Struct, frozen=True):
    """What the authorization server stands on.

    `owner_session` and `error_page` come from the console; `fetch` is the network.
    """

    store: AuthorizationStore
    catalogs: Catalogs
    clock: Callable[[], int]
    random_bytes: RandomBytes
    uses: TokenUses
    proofs: Proofs
    receipts: ConsentReceipts
    configuration: Configuration = msgspec.field(default_factory=Configuration)
    fetch: GuardedFetch = msgspec.field(default_factory=GuardedFetch)
    owner_session: OwnerSession = no_owner_session
    error_page: ErrorPage = plain_page
    space: ValueSpace = msgspec.field(default_factory=OwnSpace)


def authorization_app(parts: AuthorizationParts) -> AuthorizationApplication:
    """The ASGI application of `SEGMENTS` and `WELL_KNOWN`."""
    return AuthorizationApplication(_routes(parts), parts.error_page)


def _routes(parts: AuthorizationParts) -> list[EndpointRoute]:
    store, configuration, clock = parts.store, parts.configuration, parts.clock
    limits = RateLimits(clock, parts.space)
    documents = Documents(store, configuration, limits, clock, parts.fetch, parts.space)
    clients = Clients(store, configuration, documents, clock, parts.random_bytes)
    requesting = Requesting(store, clock, parts.random_bytes)
    redeeming = Redeeming(store, clock, parts.random_bytes)
    rotating = Rotating(store, clock, parts.random_bytes, parts.uses.flush)
    authorizing = Authorizing(clients, requesting, parts.proofs, configuration, limits)
    registering = Registering(store, configuration, limits, clock, parts.random_bytes)
    owner = OwnerSignIn(store, clock, parts.random_bytes)
    devices = DeviceAuthorizing(clients, requesting, owner, configuration, limits)
    tokens = TokenEndpoint(clients, redeeming, rotating, parts.proofs, configuration, limits)
    revoking = Revoking(clients, store, clock)
    introspecting = Introspecting(store, parts.catalogs, parts.uses, limits, clock)
    grants = Grants(
        store,
        parts.catalogs,
        parts.uses,
        parts.proofs,
        parts.receipts,
        clock,
        parts.owner_session,
    )
    metadata = Metadata(configuration, documents, parts.receipts)
    routes = [
        EndpointRoute("GET", "/.well-known/oauth-authorization-server", metadata.get, cors=True),
        EndpointRoute("GET", KEYS_PATH, metadata.keys),
        EndpointRoute("GET", "/oauth/authorize", authorizing.get, open_query=True, page=True),
        EndpointRoute("POST", "/oauth/par", authorizing.push, body=FORM_BODY, cors=True),
        EndpointRoute("POST", "/oauth/token", tokens.post, body=FORM_BODY, cors=True),
        EndpointRoute(
            "POST", "/oauth/device_authorization", devices.post, body=FORM_BODY, cors=True
        ),
        EndpointRoute("POST", "/oauth/revoke", revoking.post, body=FORM_BODY, cors=True),
        EndpointRoute("POST", "/introspect", introspecting.post, body=FORM_BODY),
        EndpointRoute("GET", "/grants/current", grants.current),
        EndpointRoute("POST", "/grants/{grant_id}/revoke", grants.end_grant),
        EndpointRoute("POST", "/grant-packages/{package_id}/revoke", grants.end_package),
    ]
    if configuration.dynamic_registration:
        routes.append(
            EndpointRoute(
                "POST", "/oauth/register", registering.post, body=REGISTRATION_BODY, cors=True
            )
        )
    return routes
