"""What sends the requests of a port: the network here, in process `inner_application.py`.

Source: docs/contract/mcp-adapter.md 3.2, 3.4.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import httpx2
import msgspec

CONNECT_SECONDS = 3.0
BLOB_SECONDS = 30.0


class HttpAnswer(Protocol):
    """An answer, of which the head has come.  Shapes: `headers` are asked in lower case."""

    @property
    def status_code(self) -> int:
        """Its status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers."""
        ...

    def aiter_bytes(self) -> AsyncIterator[bytes]:
        """Its body, unpacked."""
        ...

    async def aclose(self) -> None:
        """Leave it; what did not come yet is not waited for."""
        ...


class Sender(Protocol):
    """What sends requests.  Shapes: `encoding` is what `Accept-Encoding` may say."""

    @property
    def encoding(self) -> str:
        """How a body may be packed."""
        ...

    async def get(self, target: str, headers: Mapping[str, str]) -> HttpAnswer:
        """One answer; redirects are not followed.

        Raises: httpx2.HTTPError.
        """
        ...


class Network(msgspec.Struct, frozen=True):
    """A `Sender` over the network."""

    http: httpx2.AsyncClient
    encoding: str = "gzip"

    async def get(self, target: str, headers: Mapping[str, str]) -> httpx2.Response:
        """One answer.

        Raises: httpx2.HTTPError.
        """
        request = self.http.build_request("GET", target, headers=headers)
        return await self.http.send(request, stream=True, follow_redirects=False)


def network_client() -> httpx2.AsyncClient:
    """A client for the network: keep-alive, environment proxies, redirects not followed."""
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(BLOB_SECONDS, connect=CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=True,
    )
