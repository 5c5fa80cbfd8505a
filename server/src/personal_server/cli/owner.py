"""`pdpp owner`: sign-in links, the password and sign-ins, on the machine that holds the store.

`login` and `logout` act as the owner from another computer; such credentials stand apart from
granted ones, under `owners/`, and are used by no adapter.
Source: docs/contract/authorization-server.md 8.1, 13.1, 13.2, 14.1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from getpass import getpass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import cyclopts
from cyclopts import Parameter

from pdpp_kernel.texts import counted
from pdpp_mcp_server.commands.connect import CommandContext, show_offer
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, plain, words
from pdpp_mcp_server.rs_client.authorization_flows import (
    OWNER_CLIENT,
    OWNER_SCOPE,
    ask_as_owner,
    poll_device,
    revoke,
)
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from pdpp_mcp_server.rs_client.credentials import (
    credential_document,
    credential_members,
    normalize_provider_url,
)
from pdpp_mcp_server.rs_client.discovery import discover
from personal_server.app.database_claims import is_served
from personal_server.cli.served_address import noted_address
from personal_server.cli.server_settings import settings_or_exit
from personal_server.cli.store import StoreOpener, make_store
from personal_server.cli.tunnels import LOOPBACK_NAMES, tunnel
from personal_server.settings import ssh_connection

FOLDER = "owners"


def is_here() -> bool:
    """Whether a server works on the data of this machine; one of databases may do so elsewhere."""
    settings = settings_or_exit()
    return settings.database_url is not None or is_served(settings)


def address_here() -> str | None:
    """Where the server of this data directory answers, if it said so."""
    return noted_address(settings_or_exit())


def owner_app(
    open_store: StoreOpener,
    is_running: Callable[[], bool] = is_here,
    served_at: Callable[[], str | None] = address_here,
) -> cyclopts.App:
    """The command group `pdpp owner`."""
    app = cyclopts.App(name="owner", help="Sign in as the owner of this server.")

    @app.command
    def link(origin: str | None = None, *, json: bool = False) -> None:
        """Print a link that signs a browser in, once, within ten minutes.

        Parameters
        ----------
        origin
            The server's address as you type it in the browser, if that is another name of this
            computer (a browser signed in at 127.0.0.1 is not signed in at localhost).
        json
            Print JSON.
        """
        if not is_running():
            raise CommandError(
                "unavailable",
                "The server is not running, so no link would open.",
                "Start it: `pdpp serve` (it signs a browser in by itself), or `pdpp service"
                " install`.",
            )
        with open_store() as store:
            where = _same_server(served_at() or store.origin, origin)
            address = f"{where}/owner/enter?t={store.sign_in.make_link()}"
        if json:
            print_json({"link": address, "expires_in": 600})
            return
        console().print(address, soft_wrap=True)
        if command := tunnel(where, ssh_connection()):
            words().print(
                "You are here over ssh. On the computer at which you sit, type this first and leave"
                " it running; then open the link there:"
            )
            words().print(plain(f"  {command}"), soft_wrap=True)

    @app.command
    def password(*, remove: Annotated[bool, Parameter(negative="")] = False) -> None:
        """Set the owner's password, and sign all browsers out.

        Parameters
        ----------
        remove
            Remove the password; you sign in with a passkey or a link from this machine.
        """
        chosen = None if remove else _read_password()
        with open_store() as store:
            if chosen is None:
                store.sign_in.remove_password()
            else:
                store.sign_in.set_password(chosen)
        done = "removed" if remove else "set"
        words().print(f"The owner's password is {done}. All browsers are signed out.")

    @app.command(name="sign-out")
    def sign_out(*, all: Annotated[bool, Parameter(negative="")] = False) -> None:
        """Sign the owner out of all browsers.

        Parameters
        ----------
        all
            Confirm that you mean all browsers.
        """
        if not all:
            raise CommandError(
                "usage",
                "This signs all browsers out.",
                "Confirm with: pdpp owner sign-out --all",
            )
        with open_store() as store:
            ended = store.sign_in.sign_out_all()
        words().print(f"{counted(ended, 'browser')} signed out.")

    return app


def _same_server(own: str, other: str | None) -> str:
    """The other origin, if it is this server's: itself, or another loopback name of it."""
    if other is None:
        return own
    origin = normalize_provider_url(other)
    ours, theirs = urlsplit(own), urlsplit(origin)
    loopback = {ours.hostname, theirs.hostname} <= LOOPBACK_NAMES
    if origin != own and not (loopback and ours.port == theirs.port):
        raise CommandError(
            "usage",
            "This is not an address of this server.",
            f"Leave the address out, or give {own}.",
        )
    return origin


def _read_password() -> str:
    """From the terminal, twice and unseen; else one line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass("New password: ")
    if getpass("Repeat the password: ") != first:
        raise CommandError("usage", "The passwords do not match. Nothing was changed.")
    return first


def add_owner_profile(app: cyclopts.App, around: CommandContext, home: Path) -> None:
    """Add both commands to `pdpp owner`; `home` is the directory of `owners/`."""

    @app.command
    def login(
        url: str,
        *,
        browser: Annotated[bool, Parameter(name="--browser", negative="--no-browser")] = True,
        json: bool = False,
    ) -> None:
        """Sign in to a server as its owner, so that commands here can change it.

        Parameters
        ----------
        url
            The server's address.
        browser
            Open the browser. With --no-browser, only print the address.
        json
            Print JSON.
        """
        origin, exchange = normalize_provider_url(url), around.exchange()
        provider = discover(exchange, origin)
        offer = ask_as_owner(exchange, provider)
        show_offer(offer, around.open_browser if browser else None)
        tokens = poll_device(exchange, provider, OWNER_CLIENT, offer, around.waiting)
        now_ns = around.clock()
        credential = {"token_kind": "owner", **credential_members(tokens, now_ns)}
        client = {"client_id": OWNER_CLIENT}
        path = _cache(home).save(
            credential_document(origin, provider.issuer, OWNER_SCOPE, client, credential, now_ns)
        )
        if json:
            print_json({"provider_url": origin, "kind": "owner", "cache_path": str(path)})
        else:
            words().print(f"Signed in as the owner of {origin} on this computer.", soft_wrap=True)

    @app.command
    def logout(url: str) -> None:
        """Sign out as the owner of a server, and delete the credential here.

        Parameters
        ----------
        url
            The server's address.
        """
        origin, exchange = normalize_provider_url(url), around.exchange()
        credential = _cache(home).load(origin)
        token = credential.refresh_token or credential.access_token
        revoke(exchange, discover(exchange, origin), OWNER_CLIENT, token)
        _cache(home).remove(origin)
        words().print(f"Signed out of {origin}.", soft_wrap=True)


def _cache(home: Path) -> CredentialCache:
    return CredentialCache(home, lambda sentence: words().print(sentence), folder=FOLDER)


owner = owner_app(make_store)
add_owner_profile(owner, CommandContext(), Path.home() / ".pdpp")
