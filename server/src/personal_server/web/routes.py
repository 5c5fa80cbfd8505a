"""Routes: what a surface answers, declared once.

Rule: routing, unknown-parameter refusals, bodies, HEAD, 405 and CORS of every surface, and the
costs and the OpenAPI document of `/v1`, are all read from these declarations; nothing about a
route is decided anywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

import msgspec

from pdpp_kernel.errors import PersonalServerError
from personal_server.web.parameters import Parameter, Parameters, by_name
from personal_server.web.replies import Reply
from personal_server.web.requests import Request

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


class BodyRule(msgspec.Struct, frozen=True):
    """The body a route takes.

    Shapes: `schema` is a JSON Schema for the OpenAPI document; an empty `media_types` takes any
        content type.  `spooled` bodies are handed on as a file, others as bytes; in
        `spool_folder`, where one is named.
    """

    media_types: tuple[str, ...] = ("application/json",)
    limit_bytes: int = JSON_BODY_BYTES
    schema: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
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
