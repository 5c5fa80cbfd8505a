"""The route table: what this server answers, declared once.

Rule: routing, unknown-parameter refusals, HEAD, 405, CORS, costs and the OpenAPI document are all
read from these declarations; nothing about a route is decided anywhere else.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from urllib.parse import unquote_to_bytes

import msgspec

from personal_server.errors import InvalidRequest, MethodNotAllowed, NotFound, PersonalServerError
from personal_server.web.parameters import Parameter, Parameters, by_name
from personal_server.web.requests import Request
from personal_server.web.responses import Reply

Shape = type[msgspec.Struct] | str

ENCODED_KEY_PREFIX = "~b64."
JSON_BODY_BYTES = 1_048_576


class Tokens(StrEnum):
    """Which tokens a route takes."""

    NONE = "none"
    ANY = "any"
    OWNER = "owner"


class Caching(StrEnum):
    """How answers may be kept.  Source: docs/contract/resource-server.md 1.4."""

    NO_STORE = "private, no-store"
    REVALIDATE = "private, no-cache"
    PUBLIC = "public, max-age=300"


@dataclass(frozen=True, slots=True)
class BodyRule:
    """The body a route takes.

    Shapes: `schema` is a JSON Schema for the OpenAPI document; an empty `media_types` takes any
        content type.  `spooled` bodies are handed on as a file, others as bytes.
    """

    media_types: tuple[str, ...] = ("application/json",)
    limit_bytes: int = JSON_BODY_BYTES
    schema: Mapping[str, object] = field(default_factory=dict[str, object])
    spooled: bool = False
    example: object = None


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path pattern.

    Shapes: `pattern` has `{name}` segments; `answer` is the struct that is sent, and published
        (`None`: no JSON body), for status `success`; `also` are further statuses with their
        structs; `media_types` are those of a success; `errors` are the classes beyond
        those that every route of its kind can raise.
    Units: `cost` in cost units of docs/contract/resource-server.md 16, from the parameters.
    """

    method: str
    pattern: str
    answer_request: Callable[[Request], Reply]
    summary: str
    section: str
    tokens: Tokens = Tokens.ANY
    parameters: tuple[Parameter, ...] = ()
    cost: Callable[[Parameters], int] = lambda _: 1
    body: BodyRule | None = None
    answer: Shape | None = None
    success: int = 200
    also: Mapping[int, Shape | None] = field(default_factory=dict[int, "Shape | None"])
    media_types: tuple[str, ...] = ("application/json",)
    errors: tuple[type[PersonalServerError], ...] = ()
    cors: bool = False
    caching: Caching = Caching.NO_STORE
    etag: bool = False
    has_deadline: bool = True
    advertised: bool = True
    declared: Mapping[str, Parameter] = field(init=False)

    def __post_init__(self) -> None:
        """Index the parameters once."""
        object.__setattr__(self, "declared", by_name(self.parameters))

    @property
    def name(self) -> str:
        """How logs and documents name the route."""
        return f"{self.method} {self.pattern}"


def owner(route: Route) -> Route:
    """The route for the owner's tokens only."""
    return replace(route, tokens=Tokens.OWNER)


@dataclass(slots=True)
class _Node:
    literals: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    variable: _Node | None = None
    variable_name: str = ""
    routes: dict[str, Route] = field(default_factory=dict[str, Route])


@dataclass(frozen=True, slots=True)
class Match:
    """A path that exists: its methods and its decoded variable segments."""

    routes: Mapping[str, Route]
    path: Mapping[str, str]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods for `Allow`; HEAD wherever GET is."""
        names = {*self.routes, *(["HEAD"] if "GET" in self.routes else [])}
        return tuple(sorted(names))

    @property
    def cors_methods(self) -> tuple[str, ...]:
        """The methods that other origins may use from a browser."""
        return tuple(sorted(m for m, route in self.routes.items() if route.cors))

    def route(self, method: str) -> Route:
        """The route of a method.

        Raises: MethodNotAllowed.
        """
        route = self.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise MethodNotAllowed(f"This path takes {', '.join(self.methods)}.")
        return route


class RouteTable:
    """All routes, as a tree over decoded path segments."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            self._plant(route)

    def _plant(self, route: Route) -> None:
        node = self._root
        for segment in route.pattern.split("/")[1:]:
            if segment.startswith("{"):
                node.variable = node.variable or _Node()
                node.variable_name = segment[1:-1]
                node = node.variable
            else:
                node = node.literals.setdefault(segment, _Node())
        if route.method in node.routes:
            raise ValueError(f"two routes for {route.name}")
        node.routes[route.method] = route

    def match(self, raw_path: bytes) -> Match:
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
                    raise NotFound("No such route. GET /v1 lists the entry points.")
                path[node.variable_name] = _variable(node.variable_name, segment)
            node = child
        if not node.routes:
            raise NotFound("No such route. GET /v1 lists the entry points.")
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
