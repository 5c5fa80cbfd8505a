"""Where events may be sent, and the one call that sends one.

Rule: a name is resolved anew for every call, every answer must be an address that may be called,
and the connection goes to the very address that was checked; no redirect, no proxy, no credentials,
no connection is used twice, and of an answer no more is read than is needed.
Source: docs/contract/resource-server.md 15.4.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

import anyio
import anyio.to_thread
import httpx2
import msgspec

from pdpp_kernel.errors import InvalidCallback
from personal_server.web.guarded_fetch import pinned
from personal_server.web.public_addresses import is_public

TIMEOUT_SECONDS = 10.0
# While somebody waits for an answer of ours, a name has less time than a delivery.
RESOLVING_SECONDS = 2.0
MAX_URL_BYTES = 2_048
MAX_ADDRESSES = 8
MOST_ASKED = 64
ANSWER_BYTES = 4_096

Resolver = Callable[[str], Sequence[str]]


def resolve_host(host: str) -> Sequence[str]:
    """All addresses of a name.  Raises: OSError."""
    answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


class UnsafeAddress(Exception):
    """The name leads to an address that may not be called."""


class Answer(msgspec.Struct, frozen=True):
    """What a receiver said: no more than `ANSWER_BYTES` of it."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Callbacks:
    """Which addresses may be called, and who calls them.

    Shapes: `own_hosts` are `host` or `host:port` that the owner allows, wherever they are and by
        plain HTTP too; `to_loopback` allows plain HTTP to this machine, for development.
        `resolver`, `transport` and `trust` are the network, and fakes in tests.
    """

    own_hosts: frozenset[str] = frozenset()
    to_loopback: bool = False
    resolver: Resolver = resolve_host
    transport: httpx2.AsyncBaseTransport | None = None
    trust: ssl.SSLContext | None = None
    _resolving: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(4, "callbacks"), repr=False
    )
    # names that are answered slowly take no thread from those that serve
    _asking: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(MOST_ASKED), repr=False
    )

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        """Made once: it takes longer than a call."""
        return self.trust or ssl.create_default_context()

    def check(self, url: str) -> None:
        """Whether events may be sent there, as far as can be told now.  Raises: InvalidCallback."""
        parts = _parsed(url)
        if not self._is_own(parts):
            is_loopback = self.to_loopback and _is_loopback(parts.hostname or "")
            if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback):
                raise _invalid("callback_url must be an https URL.")
            if not is_loopback and parts.port is not None and parts.port not in _PORTS:
                raise _invalid("callback_url must use port 443, or a port from 1024 up.")
        resolving = self._resolving.submit(self.resolver, parts.hostname or "")
        self._require(parts, _resolved(resolving))

    def _require(self, parts: SplitResult, addresses: Sequence[str]) -> None:
        try:
            self._checked(parts, addresses)
        except UnsafeAddress:
            raise _not_public() from None

    def _checked(self, parts: SplitResult, addresses: Sequence[str]) -> str:
        """One of the addresses, all of which may be called.  Raises: UnsafeAddress."""
        if not 1 <= len(addresses) <= MAX_ADDRESSES:
            raise UnsafeAddress
        if self._is_own(parts):
            return addresses[0]
        may_be_loopback = self.to_loopback and _is_loopback(parts.hostname or "")
        for address in addresses:
            if not is_public(address) and not (may_be_loopback and ip_address(address).is_loopback):
                raise UnsafeAddress
        return addresses[0]

    def _is_own(self, parts: SplitResult) -> bool:
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return host in self.own_hosts or f"{host}:{port}" in self.own_hosts

    @asynccontextmanager
    async def calling(self) -> AsyncGenerator[httpx2.AsyncBaseTransport, None]:
        """What calls are made with, for as long as the block lasts.

        It is a transport and no client: that follows no redirect and keeps no cookie.
        """
        # A connection is known by its address: kept, it might be used for another name there.
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        async with self.transport or httpx2.AsyncHTTPTransport(
            verify=self._trust, trust_env=False, limits=limits
        ) as transport:
            yield transport

    async def post(
        self,
        transport: httpx2.AsyncBaseTransport,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        reads: bool,
    ) -> Answer:
        """Send a body and hear the answer; what a success says only if `reads`.

        Raises: UnsafeAddress, TimeoutError, OSError, httpx2.HTTPError, httpx2.InvalidURL.
        """
        with anyio.fail_after(TIMEOUT_SECONDS):
            parts = urlsplit(url)
            addresses = await anyio.to_thread.run_sync(
                self.resolver, parts.hostname or "", abandon_on_cancel=True, limiter=self._asking
            )
            target, pins, extensions = pinned(url, self._checked(parts, addresses))
            sent = {**headers, **pins, **_SENT}
            response = await transport.handle_async_request(
                httpx2.Request("POST", target, headers=sent, content=body, extensions=extensions)
            )
            try:
                answer = await _begun(response) if reads and response.is_success else b""
            finally:
                await response.aclose()
            return Answer(response.status_code, response.headers, answer)


_SENT = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "personal-server"}
_PORTS = frozenset({443, *range(1_024, 65_536)})


async def _begun(response: httpx2.Response) -> bytes:
    """What an answer begins with."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > ANSWER_BYTES:
            break
    return bytes(body[:ANSWER_BYTES])


def _parsed(url: str) -> SplitResult:
    if len(url.encode("utf-8", "surrogatepass")) > MAX_URL_BYTES:
        raise _invalid(f"callback_url can have at most {MAX_URL_BYTES} bytes.")
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise _invalid("callback_url must have only ASCII characters and no spaces.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _invalid("callback_url is not a URL.") from None
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise _invalid("callback_url must be an absolute https URL.")
    if "@" in parts.netloc or "#" in url:
        raise _invalid("callback_url cannot have a user name or a fragment.")
    return parts


def _resolved(resolving: Future[Sequence[str]]) -> Sequence[str]:
    try:
        return resolving.result(RESOLVING_SECONDS)
    except (OSError, UnicodeError, TimeoutError):
        resolving.cancel()
        raise _not_public() from None


def _not_public() -> InvalidCallback:
    """The same error for a name that does not exist: otherwise an app learns which exist inside."""
    return _invalid(
        "No public address was found for the host of callback_url; the owner of this server "
        "can allow hosts of their own network with PDPP_CALLBACK_HOSTS."
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _invalid(message: str) -> InvalidCallback:
    return InvalidCallback(message, param="callback_url")
