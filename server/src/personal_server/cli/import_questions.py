"""What `pdpp import` asks its owner at a terminal, and the answers it understands."""

from __future__ import annotations

import sys
from collections.abc import Callable

from pdpp_kernel.errors import AmbiguousConnection
from pdpp_kernel.texts import counted, message
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import plain, words
from personal_server.collecting.imports import ImportTally
from personal_server.domain.connection import Connection

Belongs = Callable[[Connection], str | None]
"""Asks whether a file is of the one account there is: `None`, or the name of another."""
# Answers, never names of accounts.
YES, NO = frozenset({"", "y", "yes", "j", "ja"}), frozenset({"n", "no", "nein"})


def asking(*, at_terminal: bool) -> Belongs:
    """Whether a file is of the only account there is, by the owner."""

    def belongs(connection: Connection) -> str | None:
        called = plain(connection.display_name or connection.connection_id).plain
        unclear = AmbiguousConnection(
            message(
                "The records may belong to the account %(name)s, or to a new account.", name=called
            ),
            param="connection",
            connector_key=connection.connector_key,
            next_step="Choose the account with --connection: its name or id, or a new name.",
        )
        if not at_terminal:
            raise unclear
        words().print(f"  This source has the account {called}.", markup=False)
        answer = answered("  Import into it? Type yes, or the name of a new account: ")
        if answer.lower() in YES - {""}:
            return None
        if answer.lower() in NO:
            answer = answered("  Name of the new account: ")
        if not answer:
            raise unclear
        return answer

    return belongs


def answered(question: str) -> str:
    """What is typed after a question; empty where nothing is."""
    words().print(question, end="", markup=False)
    return sys.stdin.readline().strip()


def check_replace(*, yes: bool, dry_run: bool) -> None:
    """Raises: CommandError (`usage`), where nobody could be asked, or nothing be known."""
    if dry_run:
        sentence = (
            "--replace does not work with --dry-run, because a dry run ignores stored records."
        )
        raise CommandError("usage", sentence, "Use only one of the two options.")
    if not yes and not sys.stdin.isatty():
        raise CommandError(
            "usage",
            "Not running in a terminal, so I cannot ask.",
            "Add --yes to delete the records without a question.",
        )


def may_delete(tally: ImportTally, is_agreed: bool) -> bool:
    """Whether the file was read whole, and the owner agrees that what it lacks is deleted."""
    count = counted(tally.absent, "row")
    if not tally.is_complete:
        words().print(f"  {count} not deleted, because the file could not be read completely.")
        return False
    if is_agreed:
        return True
    answer = answered(f"  {count} were imported before, but are not in this file. Delete? [y/N] ")
    return answer != "" and answer.lower() in YES
