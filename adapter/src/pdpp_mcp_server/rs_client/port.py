"""The resource server as a client sees it: one verb, bound to one credential and one provider.

Source: docs/contract/mcp-adapter.md 3.1.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from pdpp_kernel.unprinted import Unprinted

Path = tuple[str, ...]
Query = tuple[tuple[str, str], ...]


class RsResponse(msgspec.Struct, frozen=True):
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


class HeldKey(Protocol):
    """A key that a token is bound to."""

    def headers(self, method: str, url: str, token: str) -> dict[str, str]:
        """How a request presents the token."""
        ...

    def learn(self, status: int, headers: Mapping[str, str]) -> bool:
        """Keep the nonce of an answer; whether the request has to be made again with it."""
        ...


class HeldToken(Unprinted, frozen=True):
    """An access token, with the key that it is bound to, if it is."""

    value: str
    key: HeldKey | None = None

    def headers(self, method: str, url: str) -> dict[str, str]:
        """How one request presents it."""
        if self.key is None:
            return {"Authorization": f"Bearer {self.value}"}
        return self.key.headers(method, url, self.value)

    def must_repeat(self, status: int, headers: Mapping[str, str]) -> bool:
        """Whether a request has to be made again, with a nonce that its answer brought."""
        return self.key is not None and self.key.learn(status, headers)


class BearerSource(Protocol):
    """Where a port takes its token from."""

    async def bearer(self) -> HeldToken:
        """The token to send."""
        ...

    async def renew(self, rejected: str) -> HeldToken | None:
        """A newer token of the same grant after a 401, or None when there is none."""
        ...


class FixedBearer(msgspec.Struct, frozen=True):
    """The bearer of one hosted request: sent as it came, never renewed."""

    token: str

    async def bearer(self) -> HeldToken:
        """The token of the request."""
        return HeldToken(self.token)

    async def renew(self, rejected: str) -> HeldToken | None:
        """Nothing replaces the caller's own token."""
        del rejected
        return None
