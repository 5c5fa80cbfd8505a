"""Requests to a JMAP server: how a password or token signs them, and whom it goes to.

Rule: `GET`, and `POST` of methods that read; what names a request parses mails of strangers, so it
is written anew here before it is sent.  Of a provider in the table also to the name under which it
hands out mails.
Source: docs/contract/feeds.md 13; RFC 8620, 2 and 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit

import httpx2
import msgspec

from pdpp_sources.account_requests import AccountTrouble, AskServer, ServerStatus
from pdpp_sources.jmap.jmap_messages import MISBEHAVES, UNREACHABLE
from personal_server.app.asked_server import AskedServer, is_related
from personal_server.feeds.mail_providers import mail_providers

MOST_REQUESTS = 1_000_000
LONGEST_PAUSE_SECONDS = 6 * 3_600
_Reading = Literal["Mailbox/get", "Mailbox/changes", "Email/get", "Email/query", "Email/changes"]


class _Calls(msgspec.Struct, forbid_unknown_fields=True):
    using: list[str]
    methodCalls: list[tuple[_Reading, dict[str, Any], str]]  # noqa: N815 (as servers spell it)


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
    pause_seconds: int = 0

    def ask(self, request: AskServer) -> ServerStatus:
        """Send a request that changes nothing.  Raises: AccountTrouble."""
        body = _read_only(request.body) if request.method == "POST" else ""
        return AskedServer.ask(self, AskServer(request.method, request.url, request.depth, body))

    def authorization(self) -> str:
        """A token, or a name and a password."""
        if not self.place.is_token:
            return AskedServer.authorization(self)
        if not self.password.isascii() or not self.password.isprintable():  # no token is such
            raise AccountTrouble("sign_in_refused")
        return f"Bearer {self.password}"

    def refusal(self, schemes: str) -> str:
        """A token that is not taken was refused, whatever else is offered."""
        return "sign_in_refused" if self.place.is_token else AskedServer.refusal(self, schemes)

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


def _read_only(body: str) -> str:
    """Methods that read, written anew: no member of a name that is there twice is hidden.

    Raises: AccountTrouble for any other.
    """
    try:
        return msgspec.json.encode(msgspec.json.decode(body, type=_Calls)).decode()
    except (msgspec.DecodeError, RecursionError):
        raise AccountTrouble(MISBEHAVES) from None
