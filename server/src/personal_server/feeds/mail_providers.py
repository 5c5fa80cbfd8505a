"""Where the accounts of large providers are, and how one signs in there.

Rule: pure but for its own table, `mail_providers.toml`, which is read once.
Source: docs/contract/feeds.md 8.1.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib import resources
from types import MappingProxyType

import msgspec

_TABLE = resources.files("personal_server.feeds") / "mail_providers.toml"


class Password(StrEnum):
    """What a program signs in with."""

    APP = "app"
    OWN = "own"
    NONE = "none"


class MailProvider(msgspec.Struct, frozen=True):
    """A provider.

    Shapes: `imap` is a host with TLS at port 993; `caldav`, `carddav` and `jmap` are URLs, the last
        of which takes an API token; `jmap_beside` is another name under which mails are handed out
        there; `user` is `local` where the name to sign in with is what stands before the @ of an
        address; `help` is the provider's own page on passwords for programs.
    """

    name: str
    domains: tuple[str, ...]
    password: Password
    help: str
    imap: str | None = None
    user: str = "address"
    caldav: str | None = None
    carddav: str | None = None
    jmap: str | None = None
    jmap_beside: str | None = None

    @property
    def sample(self) -> str:
        """How an address there looks."""
        return f"you@{self.domains[0]}"

    def user_of(self, address: str) -> str:
        """The name to sign in with."""
        return address.rpartition("@")[0] if self.user == "local" else address


@cache
def mail_providers() -> Mapping[str, MailProvider]:
    """All by their ids, in the order of the table."""
    table = tomllib.loads(_TABLE.read_text("utf-8"))
    return MappingProxyType(
        {
            provider_id: MailProvider(
                **members
                | {
                    "domains": tuple(members["domains"]),
                    "password": Password(members["password"]),
                }
            )
            for provider_id, members in table.items()
        }
    )


def provider_of(address: str) -> MailProvider | None:
    """The provider that an address tells by its domain."""
    domain = address.rpartition("@")[2].lower().rstrip(".")
    return next((each for each in mail_providers().values() if domain in each.domains), None)
