"""The server's commands, which `pdpp` shows where the server is installed.

Rule: a command costs the start-up time of what it uses, so each is named as a path, with its help,
and imported when it is called.
"""

from __future__ import annotations

from pdpp_mcp_server.commands.main import Commands

COMMANDS: Commands = {
    "import": (
        "personal_server.cli.import_command:import_exports",
        "Import exports: files, folders or archives as they were downloaded, or your own export.",
    ),
    "sources": (
        "personal_server.cli.sources:sources",
        "List what can be imported, how to get each export, and what it holds.",
    ),
    "receipts": (
        "personal_server.cli.receipts:receipts",
        "List what was imported: file, time, account, span of days, what was new.",
    ),
    "serve": (
        "personal_server.cli.serve:serve",
        "Serve your records at PDPP_BIND until a signal (Ctrl-C, SIGTERM, SIGHUP) stops it.",
    ),
    "service": (
        "personal_server.cli.service_command:service",
        "Let this machine start the server by itself.",
    ),
    "grant": ("personal_server.cli.grant:grant", "Grant a slice of your records, and end it."),
    "disclosures": (
        "personal_server.cli.disclosures:disclosures",
        "Show what was read from your records, newest first.",
    ),
    "verify": (
        "personal_server.cli.verify:verify",
        """Check that no line of the logs was changed, removed or put elsewhere.

The server signs each day where its logs stand. Keep what --heads prints on another
machine; with --against it shows later that not even the whole log was made anew.""",
    ),
    "export": (
        "personal_server.cli.export:export",
        "Export your records, as lines or as an archive with files; `pdpp import` takes it back.",
    ),
    "backup": (
        "personal_server.cli.backup:backup",
        "Back everything up into one file, while the server runs, or by schedule.",
    ),
    "restore": (
        "personal_server.cli.backup:restore",
        """Restore a backup into an empty data directory (PDPP_DATA_DIR).

Every app has to connect again, and every access waits until you let it go on.""",
    ),
    "move": (
        "personal_server.cli.move:move_command",
        """Move everything to PostgreSQL, or back into a data directory, while no server runs.

Nothing is lost: accounts, records, grants, tokens, bookmarks and logs go on there. It can be
interrupted and repeated. What was here stays as it is, for you to put away.""",
    ),
    "records": (
        "personal_server.cli.own_records:records",
        "List your streams, or the records of one, newest first.",
    ),
    "search": ("personal_server.cli.own_records:search", "Find your records that hold words."),
    "show": (
        "personal_server.cli.own_records:show",
        "Show one of your records, each of its values whole.",
    ),
    "connection": (
        "personal_server.cli.connection:connection",
        "Name, pause, close and erase the accounts your records came from.",
    ),
    "owner": ("personal_server.cli.owner:owner", "Sign in as the owner of this server."),
    "canary": (
        "personal_server.cli.canary:canary",
        "Plant records that raise an alarm when an app is given one.",
    ),
    "subscription": (
        "personal_server.cli.subscription:subscription",
        "See who is told that something changed.",
    ),
    "watch-changes": (
        "personal_server.cli.watch_changes:watch_changes",
        """Print what changes in your records as it happens, or run a command for it.

A command finds PDPP_STREAM, PDPP_CONNECTION_ID, PDPP_CHANGE_COUNT and
PDPP_CHANGES_SINCE in its environment: a bookmark of the change feed, never a record.""",
    ),
    "semantic": (
        "personal_server.cli.semantic:semantic",
        "Find records by meaning, with a model of your own.",
    ),
    "person": (
        "personal_server.cli.person:person",
        "See who is who in your records, and correct it.",
    ),
    "collector": (
        "personal_server.cli.collector:collector",
        "Let programs bring records to a connection.",
    ),
    "admin": ("personal_server.cli.admin:admin", "Set up what works beside this server."),
    "doctor": (
        "personal_server.cli.doctor:doctor",
        """Check that hosts can connect to a server, or that this machine keeps its data well.

With nothing named it asks the server of this machine what needs care.""",
    ),
}
