"""Providers at which a feed signs in with a client that its owner registered there.

Rule: pure.  Facts are those of the providers' own pages (docs/oauth-mail.md).
Source: docs/contract/feeds.md 10; RFC 6749, 8252, 8628.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from types import MappingProxyType

import msgspec


class OAuthProvider(msgspec.Struct, frozen=True):
    """Where one asks, and for what.

    Shapes: `asked` is what an authorization request has beside; `returns_to` is how the provider
        has this machine called; `imap` is the server of mail; without `device` there is no
        device flow that gives mail.
    """

    name: str
    issuer: str
    authorization: str
    token: str
    scope: str
    device: str | None = None
    imap: str | None = None
    has_secret: bool = False
    returns_to: str = "127.0.0.1"
    asked: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


def oauth_of(imap: str | None) -> str | None:
    """How the provider with this server of mail is named, where one can sign in at it."""
    return next((n for n, each in OAUTH_PROVIDERS.items() if imap and each.imap == imap), None)


def add_command(address: str, named: str) -> str:
    """What adds a mailbox that signs in there, behind the name of the program."""
    return shlex.join(("feed", "add-mailbox", address, "--oauth", named, "--client-id", "ID"))


_MICROSOFT = "https://login.microsoftonline.com/common/oauth2/v2.0"
OAUTH_PROVIDERS: Mapping[str, OAuthProvider] = MappingProxyType(
    {
        # The device flow of Google gives no scope of mail.
        "google": OAuthProvider(
            name="Google",
            issuer="https://accounts.google.com",
            authorization="https://accounts.google.com/o/oauth2/v2/auth",
            token="https://oauth2.googleapis.com/token",  # noqa: S106 (an address)
            scope="https://mail.google.com/",
            imap="imap.gmail.com",
            has_secret=True,
            asked={"access_type": "offline", "prompt": "consent"},
        ),
        "microsoft": OAuthProvider(
            name="Microsoft",
            issuer="https://login.microsoftonline.com/common/v2.0",
            authorization=f"{_MICROSOFT}/authorize",
            token=f"{_MICROSOFT}/token",
            scope="https://outlook.office.com/IMAP.AccessAsUser.All offline_access",
            device=f"{_MICROSOFT}/devicecode",
            imap="outlook.office365.com",
            returns_to="localhost",
        ),
    }
)
