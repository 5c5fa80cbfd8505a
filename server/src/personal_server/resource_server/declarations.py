"""Source declarations: accepted, listed, forgotten.

Source: docs/contract/resource-server.md 14.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import msgspec

from pdpp_kernel.errors import (
    DeclarationConflict,
    DeclarationIncompatible,
    InvalidCursor,
    InvalidDeclaration,
    InvalidState,
    NotFound,
)
from pdpp_kernel.values import render_instant
from pdpp_kernel.wire_objects import (
    Count,
    Digest,
    Instant,
    RawObject,
    WireObject,
    Word,
)
from personal_server.collecting.declarations import declare
from personal_server.domain.stored import StoredDeclaration
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.envelopes import (
    ListOf,
    Meta,
    SelfLink,
    ShownSource,
    meta_of,
    page_of,
    shown_source,
)
from personal_server.resource_server.owner_lists import named_page
from personal_server.resource_server.sent_declarations import SentDeclaration
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS
from personal_server.web.json_schemas import Components, JsonSchema
from personal_server.web.parameters import CURSOR, Parameter, page_limit
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import BodyRule, Route, owner

ROOT = "/v1/owner/declarations"
ONE = f"{ROOT}/{{connector_key}}"
MAX_DECLARATION_BYTES = 4 * 1024 * 1024
VERSION = Parameter("version", "A revision; without it, the current one.", max_chars=64)


class DeclarationSummary(WireObject, tag_field="object", tag="source_declaration_summary"):
    """A declared source in a list."""

    connector_key: Word
    source: ShownSource
    declaration_version: Word
    digest: Digest
    stream_count: Count
    connection_count: Count
    registered_at: Instant


class DeclarationList(ListOf[DeclarationSummary]):
    """A page of declared sources."""

    component: ClassVar = "DeclarationList"


class ShownAdaptation(WireObject):
    """What is read otherwise than it was written."""

    path: str
    message: str


class ShownDeclaration(WireObject, tag_field="object", tag="source_declaration"):
    """One declaration, as it was sent, and what became of it."""

    component: ClassVar = "Declaration"

    connector_key: Word
    declaration_version: Word
    digest: Digest
    kept: Sequence[str]
    adapted: Sequence[ShownAdaptation]
    declaration: RawObject
    links: SelfLink
    meta: Meta


DECLARATION_BODY: JsonSchema = {
    **Components(is_named=False).describe(SentDeclaration),
    "allOf": [
        {"anyOf": [{"required": ["source"]}, {"required": ["connector_id"]}]},
        {"anyOf": [{"required": ["declaration_version"]}, {"required": ["version"]}]},
        {"anyOf": [{"required": ["display"]}, {"required": ["display_name"]}]},
    ],
}


class Declarations:
    """The routes of one store; `known` keeps parsed declarations."""

    def __init__(self, ports: ReadPorts, known: KnownDeclarations) -> None:
        self._ports = ports
        self._known = known

    def routes(self) -> tuple[Route, ...]:
        """The owner's routes for declarations (contract 14.1)."""
        listed = Route(
            "GET",
            ROOT,
            self.list,
            "The sources declared here.",
            "14.1",
            answer=DeclarationList,
            parameters=(page_limit(25, 100), CURSOR),
            errors=(InvalidCursor,),
        )
        accepted = Route(
            "POST",
            ROOT,
            self.accept,
            "Declares a source, or a new version of one.",
            "14.1",
            answer=ShownDeclaration,
            also={201: ShownDeclaration},
            body=BodyRule(limit_bytes=MAX_DECLARATION_BYTES, schema=DECLARATION_BODY),
            errors=(InvalidDeclaration, DeclarationConflict, DeclarationIncompatible),
        )
        one = _one("GET", self.get, "One declaration.", ShownDeclaration, (VERSION,))
        forgotten = _one("DELETE", self.forget, "Forgets a source without connections.", None)
        return tuple(owner(route) for route in (listed, accepted, one, forgotten))

    def list(self, request: Request) -> Reply:
        """`GET /v1/owner/declarations`."""
        with self._ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            stored = snapshot.declarations()
            connectors = [connection.connector_key for connection in snapshot.connections()]
        page, cursor = named_page(
            request, self._ports.sealer, [(found.connector_key, found) for found in stored]
        )
        rows = [self._summary(found, connectors.count(found.connector_key)) for found in page]
        return Reply(page_of(DeclarationList, request, rows, next_cursor=cursor))

    def accept(self, request: Request) -> Reply:
        """`POST /v1/owner/declarations`."""
        accepted = declare(self._ports.store, request.body, request.now_ns)
        declared = accepted.declaration
        stored = self._ports.store.declaration(declared.connector_key, declared.version)
        if stored is None:
            raise NotFound("The declaration was deleted meanwhile.", param="connector_key")
        return self._reply(request, stored, 201 if accepted.is_new else 200)

    def get(self, request: Request) -> Reply:
        """`GET /v1/owner/declarations/{connector_key}`."""
        version = request.parameters.texts.get("version")
        stored = self._ports.store.declaration(request.path["connector_key"], version)
        if stored is None:
            raise _unknown()
        return self._reply(request, stored, 200)

    def forget(self, request: Request) -> Reply:
        """`DELETE /v1/owner/declarations/{connector_key}`."""
        if not self._ports.store.delete_declaration(request.path["connector_key"]):
            raise _unknown()
        return Reply(status=204)

    def _reply(self, request: Request, stored: StoredDeclaration, status: int) -> Reply:
        read = self._known.one(stored)
        body = ShownDeclaration(
            connector_key=stored.connector_key,
            declaration_version=stored.version,
            digest=stored.digest,
            kept=read.kept,
            adapted=[ShownAdaptation(each.path, each.message) for each in read.adapted],
            declaration=msgspec.Raw(stored.raw),
            links=SelfLink(request.self_link),
            meta=meta_of(request),
        )
        return Reply(body, status=status)

    def _summary(self, stored: StoredDeclaration, connection_count: int) -> DeclarationSummary:
        return DeclarationSummary(
            connector_key=stored.connector_key,
            source=shown_source(stored.source_kind, stored.source_id),
            declaration_version=stored.version,
            digest=stored.digest,
            stream_count=len(self._known.one(stored).streams),
            connection_count=connection_count,
            registered_at=render_instant(stored.registered_at_ns),
        )


def _one(
    method: str,
    answer: Callable[[Request], Reply],
    summary: str,
    shape: type[WireObject] | None,
    parameters: tuple[Parameter, ...] = (),
) -> Route:
    return Route(
        method,
        ONE,
        answer,
        summary,
        "14.1",
        answer=shape,
        success=200 if shape else 204,
        parameters=parameters,
        errors=(NotFound,) if shape else (NotFound, InvalidState),
    )


def _unknown() -> NotFound:
    return NotFound("No such declaration here.", param="connector_key")
