"""Requests to the server of an account on the web: signed, pinned, bounded and counted.

Rule: read only; the password goes to the host that its owner named, or to one of the same
registrable name at a public address, over TLS; without TLS only to an address of this machine.  It
is tried once.
Source: docs/contract/feeds.md 12 and 13.
"""

from __future__ import annotations

import base64
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import urljoin, urlsplit

import httpx2

from pdpp_kernel.system.timed_connections import TimedConnection
from pdpp_sources.account_requests import AccountTrouble, AskServer, ServerStatus
from personal_server.app.web_places import WebPlace
from personal_server.web.guarded_fetch import pinned
from personal_server.web.public_addresses import is_public

SILENCE_SECONDS = 60.0
ANSWER_SECONDS = 600.0
RUN_SECONDS = 4 * 3600.0
"""What a server may keep a run: few run at once, and others wait."""
LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
MOST_REDIRECTS = 5
_DEPTHS = frozenset({None, "0", "1"})
ELSEWHERE = "redirect_refused"
_WORDS_BYTES = 64 * 1024
_REDIRECTS = frozenset({301, 302, 307, 308})
_UNAUTHORIZED, _TOO_MANY, _OF_SERVER = 401, 429, 500
# Second labels under which a country's registry sells names, beside those of up to three letters.
_SOLD_UNDER = frozenset({"info", "name", "asso", "firm", "gouv", "nhs", "plc", "ltd", "school"})
_COUNTRY, _SHORT = 2, 3


def is_related(host: str, own: str) -> bool:
    """Whether two names were registered by one owner, as far as names tell.

    In: `p42-caldav.icloud.com`, `caldav.icloud.com`.  Out: yes; of `a.co.uk` and `b.co.uk`: no.
    """
    first, second = host.lower().split("."), own.lower().split(".")
    size = 2
    if len(first[-1]) == _COUNTRY and len(first) > 1:
        is_sold = len(first[-2]) <= _SHORT or first[-2] in _SOLD_UNDER
        size = _SHORT if is_sold else size
    is_named = len(first) >= size and all(first) and not first[-1].isdecimal()
    return is_named and first[-size:] == second[-size:]


@dataclass(slots=True)
class AskedServer:
    """One account's server, asked over one connection.

    Units: `received` and `sent` are bytes of headers and bodies, `requests` counts those sent.
    Shapes: `open_client` makes what sends them, once; an answer takes at most `answer_seconds`, and
        all of them `run_seconds`.
    """

    methods: ClassVar[frozenset[str]]
    content_type: ClassVar[str]
    most_requests: ClassVar[int]
    unreachable: ClassVar[str]
    misbehaves: ClassVar[str]
    place: WebPlace
    password: str = field(repr=False)
    open_client: Callable[[], httpx2.Client] = field(default_factory=lambda: client_of, repr=False)
    answer_seconds: float = ANSWER_SECONDS
    run_seconds: float = RUN_SECONDS
    requests: int = 0
    received: int = 0
    sent: int = 0
    _addresses: dict[str, list[str]] = field(default_factory=dict[str, list[str]], init=False)
    _client: httpx2.Client | None = field(default=None, init=False)
    _response: httpx2.Response | None = field(default=None, init=False)
    _parts: Iterator[bytes] = field(default_factory=lambda: iter(()), init=False)
    _answered: int = field(default=0, init=False)
    _until: float = field(default=0.0, init=False)
    _began: float = field(default_factory=time.monotonic, init=False)
    _timed: TimedConnection = field(default_factory=TimedConnection, init=False, repr=False)

    def authorization(self) -> str:
        """What says who asks."""
        return basic(self.place.user, self.password)

    def may_lead_to(self, host: str, own: str) -> bool:
        """Whether a host beside the own one may get the password."""
        return is_related(host, own)

    def close(self) -> None:
        """End the connection."""
        self._end_answer()
        if self._client is not None:
            self._client.close()

    def ask(self, request: AskServer) -> ServerStatus:
        """Send a request, and follow where it leads.  Raises: AccountTrouble."""
        if request.method not in self.methods or request.depth not in _DEPTHS:
            raise AccountTrouble(self.misbehaves)
        url = request.url
        for _ in range(MOST_REDIRECTS + 1):
            self._end_answer()
            response = self._sent(request, url)
            if response.status_code not in _REDIRECTS or "location" not in response.headers:
                return self._judged(response, url)
            try:
                url = urljoin(url, response.headers["location"])
            except ValueError:  # it is no URL
                raise AccountTrouble(ELSEWHERE) from None
        raise AccountTrouble(ELSEWHERE)

    def refusal(self, schemes: str) -> str:
        """Why it was refused who asks, by the schemes that the server offers."""
        return "sign_in_refused" if not schemes or "basic" in schemes else "sign_in_unsupported"

    def words(self) -> bytes:
        """The next bytes of the answer.  Raises: AccountTrouble."""
        try:
            part = next(self._parts, b"")
        except httpx2.HTTPError:
            raise AccountTrouble(self.unreachable) from None
        self._answered += len(part)
        self.received += len(part)
        if self._answered > LARGEST_ANSWER_BYTES or time.monotonic() > self._until:
            raise AccountTrouble(self.misbehaves)
        return part

    def _judged(self, response: httpx2.Response, url: str) -> ServerStatus:
        status = response.status_code
        if status == _UNAUTHORIZED:
            schemes = response.headers.get("www-authenticate", "").lower()
            raise AccountTrouble(self.refusal(schemes))
        if status == _TOO_MANY or (status > _OF_SERVER and status != 501 and status < 507):
            raise AccountTrouble(self.unreachable)
        if response.headers.get("content-encoding", "identity") != "identity":
            raise AccountTrouble(self.misbehaves)
        return ServerStatus(status, url)

    def _sent(self, request: AskServer, url: str) -> httpx2.Response:
        """The beginning of the answer, from the first address that takes the connection."""
        self.requests += 1
        is_late = time.monotonic() - self._began > self.run_seconds
        if is_late or self.requests > self.most_requests:
            raise AccountTrouble(self.misbehaves)
        host = self._checked_host(url)
        addresses = self._addresses_of(host)
        for address in list(addresses):
            try:
                response = self._sent_to(request, url, address)
            except httpx2.ConnectError as error:
                if isinstance(_cause(error), ssl.SSLCertVerificationError):
                    raise AccountTrouble("certificate_refused") from None
                addresses.remove(address)
            except (httpx2.HTTPError, httpx2.InvalidURL):
                raise AccountTrouble(self.unreachable) from None
            else:
                return response
        del self._addresses[host]
        raise AccountTrouble(self.unreachable)

    def _sent_to(self, request: AskServer, url: str, address: str) -> httpx2.Response:
        target, headers, extensions = pinned(url, address)
        headers |= {
            "Authorization": self.authorization(),
            "Accept-Encoding": "identity",
            "User-Agent": "personal-server",
        }
        if request.body:
            headers["Content-Type"] = self.content_type
        if request.depth is not None:
            headers["Depth"] = request.depth
        client = self._opened()
        body = request.body.encode()
        built = client.build_request(
            request.method,
            target,
            headers=headers,
            content=body,
            extensions={**extensions, "trace": self._timed.trace},
        )
        self.sent += len(body) + _size(built.headers)
        self._until = time.monotonic() + self.answer_seconds
        self._timed.begin(self.answer_seconds)
        response = client.send(built, stream=True)
        self.received += _size(response.headers)
        self._response, self._answered = response, 0
        self._parts = response.iter_raw(_WORDS_BYTES)
        return response

    def _opened(self) -> httpx2.Client:
        if self._client is None:
            self._client = self.open_client()
        return self._client

    def _end_answer(self) -> None:
        self._timed.end()
        if self._response is not None:
            self._response.close()
            self._response = None
            self._parts = iter(())

    def _checked_host(self, url: str) -> str:
        """The host of a URL that may be asked.  Raises: AccountTrouble."""
        try:
            asked, own = urlsplit(url), urlsplit(self.place.url)
            host, port, own_port = asked.hostname or "", asked.port, own.port
        except ValueError:
            raise AccountTrouble(ELSEWHERE) from None
        if asked.scheme != own.scheme or "@" in asked.netloc or not (host and host.isascii()):
            raise AccountTrouble(ELSEWHERE)
        if host == own.hostname:
            if (port or None) != own_port and (self.place.is_plain or port not in (None, 443)):
                raise AccountTrouble(ELSEWHERE)
        elif (
            self.place.is_plain
            or port not in (None, 443)
            or not self.may_lead_to(host, own.hostname or "")
        ):
            raise AccountTrouble(ELSEWHERE)
        return host

    def _addresses_of(self, host: str) -> list[str]:
        """The addresses of a host, found once for all of a run.  Raises: AccountTrouble."""
        if host not in self._addresses:
            try:
                answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError):
                raise AccountTrouble(self.unreachable) from None
            found = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
            own = urlsplit(self.place.url).hostname
            if host != own and not all(map(is_public, found)):
                raise AccountTrouble(ELSEWHERE)
            self._addresses[host] = found
        return self._addresses[host]


def basic(user: str, password: str) -> str:
    """A name and a password as a request carries them (RFC 7617)."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def client_of(silence_seconds: float = SILENCE_SECONDS) -> httpx2.Client:
    """What sends requests over one connection; a server that is silent so long is gone."""
    return httpx2.Client(
        trust_env=False,
        follow_redirects=False,
        timeout=silence_seconds,
        verify=ssl.create_default_context(),
        limits=httpx2.Limits(max_connections=1),
    )


def _cause(error: BaseException) -> BaseException:
    """What an error began with."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    return error


def _size(headers: httpx2.Headers) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers.raw)
