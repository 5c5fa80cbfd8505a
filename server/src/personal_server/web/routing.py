"""The route table: what a surface answers, declared once.

Rule: routing, unknown-parameter refusals, bodies, HEAD, 405 and CORS of every surface, and the
costs and the OpenAPI document of `/v1`, are all read from these declarations; nothing about a
route is decided anywhere else.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Generic, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec

from pdpp_kernel.errors import InvalidRequest, MethodNotAllowed, NotFound, PersonalServerError
from pdpp_kernel.texts import message
from personal_server.web.parameters import Parameter, Parameters, by_name
from personal_server.web.requests import Request
from personal_server.web.responses import Reply

ENCODED_KEY_PREFIX = "~b64."
JSON_BODY_BYTES = 1_048_576


class Tokens(StrEnum):
    """Which tokens a route takes."""

    NONE = "none"
    ANY = "any"
    OWNER = "owner"
    COLLECTOR = "collector"
    """The owner's, and a collector's for its own connection."""


class Caching(StrEnum):
    """How answers may be kept.  Source: docs/contract/resource-server.md 1.4."""

    NO_STORE = "private, no-store"
    REVALIDATE = "private, no-cache"
    PUBLIC = "public, max-age=300"


@dataclass(frozen=True, slots=True)
class BodyRule:
    """The body a route takes.

    Shapes: `schema` is a JSON Schema for the OpenAPI document; an empty `media_types` takes any
        content type.  `spooled` bodies are handed on as a file, others as bytes; in
        `spool_folder`, where one is named.
    """

    media_types: tuple[str, ...] = ("application/json",)
    limit_bytes: int = JSON_BODY_BYTES
    schema: Mapping[str, object] = field(default_factory=dict[str, object])
    spooled: bool = False
    spool_folder: str | None = None
    example: object = None


@dataclass(frozen=True, slots=True)
class RouteDeclaration:
    """One method on one path pattern: what the frame has to know of it.

    Shapes: `pattern` has `{name}` segments; `open_query` routes take parameters that they do not
        declare, and read the query themselves.
    """

    method: str
    pattern: str
    parameters: tuple[Parameter, ...] = field(default=(), kw_only=True)
    body: BodyRule | None = field(default=None, kw_only=True)
    cors: bool = field(default=False, kw_only=True)
    open_query: bool = field(default=False, kw_only=True)
    declared: Mapping[str, Parameter] = field(init=False)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        """Index the parameters once, and name the route for logs and documents."""
        object.__setattr__(self, "declared", by_name(self.parameters))
        object.__setattr__(self, "name", f"{self.method} {self.pattern}")


@dataclass(frozen=True, slots=True)
class Route(RouteDeclaration):
    """A route of `/v1`.

    Shapes: `answer` is the struct that is sent, and published (`None`: no JSON body), for status
        `success`; `also` are further statuses with their structs; `media_types` are those of a
        success; `errors` are the classes beyond those that every route of its kind can raise.
        `is_brief` says from the parameters whether a read mostly takes a moment only.
    Units: `cost` in cost units of docs/contract/resource-server.md 16, from the parameters.
    """

    answer_request: Callable[[Request], Reply]
    summary: str
    section: str
    tokens: Tokens = Tokens.ANY
    cost: Callable[[Parameters], int] = lambda _: 1
    is_brief: Callable[[Parameters], bool] = lambda _: False
    answer: type[msgspec.Struct] | None = None
    success: int = 200
    also: Mapping[int, type[msgspec.Struct] | None] = field(
        default_factory=dict[int, "type[msgspec.Struct] | None"]
    )
    media_types: tuple[str, ...] = ("application/json",)
    errors: tuple[type[PersonalServerError], ...] = ()
    caching: Caching = Caching.NO_STORE
    etag: bool = False
    has_deadline: bool = True
    advertised: bool = True


D = TypeVar("D", bound=RouteDeclaration)


def owner(route: Route) -> Route:
    """The route for the owner's tokens only."""
    return replace(route, tokens=Tokens.OWNER)


def collector(route: Route) -> Route:
    """The route for the owner's tokens, and for a collector's on its own connection."""
    return replace(route, tokens=Tokens.COLLECTOR)


@dataclass(slots=True)
class _Node(Generic[D]):
    literals: dict[str, _Node[D]] = field(default_factory=dict[str, "_Node[D]"])
    variable: _Node[D] | None = None
    variable_name: str = ""
    routes: dict[str, D] = field(default_factory=dict[str, D])


@dataclass(frozen=True, slots=True)
class Match(Generic[D]):
    """A path that exists: its methods and its decoded variable segments."""

    routes: Mapping[str, D]
    path: Mapping[str, str]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods for `Allow`; HEAD wherever GET is, OPTIONS wherever browsers may ask."""
        names = {*self.routes}
        if "GET" in names:
            names.add("HEAD")
        if self.cors_methods:
            names.add("OPTIONS")
        return tuple(sorted(names))

    @property
    def cors_methods(self) -> tuple[str, ...]:
        """The methods that other origins may use from a browser."""
        return tuple(sorted(m for m, route in self.routes.items() if route.cors))

    def route(self, method: str) -> D:
        """The route of a method.

        Raises: MethodNotAllowed.
        """
        route = self.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise MethodNotAllowed(
                message("This path takes %(methods)s.", methods=", ".join(self.methods))
            )
        return route


class RouteTable(Generic[D]):
    """All routes of a surface, as a tree over decoded path segments.

    Shapes: `nothing` is what somebody is told who asks for a path that is not there.
    """

    def __init__(
        self,
        routes: Iterable[D],
        nothing: str = "No such route. GET /v1 lists the entry points.",
    ) -> None:
        self.routes = tuple(routes)
        self._nothing = nothing
        self._root = _Node[D]()
        for route in self.routes:
            self._plant(route)

    def _plant(self, route: D) -> None:
        node = self._root
        for segment in route.pattern.split("/")[1:]:
            if segment.startswith("{"):
                node.variable = node.variable or _Node[D]()
                node.variable_name = segment[1:-1]
                node = node.variable
            else:
                node = node.literals.setdefault(segment, _Node[D]())
        if route.method in node.routes:
            raise ValueError(f"two routes for {route.name}")
        node.routes[route.method] = route

    def match(self, raw_path: bytes) -> Match[D]:
        """The routes of a path, split into segments *before* percent-decoding.

        Source: docs/contract/resource-server.md 1.1.
        Raises: NotFound, InvalidRequest (not UTF-8).
        """
        node, path = self._root, dict[str, str]()
        for raw_segment in raw_path.split(b"/")[1:]:
            segment = _decode_segment(raw_segment)
            child = node.literals.get(segment)
            if child is None:
                child = node.variable if segment else None
                if child is None:
                    raise NotFound(self._nothing)
                path[node.variable_name] = _variable(node.variable_name, segment)
            node = child
        if not node.routes:
            raise NotFound(self._nothing)
        return Match(node.routes, path)


def _variable(name: str, segment: str) -> str:
    return record_key(segment) if name == "record_key" else segment


def _decode_segment(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("The path is not valid UTF-8.", param="path") from None


def record_key(segment: str) -> str:
    """The record key of a path segment; `~b64.` introduces its base64url form.

    Source: docs/contract/resource-server.md 9.1.
    Raises: InvalidRequest.
    """
    if not segment.startswith(ENCODED_KEY_PREFIX):
        return segment
    text = segment.removeprefix(ENCODED_KEY_PREFIX)
    try:
        padded = text + "=" * (-len(text) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        raise InvalidRequest(
            "The record key after '~b64.' is not base64url of UTF-8 text.", param="record_key"
        ) from None
