"""One call of an OAuth endpoint, read strictly: parameters once, bodies bounded.

Rule: the query carries nothing but what the route lists; a parameter given twice is refused, an
empty one counts as absent; `resource` alone may be repeated.  Source: AS contract 0; RFC 6749 3.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from urllib.parse import parse_qsl

from starlette.requests import Request

from personal_server.domain.wire import PDPP_VERSION
from personal_server.errors import BadRequest, RequestTooLarge, UnsupportedVersion
from personal_server.granting.audit import Acting

MAX_BODY = 128 * 1024
MAX_REGISTRATION = 32 * 1024
MAX_FIELDS = 200
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
_SHOWN_AGENT = 200


@dataclass(frozen=True, slots=True)
class Call:
    """A call as endpoints see it.

    Shapes: `parameters` of the form or, for GET, of the query; `resources` the values of
        `resource`; `repeated` the names given more than once (authorization endpoint only).
    """

    request: Request
    origin: str
    request_id: str
    address: str
    parameters: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    resources: tuple[str, ...] = ()
    repeated: frozenset[str] = frozenset()
    body: bytes = field(default=b"", repr=False)

    def acting(self, actor: str = "client") -> Acting:
        """Who acts, for the audit trail."""
        agent = self.request.headers.get("user-agent", "")[:_SHOWN_AGENT]
        return Acting(actor, self.request_id, self.address, user_agent=agent or None)

    def needed(self, name: str) -> str:
        """A parameter that must be there.  Raises: BadRequest."""
        value = self.parameters.get(name)
        if value is None:
            raise BadRequest(f"The parameter {name} is missing.", param=name)
        return value


def settled(request: Request) -> Call:
    """The call with what the outermost application settled; defaults stand in without one."""
    state: Mapping[str, str] = request.scope.get("state", {})
    here = f"{request.url.scheme}://{request.headers.get('host', '')}"
    peer = request.client.host if request.client else ""
    return Call(
        request=request,
        origin=state.get("origin", here),
        request_id=state.get("request_id") or f"req_{token_hex(12)}",
        address=state.get("client_address", peer),
    )


def check_version(request: Request) -> None:
    """Raises: UnsupportedVersion."""
    if request.headers.get("pdpp-version", PDPP_VERSION) != PDPP_VERSION:
        raise UnsupportedVersion(f"This server speaks PDPP-Version {PDPP_VERSION}.")


def known_query(request: Request, allowed: Collection[str] = ()) -> None:
    """Refuse query parameters that the route does not list.  Source: decision C17."""
    for name in _pairs(request.scope["query_string"]):
        if name[0] not in allowed:
            raise BadRequest("The query parameter is not known here.", param=name[0])


def query_parameters(request: Request) -> tuple[dict[str, str], tuple[str, ...], frozenset[str]]:
    """The query of an authorization request: parameters, resources, repeated names."""
    return _parameters(_pairs(request.scope["query_string"]))


def parse_form(body: bytes) -> tuple[dict[str, str], tuple[str, ...]]:
    """The parameters of a form and its resources.  Raises: BadRequest."""
    parameters, resources, repeated = _parameters(_pairs(body))
    if repeated:
        name = min(repeated)
        raise BadRequest(f"The parameter {name[:64]} is given twice.", param=name[:64])
    return parameters, resources


async def read_body(request: Request, content_type: str, limit: int) -> bytes:
    """The body of a call.  Raises: BadRequest, RequestTooLarge."""
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != content_type:
        raise BadRequest(f"The body has the content type {content_type}.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise RequestTooLarge(f"The body may have {limit} bytes.")
    return bytes(body)


def _pairs(text: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            text.decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise BadRequest("The parameters are not a form in UTF-8.") from None


def _parameters(
    pairs: Iterable[tuple[str, str]],
) -> tuple[dict[str, str], tuple[str, ...], frozenset[str]]:
    parameters: dict[str, str] = {}
    resources: list[str] = []
    seen: set[str] = set()
    repeated: set[str] = set()
    for name, value in pairs:
        if name == "resource":
            resources += [value] if value else []
            continue
        if name in seen:
            repeated.add(name)
        elif value:
            parameters[name] = value
        seen.add(name)
    return parameters, tuple(resources), frozenset(repeated)
