"""The owner's records at the terminal: `pdpp records`, `pdpp search`, `pdpp show`.

Rule: what may be read is decided by `/v1`, for the owner as for a grant; nothing is decided here.
Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any, Self

import msgspec
from anyio.from_thread import start_blocking_portal
from cyclopts import Parameter
from msgspec.structs import replace

from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.hits_shown import HitPlace, print_hits
from pdpp_mcp_server.commands.read import TOOL
from pdpp_mcp_server.commands.read_options import Mode, OutputFlags, RowFlags, SearchTerms, Sort
from pdpp_mcp_server.commands.spelled_commands import spelled
from pdpp_mcp_server.commands.tables import plain, tell_nothing_kept
from pdpp_mcp_server.commands.tables import words as words_console
from pdpp_mcp_server.commands.terminal_reading import TerminalReading, records_path
from pdpp_mcp_server.rs_client.json_values import Json, as_text
from personal_server.cli.kept_data import settings_to_read
from personal_server.cli.own_accounts import (
    Account,
    StreamFigures,
    account_called,
    accounts_of,
    figures_of,
    holders_of,
    named,
    stream_called,
)
from personal_server.cli.server_settings import settings_or_exit

DAY_CHARS = len("2026-11-27")


class OwnCommands(msgspec.Struct, frozen=True):
    """The owner's commands over every record of this machine; no server need run."""

    opened: Callable[[OutputFlags], AbstractContextManager[TerminalReading]]

    def records(
        self,
        stream: str | None = None,
        *,
        fields: str | None = None,
        sort: str | None = None,
        rows: RowFlags | None = None,
        flags: OutputFlags | None = None,
    ) -> None:
        """List what your accounts contain, or the records of one kind (stream), newest first.

        Parameters
        ----------
        stream
            A stream such as `messages`, an account such as `E-mail`, or both: `E-mail/messages`.
        fields
            Only these fields, separated by commas.
        sort
            A field, ascending; `-field` for descending.
        """
        with self.opened(flags or OutputFlags()) as reading:
            where = _Meant.of(reading, stream)
            if where.stream is not None:
                where.chosen().query(where.stream, fields, sort, rows or RowFlags())
            elif not where.list_streams():
                tell_nothing_kept(settings_or_exit().data_dir)

    def search(
        self,
        *words: str,
        stream: list[str] | None = None,
        sort: Sort | None = None,
        mode: Mode | None = None,
        exact: Annotated[bool, Parameter(negative="")] = False,
        rows: RowFlags | None = None,
        flags: OutputFlags | None = None,
    ) -> None:
        """Find your records that contain certain words.

        Parameters
        ----------
        words
            What to find: words, "a phrase", a prefix*, -without, one OR other, field:value.
        stream
            Search only this stream: `messages`, or with its account `E-mail/messages`. Repeatable.
        sort
            The order of the results. Default: best match first.
        mode
            Search by words, by meaning, or both.
        exact
            Only records with all words, exactly as written.
        """
        if not words:
            raise CommandError("usage", "WORDS is missing.", "See `pdpp search --help`.")
        with self.opened(flags or OutputFlags()) as reading:
            where, streams = _searched(reading, stream or ())
            terms = SearchTerms(" ".join(words), streams, sort, mode, exact=exact)
            if not where.search(terms, rows or RowFlags(), _show_openable):
                tell_nothing_kept(settings_or_exit().data_dir)

    def show(
        self,
        stream: str,
        key: str | None = None,
        *,
        fields: str | None = None,
        expand: list[str] | None = None,
        flags: OutputFlags | None = None,
    ) -> None:
        """Show one of your records in full.

        Parameters
        ----------
        stream
            The record's stream: `messages`, or with its account `E-mail/messages`. Or its id
            alone, where one record has that id.
        key
            The record's id, as `pdpp records` and `pdpp search` print it.
        fields
            Only these fields, separated by commas.
        expand
            Also show related records, by the name of the relation. Repeatable.
        """
        with self.opened(flags or OutputFlags()) as reading:
            if key is None:
                holder, key = _anywhere(reading, stream), stream
                chosen, stream = _only(reading, holder.account), holder.stream
            else:
                where = _Meant.of(reading, stream, is_stream=True)
                chosen, stream = where.holding(key), where.stream or stream
            chosen.fetch(stream, key, fields, expand or ())


class _Meant(msgspec.Struct, frozen=True):
    """What the words of a command mean.

    Shapes: `reading` asks every account; without a `stream` all are meant.
    """

    reading: TerminalReading
    stream: str | None
    account: Account | None

    @classmethod
    def of(cls, reading: TerminalReading, name: str | None, *, is_stream: bool = False) -> Self:
        """Raises: CommandError (`unknown_account`, `ambiguous_account`)."""
        called, stream = reading.flags.connection, name
        reading = replace(reading, flags=dataclasses.replace(reading.flags, connection=None))
        if name is not None and "/" in name:
            called, _, stream = name.rpartition("/")
        if called is None and name is not None and not is_stream:
            called, stream = _alone(reading, name)
        account = None if called is None else account_called(accounts_of(reading), called)
        if stream:
            stream = stream_called(reading, account, stream)
        return cls(reading, stream or None, account)

    def all_meant(self) -> TerminalReading:
        """Of the account that is named, else of all."""
        return self.reading if self.account is None else _only(self.reading, self.account)

    def list_streams(self) -> bool:
        """Print each account's streams with their figures; whether there is any record."""
        flags = self.reading.flags
        if flags.json:
            return bool(self.all_meant().schema(None))
        accounts = [self.account] if self.account else accounts_of(self.reading)
        rows = [_row(each) for account in accounts for each in figures_of(self.reading, account)]
        columns = ("account", "stream", "records", "from", "to", "on pages")
        self.reading.print_rows({}, rows, columns)
        if rows and not flags.jsonl:
            example = shlex.quote(f"{rows[0]['account']}/{rows[0]['stream']}")
            words_console().print(plain(spelled(f"List some: pdpp records {example}")))
        return bool(rows)

    def chosen(self) -> TerminalReading:
        """Of the only account with this stream.

        Raises: CommandError (`ambiguous_account`, `not_found`).
        """
        holders = self._holders()
        choices = (f"pdpp records {each.named}" for each in holders)
        return self._only_one(holders, "Several accounts have such records.", choices)

    def holding(self, key: str) -> TerminalReading:
        """Of the only account with this record.  Raises: as `chosen`."""
        holders = self._holders()
        if len(holders) > 1:
            path = records_path(self.stream or "", key)
            holders = [each for each in holders if _only(self.reading, each.account).has(path)]
        choices = (f"pdpp show {each.named} {shlex.quote(key)}" for each in holders)
        return self._only_one(holders, "Several accounts have a record of this id.", choices)

    def _only_one(
        self, holders: Sequence[StreamFigures], several: str, choices: Iterable[str]
    ) -> TerminalReading:
        if self.account is not None:
            return self.all_meant()
        if len(holders) == 1:
            return _only(self.reading, holders[0].account)
        if holders:
            raise CommandError("ambiguous_account", several, f"Choose one: {'; '.join(choices)}.")
        raise CommandError(
            "not_found", "No account has such records.", "List what there is: pdpp records"
        )

    def _holders(self) -> list[StreamFigures]:
        if self.account is not None or self.stream is None:
            return []
        return holders_of(self.reading, accounts_of(self.reading), self.stream)


def _searched(
    reading: TerminalReading, streams: Sequence[str]
) -> tuple[TerminalReading, tuple[str, ...]]:
    """Of which accounts, and in which streams.  Raises: as `_Meant.of`, CommandError (`usage`)."""
    meant = [_Meant.of(reading, each, is_stream=True) for each in streams]
    meant = meant or [_Meant.of(reading, None)]
    if len({each.account for each in meant}) > 1:
        raise CommandError(
            "usage", "The streams are of several accounts.", "Search one account at a time."
        )
    return meant[0].all_meant(), tuple(each.stream for each in meant if each.stream is not None)


def _show_openable(reading: TerminalReading, hits: Sequence[Json]) -> None:
    """Hits with their account and key as `pdpp show` takes them."""
    reading = replace(reading, flags=dataclasses.replace(reading.flags, connection=None))
    labels = Counter(account.label.casefold() for account in accounts_of(reading))

    def place(hit: Json) -> HitPlace:
        label = as_text(hit.get("display_name")) or ""
        is_alone = labels[label.casefold()] == 1
        account = label if is_alone else str(hit.get("connection_id"))
        key = shlex.quote(str(hit.get("id")))
        handle = f"{named(account, str(hit.get('stream')))} {key}"
        return HitPlace("" if is_alone else label, handle)

    print_hits(hits, place)
    if hits:
        open_one = f"Open one: pdpp show {place(hits[0]).handle}"
        words_console().print(plain(spelled(open_one)), soft_wrap=True)


def _anywhere(reading: TerminalReading, key: str) -> StreamFigures:
    """The only stream with a record of this id.

    Raises: CommandError (`ambiguous_account`, `not_found`, `unknown_account`).
    """
    meant = _Meant.of(reading, None)
    holders = [
        figures
        for account in ([meant.account] if meant.account else accounts_of(meant.reading))
        for figures in figures_of(meant.reading, account)
        if _only(meant.reading, account).has(records_path(figures.stream, key))
    ]
    if len(holders) == 1:
        return holders[0]
    if holders:
        several = "Several records have this id."
        choices = "; ".join(f"pdpp show {each.named} {shlex.quote(key)}" for each in holders)
        raise CommandError("ambiguous_account", several, f"Choose one: {choices}.")
    raise CommandError(
        "not_found", "No record has this id.", "`pdpp search WORDS` finds records and their ids."
    )


def _alone(reading: TerminalReading, name: str) -> tuple[str | None, str | None]:
    """(account, stream): a word names an account where no stream is called so."""
    accounts = accounts_of(reading)
    if not any(account.is_called(name) for account in accounts):
        return None, name
    return (None, name) if holders_of(reading, accounts, name) else (name, None)


def _only(reading: TerminalReading, account: Account) -> TerminalReading:
    return replace(reading, flags=dataclasses.replace(reading.flags, connection=account.id))


def _row(figures: StreamFigures) -> dict[str, Any]:
    return {
        "account": figures.account.label,
        "stream": figures.stream,
        "records": f"{figures.record_count:,}{'+' if figures.is_more else ''}",
        "from": (figures.first or "")[:DAY_CHARS] or None,
        "to": (figures.last or "")[:DAY_CHARS] or None,
        "on pages": figures.title,
    }


@contextmanager
def _own_reading(flags: OutputFlags) -> Generator[TerminalReading, None, None]:
    from personal_server.app.owner_reads import open_owner_reads  # noqa: PLC0415 (start-up time)

    with (
        settings_to_read(says_so=False) as settings,
        open_owner_reads(settings) as client,
        start_blocking_portal() as portal,
    ):
        yield TerminalReading(client.port(TOOL), portal, flags, reads_days=True)


_own = OwnCommands(_own_reading)
records, search, show = _own.records, _own.search, _own.show
