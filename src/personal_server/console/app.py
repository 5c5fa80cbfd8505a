"""The console put together: every page on its frame.  The composition root mounts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from personal_server.console.access_page import AccessPages
from personal_server.console.assets import ASSET_ROUTES
from personal_server.console.clients_page import ClientPages
from personal_server.console.consent_page import ConsentPages
from personal_server.console.device_page import DevicePages
from personal_server.console.frame import Frame
from personal_server.console.home_page import HomePage
from personal_server.console.pages import Pages
from personal_server.console.records_pages import RecordsPages
from personal_server.console.sign_in import SignInPages
from personal_server.console.throttle import SignInThrottle, UserCodeThrottle
from personal_server.granting.decisions import Granting
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.pending_requests import Requesting
from personal_server.reading.ports import ReadPorts
from personal_server.reading.preview import EvidenceReader
from personal_server.storage.authorization import AuthorizationStore
from personal_server.storage.catalog import KnownDeclarations, StoredCatalogs
from personal_server.storage.ports import DisclosureStore


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """What the pages stand on."""

    server_name: str
    authorization: AuthorizationStore
    disclosures: DisclosureStore
    reads: ReadPorts
    declarations: KnownDeclarations
    random_bytes: Callable[[int], bytes]
    sign_in: OwnerSignIn


def console_app(parts: ConsoleParts) -> Frame:
    """The ASGI application of `frame.SEGMENTS`."""
    pages, clock, store = Pages(parts.server_name), parts.reads.clock, parts.authorization
    catalogs = StoredCatalogs(parts.reads.store, parts.declarations)
    granting = Granting(store, catalogs, clock, parts.random_bytes)
    requesting = Requesting(store, clock, parts.random_bytes)
    evidence = EvidenceReader(parts.reads, parts.declarations)
    log, reads = parts.disclosures, parts.reads
    routes = (
        *ASSET_ROUTES,
        *SignInPages(parts.sign_in, pages, SignInThrottle(clock)).routes(),
        *ConsentPages(granting, evidence, pages, clock).routes(),
        *DevicePages(store, requesting, granting, pages, UserCodeThrottle(clock), clock).routes(),
        *HomePage(store, log, reads, catalogs, parts.sign_in, pages, clock).routes(),
        *AccessPages(store, log, catalogs, pages, clock).routes(),
        *ClientPages(store, pages, clock).routes(),
        *RecordsPages(store, log, reads, catalogs, pages, clock).routes(),
    )
    return Frame(parts.sign_in, pages, routes)
