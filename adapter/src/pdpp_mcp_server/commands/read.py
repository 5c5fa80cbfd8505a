"""Records at the terminal, as any client reads them: `pdpp read`.

Rule: what may be read is decided by `/v1`, for a grant as for the owner; nothing is decided here.
Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

import cyclopts
from anyio.from_thread import BlockingPortal, start_blocking_portal
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.table import Table
from rich.text import Text

from pdpp_kernel.operators import Operator
from pdpp_mcp_server.commands.connect import CacheRoot, CommandContext
from pdpp_mcp_server.commands.exits import (
    package_version,
    print_json,
)
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, indented, plain, words
from pdpp_mcp_server.rs_client.answers import (
    error_of,
    has_more,
    meta_of,
    next_cursor_of,
    rows_of,
)
from pdpp_mcp_server.rs_client.credentials import (
    TokenRejected,
    connect_hint,
    normalize_provider_url,
)
from pdpp_mcp_server.rs_client.discovery import unavailable
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_list,
    as_object,
    as_text,
    compact,
    objects_in,
)
from pdpp_mcp_server.rs_client.port import Path, RsFailure, RsPort, RsResponse
from pdpp_mcp_server.rs_client.refresh import CachedBearer

Sort = Literal["relevance", "newest", "oldest"]
Mode = Literal["auto", "words", "meaning", "hybrid"]
Asked = Sequence[tuple[str, str]]
TOOL = "pdpp_read"
ROWS, MOST_ROWS = 25, 100
WAIT_SECONDS = 60
CELL_CHARS = 12  # the least that a column is good for
CAPABILITIES = "operators"
NOT_GRANTED = "g=false"
WHOLE = frozenset({"id", "stream", "at", "from", "to"})
SIGNS: Mapping[str, str] = {
    each.sign: "" if each is Operator.EQ else each.value for each in Operator if each.sign
}
EMPTY = {
    "not_granted": "These conditions exclude everything that the grant allows.",
    "not_collected_since": "No records were imported for this time.",
}
CONDITION = re.compile(r"([^=<>!~\[\]]+)(?:\[(\w+)\])?(!=|>=|<=|=|>|<|~)(.*)", re.DOTALL)
AROUND_RECORD = ("stream", "connection_id", "connector_key", "display_name", "emitted_at")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFlags:
    """Of which connection, and how it is printed.

    Parameters
    ----------
    connection
        Only this account, by connection id.
    json
        Print the whole answer as JSON.
    jsonl
        Print each row as a line of JSON.
    """

    connection: str | None = None
    json: Annotated[bool, Parameter(negative="")] = False
    jsonl: Annotated[bool, Parameter(negative="")] = False


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFlags(OutputFlags):
    """Which server is asked, of which connection, and how it is printed.

    Parameters
    ----------
    provider_url
        Address of the server. Default: the only one that is connected here.
    cache_root
        The folder with the saved credentials.
    connection
        Only this account, by connection id.
    json
        Print the whole answer as JSON.
    jsonl
        Print each row as a line of JSON.
    """

    provider_url: str | None = None
    cache_root: CacheRoot = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RowFlags:
    """Which rows.

    Parameters
    ----------
    where
        A condition on a field: `label=INBOX`, `amount>=10`, `subject~invoice`, `label[in]=a`.
        Repeatable; a record must meet all of them.
    since
        Only records from this time on: `2026-08-01`, or a time with offset.
    until
        Only records before this time.
    limit
        How many records to show. Default: 25.
    all
        Show all records.
    """

    where: list[str] | None = None
    since: str | None = None
    until: str | None = None
    limit: Annotated[int, Parameter(validator=Number(gte=1))] = ROWS
    all: Annotated[bool, Parameter(negative="")] = False

    def asked(self) -> list[tuple[str, str]]:
        """As parameters of a request.  Raises: CommandError (`usage`)."""
        times = [("since", self.since), ("until", self.until)]
        return [*_conditions(self.where or ()), *((n, v) for n, v in times if v is not None)]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFlags:
    """Which records, in which groups.

    Parameters
    ----------
    where
        A condition on a field, as in `pdpp read query`. Repeatable.
    by
        Make a group for each value of this field.
    then_by
        Within each group, make a group for each value of this field.
    by_time
        Make a group for each month of this time field.
    granularity
        With a time field: the unit of its groups (minute, hour, day, week, month, quarter, year,
        hour_of_day or weekday).
    time_zone
        The time zone of these groups, such as Europe/Rome. Default: UTC.
    limit
        How many groups to show.
    """

    where: list[str] | None = None
    by: str | None = None
    then_by: str | None = None
    by_time: str | None = None
    granularity: str = "month"
    time_zone: str | None = None
    limit: int | None = None

    def asked(self) -> list[tuple[str, str]]:
        """As parameters of a request.  Raises: CommandError (`usage`)."""
        return [
            *_conditions(self.where or ()),
            *_given(group_by=self.by, then_by=self.then_by, group_by_time=self.by_time),
            *_given(granularity=self.granularity if self.by_time else None),
            *_given(time_zone=self.time_zone, limit=str(self.limit) if self.limit else None),
        ]


def read_app(around: CommandContext) -> cyclopts.App:
    """The command group `pdpp read`."""
    app = cyclopts.App(name="read", help="Read the records that you were granted, as an app would.")
    of = ReadCommands(lambda flags: granted_reading(around, flags))
    for command in (of.schema, of.query, of.search, of.aggregate, of.fetch, of.window):
        app.command(command)
    return app


@dataclass(frozen=True, slots=True)
class SearchTerms:
    """What is looked for."""

    words: str
    streams: tuple[str, ...] = ()
    sort: str | None = None
    mode: str | None = None
    exact: bool = False

    def asked(self) -> list[tuple[str, str]]:
        """As parameters of a request."""
        streams = [("streams", each) for each in self.streams]
        exact = "true" if self.exact else None
        return [("q", self.words), *streams, *_given(sort=self.sort, mode=self.mode, exact=exact)]


OpenReading = Callable[["ReadFlags"], AbstractContextManager["TerminalReading"]]


@dataclass(frozen=True, slots=True)
class ReadCommands:
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
        asked = [("metric", metric), *_given(field=field), *(groups or GroupFlags()).asked()]
        with self.opened(flags or ReadFlags()) as reading:
            body = reading.ask(("v1", "streams", stream, "aggregate"), asked)
        rows = [_group_row(each) for each in objects_in(body.get("groups"))]
        if "groups" not in body:
            rows = [{metric: body.get("value")}]
        reading.print_rows(body, rows, _columns(rows))
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
        asked = _given(
            field=field,
            offset_chars=None if at is None else str(at),
            q=around_words,
            limit_chars=None if chars is None else str(chars),
        )
        with self.opened(flags or ReadFlags()) as reading:
            body = reading.ask(_records(stream, key, "field-window"), asked)
        if reading.flags.json or reading.flags.jsonl:
            reading.print_rows(body, [body], ())
            return
        part = as_object(body.get("window"))
        console().print(_lines(str(part.get("text"))), soft_wrap=True)
        onward = part.get("next_offset_chars")
        if onward is not None:
            total = part.get("total_chars")
            total = f"{total:,}" if isinstance(total, int) else total
            words().print(f"Continue with --at {onward} (of {total} characters).")


@dataclass(frozen=True, slots=True)
class TerminalReading:
    """Reads over a port, and how they are printed.  `sleep` takes seconds."""

    port: RsPort
    portal: BlockingPortal
    flags: OutputFlags
    sleep: Callable[[float], None] = time.sleep

    def ask(self, path: Path, query: Asked) -> Json:
        """One answer of 200.  Raises: CommandError with the server's own words, CredentialError."""
        chosen = _given(connection_id=self.flags.connection)
        while True:
            try:
                reply = self.portal.call(self.port.get, path, (*query, *chosen))
            except RsFailure:
                raise unavailable("The server gave an unexpected answer.") from None
            if reply.ok:
                return as_object(reply.body)
            wait = reply.retry_after_seconds
            if reply.status != 429 or wait is None or wait > WAIT_SECONDS:
                raise _refusal(reply)
            self.sleep(wait)  # many pages one after the other: the rate goes on

    def pages(self, path: Path, query: Asked, most: int | None) -> Iterator[Json]:
        """Page after page, together `most` rows at most."""
        cursor: str | None = None
        while True:
            size = MOST_ROWS if most is None else min(MOST_ROWS, most)
            body = self.ask(path, [*query, ("limit", str(size)), *_given(cursor=cursor)])
            yield body
            most = None if most is None else most - len(rows_of(body))
            cursor = next_cursor_of(body)
            if cursor is None or most == 0:
                return

    def print_rows(self, body: Json, rows: Sequence[Json], columns: Sequence[str]) -> None:
        """The answer as it came, or its rows for programs or people."""
        if self.flags.json:
            print_json(body)
        elif self.flags.jsonl:
            _print_lines(rows)
        elif rows:
            out = console()
            cells = [[_cell(row.get(name)) for name in columns] for row in rows]
            out.print(_table(columns, cells, out.width))

    def schema(self, stream: str | None) -> int:
        """Print the streams, or the fields of one; how many streams there are."""
        body = self.ask(("v1", "schema"), _given(view="compact", stream=stream))
        rows = [row for each in objects_in(body.get("connectors")) for row in _stream_rows(each)]
        if stream is None:
            self.print_rows(body, rows, ("stream", "source", "records", "from", "to", "fields"))
        else:
            told = [field for each in rows for field in _field_rows(each)]
            self.print_rows(body, told, ("field", "source", CAPABILITIES))
        return len(rows)

    def query(self, stream: str, fields: str | None, sort: str | None, which: RowFlags) -> None:
        """Print records of a stream."""
        asked = [*which.asked(), *_each("fields", fields), *_given(sort=sort)]
        self.print_list(_records(stream), asked, which)

    def search(self, terms: SearchTerms, which: RowFlags) -> bool:
        """Print what a search finds; whether there was anything to search."""
        body = self.print_list(("v1", "search"), [*terms.asked(), *which.asked()], which)
        recall = as_object(meta_of(body).get("recall"))
        return recall.get("sources_searched_count") != 0

    def fetch(self, stream: str, key: str, fields: str | None, expand: Iterable[str]) -> None:
        """Print a record, each of its values whole."""
        asked = [*_each("fields", fields), *(("expand", each) for each in expand)]
        body = self.ask(_records(stream, key), asked)
        if self.flags.json or self.flags.jsonl:
            self.print_rows(body, [body], ())
            return
        around_it = [(name, body[name]) for name in AROUND_RECORD if body.get(name) is not None]
        facts = [*as_object(body.get("data")).items(), *as_object(body.get("expanded")).items()]
        for name, value in [*facts, *around_it]:
            console().print(plain(name), style="bold")
            text = value if isinstance(value, str) else compact(value)
            indented(_lines(text), 2, console())

    def print_list(self, path: Path, query: Asked, which: RowFlags) -> Json:
        """All pages: lines of JSON as they come, the rest together; the first one."""
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
            shown = [_row(each) for each in rows]
            columns, left = _fitting(shown, console().width)
            self.print_rows(body, shown, columns)
            _print_remarks(first, found=bool(rows))
            if left:
                words().print(
                    f"Columns not shown: {', '.join(left)}. Choose columns with "
                    "--fields, or use --json."
                )
        if has_more(body):
            words().print("There are more records. Use --limit N or --all.")
        return first


def _print_remarks(body: Json, *, found: bool) -> None:
    """What the server says of its answer: why it is empty, what was near, what it warns of."""
    meta = meta_of(body)
    empty = as_text(as_object(meta.get("empty")).get("reason"))
    if not found:
        words().print(EMPTY.get(empty or "", "No record matches."))
    if relaxed := as_object(meta.get("relaxed")):
        count, least = relaxed.get("exact_count"), relaxed.get("least")
        some = f"; showing records with {least} of the words" if least else ""
        asked = relaxed.get("words")
        held = "this word" if asked == 1 else f"all {asked} words"
        told = f"Records with {held}: {count}" if count else f"No record contains {held}"
        words().print(f"{told}{some}.")
    if near := objects_in(meta.get("near")):
        values = [f"{each.get('value')} ({each.get('count')})" for each in near]
        words().print(plain(f"Similar values: {', '.join(values)}."))
    for warning in objects_in(meta.get("warnings")):
        words().print(plain(warning.get("message")))


def _print_lines(rows: Iterable[Json]) -> None:
    for row in rows:
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")


def _row(item: Json) -> Json:
    """A record's or a hit's members as one row."""
    if item.get("object") != "search_result":
        return {"id": item.get("id"), **as_object(item.get("data"))}
    excerpts = objects_in(item.get("evidence_excerpts"))
    found = next((as_text(each.get("preview_text")) for each in excerpts), None)
    return {
        "stream": item.get("stream"),
        "id": item.get("id"),
        "title": item.get("title"),
        "text": found,
        "at": item.get("authored_at"),
        "author": item.get("author"),
    }


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Table:
    """A row a line: what is too long for its column is cut, but for what one copies."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    longest = [
        max(len(name), *(len(row[place]) for row in rows)) for place, name in enumerate(columns)
    ]
    whole = [place for place, name in enumerate(columns) if name in WHOLE]
    room = width - sum(longest[place] for place in whole) - 2 * len(columns)
    shrinking = sorted(set(range(len(columns))) - set(whole), key=lambda place: longest[place])
    for waiting, place in zip(range(len(shrinking), 0, -1), shrinking, strict=True):
        longest[place] = max(1, min(longest[place], room // waiting))
        room -= longest[place]
    for name, size in zip(columns, longest, strict=True):
        folds = name == CAPABILITIES
        made.add_column(
            name, width=size, overflow="fold" if folds else "ellipsis", no_wrap=not folds
        )
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def _columns(rows: Iterable[Json]) -> list[str]:
    """Every name that has a value somewhere, in the order of their coming."""
    return list(dict.fromkeys(n for row in rows for n, value in row.items() if value is not None))


def _fitting(rows: Sequence[Json], width: int) -> tuple[list[str], list[str]]:
    """The columns that a line of this width has room for, and those that it has not."""
    kept: list[str] = []
    left: list[str] = []
    for name in _columns(rows):
        longest = max(len(_cell(row.get(name))) for row in rows)
        longest = max(len(name), longest)
        width -= 2 + (longest if name in WHOLE else min(longest, CELL_CHARS))
        (kept if width >= 0 or not kept else left).append(name)
    return kept, left


def _cell(value: object) -> str:
    if value is None:
        return ""
    return plain(value if isinstance(value, str) else compact(value)).plain


def _stream_rows(connector: Json) -> Iterator[Json]:
    for stream in objects_in(connector.get("streams")):
        visible = as_object(stream.get("visible"))
        records = visible.get("records")
        fields = as_object(stream.get("field_capabilities"))
        yield {
            "stream": stream.get("name"),
            "source": connector.get("connector_key"),
            "records": f"{records}+" if visible.get("more") else records,
            "from": visible.get("earliest"),
            "to": visible.get("latest"),
            "fields": sum(NOT_GRANTED not in str(each).split(",") for each in fields.values()),
            "field_capabilities": fields,
        }


def _field_rows(stream: Json) -> Iterator[Json]:
    for name, flags in as_object(stream.get("field_capabilities")).items():
        able = "not granted" if NOT_GRANTED in str(flags).split(",") else flags
        yield {"field": name, "source": stream.get("source"), CAPABILITIES: able}


def _group_row(group: Json) -> Json:
    key = group.get("label") or group.get("key")
    then = group.get("then_label") or group.get("then")
    return {"group": key, "then": then, "count": group.get("count"), "value": group.get("value")}


def _conditions(where: Iterable[str]) -> list[tuple[str, str]]:
    made: list[tuple[str, str]] = []
    for condition in where:
        parts = CONDITION.fullmatch(condition)
        if parts is None or (parts[2] and parts[3] != "="):
            raise CommandError(
                "usage",
                "Not a valid condition.",
                "Write field=value, field>=value, field~words, or field[in]=value.",
            )
        operator = parts[2] or SIGNS[parts[3]]
        named = f"filter[{parts[1].strip()}]" + (f"[{operator}]" if operator else "")
        made.append((named, parts[4]))
    return made


def _lines(text: str) -> Text:
    """Foreign text with its line breaks, and no other control character."""
    return Text("".join(c if c.isprintable() or c == "\n" else " " for c in text))


def _given(**members: str | None) -> list[tuple[str, str]]:
    return [(name, value) for name, value in members.items() if value is not None]


def _each(name: str, listed: str | None) -> list[tuple[str, str]]:
    return [(name, each.strip()) for each in (listed or "").split(",") if each.strip()]


def _records(stream: str, *rest: str) -> Path:
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
        message = "Several accounts have these records."  # the wire's words name a parameter
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
        port = RsClient(http, origin, bearer, package_version()).port(TOOL)
        yield TerminalReading(port, portal, how)


read = read_app(CommandContext())
