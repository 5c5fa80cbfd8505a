"""The authorization server put together; the composition root mounts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request

from personal_server.authorization_server.authorize import Authorizing
from personal_server.authorization_server.clients import Clients
from personal_server.authorization_server.configuration import Configuration
from personal_server.authorization_server.device import DeviceAuthorizing
from personal_server.authorization_server.documents import Documents
from personal_server.authorization_server.frame import EndpointRoute, Frame
from personal_server.authorization_server.grants import Grants, OwnerSession
from personal_server.authorization_server.introspect import Introspecting
from personal_server.authorization_server.metadata import Metadata
from personal_server.authorization_server.register import Registering
from personal_server.authorization_server.revoke import Revoking
from personal_server.authorization_server.token import TokenEndpoint
from personal_server.consent.credentials import RandomBytes
from personal_server.granting.codes import Redeeming
from personal_server.granting.pending_requests import Requesting
from personal_server.granting.tokens import Rotating
from personal_server.storage.authorization import AuthorizationStore
from personal_server.storage.catalog import Catalogs
from personal_server.web.bodies import FORM, JSON, MAX_REGISTRATION
from personal_server.web.error_responses import ErrorPage, plain_page
from personal_server.web.guarded_fetch import GuardedFetch
from personal_server.web.limits import Limits


def no_owner_session(request: Request) -> bool:
    """Without a console nobody is signed in."""
    del request
    return False


@dataclass(frozen=True, slots=True)
class AuthorizationParts:
    """What the authorization server stands on.

    `owner_session` and `error_page` come from the console; `fetch` is the network.
    """

    store: AuthorizationStore
    catalogs: Catalogs
    clock: Callable[[], int]
    random_bytes: RandomBytes
    configuration: Configuration = field(default_factory=Configuration)
    fetch: GuardedFetch = field(default_factory=GuardedFetch)
    owner_session: OwnerSession = no_owner_session
    error_page: ErrorPage = plain_page


def authorization_app(parts: AuthorizationParts) -> Frame:
    """The ASGI application of `frame.SEGMENTS` and `frame.WELL_KNOWN`."""
    return Frame(_routes(parts), parts.error_page)


def _routes(parts: AuthorizationParts) -> list[EndpointRoute]:
    store, configuration, clock = parts.store, parts.configuration, parts.clock
    limits = Limits(clock)
    documents = Documents(store, configuration, limits, clock, parts.fetch)
    clients = Clients(store, configuration, documents, clock, parts.random_bytes)
    requesting = Requesting(store, clock, parts.random_bytes)
    redeeming = Redeeming(store, clock, parts.random_bytes)
    overlap = configuration.refresh_overlap_seconds
    rotating = Rotating(store, clock, parts.random_bytes, overlap)
    authorizing = Authorizing(clients, requesting, configuration, limits)
    registering = Registering(store, configuration, limits, clock, parts.random_bytes)
    devices = DeviceAuthorizing(clients, requesting, configuration, limits)
    tokens = TokenEndpoint(clients, redeeming, rotating, configuration, limits)
    revoking = Revoking(clients, store, clock)
    introspecting = Introspecting(store, parts.catalogs, limits, clock)
    grants = Grants(store, parts.catalogs, clock, parts.owner_session)
    metadata = Metadata(configuration)
    routes = [
        EndpointRoute(
            "GET", "/.well-known/oauth-authorization-server", metadata.get, cross_origin=True
        ),
        EndpointRoute("GET", "/oauth/authorize", authorizing.get, open_query=True, page=True),
        EndpointRoute("POST", "/oauth/par", authorizing.push, FORM, cross_origin=True),
        EndpointRoute("POST", "/oauth/token", tokens.post, FORM, cross_origin=True),
        EndpointRoute("POST", "/oauth/device_authorization", devices.post, FORM, cross_origin=True),
        EndpointRoute("POST", "/oauth/revoke", revoking.post, FORM, cross_origin=True),
        EndpointRoute("POST", "/introspect", introspecting.post, FORM),
        EndpointRoute("GET", "/grants/current", grants.current),
        EndpointRoute("POST", "/grants/{grant_id}/revoke", grants.end_grant),
        EndpointRoute("POST", "/grant-packages/{package_id}/revoke", grants.end_package),
    ]
    if configuration.dynamic_registration:
        routes.append(
            EndpointRoute("POST", "/oauth/register", registering.post, JSON, MAX_REGISTRATION, True)
        )
    return routes
