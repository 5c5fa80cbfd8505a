"""One call of an OAuth endpoint, read strictly: parameters once, bodies bounded.

Rule: the query carries nothing but what the route lists; a parameter given twice is refused, an
empty one counts as absent; `resource` alone may be repeated.
Source: docs/contract/authorization-server.md 0; RFC 6749 3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_hex

from starlette.requests import Request

from personal_server.errors import BadRequest, UnsupportedVersion
from personal_server.granting.audit import Acting
from personal_server.web.requests import PDPP_VERSION

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
