"""Requests to a JMAP server: where an account is, and whom its password or token goes to.

Rule: as of calendars (`dav_wire.py`), with `GET` and `POST` alone; of a provider in the table also
to the name under which it hands out mails.
Source: docs/contract/feeds.md 13; RFC 8620, 2 and 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote, unquote, urlsplit

import httpx2

from pdpp_sources.account_requests import AccountTrouble, ServerStatus
from pdpp_sources.jmap.jmap_messages import MISBEHAVES, UNREACHABLE
from personal_server.app.dav_wire import AskedServer, is_related
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.feeds.mail_providers import mail_providers
from personal_server.web.public_addresses import is_loopback

NO_PLACE = "jmap_place"
MOST_REQUESTS = 1_000_000
LONGEST_PAUSE_SECONDS = 6 * 3_600
_TOKEN = "+token"  # noqa: S105 (a part of a scheme)
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class JmapPlace:
    """Where an account is: `jmaps://USER@HOST/PATH`, `jmaps+token://…` where an API token signs in;
    without the `s` on this very machine.
    """

    url: str
    user: str
    is_token: bool

    @classmethod
    def of(cls, address: str) -> JmapPlace:
        """The place of a feed.  Raises: FetchTrouble."""
        try:
            parts = urlsplit(address)
            host, port, user = parts.hostname, parts.port, parts.username
        except ValueError:
            raise FetchTrouble(NO_PLACE) from None
        kind, token = parts.scheme.removesuffix(_TOKEN), parts.scheme.endswith(_TOKEN)
        is_plain = kind == "jmap"
        is_named = bool(host and host.isascii() and user) and parts.password is None
        if kind not in ("jmap", "jmaps") or not is_named or parts.query or parts.fragment:
            raise FetchTrouble(NO_PLACE)
        if is_plain and not is_loopback(host or ""):
            raise FetchTrouble(NO_PLACE)
        at = f"[{host}]" if ":" in (host or "") else host
        netloc = f"{at}:{port}" if port else at
        url = f"{'http' if is_plain else 'https'}://{netloc}{parts.path or '/'}"
        return cls(url, unquote(user or ""), token)

    @classmethod
    def spelled(cls, url: str, user: str, *, is_token: bool) -> str:
        """A URL that an owner typed, as the place of a feed: of an account always the same.

        Raises: FetchTrouble.
        """
        try:
            parts = urlsplit(url if "://" in url else f"https://{url}")
            host, port = (parts.hostname or "").encode("idna").decode(), parts.port
        except ValueError:
            raise FetchTrouble(NO_PLACE) from None
        if parts.scheme not in _PORTS or parts.query:
            raise FetchTrouble(NO_PLACE)
        scheme = ("jmap" if parts.scheme == "http" else "jmaps") + (_TOKEN if is_token else "")
        at = f"[{host}]" if ":" in host else host
        shown = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
        address = f"{scheme}://{quote(user, safe='')}@{at}{shown}{parts.path or '/'}"
        cls.of(address)
        return address

    @property
    def text(self) -> str:
        """As a feed keeps it: what `of` reads."""
        return self.spelled(self.url, self.user, is_token=self.is_token)

    @property
    def host(self) -> str:
        """The name of the server."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_plain(self) -> bool:
        """Whether it is asked without TLS."""
        return self.url.startswith("http:")

    @property
    def is_known(self) -> bool:
        """Whether it is of a provider in the table, where an API token signs in."""
        jmap = [each.jmap for each in mail_providers().values() if each.jmap is not None]
        return self.host in {urlsplit(each).hostname for each in jmap}


@dataclass(slots=True)
class JmapServer(AskedServer):
    """One account's server.

    Units: `pause_seconds` is how long it asked not to be asked again.
    """

    methods: ClassVar[frozenset[str]] = frozenset({"GET", "POST"})
    content_type: ClassVar[str] = "application/json"
    most_requests: ClassVar[int] = MOST_REQUESTS
    unreachable: ClassVar[str] = UNREACHABLE
    misbehaves: ClassVar[str] = MISBEHAVES
    is_token: bool = False
    pause_seconds: int = 0

    @classmethod
    def at(cls, place: JmapPlace, password: str) -> JmapServer:
        """That of a place."""
        return cls(place, password, is_token=place.is_token)

    def authorization(self) -> str:
        """A token, or a name and a password."""
        if not self.is_token:
            return AskedServer.authorization(self)
        if not self.password.isascii() or not self.password.isprintable():  # no token is such
            raise AccountTrouble("sign_in_refused")
        return f"Bearer {self.password}"

    def refusal(self, schemes: str) -> str:
        """A token that is not taken was refused, whatever else is offered."""
        return "sign_in_refused" if self.is_token else AskedServer.refusal(self, schemes)

    def may_lead_to(self, host: str, own: str) -> bool:
        """Also to the name under which its provider hands out mails."""
        beside = [
            each.jmap_beside
            for each in mail_providers().values()
            if each.jmap is not None and urlsplit(each.jmap).hostname == own
        ]
        return any(is_related(host, each) for each in (own, *beside) if each)

    def _judged(self, response: httpx2.Response, url: str) -> ServerStatus:
        asked = response.headers.get("retry-after", "")
        if asked.isdecimal() and len(asked) < 10:
            self.pause_seconds = min(int(asked), LONGEST_PAUSE_SECONDS)
        return AskedServer._judged(self, response, url)
