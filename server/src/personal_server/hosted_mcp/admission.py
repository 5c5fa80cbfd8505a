"""Who may use `/mcp`: the port that the composition root answers from the token store.

Source: docs/contract/mcp-adapter.md 2.2; docs/contract/authorization-server.md 10.1, 12.
"""

from typing import Protocol

import msgspec

from personal_server.domain.possession import PresentedToken

CLIENT_KINDS = frozenset({"client", "mcp_package"})


class Admitted(msgspec.Struct, frozen=True):
    """A good token, whatever its kind; kind and resource are judged here.

    Shapes: reaches_mcp says whether the token's resource covers `/mcp`; state is what was found out
            about the token, handed on to whoever opens a port.
    """

    kind: str
    client_id: str | None = None
    grant_id: str | None = None
    package_id: str | None = None
    reaches_mcp: bool = True
    state: object = None
    result_chars: int | None = None


class Admission(Protocol):
    """Decides which bearer tokens may use `/mcp`."""

    async def judge(self, presented: PresentedToken, /) -> Admitted:
        """What a token stands for at this moment.

        Raises: InvalidToken, InvalidDpopProof, GrantRevoked, GrantExpired, GrantInvalid,
            StorageUnavailable.
        """
        ...

    async def judge_again(self, token: str, /) -> Admitted:
        """What it stands for now, for a request that lasts; how it came was judged before.

        Raises: InvalidToken, GrantRevoked, GrantExpired, GrantInvalid, StorageUnavailable.
        """
        ...


class HostedCredential(msgspec.Struct, frozen=True):
    """What a port of one hosted call is opened with.

    Shapes: origin is the origin of the request; request_id is the one its reads are numbered under;
            state is what admission found out about the token.
    """

    token: str
    origin: str
    request_id: str
    tool: str
    client_id: str | None = None
    grant_id: str | None = None
    state: object = None
    result_chars: int | None = None
