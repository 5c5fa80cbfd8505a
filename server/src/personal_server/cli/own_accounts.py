"""The owner's accounts as a terminal names them: by label, by source or by id, before a stream.

`E-mail`, `mail`, `cin_57910073275d17fface501fc`, each alone or as in `E-mail/messages`.
Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import msgspec

from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.terminal_reading import TerminalReading
from pdpp_mcp_server.rs_client.json_values import Json, as_object, as_text, objects_in

SCHEMA = ("v1", "schema")
COMPACT = ("view", "compact")


class Account(msgspec.Struct, frozen=True):
    """Shapes: `label` is what pages call it, `source` the source's short name."""

    id: str
    label: str
    source: str

    def is_called(self, name: str) -> bool:
        """Whether a person may mean this account by the name."""
        return name == self.id or name.casefold() in (self.label.casefold(), self.source.casefold())


class StreamFigures(msgspec.Struct, frozen=True):
    """A stream of one account.

    Shapes: `title` is its name on pages; `first` and `last` are stored times.
    """

    account: Account
    stream: str
    title: str
    record_count: int
    is_more: bool
    first: str | None
    last: str | None

    @property
    def named(self) -> str:
        """As a command takes it."""
        return named(self.account.label, self.stream)


def named(account: str, stream: str) -> str:
    """A stream of an account as a command takes it."""
    return shlex.quote(f"{account}/{stream}")


def accounts_of(reading: TerminalReading) -> list[Account]:
    """Every account, by label."""
    found = [
        _account(connector, connection)
        for connector in objects_in(reading.ask(SCHEMA, [COMPACT]).get("connectors"))
        for connection in objects_in(connector.get("granted_connections"))
    ]
    return sorted(found, key=lambda account: account.label.casefold())


def account_called(accounts: Sequence[Account], name: str) -> Account:
    """The one that is meant.  Raises: CommandError (`unknown_account`, `ambiguous_account`)."""
    exact = [account for account in accounts if name in (account.id, account.label)]
    meant = exact or [account for account in accounts if account.is_called(name)]
    if len(meant) == 1:
        return meant[0]
    choices = ", ".join(
        f"{shlex.quote(each.label)} ({each.id})" if meant else shlex.quote(each.label)
        for each in meant or accounts
    )
    if meant:
        raise CommandError(
            "ambiguous_account",
            "Several accounts have this name.",
            f"Give the id of one of them: {choices}.",
        )
    raise CommandError(
        "unknown_account", "There is no account of this name.", f"Your accounts: {choices}."
    )


def stream_called(reading: TerminalReading, account: Account | None, name: str) -> str:
    """The stream of this name, or of this name on pages, whatever the case.

    Raises: CommandError (`not_found`).
    """
    titles = {
        as_text(stream.get("name")) or "": as_text(stream.get("display_name")) or ""
        for connector in objects_in(reading.ask(SCHEMA, [COMPACT]).get("connectors"))
        if account is None or connector.get("connector_key") == account.source
        for stream in objects_in(connector.get("streams"))
    }
    if name in titles:
        return name
    wanted = name.casefold()
    meant = [
        each for each, title in titles.items() if wanted in (each.casefold(), title.casefold())
    ]
    if len(meant) == 1:
        return meant[0]
    where = "No account has" if account is None else "This account has no"
    what = "pdpp records" if account is None else f"pdpp records {shlex.quote(account.label)}"
    raise CommandError("not_found", f"{where} such records.", f"List what there is: {what}")


def figures_of(reading: TerminalReading, account: Account) -> list[StreamFigures]:
    """What an account holds, its largest stream first; streams without a record are left out."""
    asked = [COMPACT, ("connection_id", account.id)]
    found = [
        figures
        for connector in objects_in(reading.ask(SCHEMA, asked).get("connectors"))
        for stream in objects_in(connector.get("streams"))
        for figures in _figures(account, stream)
    ]
    return sorted(found, key=lambda figures: -figures.record_count)


def holders_of(
    reading: TerminalReading, accounts: Sequence[Account], stream: str
) -> list[StreamFigures]:
    """The accounts that hold records of this stream."""
    asked = [COMPACT, ("stream", stream)]
    answer = reading.ask(SCHEMA, asked)
    ids = {
        as_text(connection.get("connection_id"))
        for connector in objects_in(answer.get("connectors"))
        for connection in objects_in(connector.get("granted_connections"))
    }
    return [
        figures
        for account in accounts
        if account.id in ids
        for figures in figures_of(reading, account)
        if figures.stream == stream
    ]


def _account(connector: Json, connection: Json) -> Account:
    key = as_text(connector.get("connector_key")) or ""
    label = as_text(connection.get("display_name")) or key
    return Account(as_text(connection.get("connection_id")) or "", label, key)


def _figures(account: Account, stream: Json) -> Iterator[StreamFigures]:
    visible = as_object(stream.get("visible"))
    count = visible.get("records")
    if isinstance(count, int) and count:
        yield StreamFigures(
            account,
            as_text(stream.get("name")) or "",
            as_text(stream.get("display_name")) or "",
            count,
            bool(visible.get("more")),
            as_text(visible.get("earliest")),
            as_text(visible.get("latest")),
        )
