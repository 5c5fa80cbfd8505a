"""The question in which time zone the owner lives."""

from __future__ import annotations

import sys
from collections.abc import Callable

from pdpp_mcp_server.commands.tables import words


def asked_zone(default: str, meant: Callable[[str], str | None]) -> str | None:
    """The zone that the owner names, or the default; None where nobody would see it.

    In: `meant` gives the zone that a text names, if one is.
    """
    if not words().is_terminal:
        return None
    say = words().print
    say("What is your time zone (for example Europe/Rome)?")
    say("The time zone is used for times in your files that have no zone.")
    while True:
        say(f"Press Enter for {default}: ", markup=False, end="")
        answer = sys.stdin.readline().strip() or default
        if zone := meant(answer):
            return zone
        say("No time zone has this name. Write the time zone like Europe/Rome.")
