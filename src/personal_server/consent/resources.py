"""Resource indicators (RFC 8707): which are ours, in the one form that they are stored in.

Source: AS contract 5.3.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from personal_server.errors import InvalidTarget

MCP_PATH, QUERY_PATH = "/mcp", "/v1"
_DEFAULT_PORT = {"http": ":80", "https": ":443"}


def canonical_resource(asked: Sequence[str], origin: str, origins: Collection[str]) -> str | None:
    """The canonical form of the asked resource, `None` if none was asked.

    Raises: InvalidTarget for two different, a foreign or an unknown one.
    """
    found = {_canonical(resource) for resource in asked}
    if not found:
        return None
    if len(found) > 1:
        raise InvalidTarget("Name one resource.", param="resource")
    resource = found.pop()
    ours = {o + path for o in {origin, *origins} for path in ("", MCP_PATH, QUERY_PATH)}
    if resource not in ours:
        raise InvalidTarget("This server does not have that resource.", param="resource")
    return resource


def _canonical(resource: str) -> str:
    invalid = InvalidTarget("A resource is the URL of this server.", param="resource")
    if "#" in resource or "?" in resource:
        raise invalid
    try:
        parts = urlsplit(resource)
        parts.port  # noqa: B018 - reading it is the check
    except ValueError:
        raise invalid from None
    scheme = parts.scheme.lower()
    host = parts.netloc.lower().removesuffix(_DEFAULT_PORT.get(scheme, ""))
    if not scheme or not host or "@" in host:
        raise invalid
    return f"{scheme}://{host}{parts.path.removesuffix('/')}"
