"""One call of an OAuth endpoint, read strictly: parameters once, bodies bounded.

Rule: the query carries nothing but what the route lists; a parameter given twice is refused, an
empty one counts as absent; `resource` alone may be repeated.
Source: docs/contract/authorization-server.md 0; RFC 6749 3.1.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pdpp_kernel.oauth_errors import BadRequest
from pdpp_kernel.texts import message
from pdpp_kernel.unprinted import Unprinted
from personal_server.consent.client_registration import OWNER_CLI_CLIENT
from personal_server.granting.audit import Acting
from personal_server.web.forms import form_fields
from personal_server.web.limits import network_of
from personal_server.web.requests import IncomingRequest

_SHOWN_AGENT = 200
MAX_FIELDS = 200


class EndpointRequest(Unprinted, frozen=True):
    """A call as endpoints see it.

    Shapes: `path` holds the decoded variable segments; `parameters` those of the form or, for GET,
        of the query; `resources` the values of `resource`; `repeated` the names given more than
        once (authorization endpoint only).
    """

    request: IncomingRequest
    path: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    parameters: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    resources: tuple[str, ...] = ()
    repeated: frozenset[str] = frozenset()
    body: bytes = b""

    @property
    def origin(self) -> str:
        """The origin the call was made on."""
        return self.request.origin

    @property
    def request_id(self) -> str:
        """The id of the call."""
        return self.request.request_id

    @property
    def address(self) -> str:
        """Where the caller is; empty where nobody knows."""
        return self.request.client_address or ""

    @property
    def network(self) -> str:
        """Whose address that is, as limits count."""
        return network_of(self.address)

    @property
    def is_of_owner(self) -> bool:
        """Whether the client that it names is the owner's own program."""
        return self.parameters.get("client_id") == OWNER_CLI_CLIENT

    @property
    def is_of_page(self) -> bool:
        """Whether a page in a browser sends it.

        Every browser names the page's origin where a form or a script posts to another one.
        """
        return "origin" in self.request.headers or self._is_of_other_origin

    @property
    def is_loaded_unseen(self) -> bool:
        """Whether a page of another site loads the address and nobody sees it.

        That is as a picture, by a script, in a frame, or ahead of a click.
        """
        headers = self.request.headers
        if "sec-purpose" in headers:
            return True
        mode, kind = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
        return self._is_of_other_origin and (mode, kind) != ("navigate", "document")

    @property
    def _is_of_other_origin(self) -> bool:
        """Whether a browser says that a page of another origin sends it; no script changes that."""
        site = self.request.headers.get("sec-fetch-site", "none")
        return site not in ("none", "same-origin")

    @property
    def counted_network(self) -> str | tuple[str, str]:
        """Whose calls these are, as limits count: pages in browsers use up what is theirs alone."""
        return (self.network, "a page") if self.is_of_page else self.network

    def acting(self, actor: str = "client") -> Acting:
        """Who acts, for the audit trail."""
        agent = self.request.headers.get("user-agent", "")[:_SHOWN_AGENT]
        return Acting(actor, self.request_id, self.address, user_agent=agent or None)

    def needed(self, name: str) -> str:
        """A parameter that must be there.  Raises: BadRequest."""
        value = self.parameters.get(name)
        if value is None:
            raise BadRequest(
                message("The request has no parameter %(name)s.", name=name), param=name
            )
        return value


def parse_query(
    query: bytes,
) -> tuple[Mapping[str, str], tuple[str, ...], frozenset[str]]:
    """The query of an authorization request: parameters, resources, repeated names.

    Raises: InvalidRequest.
    """
    parameters: dict[str, str] = {}
    resources: list[str] = []
    names: set[str] = set()
    repeated: set[str] = set()
    for name, value in form_fields(query, MAX_FIELDS):
        if name == "resource":
            resources += [value] if value else []
            continue
        if name in names:
            repeated.add(name)
        elif value:
            parameters[name] = value
        names.add(name)
    return parameters, tuple(resources), frozenset(repeated)


def parse_form(body: bytes) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The parameters of a form and its resources.  Raises: BadRequest, InvalidRequest."""
    parameters, resources, repeated = parse_query(body)
    if repeated:
        name = min(repeated)
        raise BadRequest(
            message("The request gives the parameter %(name)s twice.", name=name[:64]),
            param=name[:64],
        )
    return parameters, resources
