"""`pdpp`: every command, in one place.

Rule: a command costs the start-up time of what it uses, so each is named as a path, with its help,
and imported when it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

import cyclopts

from personal_server.cli.exits import package_version, run_app

ABOUT = """Your records on your machine, and slices of them for the agents you choose.

Begin with `pdpp import FILE`, then `pdpp serve`.
"""
COMMANDS = {
    "import": (
        "import_command:import_exports",
        "Import exports: files, folders or archives as they were downloaded, or your own export.",
    ),
    "sources": (
        "sources:sources",
        "List what can be imported, how to get each export, and what it holds.",
    ),
    "receipts": (
        "receipts:receipts",
        "List what was imported: file, time, account, span of days, what was new.",
    ),
    "serve": (
        "serve:serve",
        "Serve your records at PDPP_BIND until a signal (Ctrl-C, SIGTERM, SIGHUP) stops it.",
    ),
    "service": ("service_command:service", "Let this machine start the server by itself."),
    "grant": ("grant:grant", "Grant a slice of your records, and end it."),
    "disclosures": (
        "disclosures:disclosures",
        "Show what was read from your records, newest first.",
    ),
    "verify": (
        "verify:verify",
        """Check that no line of the logs was changed, removed or put elsewhere.

The server signs each day where its logs stand. Keep what --heads prints on another
machine; with --against it shows later that not even the whole log was made anew.""",
    ),
    "export": (
        "export:export",
        "Export your records, as lines or as an archive with files; `pdpp import` takes it back.",
    ),
    "backup": (
        "backup:backup",
        "Back everything up into one file, while the server runs, or by schedule.",
    ),
    "restore": (
        "backup:restore",
        """Restore a backup into an empty data directory (PDPP_DATA_DIR).

Every app has to connect again, and every access waits until you let it go on.""",
    ),
    "move": (
        "move:move_command",
        """Move everything to PostgreSQL, or back into a data directory, while no server runs.

Nothing is lost: accounts, records, grants, tokens, bookmarks and logs go on there. It can be
interrupted and repeated. What was here stays as it is, for you to put away.""",
    ),
    "records": ("read:records", "List your streams, or the records of one, newest first."),
    "search": ("read:search", "Find your records that hold words."),
    "show": ("read:show", "Show one of your records, each of its values whole."),
    "connection": (
        "connection:connection",
        "Name, pause, close and erase the accounts your records came from.",
    ),
    "owner": ("owner:owner", "Sign in as the owner of this server."),
    "canary": (
        "canary:canary",
        "Plant records that raise an alarm when an app is given one.",
    ),
    "subscription": (
        "subscription:subscription",
        "See who is told that something changed.",
    ),
    "watch-changes": (
        "watch_changes:watch_changes",
        """Print what changes in your records as it happens, or run a command for it.

A command finds PDPP_STREAM, PDPP_CONNECTION_ID, PDPP_CHANGE_COUNT and
PDPP_CHANGES_SINCE in its environment: a bookmark of the change feed, never a record.""",
    ),
    "semantic": (
        "semantic:semantic",
        "Find records by meaning, with a model of your own.",
    ),
    "person": ("person:person", "See who is who in your records, and correct it."),
    "collector": ("collector:collector", "Let programs bring records to a connection."),
    "admin": ("admin:admin", "Set up what works beside this server."),
    "connect": (
        "connect:connect",
        """Ask a server for access and keep its credential for this directory.

Without a selection its owner picks in the browser.""",
    ),
    "status": ("status:status", "Show what the cached credentials stand for now."),
    "read": ("read:read", "Read what you were granted, as any app would."),
    "token": ("status:token", "Print a current access token, for tools that cannot refresh."),
    "disconnect": ("status:disconnect", "Give the access back and forget the credential."),
    "doctor": (
        "doctor:doctor",
        """Check that hosts can connect to a server, or that this machine keeps its data well.

With nothing named it asks the server of this machine what needs care.""",
    ),
    "mcp": (
        "mcp:mcp_server",
        """Serve MCP over standard input and output for one connected server.

Environment: PDPP_PROVIDER_URL, PDPP_CACHE_ROOT, PDPP_MCP_SERVER_NAME,
PDPP_MCP_RESOURCE_LINKS (auto, always or never), PDPP_MCP_MAX_BLOB_BYTES.""",
    ),
}


def command_line() -> cyclopts.App:
    """The whole command line."""
    app = cyclopts.App(
        name="pdpp",
        help=ABOUT,
        version=package_version,
        version_flags=["--version"],
        default_parameter=cyclopts.Parameter(negative=()),
    )
    for name, (path, text) in COMMANDS.items():
        app.command(f"personal_server.cli.{path}", name=name, help=text)
    return app


def run(arguments: Callable[[], list[str]] = lambda: sys.argv[1:]) -> NoReturn:
    """Run the entry point `pdpp`."""
    sys.exit(run_app(command_line(), arguments()))
