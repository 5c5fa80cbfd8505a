"""Which record a row is: its id, its own members, its title and its address.

Source: docs/contract/mcp-adapter.md 3.6, 8.4, 8.5, 9.1. Rows are ours or a foreign server's; title
and address are never empty, and never the snippet.
"""

from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from pdpp_kernel.record import key_segment
from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.faces.truncation import binary_facts
from pdpp_mcp_server.handles import (
    HANDLE_CHARS,
    RecordRef,
    format_id,
    is_part,
    record_uri,
)
from pdpp_mcp_server.rs_client.answers import connection_of, connector_key_of, record_key_of
from pdpp_mcp_server.rs_client.json_values import Json, as_text, first_text, is_object
from pdpp_mcp_server.safe_text import has_steering, has_white_space, one_line

TITLE_NAMES = ("title", "name", "filename", "subject", "summary")
URL_NAMES = ("url", "source_url", "href")
TIME_NAMES = (
    "sent_at",
    "authored_at",
    "created_at",
    "source_created_at",
    "occurred_at",
    "updated_at",
)
AUTHOR_NAMES = (
    *("author_name", "from_name", "sender_name", "author", "sender", "from"),
    *("from_address", "role"),
)
LONGEST_URL = 2_000
IDENTITY_MEMBERS = frozenset(
    {
        "object",
        "id",
        "record_id",
        "record_key",
        "stream",
        "connection_id",
        "connector_instance_id",
        "connector_key",
        "connector_id",
        "display_name",
        "grant_id",
        "source",
        "emitted_at",
        "expanded",
        "deleted",
        "deleted_at",
        "links",
        "meta",
        "record_url",
    }
)


class RecordPlace(msgspec.Struct, frozen=True):
    """What the request says about rows that do not say it themselves.

    Shapes: binary_fields are the fields whose declaration says bytes, where a schema was at hand.
    """

    stream: str
    connection_id: str | None = None
    binary_fields: frozenset[str] = frozenset()


class Holder(NamedTuple):
    """The record that cut values belong to: its id as shown, and where it is when that is known."""

    id: str
    record: RecordRef | None


def ref_of(row: Json, scope: RecordPlace, key: str) -> RecordRef:
    """The record of that key where a row, or else the request, says that it is."""
    stream = as_text(row.get("stream")) or scope.stream
    return RecordRef(connection_of(row) or scope.connection_id, stream, key)


def holder_of(call: ToolCall, row: Json, scope: RecordPlace) -> Holder:
    """The record a row is, and its id as shown."""
    key = record_key_of(row)
    record = ref_of(row, scope, key or "")
    if key is None or not is_part(record.stream):
        return _unidentified(call, row)
    shown = format_id(record)
    if len(shown) > HANDLE_CHARS:
        return _unidentified(call, row)
    return Holder(shown, record)


def _unidentified(call: ToolCall, row: Json) -> Holder:
    return Holder(record_address(call.provider_url, row, {}, None) or "unidentified", None)


def payload_of(row: Json) -> Json:
    """The record's own members: `data` of a wrapper, else all that is not identity."""
    data = row.get("data")
    if is_object(data):
        return data
    return {name: value for name, value in row.items() if name not in IDENTITY_MEMBERS}


def record_title(wrapper: Json, payload: Json, record: RecordRef | None, shown_id: str) -> str:
    """The first title there is; else source, stream and time; else the id."""
    candidates = (wrapper.get("title"), *(payload.get(name) for name in TITLE_NAMES))
    found = next((line for line in map(_line, candidates) if line), None)
    if found:
        return found
    connection = record.connection_id if record else None
    label = first_text(wrapper.get("display_name"), connector_key_of(wrapper), connection)
    parts = (label, record.stream if record else None, event_time(wrapper, payload))
    made = " / ".join(one_line(part, contract.LABEL) for part in parts if part)
    return one_line(made or shown_id, contract.TITLE)


def _line(value: object) -> str:
    if not isinstance(value, str) or binary_facts(value) is not None:
        return ""
    return one_line(value, contract.TITLE)


def author(payload: Json) -> str | None:
    """Who wrote it, where the record says so."""
    found = next((line for name in AUTHOR_NAMES if (line := _line(payload.get(name)))), None)
    return one_line(found, contract.LABEL) if found else None


def event_time(wrapper: Json, payload: Json) -> str | None:
    """When it happened; only without such a time when it was taken in."""
    return happened_at(wrapper, payload) or as_text(wrapper.get("emitted_at"))


def happened_at(wrapper: Json, payload: Json) -> str | None:
    """When it happened, if that is said."""
    stated = as_text(wrapper.get("at"))
    if stated:
        return one_line(stated, contract.LABEL)
    for name in TIME_NAMES:
        found = first_text(wrapper.get(name), payload.get(name))
        if found:
            return one_line(found, contract.LABEL)
    return None


def record_address(
    origin: str, wrapper: Json, payload: Json, record: RecordRef | None
) -> str | None:
    """The first usable address: the payload's own, the server's, one built from the parts."""
    own = own_address(payload)
    if own:
        return own
    connection = record.connection_id if record else None
    stated = _absolute(origin, as_text(wrapper.get("record_url")), connection)
    if stated:
        return stated
    if record is None:
        return None
    built = record_url(origin, record)
    return built if len(built) <= LONGEST_URL or not origin else record_uri(record)


def own_address(payload: Json) -> str | None:
    """The address that a record names itself, where it is a plain one."""
    return next((url for name in URL_NAMES if (url := safe_url(payload.get(name)))), None)


def safe_url(value: object) -> str | None:
    """The value when it is a plain web address."""
    if not isinstance(value, str) or not value or len(value) > LONGEST_URL:
        return None
    if has_steering(value) or has_white_space(value):
        return None
    try:
        parts = urlsplit(value)
        plain = parts.hostname and parts.username is None and parts.password is None
    except ValueError:
        return None
    return value if parts.scheme in {"http", "https"} and plain else None


def _absolute(origin: str, path: str | None, connection_id: str | None) -> str | None:
    if path is None:
        return None
    url = path if "://" in path else f"{origin}{path}" if path.startswith("/") else None
    if safe_url(url) is None or url is None:
        return None
    parts = urlsplit(url)
    known = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if connection_id and "connection_id" not in known and not parts.fragment:
        glue = "&" if parts.query else "?"
        return f"{url}{glue}connection_id={quote(connection_id, safe='')}"
    return url


def blob_url(origin: str, blob_id: str, connection_id: str | None) -> str:
    """The REST address of a blob."""
    scope = f"?connection_id={quote(connection_id, safe='')}" if connection_id else ""
    return f"{origin}/v1/blobs/{quote(blob_id, safe='')}{scope}"


def record_url(origin: str, record: RecordRef) -> str:
    """The REST address of a record, built from its parts."""
    stream, key = quote(record.stream, safe=""), key_segment(record.record_id)
    scope = record.connection_id
    query = f"?connection_id={quote(scope, safe='')}" if scope else ""
    return f"{origin}/v1/streams/{stream}/records/{key}{query}"
