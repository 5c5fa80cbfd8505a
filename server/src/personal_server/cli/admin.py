"""`pdpp admin`: what the operator of a server sets up beside it.

Source: docs/contract/authorization-server.md 10.5.
"""

from __future__ import annotations

import cyclopts

from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.tables import console, words
from personal_server.app.data_repairs import write_lost_configuration
from personal_server.app.stores import open_stores
from personal_server.cli.server_settings import settings_or_exit
from personal_server.cli.store import StoreOpener, make_store
from personal_server.granting.clients import add_introspection_client
from personal_server.upkeep.clock import accept_clock


def admin_app(open_store: StoreOpener) -> cyclopts.App:
    """The command group `pdpp admin`."""
    app = cyclopts.App(name="admin", help="Set up companion services.")

    @app.command(name="add-introspection-client")
    def add_introspection(name: str, /, *, json: bool = False) -> None:
        """Let a separate resource server look up tokens (token introspection).

        The command prints the id and secret of that server, once.

        Parameters
        ----------
        name
            A name for that server.
        json
            Print JSON.
        """
        with open_store() as store:
            made = add_introspection_client(
                store.authorization, name, store.random_bytes, store.clock()
            )
        if json:
            print_json({"client_id": made.caller_id, "client_secret": made.secret})
            return
        words().print("Copy the id and the secret now; the secret is not shown again.")
        console().print(f"{made.caller_id}\n{made.secret}", soft_wrap=True)

    @app.command(name="write-config")
    def write_config() -> None:
        """Write a new config.toml for the database in PDPP_DATA_DIR, if it is missing."""
        write_lost_configuration(settings_or_exit())
        words().print(
            "config.toml is written. Add again the clients that you had configured by hand."
        )

    @app.command(name="accept-clock")
    def accept() -> None:
        """Confirm that this machine's clock is right, after the server saw it jump."""
        with open_stores(settings_or_exit(), serving=False) as stores:
            doubted = accept_clock(stores.upkeep, stores.clock())
        words().print(
            "The server accepts the clock again."
            if doubted
            else "Nothing to confirm: the clock made no sudden jump."
        )

    return app


admin = admin_app(make_store)
