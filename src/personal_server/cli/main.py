"""`pdpp`: every command, in one place.

Rule: a command costs the start-up time of what it uses; what is heavy is named as a path and
imported when it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

import cyclopts

from personal_server.app.stores import OwnerStore, open_owner_store
from personal_server.cli.admin import admin_app
from personal_server.cli.connect import Surroundings, connect_command
from personal_server.cli.disclosures import disclosures_command
from personal_server.cli.doctor import doctor_command
from personal_server.cli.exits import adapter_settings_or_exit, run_app, settings_or_exit
from personal_server.cli.export import export_command
from personal_server.cli.grant import granting_app
from personal_server.cli.mcp import mcp_server, package_version
from personal_server.cli.owner import add_owner_profile, owner_app
from personal_server.cli.status import add_cached_access

ABOUT = """Your records on your machine, and slices of them for the agents you choose.

Begin with `pdpp import FILE`, then `pdpp serve`.
"""
IMPORT_HELP = "Import exports: files, folders or zips as they were downloaded."
SOURCES_HELP = "List what can be imported, how to get each export, and what it holds."
RECEIPTS_HELP = "List what was imported: file, time, account, span of days, what was new."


def open_store() -> AbstractContextManager[OwnerStore]:
    """The store of this machine, for a command of its owner."""
    return open_owner_store(settings_or_exit())


def default_cache() -> Path:
    """Where credentials of this directory lie."""
    return adapter_settings_or_exit().cache_root


def command_line() -> cyclopts.App:
    """The whole command line."""
    app = cyclopts.App(
        name="pdpp",
        help=ABOUT,
        version=package_version,
        version_flags=["--version"],
        default_parameter=cyclopts.Parameter(negative=()),
    )
    imports = "personal_server.cli.import_command"
    app.command(f"{imports}:import_command", name="import", help=IMPORT_HELP)
    app.command(f"{imports}:sources_command", name="sources", help=SOURCES_HELP)
    app.command(f"{imports}:receipts_command", name="receipts", help=RECEIPTS_HELP)
    app.command(
        "personal_server.cli.serve:serve",
        name="serve",
        help="Serve your records at PDPP_BIND until interrupted.",
    )
    app.command(granting_app(open_store, default_cache))
    app.command(disclosures_command(open_store), name="disclosures")
    app.command(export_command(open_store), name="export")
    around = Surroundings(default_cache)
    owner = owner_app(open_store)
    add_owner_profile(owner, around, Path.home() / ".pdpp")
    app.command(owner)
    app.command(admin_app(open_store))
    app.command(connect_command(around), name="connect")
    add_cached_access(app, around)
    app.command(doctor_command(around), name="doctor")
    app.command(mcp_server, name="mcp")
    return app


def run(arguments: Callable[[], list[str]] = lambda: sys.argv[1:]) -> NoReturn:
    """Run the entry point `pdpp`."""
    sys.exit(run_app(command_line(), arguments()))
