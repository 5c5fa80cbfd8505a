"""The port over HTTP: one class, the transport injected (network, or ASGI in process).

Source: docs/contract/mcp-adapter.md 3.1 to 3.4; docs/contract/resource-server.md 9.1. The client's
own timeouts do nothing in process, so every read runs under `anyio.fail_after`. Responses are
values; only the port's three failures are raised.
"""

import random
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote

import anyio
import httpx2

from pdpp_mcp_server.rs_client.answers import is_coding_known, request_id_of, retry_after_of
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

CONNECT_SECONDS = 3.0
READ_SECONDS = 16.0
BLOB_SECONDS = 30.0
IN_FLIGHT_READS = 4
JSON_BYTES = 32 * 1024 * 1024
RETRY_STATUSES = frozenset({502, 503, 504})
RETRY_PAUSE_SECONDS = (0.2, 0.4)
LONGEST_TARGET = 65_000  # of more the HTTP library makes no request, and no server takes that
TOO_LONG = {"code": "resource_limit", "message": "The request is too long. Ask for less at once."}
RECORD_POSITION = 4
"""Where a record key stands in /v1/streams/{stream}/records/{key}."""


@dataclass(frozen=True, slots=True)
class RsClient:
    """A resource server that ports are opened on.

    Shapes: base_url is an origin without trailing slash; encoding is what `Accept-Encoding` says
            (identity in process).
    """

    http: httpx2.AsyncClient
    base_url: str
    bearer: BearerSource
    version: str
    encoding: str = "gzip"
    limiter: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(IN_FLIGHT_READS)
    )

    def port(self, tool: str, request_id: str | None = None) -> "HttpRsPort":
        """A port for one call of one tool; request_id is the id its reads are numbered under."""
        return HttpRsPort(self, tool, request_id)


@dataclass(slots=True)
class HttpRsPort:
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
        target = (
            self.client.base_url + encode_path(path) + (f"?{encode_query(query)}" if query else "")
        )
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
        except (
            httpx2.ConnectError,
            httpx2.ReadError,
            httpx2.WriteError,
            httpx2.RemoteProtocolError,
        ):
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
                return await _blob(response, max_bytes), has_retry_after
            if max_bytes is not None and _is_empty_file(response):
                return RsResponse(status=200, content=b"", total_bytes=0), has_retry_after
            return await _document(response), has_retry_after
        finally:
            await response.aclose()

    async def _ask(self, target: str, token: HeldToken, max_bytes: int | None) -> httpx2.Response:
        headers = self._headers(target, token, max_bytes)
        request = self.client.http.build_request("GET", target, headers=headers)
        return await self.client.http.send(request, stream=True, follow_redirects=False)

    def _headers(self, target: str, token: HeldToken, max_bytes: int | None) -> dict[str, str]:
        headers = {
            **token.headers("GET", target),
            "Accept": "application/json" if max_bytes is None else "*/*",
            "Accept-Encoding": self.client.encoding if max_bytes is None else "identity",
            "User-Agent": f"pdpp-mcp-server/{self.client.version}",
            "PDPP-Tool": self.tool,
        }
        if self.request_id is not None:
            headers["Request-Id"] = f"{self.request_id}.{self.reads}"
        if max_bytes is not None:
            headers["Range"] = f"bytes=0-{max(max_bytes - 1, 0)}"
        return headers


async def _document(response: httpx2.Response) -> RsResponse:
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


async def _blob(response: httpx2.Response, max_bytes: int) -> RsResponse:
    if not is_coding_known(response.headers):
        raise RsInvalidResponse
    total = _total_bytes(response)
    raw = bytearray()
    if total is None or total <= max_bytes:
        async for chunk in response.aiter_bytes():
            raw += chunk
            if len(raw) > max_bytes:
                break
    too_large = (total is not None and total > max_bytes) or len(raw) > max_bytes
    if not too_large and total is not None and len(raw) != total:
        raise RsInvalidResponse  # a part is never handed on as the whole
    return RsResponse(
        status=response.status_code,
        content=None if too_large else bytes(raw),
        total_bytes=total if total is not None else len(raw),
        content_type=response.headers.get("content-type"),
        request_id=request_id_of(response.headers, None),
    )


def _is_empty_file(response: httpx2.Response) -> bool:
    """No range of an empty file can be satisfied; the answer says so with its size."""
    return response.status_code == 416 and response.headers.get("content-range") == "bytes */0"


def _total_bytes(response: httpx2.Response) -> int | None:
    ranged = re.fullmatch(r"bytes \d+-\d+/(\d+)", response.headers.get("content-range", ""))
    if ranged:
        return int(ranged[1])
    length = response.headers.get("content-length", "")
    is_plain = response.status_code == 200 and "content-encoding" not in response.headers
    return int(length) if is_plain and length.isdigit() else None


def network_client() -> httpx2.AsyncClient:
    """A client for the network: keep-alive, environment proxies, redirects not followed."""
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(BLOB_SECONDS, connect=CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=True,
    )


def in_process_client(app: object) -> httpx2.AsyncClient:
    """A client that calls an ASGI application in this process; its failures are 500 answers."""
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False, client=("in-process", 0))  # type: ignore[arg-type]
    return httpx2.AsyncClient(transport=transport, follow_redirects=False, trust_env=False)


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
    if _is_record_key(path, position):
        segment = _escaped_key(segment)
    elif segment in {".", ".."}:
        raise ValueError("relative path segment")
    encoded = quote(segment, safe="")
    return encoded.replace(".", "%2E") if ".." in encoded else encoded


def _is_record_key(path: Path, position: int) -> bool:
    return position == RECORD_POSITION and path[1:2] == ("streams",) and path[3:4] == ("records",)


def _escaped_key(key: str) -> str:
    if key not in {".", ".."} and not key.startswith("~b64."):
        return key
    return "~b64." + urlsafe_b64encode(key.encode()).decode().rstrip("=")
