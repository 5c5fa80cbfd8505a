"""`pdpp admin`: what the operator of a server sets up beside it.

Source: docs/contract/authorization-server.md 10.5.
"""

from __future__ import annotations

import cyclopts

from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.tables import console, words
from personal_server.app.stores import open_stores, write_lost_configuration
from personal_server.cli.server_settings import settings_or_exit
from personal_server.cli.store import StoreOpener, open_store
from personal_server.granting.clients import add_introspection_client
from personal_server.upkeep.clock import accept_clock


def admin_app(open_store: StoreOpener) -> cyclopts.App:
    """The command group `pdpp admin`."""
    app = cyclopts.App(name="admin", help="Set up what works beside this server.")

    @app.command(name="add-introspection-client")
    def add_introspection(name: str, /, *, json: bool = False) -> None:
        """Let a resource server that runs apart ask what tokens stand for.

        Its id and secret are printed once.

        Parameters
        ----------
        name
            What to call it.
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
        words().print("Copy these now; the secret is not shown again.")
        console().print(f"{made.caller_id}\n{made.secret}", soft_wrap=True)

    @app.command(name="write-config")
    def write_config() -> None:
        """Write the config.toml that the database in PDPP_DATA_DIR has lost."""
        write_lost_configuration(settings_or_exit())
        words().print("Written. Clients that you had set up by hand are not in it.")

    @app.command(name="accept-clock")
    def accept() -> None:
        """Say that this machine's clock is right, after the server found that it jumped."""
        with open_stores(settings_or_exit(), serving=False) as stores:
            doubted = accept_clock(stores.upkeep, stores.clock())
        words().print("Accepted." if doubted else "The clock was not in doubt.")

    return app


admin = admin_app(open_store)
