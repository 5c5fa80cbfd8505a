"""Reads at the terminal over a port of `/v1`, and how their answers are printed.

Rule: what may be read is decided by `/v1`, for a grant as for the owner; nothing is decided here.
Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from http import HTTPStatus

import msgspec
from anyio.from_thread import BlockingPortal

from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.hits_shown import print_hits
from pdpp_mcp_server.commands.quiet_texts import quiet_json
from pdpp_mcp_server.commands.read_options import OutputFlags, RowFlags, SearchTerms, given, listed
from pdpp_mcp_server.commands.record_rows import (
    CAPABILITIES,
    asked_columns,
    cell_text,
    field_rows,
    fitting_columns,
    record_row,
    stream_rows,
    table_of_rows,
    text_lines,
    titles_of,
)
from pdpp_mcp_server.commands.tables import console, indented, plain, words
from pdpp_mcp_server.rs_client.answers import (
    error_of,
    has_more,
    meta_of,
    next_cursor_of,
    rows_of,
)
from pdpp_mcp_server.rs_client.credentials import TokenRejected, connect_hint
from pdpp_mcp_server.rs_client.discovery import unavailable
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_list,
    as_object,
    as_text,
    compact,
    objects_in,
)
from pdpp_mcp_server.rs_client.port import Path, RsFailure, RsPort, RsResponse

Asked = Sequence[tuple[str, str]]
MOST_ROWS = 100
WAIT_SECONDS = 60
EMPTY = {
    "not_granted": "These conditions exclude everything that the grant allows.",
    "not_collected_since": "No records were imported for this time.",
}
AROUND_RECORD = ("stream", "connection_id", "connector_key", "display_name", "emitted_at")


ShowRows = Callable[["TerminalReading", Sequence[Json]], None]
"""How the rows of all pages are shown to a person."""


class TerminalReading(msgspec.Struct, frozen=True):
    """Reads over a port, and how they are printed.

    Shapes: with `reads_days` the server knows the owner's zone (`time_zone=owner`), so that days
        and clock times are the owner's; `sleep` takes seconds.
    """

    port: RsPort
    portal: BlockingPortal
    flags: OutputFlags
    reads_days: bool
    sleep: Callable[[float], None] = time.sleep

    def ask(self, path: Path, query: Asked) -> Json:
        """One answer of 200.  Raises: CommandError with the server's own words, CredentialError."""
        reply = self._answer(path, query)
        if not reply.ok:
            raise _refusal(reply)
        return as_object(reply.body)

    def has(self, path: Path) -> bool:
        """Whether there is something.  Raises: as `ask`, but for what is not there."""
        reply = self._answer(path, ())
        if not reply.ok and reply.status != HTTPStatus.NOT_FOUND:
            raise _refusal(reply)
        return reply.ok

    def _answer(self, path: Path, query: Asked) -> RsResponse:
        chosen = given(connection_id=self.flags.connection)
        while True:
            try:
                reply = self.portal.call(self.port.get, path, (*query, *chosen))
            except RsFailure:
                raise unavailable("The server gave an unexpected answer.") from None
            wait = reply.retry_after_seconds
            is_paced = reply.status == HTTPStatus.TOO_MANY_REQUESTS
            if not is_paced or wait is None or wait > WAIT_SECONDS:
                return reply
            self.sleep(wait)  # many pages one after the other: the rate goes on

    def zone(self, named: str | None = None) -> Asked:
        """Whose days are meant: of the zone that is named, else the owner's if they are known."""
        return given(time_zone=named or ("owner" if self.reads_days else None))

    def pages(self, path: Path, query: Asked, most: int | None) -> Iterator[Json]:
        """Page after page, together `most` rows at most."""
        cursor: str | None = None
        while True:
            size = MOST_ROWS if most is None else min(MOST_ROWS, most)
            body = self.ask(path, [*query, ("limit", str(size)), *given(cursor=cursor)])
            yield body
            most = None if most is None else most - len(rows_of(body))
            cursor = next_cursor_of(body)
            if cursor is None or most == 0:
                return

    def print_rows(
        self, body: Json, rows: Sequence[Json], columns: Sequence[str], width: int | None = None
    ) -> None:
        """The answer as it came, or its rows for programs or people, in lines of such a width."""
        if self.flags.json:
            print_json(body)
        elif self.flags.jsonl:
            _print_lines(rows)
        elif rows:
            out = console()
            out.width = width or out.width
            cells = [[cell_text(row.get(name)) for name in columns] for row in rows]
            out.print(table_of_rows(columns, cells, out.width))

    def schema(self, stream: str | None) -> int:
        """Print the streams, or the fields of one; how many streams there are."""
        body = self.ask(("v1", "schema"), given(view="compact", stream=stream))
        rows = [row for each in objects_in(body.get("connectors")) for row in stream_rows(each)]
        if stream is None:
            self.print_rows(body, rows, ("stream", "source", "records", "from", "to", "fields"))
        else:
            fields = [field for each in rows for field in field_rows(each)]
            self.print_rows(body, fields, ("field", "source", CAPABILITIES))
        return len(rows)

    def titles(self, stream: str) -> list[str]:
        """The fields that are titles of a stream; none where a server does not tell them."""
        reply = self._answer(("v1", "schema"), given(view="compact", stream=stream))
        return titles_of(as_object(reply.body)) if reply.ok else []

    def query(self, stream: str, fields: str | None, sort: str | None, which: RowFlags) -> None:
        """Print records of a stream."""
        asked = [*which.asked(), *listed("fields", fields), *given(sort=sort), *self.zone()]
        names = [value for _, value in listed("fields", fields)]
        show = partial(_show_asked, names) if names else partial(_show_records, stream)
        self.print_list(records_path(stream), asked, which, show)

    def search(self, terms: SearchTerms, which: RowFlags, show: ShowRows | None = None) -> bool:
        """Print what a search finds; whether there was anything to search."""
        asked = [*terms.asked(), *which.asked(), *self.zone()]
        body = self.print_list(("v1", "search"), asked, which, show or _show_hits)
        recall = as_object(meta_of(body).get("recall"))
        return recall.get("sources_searched_count") != 0

    def fetch(self, stream: str, key: str, fields: str | None, expand: Iterable[str]) -> None:
        """Print a record, each of its values whole."""
        asked = [*listed("fields", fields), *(("expand", each) for each in expand)]
        body = self.ask(records_path(stream, key), asked)
        if self.flags.json or self.flags.jsonl:
            self.print_rows(body, [body], ())
            return
        around_it = [(name, body[name]) for name in AROUND_RECORD if body.get(name) is not None]
        facts = [*as_object(body.get("data")).items(), *as_object(body.get("expanded")).items()]
        for name, value in [*facts, *around_it]:
            console().print(plain(name), style="bold")
            text = value if isinstance(value, str) else compact(value)
            indented(text_lines(text), 2, console())

    def print_list(self, path: Path, query: Asked, which: RowFlags, show: ShowRows) -> Json:
        """All pages: lines of JSON as they come, the rest together by `show`; the first one."""
        rows: list[Json] = []
        first: Json = {}
        body: Json = {}
        for body in self.pages(path, query, None if which.all else which.limit):
            first = first or body
            if self.flags.jsonl:
                _print_lines(rows_of(body))
            else:
                rows += rows_of(body)
        if self.flags.json:
            print_json({**body, "data": rows})
        elif not self.flags.jsonl:
            show(self, rows)
            _print_remarks(first, found=bool(rows))
        if has_more(body):
            words().print("There are more records. Use --limit N or --all.")
        return first


def _show_records(stream: str, reading: TerminalReading, rows: Sequence[Json]) -> None:
    titles = reading.titles(stream) if rows else []
    shown = [record_row(each, titles) for each in rows]
    columns, left = fitting_columns(shown, console().width)
    reading.print_rows({}, shown, columns)
    if left:
        words().print(
            f"Columns not shown: {', '.join(left)}. Choose columns with --fields, or use --json."
        )


def _show_asked(asked: Sequence[str], reading: TerminalReading, rows: Sequence[Json]) -> None:
    shown = [record_row(each) for each in rows]
    columns, width = asked_columns(shown, asked, console().width)
    reading.print_rows({}, shown, columns, width)


def _show_hits(_: TerminalReading, rows: Sequence[Json]) -> None:
    print_hits(rows)


def _print_remarks(body: Json, *, found: bool) -> None:
    """What the server says of its answer: why it is empty, what was near, what it warns of."""
    meta = meta_of(body)
    empty = as_text(as_object(meta.get("empty")).get("reason"))
    relaxed = as_object(meta.get("relaxed"))
    if pending := as_object(meta.get("recall")).get("pending_index_count"):
        words().print(
            f"Records that the search index does not know yet: {pending}. "
            "`pdpp serve` makes the index; search again then."
        )
    if not found and (empty in EMPTY or not relaxed):
        words().print(EMPTY.get(empty or "", "No record matches."))
    if relaxed:
        count, least = relaxed.get("exact_count"), relaxed.get("least")
        some = f"; showing records with {least} of the words" if least else ""
        asked = relaxed.get("words")
        phrase = "this word" if asked == 1 else f"all {asked} words"
        sentence = f"Records with {phrase}: {count}" if count else f"No record contains {phrase}"
        words().print(f"{sentence}{some}.")
    if near := objects_in(meta.get("near")):
        values = [f"{each.get('value')} ({each.get('count')})" for each in near]
        words().print(plain(f"Similar values: {', '.join(values)}."))
    for warning in objects_in(meta.get("warnings")):
        words().print(plain(warning.get("message")))


def _print_lines(rows: Iterable[Json]) -> None:
    for row in rows:
        sys.stdout.write(quiet_json(row) + "\n")


def records_path(stream: str, *rest: str) -> Path:
    """Where the records of a stream are read."""
    return ("v1", "streams", stream, "records", *rest)


def _refusal(reply: RsResponse) -> Exception:
    """What the server said, as this command says it."""
    if reply.status == 401:
        return TokenRejected(
            "The server no longer accepts the saved credential.", connect_hint("URL")
        )
    error = error_of(reply)
    code, message = str(error["code"]), str(error["message"])
    if code == "ambiguous_connection":
        message = "Several accounts have records of this kind."  # the wire's words name a parameter
    return CommandError(code, message, _next_step(error), reply.status)


def _next_step(error: Json) -> str:
    """What the server offers instead."""
    for name, words_before in (("guidance", ""), ("suggestions", "Did you mean ")):
        if text := as_text(error.get(name)):
            return f"{words_before}{text}"
        if found := [str(each) for each in as_list(error.get(name))]:
            return f"{words_before}{', '.join(found)}?"
    if allowed := [str(each) for each in as_list(error.get("allowed_values"))]:
        return f"Choose one of {', '.join(allowed)}."
    named = objects_in(error.get("available_connections"))
    if named:
        shown = [f"{one.get('connection_id')} ({one.get('display_name') or '–'})" for one in named]
        return f"Choose an account with --connection: {', '.join(shown)}."
    return ""
