"""The route table: which route a method and a path mean.

Rule: a path is matched by its decoded segments, and a variable segment is decoded once.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Generic
from urllib.parse import unquote_to_bytes

import msgspec

from pdpp_kernel.errors import InvalidRequest, MethodNotAllowed, NotFound
from pdpp_kernel.texts import message
from personal_server.web.routes import D

ENCODED_KEY_PREFIX = "~b64."


class _Node(msgspec.Struct, Generic[D]):
    literals: dict[str, _Node[D]] = msgspec.field(default_factory=dict[str, "_Node[D]"])
    variable: _Node[D] | None = None
    variable_name: str = ""
    routes: dict[str, D] = msgspec.field(default_factory=dict[str, D])


class Match(msgspec.Struct, Generic[D], frozen=True):
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
                message("Call this path with %(methods)s.", methods=", ".join(self.methods))
            )
        return route


class RouteTable(Generic[D]):
    """All routes of a surface, as a tree over decoded path segments.

    Shapes: `nothing` is what somebody is told who asks for a path that is not there.
    """

    def __init__(
        self,
        routes: Iterable[D],
        nothing: str = "There is no such route. GET /v1 lists the entry points.",
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
        raise InvalidRequest("The path of the request is not valid UTF-8.", param="path") from None


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
            "The record key after '~b64.' is not UTF-8 text in base64url.", param="record_key"
        ) from None
