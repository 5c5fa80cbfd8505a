"""The server's commands, which `pdpp` shows where the server is installed.

Rule: a command costs the start-up time of what it uses, so each is named as a path, with its help,
and imported when it is called.
"""

from __future__ import annotations

from pdpp_mcp_server.commands.main import APPS, FOR_PROGRAMS, KEEP_SAFE, LOOK, START, Commands

COMMANDS: Commands = {
    "import": (
        START,
        "personal_server.cli.reading_commands:import_exports",
        "Import exports: files, folders or archives as you downloaded them, or your own export.",
    ),
    "sources": (
        START,
        "personal_server.cli.reading_commands:sources",
        "List what can be imported, how to get each export, and what each export contains.",
    ),
    "feed": (
        START,
        "personal_server.cli.feed:feed",
        "Watch folders, mailboxes, calendars and contacts, so that accounts stay current.",
    ),
    "serve": (
        START,
        "personal_server.cli.serve:serve",
        (
            "Start the server at PDPP_BIND. It runs until Ctrl-C or a signal (SIGTERM, "
            "SIGHUP) stops it."
        ),
    ),
    "owner": (
        START,
        "personal_server.cli.owner:owner",
        "Sign in as the owner of this server.",
    ),
    "service": (
        START,
        "personal_server.cli.service_command:service",
        "Start the server automatically at login.",
    ),
    "status": (
        START,
        "personal_server.cli.server_status:status",
        "Show this machine's server, the servers connected here, and what you may read.",
    ),
    "doctor": (
        START,
        "personal_server.cli.doctor:doctor",
        (
            "Check that MCP hosts can connect to a server, or that the data on this "
            "machine is sound.\n"
            "\n"
            "Without options, this lists what needs attention on this machine's server."
        ),
    ),
    "reach": (
        START,
        "personal_server.cli.reach:reach",
        (
            "Find out whether your phone, or Claude and ChatGPT on the web, reach this server.\n"
            "\n"
            "Looks for a tunnel that is installed here (Tailscale, cloudflared), says what "
            "to type to\nlead it to this server, and asks the public address as each MCP host "
            "does. Nothing is\nchanged unless you ask for it."
        ),
    ),
    "records": (
        LOOK,
        "personal_server.cli.own_records:records",
        "List what your accounts contain, or the records of one kind (stream), newest first.",
    ),
    "search": (
        LOOK,
        "personal_server.cli.own_records:search",
        "Find your records that contain certain words.",
    ),
    "show": (
        LOOK,
        "personal_server.cli.own_records:show",
        "Show one of your records in full.",
    ),
    "receipts": (
        LOOK,
        "personal_server.cli.receipts:receipts",
        "List past imports: file, time, account, first and last day, number of new records.",
    ),
    "connection": (
        LOOK,
        "personal_server.cli.connection:connection",
        "Rename, pause, block, merge, split and erase the accounts your records came from.",
    ),
    "person": (
        LOOK,
        "personal_server.cli.person:person",
        "List the people in your records, and correct who is who.",
    ),
    "semantic": (
        LOOK,
        "personal_server.cli.semantic:semantic",
        "Search by meaning, with a language model on this machine.",
    ),
    "grant": (
        APPS,
        "personal_server.cli.grant:grant",
        "Give apps access to some of your records, and end access.",
    ),
    "disclosures": (
        APPS,
        "personal_server.cli.disclosures:disclosures",
        "Show what apps read from your records, newest first.",
    ),
    "subscription": (
        APPS,
        "personal_server.cli.subscription:subscription",
        "Manage the notifications that apps get when records change.",
    ),
    "canary": (
        APPS,
        "personal_server.cli.canary:canary",
        "Manage bait records: fake records that alert you when an app reads one.",
    ),
    "notices": (
        KEEP_SAFE,
        "personal_server.cli.owner_notices:notices",
        "Show what needs you, and let the server tell you on your desktop or by a URL.",
    ),
    "backup": (
        KEEP_SAFE,
        "personal_server.cli.backup:backup",
        "Back up all data into one file, while the server runs, or on a schedule.",
    ),
    "restore": (
        KEEP_SAFE,
        "personal_server.cli.backup:restore",
        """Restore a backup into an empty data directory (PDPP_DATA_DIR).

Every app has to reconnect, and every grant is paused until you resume it. Passwords and
passkeys come back only with --signer.""",
    ),
    "export": (
        KEEP_SAFE,
        "personal_server.cli.export:export",
        "Export your records, as lines or as an archive with files; `pdpp import` reads it again.",
    ),
    "verify": (
        KEEP_SAFE,
        "personal_server.cli.verify:verify",
        """Check that no line of the logs was changed, removed or moved.

Every day the server signs the newest line of each log. Keep what --heads prints on another
machine; with --against it later proves that nobody rewrote the whole log.""",
    ),
    "move": (
        KEEP_SAFE,
        "personal_server.cli.move:move_command",
        """Move everything to PostgreSQL, or back into a data directory, while no server runs.

Accounts, records, grants, tokens, bookmarks and logs all move. You can interrupt the command
and run it again. The old copy stays as it is; archive or delete it afterwards.""",
    ),
    "upgrade": (
        KEEP_SAFE,
        "personal_server.cli.upgrade:upgrade",
        """Replace this program by a newer release; stop the server first.

The signature is checked, all data are copied, and the new program is started once. If it does
not answer, the old program and the data are put back.""",
    ),
    "collector": (
        FOR_PROGRAMS,
        "personal_server.cli.collector:collector",
        "Let programs add records to an account.",
    ),
    "watch-changes": (
        FOR_PROGRAMS,
        "personal_server.cli.watch_changes:watch_changes",
        """Print changes of your records as they happen, or run a command for each.

The command gets the variables PDPP_STREAM, PDPP_CONNECTION_ID, PDPP_CHANGE_COUNT and
PDPP_CHANGES_SINCE (a bookmark of the change feed), but never a record.""",
    ),
    "source": (
        FOR_PROGRAMS,
        "personal_server.cli.source_package:source_app",
        "Begin a source of your own, for exports that nothing reads yet.",
    ),
    "admin": (
        FOR_PROGRAMS,
        "personal_server.cli.admin:admin",
        "Set up companion services.",
    ),
}
