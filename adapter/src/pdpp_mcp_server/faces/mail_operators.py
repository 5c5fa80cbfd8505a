"""What other programs' search boxes take, as arguments of a search: `before:2024-01-01`.

Rule: a query is never read so; who wrote it gets the call that says it here, in their own words.
Source: docs/contract/mcp-adapter.md 10.2.
"""

from __future__ import annotations

import re

import msgspec

from pdpp_kernel.operators import Operator
from pdpp_mcp_server.arguments import Arguments, without
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.errors import NextCall
from pdpp_mcp_server.handles import connection_scope
from pdpp_mcp_server.read_refusals import span_of
from pdpp_mcp_server.reads import read_catalog
from pdpp_mcp_server.rs_client.json_values import as_list, as_object
from pdpp_mcp_server.schema_document import rows_of_stream

# With a colon as search boxes take it; in people's words, where a month or day is no number.
_A_TIME = re.compile(
    r"(?<!\S)(before|older|until|after|newer|since|on)"
    r"(?::(?=\d)|\s+(?=\d{4}[-/]\d))(\d{4}(?:[-/]\d{1,2}){0,2})(?!\S)",
    re.IGNORECASE,
)
_BEFORE, _AFTER = ("before", "older", "until"), ("after", "newer", "since")
_ATTACHED = re.compile(r"(?<!\S)has:attachments?(?!\S)", re.IGNORECASE)
# Mail counts what is attached to it.
_MAIL, _ATTACHMENTS = "messages", "attachment_count"


class MailFiles(msgspec.Struct, frozen=True):
    """That an access counts what is attached to mails; on which connection, where it is one."""

    connection_id: str | None = None


async def mail_files(call: ToolCall, asked: Arguments) -> MailFiles | None:
    """Whether this access counts what is attached to mails; read only for a search that asks it."""
    if not _ATTACHED.search(str(asked.get("query", asked.get("q")))):
        return None
    connection_id = asked.get("connection_id")
    scope = (("stream", _MAIL), *connection_scope(connection_id))
    rows = rows_of_stream(await read_catalog(call, scope) or {}, _MAIL, connection_id)
    counting = [row for row in rows if _ATTACHMENTS in as_object(row.row.get("field_capabilities"))]
    if not counting:
        return None
    accounts = {each.connection_id for row in counting for each in row.connections}
    return MailFiles(connection_id or (accounts.pop() if len(accounts) == 1 else None))


def said_as_arguments(asked: Arguments, files: MailFiles | None = None) -> NextCall | None:
    """The search with its times as `since` and `until`, and what is attached as a filter.

    Without another word it is the list of such records.  What is attached is left as it is where no
    mail of this access counts it.
    """
    query = str(asked["query"])
    times = _times(query)
    rest = _A_TIME.sub(" ", query) if times else query
    meant: dict[str, object] = {**asked, **times}
    if files and _ATTACHED.search(rest):
        rest = _ATTACHED.sub(" ", rest)
        meant["streams"] = [_MAIL]
        meant |= {"connection_id": files.connection_id} if files.connection_id else {}
        at_least_one = {Operator.GTE.value: 1}
        meant["filter"] = {**as_object(asked.get("filter")), _ATTACHMENTS: at_least_one}
    if rest == query:
        return None
    words = " ".join(rest.split())
    if any(map(str.isalnum, words)):
        return NextCall("search", {**meant, "query": words}, "as arguments")
    return _listed(meant)


def _times(query: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, written in _A_TIME.findall(query):
        span = span_of(_with_dashes(written))
        if span is None:
            return {}
        word = name.lower()
        if word not in _BEFORE:
            found["since"] = span[0].isoformat()
        if word not in _AFTER:
            found["until"] = span[0 if word in _BEFORE else 1].isoformat()
    return found


def _with_dashes(written: str) -> str:
    year, *rest = re.split("[-/]", written)
    return "-".join([year, *(part.zfill(2) for part in rest)])


def _listed(meant: Arguments) -> NextCall:
    """`query_records` takes one stream, or none for the time line."""
    streams = as_list(meant.get("streams"))
    listed = without(meant, "query", "streams", "mode", "exact", "sort")
    if len(streams) == 1:
        listed = {**listed, "stream": streams[0]}
    return NextCall("query_records", listed, "as arguments")
