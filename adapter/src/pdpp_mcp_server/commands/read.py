"""Records at the terminal, as any client reads them: `pdpp read`.

Rule: what may be read is decided by `/v1`, for a grant as for the owner; nothing is decided here.
Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated

import cyclopts
import msgspec
from anyio.from_thread import start_blocking_portal
from cyclopts import Parameter
from cyclopts.validators import Number

from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_mcp_server.commands.connect import CommandContext
from pdpp_mcp_server.commands.exits import package_version
from pdpp_mcp_server.commands.read_options import (
    GroupFlags,
    Mode,
    ReadFlags,
    RowFlags,
    SearchTerms,
    Sort,
    given,
)
from pdpp_mcp_server.commands.record_rows import columns_of, group_row, text_lines
from pdpp_mcp_server.commands.tables import console, words
from pdpp_mcp_server.commands.terminal_reading import TerminalReading, records_path
from pdpp_mcp_server.rs_client.credentials import normalize_provider_url
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.json_values import as_object, objects_in
from pdpp_mcp_server.rs_client.refresh import CachedBearer
from pdpp_mcp_server.rs_client.senders import Network
from pdpp_mcp_server.server_metadata import ServerMetadata

TOOL = "pdpp_read"


def read_app(around: CommandContext) -> cyclopts.App:
    """The command group `pdpp read`."""
    app = cyclopts.App(name="read", help="Read the records that you were granted, as an app would.")
    of = ReadCommands(lambda flags: granted_reading(around, flags))
    for command in (of.schema, of.query, of.search, of.aggregate, of.fetch, of.window):
        app.command(command)
    return app


OpenReading = Callable[["ReadFlags"], AbstractContextManager["TerminalReading"]]


class ReadCommands(msgspec.Struct, frozen=True):
    """The reads as commands; `opened` gives what they read over."""

    opened: OpenReading

    def schema(self, stream: str | None = None, *, flags: ReadFlags | None = None) -> None:
        """List the streams that were granted, or the fields of one.

        Parameters
        ----------
        stream
            A stream, to see its fields and how each can be used.
        """
        with self.opened(flags or ReadFlags()) as reading:
            reading.schema(stream)

    def query(
        self,
        stream: str,
        *,
        fields: str | None = None,
        sort: str | None = None,
        rows: RowFlags | None = None,
        flags: ReadFlags | None = None,
    ) -> None:
        """List records of a stream, newest first.

        Parameters
        ----------
        stream
            A stream of `pdpp read schema`.
        fields
            Only these fields, separated by commas.
        sort
            A field, ascending; `-field` for descending.
        """
        with self.opened(flags or ReadFlags()) as reading:
            reading.query(stream, fields, sort, rows or RowFlags())

    def search(
        self,
        words: str,
        *,
        stream: list[str] | None = None,
        sort: Sort | None = None,
        mode: Mode | None = None,
        exact: Annotated[bool, Parameter(negative="")] = False,
        rows: RowFlags | None = None,
        flags: ReadFlags | None = None,
    ) -> None:
        """Find records that contain words.

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
        with self.opened(flags or ReadFlags()) as reading:
            reading.search(terms, rows or RowFlags())

    def aggregate(
        self,
        stream: str,
        metric: str = "count",
        field: str | None = None,
        *,
        groups: GroupFlags | None = None,
        flags: ReadFlags | None = None,
    ) -> None:
        """Count records, or add up one of their fields.

        Parameters
        ----------
        stream
            A stream of `pdpp read schema`.
        metric
            count, sum, min, max, avg, median, count_distinct, or a percentile such as p90.
        field
            The field to add up; not needed for count.
        """
        which = groups or GroupFlags()
        asked = [("metric", metric), *given(field=field), *which.asked()]
        with self.opened(flags or ReadFlags()) as reading:
            asked += reading.zone(which.time_zone)
            body = reading.ask(("v1", "streams", stream, "aggregate"), asked)
        rows = [group_row(each) for each in objects_in(body.get("groups"))]
        if "groups" not in body:
            rows = [{metric: body.get("value")}]
        reading.print_rows(body, rows, columns_of(rows))
        if body.get("other_count"):
            words().print(f"Records in groups that are not shown: {body['other_count']}.")

    def fetch(
        self,
        stream: str,
        key: str,
        *,
        fields: str | None = None,
        expand: list[str] | None = None,
        flags: ReadFlags | None = None,
    ) -> None:
        """Show one record.

        Parameters
        ----------
        stream
            The record's stream.
        key
            The record's id.
        fields
            Only these fields, separated by commas.
        expand
            Also show related records, by the name of the relation. Repeatable.
        """
        with self.opened(flags or ReadFlags()) as reading:
            reading.fetch(stream, key, fields, expand or ())

    def window(
        self,
        stream: str,
        key: str,
        field: str,
        *,
        at: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
        around_words: Annotated[str | None, Parameter(name="--around")] = None,
        chars: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
        flags: ReadFlags | None = None,
    ) -> None:
        """Read a part of a long text.

        Parameters
        ----------
        stream
            The record's stream.
        key
            The record's id.
        field
            The field.
        at
            Begin at the character with this number.
        around_words
            Read the part around these words.
        chars
            How many characters to read, at most 16,384. Default: 4,096.
        """
        asked = given(
            field=field,
            offset_chars=None if at is None else str(at),
            q=around_words,
            limit_chars=None if chars is None else str(chars),
        )
        with self.opened(flags or ReadFlags()) as reading:
            body = reading.ask(records_path(stream, key, "field-window"), asked)
        if reading.flags.json or reading.flags.jsonl:
            reading.print_rows(body, [body], ())
            return
        part = as_object(body.get("window"))
        console().print(text_lines(str(part.get("text"))), soft_wrap=True)
        onward = part.get("next_offset_chars")
        if onward is not None:
            total = part.get("total_chars")
            total = f"{total:,}" if isinstance(total, int) else total
            words().print(f"Continue with --at {onward} (of {total} characters).")


@contextmanager
def granted_reading(
    around: CommandContext, how: ReadFlags
) -> Generator[TerminalReading, None, None]:
    """Reads of one server with its cached credential.  Raises: CredentialError."""
    cache = around.cache(how.cache_root)
    named = how.provider_url
    origin = normalize_provider_url(named) if named else cache.only_provider()
    credential = around.credential(how.cache_root, origin)
    credential.current()
    bearer = CachedBearer(credential, around.keys())
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(around.http()) as http,
    ):
        port = RsClient(Network(http), origin, bearer, package_version()).port(TOOL)
        takes = portal.call(ServerMetadata(port).capabilities)
        yield TerminalReading(port, portal, how, ReadCapability.TIME_ZONE in takes)


read = read_app(CommandContext())
