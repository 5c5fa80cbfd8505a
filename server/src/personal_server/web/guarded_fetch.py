"""Fetching a stranger's JSON without being led astray.

Rule: we resolve the name, every answer must be a global address, and the connection goes to the
very address that was checked, with the name as SNI and Host; no redirect, no proxy, no
credentials, a small body, five seconds in all.  Source: docs/contract/authorization-server.md 3.3.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

import anyio
import httpx2
import msgspec

from pdpp_kernel.oauth_errors import InvalidClient
from personal_server.web.public_addresses import is_public

TIMEOUT_SECONDS = 5.0
UNREACHABLE = "document_unreachable"
"""The reason of a refusal that says nothing about the document: nobody, or no host, gave it."""
_NOT_GIVEN = frozenset({401, 403, 407, 429})
MAX_DOCUMENT, MAX_KEYS = 16 * 1024, 64 * 1024
_JSON_TYPE = re.compile(r"application/(json|[a-z0-9.+-]+\+json)\Z")
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,9})")

Resolver = Callable[[str], Awaitable[Sequence[str]]]


class Fetched(msgspec.Struct, frozen=True):
    """A body and how long it says it may be kept (`None`: it does not say)."""

    body: bytes
    max_age_seconds: int | None


async def resolve_name(host: str) -> Sequence[str]:
    """All addresses of a name."""
    answers = await anyio.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    return [str(answer[4][0]) for answer in answers]


def pinned(url: str, address: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """How a URL is asked for at the very address that was checked: target, headers, extensions."""
    parts = urlsplit(url)
    bracketed = f"[{address}]" if ":" in address else address
    port = "" if parts.port is None else f":{parts.port}"
    host = parts.hostname or ""
    target = parts._replace(netloc=f"{bracketed}{port}").geturl()
    named = parts.netloc.rpartition("@")[2]
    return target, {"Host": named}, {"sni_hostname": host}


class GuardedFetch:
    """Fetches one URL.  `transport` and `resolver` are the network, and fakes in tests."""

    def __init__(
        self,
        resolver: Resolver = resolve_name,
        transport: httpx2.AsyncBaseTransport | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._resolver = resolver
        self._transport = transport

    async def __call__(self, url: str, limit_bytes: int) -> Fetched:
        """The JSON at a checked https URL.  Raises: InvalidClient."""
        unreachable = InvalidClient(
            "The server cannot fetch the document at client_id.", reason=UNREACHABLE
        )
        try:
            with anyio.fail_after(self._timeout_seconds):
                return await self._fetch(url, limit_bytes)
        except (TimeoutError, OSError, httpx2.HTTPError, httpx2.InvalidURL):
            raise unreachable from None

    async def is_offline(self, hosts: Iterable[str]) -> bool:
        """Whether none of these names, which the world knows, can be found from here."""
        for host in hosts:
            with suppress(TimeoutError, OSError), anyio.fail_after(self._timeout_seconds):
                if await self._resolver(host):
                    return False
        return True

    async def _fetch(self, url: str, limit_bytes: int) -> Fetched:
        address = await self._checked_address(urlsplit(url).hostname or "")
        target, headers, extensions = pinned(url, address)
        headers |= {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "personal-server",
        }
        async with (
            httpx2.AsyncClient(
                transport=self._transport,
                trust_env=False,
                follow_redirects=False,
                timeout=self._timeout_seconds,
            ) as client,
            client.stream("GET", target, headers=headers, extensions=extensions) as response,
        ):
            _check_answer(response)
            body = await _bounded(response, limit_bytes)
        found = _MAX_AGE.search(response.headers.get("cache-control", "").lower())
        return Fetched(body, int(found.group(1)) if found else None)

    async def _checked_address(self, host: str) -> str:
        addresses = await self._resolver(host)
        if not addresses or not all(is_public(address) for address in addresses):
            raise InvalidClient("The document at client_id is not at a public address.")
        return addresses[0]


def _check_answer(response: httpx2.Response) -> None:
    status = response.status_code
    if status != 200:
        refused = InvalidClient("The address in client_id did not answer with status 200.")
        if status in _NOT_GIVEN or status >= 500:
            refused.members["reason"] = UNREACHABLE
        raise refused
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not _JSON_TYPE.match(content_type):
        raise InvalidClient("The document at client_id is not JSON.")


async def _bounded(response: httpx2.Response, limit_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > limit_bytes:
            raise InvalidClient("The document at client_id is too large.")
    return bytes(body)
