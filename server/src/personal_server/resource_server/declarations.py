"""Source declarations: accepted, listed, forgotten.

Source: docs/contract/resource-server.md 14.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from pdpp_kernel.declaration import Cardinality, KeySide, Semantics
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
    AnyObject,
    Count,
    Digest,
    Instant,
    RawObject,
    WireObject,
    Word,
)
from personal_server.collecting.declarations import declare
from personal_server.domain import declaration_document
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.envelopes import (
    ListOf,
    Meta,
    SelfLink,
    ShownSource,
    StreamLabel,
    meta_of,
    named_page,
    page_of,
    shown_source,
)
from personal_server.storage.catalog import KnownDeclarations
from personal_server.storage.ports import READ_DEADLINE_SECONDS, StoredDeclaration
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


# What is sent to declare a source.  Source: docs/contract/resource-server.md 17.
#
# Rule: it says less than the parser checks (declared names, unique ids) and never more; what a
# struct `takes_more` of is kept and not interpreted.


Name = Annotated[str, msgspec.Meta(pattern=f"^{declaration_document.STREAM_NAME.pattern}$")]
Names = Sequence[Name]
Version = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
ChildCount = Annotated[int, msgspec.Meta(ge=1, le=declaration_document.MAX_CHILDREN)]


class SentView(WireObject, kw_only=True):
    """A named projection."""

    id: str
    label: str
    fields: Names
    description: Any = None


class SentRelationship(WireObject, kw_only=True):
    """A relation to another stream."""

    name: Name
    stream: Name
    foreign_key: Name
    cardinality: Cardinality
    foreign_key_on: KeySide | None = None
    description: Any = None


class SentExpansion(WireObject):
    """A relation that reads may follow."""

    name: Name
    default_limit: ChildCount | None = None
    max_limit: Annotated[int, msgspec.Meta(ge=1)] | None = None


class SentSearch(WireObject):
    """The fields that are searched."""

    lexical_fields: Names | None = None
    semantic_fields: Names | None = None


class SentAggregations(WireObject):
    """The metrics of a stream, and the fields they take."""

    count: bool | None = None
    sum: Names | None = None
    min: Names | None = None
    max: Names | None = None
    count_distinct: Names | None = None
    group_by: Names | None = None
    group_by_time: Names | None = None


class SentQuery(WireObject):
    """What reads of a stream may ask for."""

    range_filters: Mapping[str, Sequence[Literal["gte", "gt", "lte", "lt"]]] | None = None
    expand: Sequence[SentExpansion] | None = None
    search: SentSearch | None = None
    aggregations: SentAggregations | None = None


class SentSelection(WireObject):
    """What a client may choose from a stream."""

    takes_more: ClassVar = True

    fields: bool | None = None
    resources: bool | None = None


class SentStream(WireObject, kw_only=True):
    """A stream of a source."""

    takes_more: ClassVar = True

    name: Name
    semantics: Literal[Semantics.MUTABLE, Semantics.APPEND_ONLY, "append"]
    schema: AnyObject
    primary_key: Annotated[
        Sequence[Name],
        msgspec.Meta(min_length=1, max_length=declaration_document.MAX_KEY_FIELDS),
    ]
    selection: SentSelection
    display: StreamLabel | None = None
    cursor_field: Name | None = None
    consent_time_field: Name | None = None
    views: Sequence[SentView] | None = None
    relationships: Sequence[SentRelationship] | None = None
    query: SentQuery | None = None


class SentRefreshPolicy(WireObject):
    """How often a source is collected."""

    takes_more: ClassVar = True

    maximum_staleness_seconds: Annotated[int, msgspec.Meta(ge=1)] | None = None


class SentCapabilities(WireObject):
    """What a source can do."""

    takes_more: ClassVar = True

    refresh_policy: SentRefreshPolicy | None = None


class SentName(WireObject):
    """How a source is shown."""

    name: str | None = None
    detail: str | None = None


class SentPublisher(WireObject):
    """Who publishes a source."""

    takes_more: ClassVar = True

    id: str


class SentDeclaration(WireObject, kw_only=True):
    """A source and its streams."""

    takes_more: ClassVar = True

    protocol_version: Annotated[
        Any, msgspec.Meta(extra_json_schema={"const": declaration_document.PROTOCOL_VERSION})
    ]
    connector_key: Annotated[
        str, msgspec.Meta(pattern=f"^{declaration_document.CONNECTOR_KEY.pattern}$")
    ]
    streams: Annotated[Sequence[SentStream], msgspec.Meta(min_length=1)]
    source: ShownSource | None = None
    connector_id: str | None = None
    declaration_version: Version | None = None
    version: Version | None = None
    display: SentName | None = None
    display_name: str | None = None
    publisher: SentPublisher | None = None
    capabilities: SentCapabilities | None = None
    selection_presets: Sequence[AnyObject] | None = None
    extensions: AnyObject | None = None


DECLARATION_BODY: JsonSchema = {
    **Components().describe(SentDeclaration),
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
        """All of 14.1."""
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
