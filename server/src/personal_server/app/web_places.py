"""Where an account is on the web, and who signs in there.

Rule: no password is part of it; without TLS it is on this very machine.
Source: docs/contract/feeds.md 12 and 13.
"""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit

import msgspec

from personal_server.feeds.feed_kinds import JMAP
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.web.public_addresses import is_loopback

_TOKEN = "+token"  # noqa: S105 (a part of a scheme)
_PORTS = {"http": 80, "https": 443}


class WebPlace(msgspec.Struct, frozen=True):
    """A place as `caldavs://USER@HOST/PATH`; without the `s` on this very machine.

    Shapes: `kind` is that of the feed, and begins the scheme; `jmaps+token://…` where an API token
        signs in; `url` is what is asked.
    """

    kind: str
    url: str
    user: str
    is_token: bool = False

    @classmethod
    def of(cls, kind: str, address: str) -> WebPlace:
        """The place of a feed.  Raises: FetchTrouble."""
        try:
            parts = urlsplit(address)
            host, port, user = parts.hostname, parts.port, parts.username
        except ValueError:
            raise _no_place(kind) from None
        scheme, is_token = parts.scheme.removesuffix(_TOKEN), parts.scheme.endswith(_TOKEN)
        is_plain = scheme == kind
        if scheme not in (kind, f"{kind}s") or (is_token and kind != JMAP):
            raise _no_place(kind)
        if not host or not host.isascii() or not user or parts.password is not None:
            raise _no_place(kind)
        if parts.query or parts.fragment or (is_plain and not is_loopback(host)):
            raise _no_place(kind)
        at = f"[{host}]" if ":" in host else host
        netloc = f"{at}:{port}" if port else at
        url = f"{'http' if is_plain else 'https'}://{netloc}{parts.path or '/'}"
        return cls(kind, url, unquote(user), is_token)

    @classmethod
    def typed(cls, kind: str, url: str, user: str, *, is_token: bool = False) -> WebPlace:
        """That of a URL as an owner typed it: of an account always the same.

        Raises: FetchTrouble, also for one with a query, a user or a password, which would not be
            sent.
        """
        try:
            parts = urlsplit(url if "://" in url else f"https://{url}")
            host, port = (parts.hostname or "").encode("idna").decode(), parts.port
        except ValueError:
            raise _no_place(kind) from None
        if parts.scheme not in _PORTS or parts.query or "@" in parts.netloc:
            raise _no_place(kind)
        at = f"[{host}]" if ":" in host else host
        shown = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
        asked = f"{parts.scheme}://{at}{shown}{parts.path or '/'}"
        return cls.of(kind, cls(kind, asked, user, is_token).text)

    @property
    def text(self) -> str:
        """As a feed keeps it: what `of` reads."""
        scheme = f"{self.kind}{'' if self.is_plain else 's'}{_TOKEN if self.is_token else ''}"
        return f"{scheme}://{quote(self.user, safe='')}@{self.url.partition('://')[2]}"

    @property
    def host(self) -> str:
        """The name of the server."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_plain(self) -> bool:
        """Whether it is asked without TLS."""
        return self.url.startswith("http:")


def _no_place(kind: str) -> FetchTrouble:
    return FetchTrouble("jmap_place" if kind == JMAP else "dav_place")
