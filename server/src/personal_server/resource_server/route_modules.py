"""The resource server put together: every route module on one table, in one frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from personal_server.delivery.subscribers import Subscriptions
from personal_server.reading.export import Enclosures
from personal_server.reading.ports import ReadPorts, model_of
from personal_server.reading.shown_disclosures import ShownDisclosure, every_disclosure
from personal_server.resource_server.application import Ports, ResourceServer
from personal_server.resource_server.blobs import Blobs
from personal_server.resource_server.collector_states import CollectorState
from personal_server.resource_server.connections import OwnerConnections
from personal_server.resource_server.declarations import Declarations
from personal_server.resource_server.deletes import Deletes
from personal_server.resource_server.disclosures import Disclosures
from personal_server.resource_server.discovery import Discovery
from personal_server.resource_server.envelopes import KeptBackups
from personal_server.resource_server.event_subscriptions import EventSubscriptions
from personal_server.resource_server.export import ExportRoutes
from personal_server.resource_server.feed_routes import FeedRoutes
from personal_server.resource_server.openapi import Beside, openapi_document
from personal_server.resource_server.read_routes import read_routes
from personal_server.resource_server.refused_lines import RefusedLines
from personal_server.resource_server.writes import Ingest
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.disclosure_stores import DisclosureStore
from personal_server.storage.ports.feed_stores import FeedStore
from personal_server.web.routes import Route
from personal_server.web.routing import RouteTable


class Parts(msgspec.Struct, frozen=True):
    """What the routes work with.

    Shapes: `flush` makes fresh disclosures readable; `grants` go into archives; `beside` is what
        the published description holds besides these routes; `stylesheet` is the path of the one
        that the pages for people share with the owner's.
    """

    reads: ReadPorts
    disclosures: DisclosureStore
    flush: Callable[[], bool]
    subscriptions: Subscriptions
    declarations: KnownDeclarations = msgspec.field(default_factory=KnownDeclarations)
    grants: Callable[[], Iterable[Mapping[str, object]]] = lambda: ()
    max_blob_bytes: int = 50 * 1024 * 1024
    server_name: str = "Personal server"
    beside: Beside = msgspec.field(default_factory=Beside)
    kept_backups: KeptBackups = tuple
    stylesheet: str = ""
    feeds: FeedStore | None = None


def resource_server(parts: Parts, ports: Ports) -> ResourceServer:
    """The application that answers `/`, `/docs`, `/v1` and the protected-resource documents."""
    return ResourceServer(route_table(parts), ports)


def route_table(parts: Parts) -> RouteTable[Route]:
    """Every route of this server."""
    made: dict[str, Mapping[str, object]] = {}

    def document() -> Mapping[str, object]:
        if "document" not in made:
            made["document"] = openapi_document(table, parts.server_name, parts.beside)
        return made["document"]

    reads, declarations = parts.reads, parts.declarations

    def disclosures() -> Iterable[ShownDisclosure]:
        parts.flush()
        return every_disclosure(parts.disclosures)

    enclosures = Enclosures(parts.grants, disclosures, reads.store.person_corrections)
    table = RouteTable(
        [
            *Discovery(
                parts.server_name, document, lambda: model_of(reads) is not None, parts.stylesheet
            ).routes(),
            *read_routes(reads),
            *Blobs(reads, declarations, parts.max_blob_bytes).routes(),
            *Ingest(reads, declarations).routes(),
            *RefusedLines(reads).routes(),
            *CollectorState(reads, declarations).routes(),
            *Deletes(reads, declarations, parts.kept_backups).routes(),
            *Declarations(reads, declarations).routes(),
            *OwnerConnections(reads, parts.kept_backups).routes(),
            *Disclosures(parts.disclosures, reads.sealer, parts.flush).routes(),
            *ExportRoutes(reads, enclosures).routes(),
            *EventSubscriptions(parts.subscriptions).routes(),
            *FeedRoutes(parts.feeds, reads.sealer, reads.clock).routes(),
        ]
    )
    return table
