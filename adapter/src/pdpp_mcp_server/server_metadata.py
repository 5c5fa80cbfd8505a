"""What a resource server says that it takes beyond what every one takes.

Source: docs/contract/resource-server.md 5 (`pdpp_read_capabilities`).
"""

from http import HTTPStatus

import anyio
import msgspec

from pdpp_mcp_server.rs_client.json_values import as_list, as_object
from pdpp_mcp_server.rs_client.port import RsFailure, RsPort

METADATA_PATH = (".well-known", "oauth-protected-resource")


class ServerMetadata(msgspec.Struct):
    """What the resource server says that it takes, read once, before the first read that asks."""

    port: RsPort
    known: frozenset[str] | None = None
    lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)

    async def capabilities(self) -> frozenset[str]:
        """Its words; a server that does not name one does not take what it stands for."""
        async with self.lock:
            if self.known is None:
                self.known = await self._read()
            return self.known or frozenset()

    async def _read(self) -> frozenset[str] | None:
        try:
            response = await self.port.get(METADATA_PATH)
        except RsFailure:
            return None  # the read that follows fails alike; the next call asks again
        if not response.ok:
            return frozenset() if response.status == HTTPStatus.NOT_FOUND else None
        named = as_list(as_object(response.body).get("pdpp_read_capabilities"))
        return frozenset(word for word in named if isinstance(word, str))
