"""The resource server as a client sees it: one verb, bound to one credential and one provider.

Source: docs/contract/mcp-adapter.md 3.1.
"""

from dataclasses import dataclass
from typing import Any, Protocol

Path = tuple[str, ...]
Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RsResponse:
    """One response of the resource server, whatever its status.

    Shapes: body is parsed JSON, or None for an empty or non-JSON body; content and total_bytes
            belong to blob reads.
    Units:  retry_after_seconds, total_bytes.
    """

    status: int
    body: Any = None
    content: bytes | None = None
    total_bytes: int | None = None
    content_type: str | None = None
    request_id: str | None = None
    retry_after_seconds: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the status is a success."""
        return 200 <= self.status < 300


class RsFailure(Exception):
    """No response that could be used; the only thing a port raises."""


class RsTimeout(RsFailure):
    """The resource server did not answer in time."""


class RsUnreachable(RsFailure):
    """The resource server could not be reached."""


class RsInvalidResponse(RsFailure):
    """The answer was too large or not JSON where JSON is due."""


class RsPort(Protocol):
    """What the adapter may do: read."""

    async def get(
        self, path: Path, query: Query = (), *, max_bytes: int | None = None
    ) -> RsResponse:
        """Read one path; raw segments, repeatable names.

        Raises: RsTimeout, RsUnreachable, RsInvalidResponse.
        """
        ...


class BearerSource(Protocol):
    """Where a port takes its bearer from."""

    async def bearer(self) -> str:
        """The bearer to send."""
        ...

    async def renew(self, rejected: str) -> str | None:
        """A newer bearer of the same grant after a 401, or None when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class FixedBearer:
    """The bearer of one hosted request: sent as it came, never renewed."""

    token: str

    async def bearer(self) -> str:
        """The token of the request."""
        return self.token

    async def renew(self, rejected: str) -> str | None:
        """Nothing replaces the caller's own token."""
        del rejected
        return None
