"""The port over HTTP: one class, what sends its requests injected (network, or in process).

Source: docs/contract/mcp-adapter.md 3.1 to 3.4; docs/contract/resource-server.md 9.1. In process
nothing has timeouts of its own, so every read runs under `anyio.fail_after`. Responses are values;
only the port's three failures are raised.
"""

import random
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from urllib.parse import quote

import anyio
import httpx2
import msgspec

from pdpp_mcp_server.rs_client.answers import is_coding_known, request_id_of, retry_after_of
from pdpp_mcp_server.rs_client.blob_answers import blob_of, is_empty_file
from pdpp_mcp_server.rs_client.json_values import parse_json
from pdpp_mcp_server.rs_client.port import (
    BearerSource,
    HeldToken,
    Path,
    Query,
    RsInvalidResponse,
    RsResponse,
    RsTimeout,
    RsUnreachable,
)
from pdpp_mcp_server.rs_client.senders import BLOB_SECONDS, HttpAnswer, Sender

READ_SECONDS = 16.0
IN_FLIGHT_READS = 4
JSON_BYTES = 32 * 1024 * 1024
RETRY_STATUSES = frozenset({502, 503, 504})
RETRY_PAUSE_SECONDS = (0.2, 0.4)
LONGEST_TARGET = 65_000  # of more the HTTP library makes no request, and no server takes that
TOO_LONG = {"code": "resource_limit", "message": "The request is too long. Ask for less at once."}
RECORD_POSITION = 4
"""Where a record key stands in /v1/streams/{stream}/records/{key}."""


class RsClient(msgspec.Struct, frozen=True):
    """A resource server that ports are opened on.

    Shapes: base_url is an origin without trailing slash.
    """

    sender: Sender
    base_url: str
    bearer: BearerSource
    version: str
    limiter: anyio.CapacityLimiter = msgspec.field(
        default_factory=lambda: anyio.CapacityLimiter(IN_FLIGHT_READS)
    )

    def port(self, tool: str, request_id: str | None = None) -> "HttpRsPort":
        """A port for one call of one tool; request_id is the id its reads are numbered under."""
        return HttpRsPort(self, tool, request_id)


class HttpRsPort(msgspec.Struct):
    """`RsPort` on an HTTP client; the only state is the number of reads made."""

    client: RsClient
    tool: str
    request_id: str | None
    reads: int = 0

    async def get(
        self, path: Path, query: Query = (), *, max_bytes: int | None = None
    ) -> RsResponse:
        """Read one path under the deadline of its kind.

        Raises: RsTimeout, RsUnreachable, RsInvalidResponse; ValueError for a path that is refused.
        """
        target = self.client.base_url + encode_path(path)
        target += f"?{encode_query(query)}" if query else ""
        self.reads += 1
        if len(target) > LONGEST_TARGET:
            return RsResponse(status=414, body={"error": TOO_LONG})
        try:
            with anyio.fail_after(READ_SECONDS if max_bytes is None else BLOB_SECONDS):
                async with self.client.limiter:
                    return await self._with_bearer(target, max_bytes)
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise RsTimeout from error
        except httpx2.TransportError as error:
            raise RsUnreachable from error
        except httpx2.HTTPError as error:
            raise RsInvalidResponse from error

    async def _with_bearer(self, target: str, max_bytes: int | None) -> RsResponse:
        token = await self.client.bearer.bearer()
        response = await self._with_retry(target, token, max_bytes)
        if response.status != 401:
            return response
        renewed = await self.client.bearer.renew(token.value)
        return response if renewed is None else await self._with_retry(target, renewed, max_bytes)

    async def _with_retry(self, target: str, token: HeldToken, max_bytes: int | None) -> RsResponse:
        try:
            response, has_retry_after = await self._send(target, token, max_bytes)
            if response.status not in RETRY_STATUSES or has_retry_after:
                return response
        except (httpx2.NetworkError, httpx2.RemoteProtocolError):
            pass  # refused or reset: the one repeat below answers or fails
        await anyio.sleep(random.uniform(*RETRY_PAUSE_SECONDS))  # noqa: S311 - spreads repeats, hides nothing
        response, _ = await self._send(target, token, max_bytes)
        return response

    async def _send(
        self, target: str, token: HeldToken, max_bytes: int | None
    ) -> tuple[RsResponse, bool]:
        """One request; the answer, and whether it has a `Retry-After` of any kind."""
        response = await self._ask(target, token, max_bytes)
        if token.must_repeat(response.status_code, response.headers):
            await response.aclose()
            response = await self._ask(target, token, max_bytes)
        has_retry_after = "retry-after" in response.headers
        try:
            if max_bytes is not None and response.status_code in {200, 206}:
                return await blob_of(response, max_bytes), has_retry_after
            if max_bytes is not None and is_empty_file(response):
                return RsResponse(status=200, content=b"", total_bytes=0), has_retry_after
            return await _document(response), has_retry_after
        finally:
            await response.aclose()

    async def _ask(self, target: str, token: HeldToken, max_bytes: int | None) -> HttpAnswer:
        return await self.client.sender.get(target, self._headers(target, token, max_bytes))

    def _headers(self, target: str, token: HeldToken, max_bytes: int | None) -> dict[str, str]:
        headers = {
            **token.headers("GET", target),
            "Accept": "application/json" if max_bytes is None else "*/*",
            "Accept-Encoding": self.client.sender.encoding if max_bytes is None else "identity",
            "User-Agent": f"pdpp-mcp-server/{self.client.version}",
            "PDPP-Tool": self.tool,
        }
        if self.request_id is not None:
            headers["Request-Id"] = f"{self.request_id}.{self.reads}"
        if max_bytes is not None:
            headers["Range"] = f"bytes=0-{max(max_bytes - 1, 0)}"
        return headers


async def _document(response: HttpAnswer) -> RsResponse:
    if not is_coding_known(response.headers):
        raise RsInvalidResponse
    raw = bytearray()
    async for chunk in response.aiter_bytes():
        raw += chunk
        if len(raw) > JSON_BYTES:
            raise RsInvalidResponse
    content_type = response.headers.get("content-type")
    body = _parsed(bytes(raw), content_type, response.status_code)
    return RsResponse(
        status=response.status_code,
        body=body,
        content_type=content_type,
        request_id=request_id_of(response.headers, body),
        retry_after_seconds=retry_after_of(
            response.status_code, response.headers.get("retry-after"), datetime.now(UTC)
        ),
    )


def _parsed(raw: bytes, content_type: str | None, status: int) -> object:
    if not raw or "json" not in (content_type or ""):
        return None
    try:
        return parse_json(raw)
    except ValueError as error:
        if 200 <= status < 300:
            raise RsInvalidResponse from error
        return None


def encode_path(path: Path) -> str:
    """Encode raw segments so that no server or proxy normalizes them.

    Raises: ValueError for an empty segment and for `.` or `..` anywhere but as a record key.
    """
    return "".join(f"/{_encode_segment(path, position)}" for position in range(len(path)))


def encode_query(query: Query) -> str:
    """Encode parameters in their order; names may repeat."""
    return "&".join(f"{quote(name, safe='[]')}={quote(value, safe='')}" for name, value in query)


def _encode_segment(path: Path, position: int) -> str:
    segment = path[position]
    if not segment:
        raise ValueError("empty path segment")
    if position == RECORD_POSITION and path[1:2] == ("streams",) and path[3:4] == ("records",):
        segment = _escaped_key(segment)
    elif segment in {".", ".."}:
        raise ValueError("relative path segment")
    encoded = quote(segment, safe="")
    return encoded.replace(".", "%2E") if ".." in encoded else encoded


def _escaped_key(key: str) -> str:
    if key not in {".", ".."} and not key.startswith("~b64."):
        return key
    return "~b64." + urlsafe_b64encode(key.encode()).decode().rstrip("=")
