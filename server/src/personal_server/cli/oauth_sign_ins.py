"""`pdpp feed add-mailbox --oauth` and `pdpp feed sign-in`: a provider lets a feed in by tokens.

Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

import secrets
import sys
import time
from dataclasses import dataclass
from getpass import getpass
from typing import Annotated

from cyclopts import Parameter

from pdpp_kernel.errors import InvalidRequest
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import minute, plain, words
from pdpp_mcp_server.rs_client.authorization_flows import DeviceOffer, PollWait
from pdpp_mcp_server.rs_client.discovery import network_exchange
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.feed_sign_ins import new_password, sign_in_command
from personal_server.app.mailbox_runs import MailPlace
from personal_server.app.oauth_access import access_of
from personal_server.app.oauth_flows import OAuthClient, provider_named
from personal_server.app.stores import Stores
from personal_server.cli.feed_lines import Flag, feed_named
from personal_server.cli.kept_data import open_kept_stores
from personal_server.feeds.feed_kinds import MAILBOX
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.storage.feed_rows import FeedRow


@dataclass(frozen=True)
class OAuthOptions:
    """How to sign in without a password, with a client that you registered at the provider.

    Parameters
    ----------
    oauth
        Sign in at google, at microsoft, or at the authorization server with this https address.
    client_id
        The id of your client at the provider.
    client_secret
        Your client has a secret: it is asked for, or read from standard input. Always at Google.
    scope
        What to ask an authorization server for. Default: offline_access.
    browser
        Sign in with a browser on this machine. Default: with a code on any device, where the
        provider allows that; Google does not.
    """

    oauth: str | None = None
    client_id: str | None = None
    client_secret: Flag = False
    scope: str | None = None
    browser: Flag = False

    def is_wanted(self, *, has_client: bool = False) -> bool:
        """Whether a provider is named.  Raises: CommandError where the rest is, and it is not.

        Shapes: one that has a client may sign in with a browser all the same.
        """
        rest = (self.client_id, self.client_secret, self.scope, self.browser and not has_client)
        if not self.oauth and any(rest):
            raise CommandError(
                "usage",
                "The provider of your client is missing.",
                "Name it with --oauth google, --oauth microsoft or --oauth https://ADDRESS.",
            )
        return bool(self.oauth)

    def client(self) -> OAuthClient:
        """The client that the owner named.  Raises: CommandError, CredentialError."""
        if not self.client_id:
            raise CommandError(
                "usage",
                "The id of your client is missing.",
                "Register a client at the provider (docs/oauth-mail.md), and give --client-id ID.",
            )
        named = self.oauth or ""
        try:
            provider = provider_named(named, self.scope, network_exchange)
        except InvalidRequest as error:
            step = str(error.members.get("next_step") or "")
            raise CommandError("usage", error.message, step) from None
        secret = _typed_secret() if provider.has_secret or self.client_secret else None
        return OAuthClient(named, provider, self.client_id, secret)


def signed_in(
    client: OAuthClient, user: str, now_ns: int, *, with_browser: bool
) -> tuple[str, int | None]:
    """What is kept in the place of a password, and when it ends.  Raises: CredentialError."""
    if with_browser or client.provider.device is None:
        given = client.by_browser(network_exchange(), user, _show_address, secrets.token_bytes)
    else:
        waiting = PollWait(time.sleep, time.monotonic)
        given = client.by_code(network_exchange(), _show_code, waiting)
    access, ends_ns = client.access(given, now_ns)
    return access.text, ends_ns


def sign_in(
    feed: str, /, *, anew: Annotated[OAuthOptions | None, Parameter(name="*")] = None
) -> None:
    """Sign in to a mailbox again, where a provider's own sign-in ended, and let its feed go on.

    The client is the one that the feed has. Name it anew with --oauth where that is lost, as after
    a restore, or where the feed had a password.

    Parameters
    ----------
    feed
        The name or id of the feed.
    """
    options = anew or OAuthOptions()
    with open_kept_stores() as stores:
        row = feed_named(stores, feed)
        if row.kind != MAILBOX:
            raise CommandError(
                "usage", "This feed has no mailbox.", "Give a password: pdpp feed password"
            )
        try:
            user = MailPlace.of(row.place).user
        except FetchTrouble as trouble:
            raise CommandError(trouble.code, "The feed has no address.", "Add it again.") from None
        client = (
            options.client() if options.is_wanted(has_client=True) else _kept_client(stores, row)
        )
        text, ends_ns = signed_in(client, user, stores.clock(), with_browser=options.browser)
        new_password(stores, row, text, ends_ns)
    words().print("Signed in. The feed continues." + ends_hint(ends_ns), markup=False)


def _kept_client(stores: Stores, feed: FeedRow) -> OAuthClient:
    """The client by which the feed signed in last.  Raises: CommandError."""
    access = access_of(FeedSecrets.of(stores).password(feed) or "")
    if access is None:
        command = sign_in_command(stores, feed)
        raise CommandError(
            "usage",
            "No client id is stored for this feed.",
            "Name the client: --oauth and --client-id. Or give a password: pdpp feed password"
            if command is None
            else f"Name the client: pdpp {command}",
        )
    provider = provider_named(access.provider, access.scope, network_exchange)
    return OAuthClient(access.provider, provider, access.client_id, access.client_secret)


def ends_hint(ends_ns: int | None) -> str:
    """When its owner has to sign in again."""
    if ends_ns is None:
        return ""
    return f" The provider ends this sign-in at {minute(ends_ns)}: sign in again before."


def _show_address(address: str) -> None:
    words().print("Open this address in a browser on this machine, and allow access:")
    words().print(plain(address), soft_wrap=True)


def _show_code(offer: DeviceOffer) -> None:
    words().print(plain(f"Open {offer.verification_uri} on any device, and type this code:"))
    words().print(plain(offer.user_code))


def _typed_secret() -> str:
    """Asked for at a terminal, else the first line of standard input.  Raises: CommandError."""
    typed = getpass("Client secret: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not typed:
        raise CommandError("usage", "No client secret was given.", "Give it on standard input.")
    return typed
