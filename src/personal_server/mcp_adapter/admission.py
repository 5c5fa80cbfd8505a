"""Who may use `/mcp`: the port that the composition root answers from the token store.

Source: MCP adapter contract 2.2; authorization-server contract 10.1, 12.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

RefusalCode = Literal["invalid_token", "grant_revoked", "grant_expired", "grant_invalid"]
client_kinds = frozenset({"client", "mcp_package"})


@dataclass(frozen=True, slots=True)
class Admitted:
    """A good token, whatever its kind; the door judges kind and resource.

    Shapes: reaches_mcp says whether the token's resource covers `/mcp`.
    """

    kind: str
    client_id: str | None = None
    grant_id: str | None = None
    package_id: str | None = None
    reaches_mcp: bool = True


@dataclass(frozen=True, slots=True)
class Refused:
    """A token that is not good, and why."""

    code: RefusalCode = "invalid_token"


class AdmissionUnavailable(Exception):
    """Tokens cannot be judged now; nobody is let in."""


class Admission(Protocol):
    """Judges bearers."""

    async def judge(self, token: str, /) -> Admitted | Refused:
        """What a bearer stands for at this moment.

        Raises: AdmissionUnavailable.
        """
        ...


@dataclass(frozen=True, slots=True)
class HostedCredential:
    """What a port of one hosted call is opened with.

    Shapes: origin is the origin of the request; request_id is the one its reads are numbered under.
    """

    token: str
    origin: str
    request_id: str
    tool: str
    client_id: str | None = None
    grant_id: str | None = None
