"""The owner's records at the terminal: `pdpp records`, `pdpp search`, `pdpp show`.

Rule: what may be read is decided by `/v1`, for the owner as for a grant; nothing is decided here.
Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated

from anyio.from_thread import start_blocking_portal
from cyclopts import Parameter

from pdpp_mcp_server.commands.read import TOOL
from pdpp_mcp_server.commands.read_options import Mode, OutputFlags, RowFlags, SearchTerms, Sort
from pdpp_mcp_server.commands.tables import tell_nothing_kept
from pdpp_mcp_server.commands.terminal_reading import TerminalReading
from personal_server.cli.server_settings import settings_or_exit


@dataclass(frozen=True, slots=True)
class OwnCommands:
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
        """List your kinds of records (streams), or the records of one, newest first.

        Parameters
        ----------
        stream
            A stream, such as `messages`.
        fields
            Only these fields, separated by commas.
        sort
            A field, ascending; `-field` for descending.
        """
        with self.opened(flags or OutputFlags()) as reading:
            if stream is not None:
                reading.query(stream, fields, sort, rows or RowFlags())
            elif not reading.schema(None):
                tell_nothing_kept(settings_or_exit().data_dir)

    def search(
        self,
        words: str,
        *,
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
            Search only this stream. Repeatable.
        sort
            The order of the results. Default: best match first.
        mode
            Search by words, by meaning, or both.
        exact
            Only records with all words, exactly as written.
        """
        terms = SearchTerms(words, tuple(stream or ()), sort, mode, exact=exact)
        with self.opened(flags or OutputFlags()) as reading:
            if not reading.search(terms, rows or RowFlags()):
                tell_nothing_kept(settings_or_exit().data_dir)

    def show(
        self,
        stream: str,
        key: str,
        *,
        fields: str | None = None,
        expand: list[str] | None = None,
        flags: OutputFlags | None = None,
    ) -> None:
        """Show one of your records in full.

        Parameters
        ----------
        stream
            The record's stream.
        key
            The record's id, as `pdpp records` and `pdpp search` print it.
        fields
            Only these fields, separated by commas.
        expand
            Also show related records, by the name of the relation. Repeatable.
        """
        with self.opened(flags or OutputFlags()) as reading:
            reading.fetch(stream, key, fields, expand or ())


@contextmanager
def _own_reading(flags: OutputFlags) -> Generator[TerminalReading, None, None]:
    from personal_server.app.owner_reads import open_owner_reads  # noqa: PLC0415 (start-up time)

    with open_owner_reads(settings_or_exit()) as client, start_blocking_portal() as portal:
        yield TerminalReading(client.port(TOOL), portal, flags)


_own = OwnCommands(_own_reading)
records, search, show = _own.records, _own.search, _own.show
