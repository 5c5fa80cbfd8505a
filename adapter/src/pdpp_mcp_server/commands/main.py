"""`pdpp`: the commands of a client, and those of every part that is installed beside it.

Rule: a command costs the start-up time of what it uses, so each is named as a path, with its help,
and imported when it is called; other parts are looked for only where their commands can be meant.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import NoReturn, TypeAlias

import cyclopts

from pdpp_kernel.long_life import SELDOM
from pdpp_mcp_server.commands.exits import package_version, run_app

Commands: TypeAlias = Mapping[str, tuple[str, str, str]]
"""By name: the group that help lists it in, what is called (`module:function`), and its help."""

GROUPS = ("Start", "Look", "Apps", "Keep safe", "For programs")  # in the order of help
START, LOOK, APPS, KEEP_SAFE, FOR_PROGRAMS = GROUPS

GROUP = "pdpp.commands"
ABOUT = "Keeps your records on your machine, and gives the agents you choose access to them."
BEGIN = {
    True: "Begin with `pdpp import FILE`, then `pdpp serve`.",
    False: "Begin with `pdpp connect ADDRESS`, where ADDRESS is a personal server's.",
}
OWN: Commands = {
    "connect": (
        FOR_PROGRAMS,
        "pdpp_mcp_server.commands.connect:connect",
        (
            "Ask a server for access and save the credential in this directory.\n"
            "\n"
            "If you do not name what to read, the owner chooses in the browser."
        ),
    ),
    "status": (
        FOR_PROGRAMS,
        "pdpp_mcp_server.commands.status:status",
        "Show the servers that you are connected to here, and what you may read on them.",
    ),
    "read": (
        FOR_PROGRAMS,
        "pdpp_mcp_server.commands.read:read",
        "Read the records that you were granted, as an app would.",
    ),
    "token": (
        FOR_PROGRAMS,
        "pdpp_mcp_server.commands.status:token",
        "Print a current access token, for tools that cannot renew tokens.",
    ),
    "disconnect": (
        FOR_PROGRAMS,
        "pdpp_mcp_server.commands.status:disconnect",
        "End your access to a server and delete the credential.",
    ),
    "skills": (
        FOR_PROGRAMS,
        "pdpp_mcp_server.commands.skills:skills",
        "Teach the agents here to ask well.",
    ),
    "mcp": (
        FOR_PROGRAMS,
        "pdpp_mcp_server.commands.mcp:mcp_server",
        """Serve MCP over standard input and output for one connected server.

Environment: PDPP_PROVIDER_URL, PDPP_CACHE_ROOT, PDPP_MCP_SERVER_NAME,
PDPP_MCP_RESOURCE_LINKS (auto, always or never), PDPP_MCP_MAX_BLOB_BYTES.""",
    ),
}


def installed() -> Commands:
    """The commands of the other parts.  Source: their entry points of the group `pdpp.commands`."""
    found: dict[str, tuple[str, str, str]] = {}
    for entry in entry_points(group=GROUP):
        found.update(entry.load())
    return found


def command_line(beside: Commands | None = None) -> cyclopts.App:
    """The whole command line.  Shapes: `beside` are commands of other parts, else all installed."""
    others = installed() if beside is None else beside
    app = cyclopts.App(
        name="pdpp",
        help=f"{ABOUT}\n\n{BEGIN['import' in others]}\n",
        version=package_version,
        version_flags=["--version"],
        default_parameter=cyclopts.Parameter(negative=()),
    )
    app["--help"].group = app["--version"].group = cyclopts.Group("Options", sort_key=len(GROUPS))
    groups = {name: cyclopts.Group(name, sort_key=position) for position, name in enumerate(GROUPS)}
    # those of other parts stand first, and win where a name is theirs too
    for position, (name, (group, path, text)) in enumerate({**others, **OWN, **others}.items()):
        app.command(path, name=name, help=text, group=groups[group], sort_key=position)
    return app


def run(arguments: Callable[[], Sequence[str]] = lambda: sys.argv[1:]) -> NoReturn:
    """Run the entry point `pdpp`."""
    gc.set_threshold(*SELDOM)
    given = list(arguments())
    # the server shows its own part of `status`, so that name alone may be another part's
    is_ours = bool(given) and given[0] in OWN and given[0] != "status"
    sys.exit(run_app(command_line({} if is_ours else None), given))
