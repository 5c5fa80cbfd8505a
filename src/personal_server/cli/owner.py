"""`pdpp owner`: sign-in links, the password and sign-ins, on the machine that holds the store.

Source: AS contract 13.1, 13.2, 14.1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from getpass import getpass
from typing import Annotated
from urllib.parse import urlsplit

import cyclopts
from cyclopts import Parameter

from personal_server.app.owner_store import OwnerStore
from personal_server.cli.exits import CommandError, print_json
from personal_server.cli.tables import console, words
from personal_server.rs_client.credentials import normalize_provider_url

LOOPBACK_NAMES = {"127.0.0.1", "localhost", "::1"}
Opener = Callable[[], AbstractContextManager[OwnerStore]]


def owner_app(open_store: Opener) -> cyclopts.App:
    """The command group `pdpp owner`."""
    app = cyclopts.App(name="owner", help="Sign in as the owner of this server.")

    @app.command
    def link(origin: str | None = None, *, json: bool = False) -> None:
        """Print a link that signs a browser in, once, within ten minutes.

        Parameters
        ----------
        origin
            The server's address as the browser uses it, where it is another name of this computer
            (a sign-in at 127.0.0.1 does not count at localhost).
        json
            Print JSON.
        """
        with open_store() as store:
            where = _same_server(store.origin, origin)
            address = f"{where}/owner/enter?t={store.sign_in.make_link()}"
        if json:
            print_json({"link": address, "expires_in": 600})
        else:
            console().print(address, soft_wrap=True)

    @app.command
    def password() -> None:
        """Set the owner's password; every sign-in ends."""
        chosen = _read_password()
        with open_store() as store:
            store.sign_in.set_password(chosen)
        words().print("The password is set. Everybody who was signed in is signed out.")

    @app.command(name="sign-out")
    def sign_out(*, all: Annotated[bool, Parameter(negative="")] = False) -> None:
        """End every sign-in of the owner, in all browsers.

        Parameters
        ----------
        all
            Say that you mean all of them.
        """
        if not all:
            raise CommandError(
                "usage", "This ends every sign-in.", "Say so: pdpp owner sign-out --all"
            )
        with open_store() as store:
            ended = store.sign_in.sign_out_all()
        words().print(f"{ended} {'sign-in' if ended == 1 else 'sign-ins'} ended.")

    return app


def _same_server(own: str, asked: str | None) -> str:
    """The origin asked for, if it is this server's: itself, or another loopback name of it."""
    if asked is None:
        return own
    origin = normalize_provider_url(asked)
    ours, theirs = urlsplit(own), urlsplit(origin)
    loopback = {ours.hostname, theirs.hostname} <= LOOPBACK_NAMES
    if origin != own and not (loopback and ours.port == theirs.port):
        raise CommandError(
            "usage", "That is not an address of this server.", f"Leave it out, or give {own}."
        )
    return origin


def _read_password() -> str:
    """From the terminal, twice and unseen; else one line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass("New password: ")
    if getpass("Once more: ") != first:
        raise CommandError("usage", "The two were not the same. Nothing was changed.")
    return first
