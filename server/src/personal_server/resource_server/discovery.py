"""Discovery: the index and the two documents that describe this server as a protected resource.

Rule: nothing is advertised that is not built; a capability that is off says `supported: false`.
Source: docs/contract/resource-server.md 5; docs/contract/authorization-server.md 2.2, 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_kernel.wire_objects import Address, AnyObject, WireObject, Word
from personal_server.domain.disclosure import TokenName
from personal_server.domain.possession import PROOF_ALGORITHMS
from personal_server.enforcement.queries import DEFAULT_LIMIT, MAX_LIMIT
from personal_server.resource_server.openapi import title
from personal_server.web.accept_headers import prefers_html
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.responses import page_headers
from personal_server.web.routes import Caching, Route, Tokens

if TYPE_CHECKING:
    from personal_server.resource_server.documentation import DocumentationPages

HTML_TYPE = "text/html; charset=utf-8"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
DESCRIPTION = "/v1/openapi.json"
NAME_FOR_PAGES = "Personal server"
"""What pages of other origins read instead of the name that the owner chose."""
_BY_ORIGIN = (("Vary", "Host, X-Forwarded-Host, X-Forwarded-Proto, Origin"),)

Document = Callable[[], Mapping[str, Any]]

LEXICAL_RETRIEVAL: Mapping[str, object] = {
    "supported": True,
    "endpoint": "/v1/search",
    "cursor_supported": True,
    "count_supported": True,
    "cross_stream": True,
    "snippets": True,
    "default_limit": DEFAULT_LIMIT,
    "max_limit": MAX_LIMIT,
    "query_syntax": {"phrases": True, "prefix": True, "all_terms_required": True},
}
ABSENT: Mapping[str, object] = {"supported": False}
EVENT_SUBSCRIPTIONS: Mapping[str, object] = {
    "supported": True,
    "endpoint": "/v1/event-subscriptions",
}


def capabilities(*, by_meaning: bool) -> Mapping[str, object]:
    """What the server does beyond plain reads; `by_meaning`: a model is chosen."""
    modes = {
        f"{mode}_retrieval": {"supported": True, "endpoint": f"/v1/search/{mode}"}
        if by_meaning
        else ABSENT
        for mode in ("semantic", "hybrid")
    }
    return {
        "lexical_retrieval": LEXICAL_RETRIEVAL,
        **modes,
        "client_event_subscriptions": EVENT_SUBSCRIPTIONS,
    }


DISCOVERY_HINTS: Mapping[str, object] = {
    "schema_endpoint": "/v1/schema",
    "query_base": "/v1",
    "connectors_endpoint": "/v1/connectors",
    "streams_endpoint_template": "/v1/streams/{stream}",
    "aggregate": {"endpoint_template": "/v1/streams/{stream}/aggregate"},
    "changes_since_bootstrap": "beginning",
    "blob_indirection": "data.blob_ref.fetch_url",
    "search": {
        "endpoint": "/v1/search",
        "scope_param": "streams[]",
        "filter_requires_single_stream": True,
    },
}


class ProtectedResource(WireObject, kw_only=True):
    """What RFC 9728 has a resource say of itself, and what this protocol adds."""

    component: ClassVar = "Resource"

    resource: Address
    resource_name: Word
    authorization_servers: Annotated[Sequence[Address], msgspec.Meta(min_length=1)]
    bearer_methods_supported: Sequence[Word]
    scopes_supported: Sequence[Word]
    dpop_signing_alg_values_supported: Sequence[Word]
    dpop_bound_access_tokens_required: bool
    authorization_details_types_supported: Sequence[Address]
    resource_documentation: Address
    pdpp_core_query_base: Annotated[str, msgspec.Meta(pattern="/v1$")]
    pdpp_self_export_supported: bool | None = None
    pdpp_token_kinds_supported: Sequence[TokenName]
    pdpp_agent_discovery: AnyObject
    capabilities: AnyObject | None = None
    pdpp_read_capabilities: Sequence[ReadCapability] | None = None
    pdpp_discovery_hints: AnyObject | None = None


class DiscoveryIndex(WireObject, tag_field="object", tag="pdpp_discovery_index"):
    """The entry points of this server."""

    component: ClassVar = "Index"

    role: Literal["resource_server"]
    resource_name: str
    links: Mapping[str, Word]


class OpenApiDocument(WireObject, rename={"json_schema_dialect": "jsonSchemaDialect"}):
    """The description of every route."""

    component: ClassVar = "OpenApi"

    openapi: Word
    json_schema_dialect: Address
    info: AnyObject
    servers: Sequence[AnyObject]
    security: Sequence[AnyObject]
    tags: Sequence[AnyObject]
    paths: AnyObject
    components: AnyObject


def protected_resource(origin: str, name: str, *, by_meaning: bool = False) -> ProtectedResource:
    """The origin as a protected resource.  Source: docs/contract/resource-server.md 5.1."""
    return ProtectedResource(
        resource=origin,
        resource_name=name,
        **_shared(origin),
        pdpp_self_export_supported=True,
        pdpp_token_kinds_supported=("owner", "client", "mcp_package"),
        pdpp_agent_discovery={"advisory": True, "mcp": _mcp(origin)},
        capabilities=capabilities(by_meaning=by_meaning),
        pdpp_read_capabilities=tuple(ReadCapability),
        pdpp_discovery_hints=DISCOVERY_HINTS,
    )


def protected_mcp_resource(origin: str, name: str, path: str = "/mcp") -> ProtectedResource:
    """The MCP endpoint as a protected resource, by the path that a client was given.

    Source: docs/contract/resource-server.md 5.2; docs/contract/authorization-server.md 2.3.
    """
    return ProtectedResource(
        resource=f"{origin}{path}",
        resource_name=f"{name} (MCP)",
        **_shared(origin),
        pdpp_token_kinds_supported=("client", "mcp_package"),
        pdpp_agent_discovery={
            "advisory": True,
            "mcp": {**_mcp(origin), "authorization": _mcp_authorization(origin)},
        },
    )


def discovery_index(origin: str, name: str) -> DiscoveryIndex:
    """The entry points.  Source: docs/contract/resource-server.md 5."""
    return DiscoveryIndex(
        role="resource_server",
        resource_name=name,
        links={
            "well_known": f"{origin}{WELL_KNOWN}",
            "mcp_well_known": f"{origin}{WELL_KNOWN}/mcp",
            "authorization_server": f"{origin}/.well-known/oauth-authorization-server",
            "schema": f"{origin}/v1/schema",
            "connectors": f"{origin}/v1/connectors",
            "openapi": f"{origin}{DESCRIPTION}",
            "mcp": f"{origin}/mcp",
            "core_query_base": "/v1",
        },
    )


def _shared(origin: str) -> dict[str, Any]:
    return {
        "authorization_servers": [origin],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["pdpp:read"],
        "dpop_signing_alg_values_supported": PROOF_ALGORITHMS,
        "dpop_bound_access_tokens_required": False,
        "authorization_details_types_supported": ["https://pdpp.dev/data-access"],
        "resource_documentation": f"{origin}/docs",
        "pdpp_core_query_base": f"{origin}/v1",
    }


def _mcp(origin: str) -> dict[str, object]:
    return {
        "endpoint": f"{origin}/mcp",
        "transport": "streamable_http",
        "tool_surface": "profile_free_normal_read",
        "setup_intent": "grant_scoped_read",
        "no_owner_token": True,
    }


def _mcp_authorization(origin: str) -> dict[str, object]:
    return {
        "authorization_code_pkce": {
            "authorization_endpoint": f"{origin}/oauth/authorize",
            "token_endpoint": f"{origin}/oauth/token",
            "pdpp_token_kind": "client",
            "resource": f"{origin}/mcp",
        },
        "device_code": {
            "device_authorization_endpoint": f"{origin}/oauth/device_authorization",
            "token_endpoint": f"{origin}/oauth/token",
            "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
            "resource": f"{origin}/mcp",
            "owner_bearer_accepted": False,
        },
    }


class Discovery:
    """The public routes.

    Shapes: `document` gives the OpenAPI description of all routes, `has_model` says whether meaning
        is searched now.
    """

    def __init__(
        self,
        server_name: str,
        document: Document,
        has_model: Callable[[], bool] = bool,
        stylesheet: str = "",
    ) -> None:
        self._has_model = has_model
        self._name = server_name
        self._document = document
        self._stylesheet = stylesheet

    @cached_property
    def _pages(self) -> DocumentationPages:
        # programs ask for none
        from personal_server.resource_server.documentation import (  # noqa: PLC0415
            DocumentationPages,
        )

        return DocumentationPages(self._name, self._stylesheet)

    def routes(self) -> tuple[Route, ...]:
        """Every public route of docs/contract/resource-server.md 5."""
        return (
            _public(
                "/", self.front_page, "The entry points, or a page for people.", DiscoveryIndex
            ),
            _public("/v1", self.index, "The entry points.", DiscoveryIndex),
            _public("/docs", self.docs, "How to connect, and this reference as a page.", None),
            _public(
                WELL_KNOWN, self.resource, "This server as a protected resource.", ProtectedResource
            ),
            _public(f"{WELL_KNOWN}/mcp", self.mcp_resource, "The MCP endpoint.", ProtectedResource),
            replace(
                _public(f"{WELL_KNOWN}/mcp/", self.mcp_resource, "The same.", None),
                advertised=False,
            ),
            _public(DESCRIPTION, self.openapi, "This description.", OpenApiDocument),
            replace(_public("/openapi.json", self.openapi, "The same.", None), advertised=False),
        )

    def front_page(self, request: Request) -> Reply:
        """`/`: HTML for people, the index for programs."""
        if prefers_html(request.headers.get("accept", "")):
            return self._html(self._pages.front(request.origin))
        return self.index(request)

    def index(self, request: Request) -> Reply:
        """`/v1`."""
        return Reply(discovery_index(request.origin, self._name), headers=(("Vary", "Accept"),))

    def docs(self, request: Request) -> Reply:
        """`/docs`."""
        return self._html(self._pages.docs(request.origin, self._document()))

    def resource(self, request: Request) -> Reply:
        """`/.well-known/oauth-protected-resource`."""
        by_meaning = self._has_model()
        name = self._name_for(request)
        body = protected_resource(request.origin, name, by_meaning=by_meaning)
        return Reply(body, headers=_BY_ORIGIN)

    def mcp_resource(self, request: Request) -> Reply:
        """`/.well-known/oauth-protected-resource/mcp`, and with a slash for who typed one."""
        name, path = self._name_for(request), request.raw_path.removeprefix(WELL_KNOWN)
        return Reply(protected_mcp_resource(request.origin, name, path), headers=_BY_ORIGIN)

    def openapi(self, request: Request) -> Reply:
        """`/v1/openapi.json`, and `/openapi.json` where clients look for it first."""
        document = dict(self._document())
        document["info"] = {**document["info"], "title": title(self._name_for(request))}
        dialect = document.pop("jsonSchemaDialect")
        body = OpenApiDocument(json_schema_dialect=dialect, **document)
        return Reply(body, headers=(("Vary", "Origin"),))

    def _name_for(self, request: Request) -> str:
        """The name of this server for whoever asks.

        Every website that the owner opens can read these documents from a server on loopback;
        browsers name the website in `Origin`, and a name often says whose server it is.
        """
        page = request.headers.get("origin")
        return self._name if page in (None, request.origin) else NAME_FOR_PAGES

    def _html(self, page: str) -> Reply:
        policy = page_headers(style_src="'self'", img_src="'self'", form_action="'none'")
        headers = (("Vary", "Accept"), *policy.items())
        return Reply(content=page.encode(), content_type=HTML_TYPE, headers=headers)


def _public(
    pattern: str, answer: Callable[[Request], Reply], summary: str, shape: type[WireObject] | None
) -> Route:
    return Route(
        "GET",
        pattern,
        answer,
        summary,
        "5",
        tokens=Tokens.NONE,
        answer=shape,
        media_types=("text/html",) if pattern in ("/", "/docs") else ("application/json",),
        cors=pattern not in ("/", "/v1", "/docs"),
        caching=Caching.PUBLIC,
        etag=pattern.endswith("/openapi.json"),
    )
