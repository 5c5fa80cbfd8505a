"""`pdpp owner`: sign-in links, the password and sign-ins, on the machine that holds the store.

Source: AS contract 13.1, 13.2, 14.1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from getpass import getpass
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from personal_server.app.owner_store import OwnerStore
from personal_server.cli.exits import CommandError, print_json
from personal_server.cli.tables import console, words

Opener = Callable[[], AbstractContextManager[OwnerStore]]


def owner_app(open_store: Opener) -> cyclopts.App:
    """The command group `pdpp owner`."""
    app = cyclopts.App(name="owner", help="Sign in as the owner of this server.")

    @app.command
    def link(*, json: bool = False) -> None:
        """Print a link that signs a browser in, once, within ten minutes.

        Parameters
        ----------
        json
            Print JSON.
        """
        with open_store() as store:
            address = f"{store.origin}/owner/enter?t={store.sign_in.make_link()}"
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


def _read_password() -> str:
    """From the terminal, twice and unseen; else one line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass("New password: ")
    if getpass("Once more: ") != first:
        raise CommandError("usage", "The two were not the same. Nothing was changed.")
    return first
