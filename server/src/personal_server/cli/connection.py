"""`pdpp connection`: the accounts that records came from, named, paused, joined, parted, erased.

Source: docs/contract/resource-server.md 14.2, docs/contract/authorization-server.md 14.5.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Annotated

import cyclopts
import msgspec
from cyclopts import Parameter

from pdpp_kernel.texts import counted
from pdpp_kernel.values import instant_text
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, day, plain, table, words
from personal_server.app.backup_schedule import kept_backups
from personal_server.app.stores import Stores
from personal_server.cli.kept_data import open_kept_stores
from personal_server.collecting.account_moves import merge_accounts, part_accounts
from personal_server.collecting.chosen_connection import named_connection
from personal_server.collecting.connection_status import move_connection
from personal_server.collecting.connections import rename_connection
from personal_server.collecting.imports import ImportPorts
from personal_server.domain.connection import Connection

Flag = Annotated[bool, Parameter(negative="")]
OpenStores = Callable[[], AbstractContextManager[Stores]]
COLUMNS = ("connection", "name", "source", "status", "records", "since")


def connection_app(opened: OpenStores) -> cyclopts.App:
    """The command group `pdpp connection`."""
    app = cyclopts.App(
        name="connection",
        help="Rename, pause, block, merge, split and erase the accounts your records came from.",
    )

    @app.command(name="list")
    def list_(*, json: Flag = False) -> None:
        """List the accounts that records came from.

        Parameters
        ----------
        json
            Print JSON.
        """
        with opened() as stores, stores.records.snapshot() as snapshot:
            connections = sorted(snapshot.connections(), key=lambda c: c.display_name or "")
            counts = Counter[str]()
            for stream in snapshot.stored_streams():
                counts[stream.connection_id] += stream.record_count
        if json:
            print_json([_json(c, counts[c.connection_id]) for c in connections])
        elif connections:
            console().print(
                table(COLUMNS, [_line(e, counts[e.connection_id]) for e in connections])
            )
        else:
            words().print("No accounts yet. Import an export: pdpp import FILE")

    @app.command
    def rename(connection: str, name: str) -> None:
        """Rename an account. Apps that may read the account see its name.

        Parameters
        ----------
        connection
            The account's id or current name.
        name
            The new name.
        """
        with opened() as stores:
            account = _named(stores, connection)
            renamed = rename_connection(stores.records, account.connection_id, name, stores.clock())
        words().print(plain(f"Renamed {account.connection_id} to {renamed.display_name}."))

    for action, says in ACTIONS.items():
        app.command(_moving(opened, action, says), name=says.command)
    _add_merge(app, opened)
    _add_split(app, opened)
    _add_erase(app, opened)
    return app


class Move(msgspec.Struct, frozen=True):
    """A change of status: how the command is called, and what it says before and after."""

    command: str
    does: str
    done: str


ACTIONS = {
    "pause": Move("pause", "Stop imports into an account; apps can still read it.", "paused"),
    "resume": Move("resume", "Allow imports into an account again.", "imports allowed again"),
    "revoke": Move("close", "Block all apps from an account; your records stay.", "closed"),
    "reactivate": Move(
        "reopen", "Undo `close`: apps with access can read the account again.", "open to apps again"
    ),
}


def _moving(opened: OpenStores, action: str, says: Move) -> Callable[..., None]:
    def move(connection: str) -> None:
        with opened() as stores:
            account = _named(stores, connection)
            move_connection(stores.records, account.connection_id, action, stores.clock())
        words().print(f"{account.connection_id} is {says.done}.")

    move.__doc__ = f"""{says.does}

    Parameters
    ----------
    connection
        The account's id or name.
    """
    return move


MERGES = "This moves all records of {one} into {other} and erases {one}. Continue?"
PARTS = "This removes from {one} every record that {other} also has. Continue?"


def _two(
    stores: Stores, one: str, other: str, question: str, *, yes: bool
) -> tuple[Connection, Connection]:
    """Two accounts, by their names or ids, once the owner agreed.  Raises: CommandError."""
    first, second = _named(stores, one), _named(stores, other)
    _agree(question.format(one=_called(first), other=_called(second)), yes=yes)
    return first, second


def _add_merge(app: cyclopts.App, opened: OpenStores) -> None:
    @app.command
    def merge(connection: str, into: str, *, yes: Flag = False, json: Flag = False) -> None:
        """Move all records of an account into another of the same source, and erase the first.

        If both accounts have a record, the record of the second account is kept. Apps with access
        to only the first account can no longer read these records.

        Parameters
        ----------
        connection
            The account to erase, by id or name.
        into
            The account to keep.
        yes
            Do not ask for confirmation.
        json
            Print JSON.
        """
        with opened() as stores:
            one, other = _two(stores, connection, into, MERGES, yes=yes)
            count, erased = merge_accounts(_ports(stores), one, other)
            backups = kept_backups(stores)
        if json:
            moved = {"connection_id": other.connection_id, "moved_count": count}
            erased_account = {"erased_connection_id": one.connection_id, "deleted_count": erased}
            print_json(
                {"object": "merge", **moved, **erased_account, "kept_backups": list(backups)}
            )
            return
        words().print(
            plain(
                f"Moved {counted(count, 'record')} into {_called(other)}; {_called(one)} is erased."
            )
        )
        _tell_kept(backups)


def _add_split(app: cyclopts.App, opened: OpenStores) -> None:
    @app.command
    def split(
        connection: str,
        *,
        other: Annotated[str, Parameter(name="--from")],
        yes: Flag = False,
        json: Flag = False,
    ) -> None:
        """Split an account into which two were imported by mistake.

        First import the file that belongs to another account into an account of its own: pdpp
        import FILE --connection NAME. Then split removes the records of that file from the first.

        Parameters
        ----------
        connection
            The account that has too many records, by id or name.
        other
            The new account. Its records are removed from the first account and stay in the new one.
        yes
            Do not ask for confirmation.
        json
            Print JSON.
        """
        with opened() as stores:
            one, second = _two(stores, connection, other, PARTS, yes=yes)
            moved_count = part_accounts(_ports(stores), one, second)
        if json:
            ids = {"connection_id": one.connection_id, "other_connection_id": second.connection_id}
            print_json({"object": "split", **ids, "deleted_count": moved_count})
            return
        words().print(plain(f"Removed {counted(moved_count, 'record')} from {_called(one)}."))


def _ports(stores: Stores) -> ImportPorts:
    return ImportPorts(stores.records, stores.clock, stores.random_bytes)


def _called(account: Connection) -> str:
    return account.display_name or account.connection_id


def _agree(question: str, *, yes: bool) -> None:
    """Raises: CommandError, unless the owner says yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(
            "usage",
            "Not running in a terminal, so I cannot ask.",
            "Add --yes to confirm without a question.",
        )
    words().print(f"{plain(question).plain} [y/N]", markup=False)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CommandError("approval_denied", "Nothing was changed.")


def _tell_kept(backups: Sequence[str]) -> None:
    if backups:
        words().print(
            plain(f"These backups still contain the erased records: {', '.join(backups)}.")
        )


def _add_erase(app: cyclopts.App, opened: OpenStores) -> None:
    @app.command
    def erase(connection: str, *, yes: Flag = False, json: Flag = False) -> None:
        """Erase an account with all its records, files and history, for good.

        Parameters
        ----------
        connection
            The account's id or name.
        yes
            Do not ask for confirmation.
        json
            Print JSON.
        """
        with opened() as stores:
            account = _named(stores, connection)
            question = f"This erases all records of {_called(account)} for good. Continue?"
            _agree(question, yes=yes)
            now_ns = stores.clock()
            count = stores.records.erase_connection(account.connection_id, now_ns)
            backups = kept_backups(stores)
        if json:
            erased = {"connection_id": account.connection_id, "deleted_count": count}
            at = {"erased_at": instant_text(now_ns), "kept_backups": list(backups)}
            print_json({"object": "deletion", **erased, **at})
            return
        words().print(f"Erased {counted(count, 'record')} of {account.connection_id}.")
        _tell_kept(backups)


def _named(stores: Stores, text: str) -> Connection:
    with stores.records.snapshot() as snapshot:
        return named_connection(snapshot.connections(), text)


def _line(account: Connection, count: int) -> tuple[object, ...]:
    name = account.display_name or "–"
    since = day(account.created_at_ns)
    return (account.connection_id, name, account.connector_key, account.status, f"{count:,}", since)


def _json(account: Connection, count: int) -> dict[str, object]:
    return {
        "connection_id": account.connection_id,
        "display_name": account.display_name,
        "connector_key": account.connector_key,
        "status": account.status,
        "record_count": count,
        "created_at": instant_text(account.created_at_ns),
    }


connection = connection_app(open_kept_stores)
