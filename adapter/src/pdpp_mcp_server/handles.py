"""Ids and URIs: self-contained names that say where; the bearer says whether.

Source: docs/contract/mcp-adapter.md 9.1, 9.2; docs/decisions.md C22, C24.
`parse_id(format_id(x)) == x`; ids are never cut, rewritten or normalised.
"""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_count,
    compact,
    is_object,
)
from pdpp_mcp_server.rs_client.port import Path, Query
from pdpp_mcp_server.safe_text import is_plain, quoted

RECORD_PREFIX = "pdpp://record/"
WINDOW_PREFIX = "pdpp://field-window/"
BLOB_PREFIX = "pdpp://blob/"
HANDLE_CHARS = 8_150
PLAIN_PARTS = re.compile(r"(?:[A-Za-z0-9_-]+/){2}[A-Za-z0-9_=-]+")
ID_FORMS = "connection_id/stream:record_id, stream:record_id or pdpp://record/{handle}"


class RecordRef(NamedTuple):
    """One record: where it is, and the connection when it is known."""

    connection_id: str | None
    stream: str
    record_id: str

    @property
    def path(self) -> Path:
        """Where it is read."""
        return ("v1", "streams", self.stream, "records", self.record_id)

    @property
    def scope(self) -> Query:
        """The parameter that names its connection."""
        return connection_scope(self.connection_id)


class WindowRef(msgspec.Struct, frozen=True):
    """One stretch of one text field."""

    record: RecordRef
    field_path: str
    offset_chars: int
    limit_chars: int
    digest: str | None = None


class BlobRef(msgspec.Struct, frozen=True):
    """One blob, through the connection it belongs to."""

    connection_id: str | None
    blob_id: str


def connection_scope(connection_id: str | None) -> Query:
    """The parameter that names a connection, when it is known."""
    return (("connection_id", connection_id),) if connection_id else ()


def parse_id(text: str) -> RecordRef:
    """Read any of the three forms.

    Raises: ToolError invalid_id.
    """
    if text.startswith(RECORD_PREFIX):
        return parse_record_handle(text.removeprefix(RECORD_PREFIX))
    connection, slash, rest = text.rpartition("/")
    stream, colon, record = rest.partition(":")
    parts = [connection] * bool(slash) + [stream, record]
    if not colon or not all(map(_is_segment, parts)) or ":" in connection or not is_plain(text):
        raise _invalid(text)
    return RecordRef(connection if slash else None, stream, record)


def is_part(part: str) -> bool:
    """Whether a stream name or another segment of an id obeys the grammar."""
    return _is_segment(part) and is_plain(part)


def _is_segment(part: str) -> bool:
    if not part or part == "." or ".." in part or "/" in part or "\\" in part:
        return False
    decoded = unquote(part)
    return not ("/" in decoded or "\\" in decoded or ".." in decoded)


def _invalid(text: str) -> ToolError:
    return ToolError(
        "invalid_id",
        f"`{quoted(text)}` is not a record id. Pass an id exactly as a result showed it.",
        param="id",
        expected=ID_FORMS,
        example={"id": "cin_a/messages:m8"},
    )


def format_id(record: RecordRef) -> str:
    """The canonical id: the plain form when that reads back unchanged, a URI otherwise."""
    plain = f"{record.stream}:{record.record_id}"
    if record.connection_id is not None:
        plain = f"{record.connection_id}/{plain}"
    return plain if _reads_back(record, plain) else record_uri(record)


def _reads_back(record: RecordRef, plain: str) -> bool:
    parts = (record.connection_id or "", record.stream, record.record_id)
    if PLAIN_PARTS.fullmatch("/".join(parts)):
        return True  # nearly all: nothing in them means anything in an id
    if any(part != part.strip() for part in parts):
        return False
    try:
        return parse_id(plain) == record
    except ToolError:
        return False


def spells_connection(text: str) -> bool:
    """Whether an id shows its connection to a reader."""
    return "/" in text and "://" not in text


def record_uri(record: RecordRef) -> str:
    """The URI form of a record."""
    return RECORD_PREFIX + encoded_handle({"v": 1, "kind": "record", **_where(record)})


def window_uri(window: WindowRef) -> str:
    """The URI of a stretch of a field."""
    body: Json = {"v": 1, "kind": "field-window", **_where(window.record)}
    body["field_path"] = window.field_path
    body["offset_chars"] = window.offset_chars
    body["limit_chars"] = window.limit_chars
    if window.digest:
        body["digest"] = window.digest
    return WINDOW_PREFIX + encoded_handle(body)


def blob_uri(blob: BlobRef) -> str:
    """The URI of a blob."""
    body: Json = {"v": 1, "kind": "blob", "connection_id": blob.connection_id}
    return BLOB_PREFIX + encoded_handle({**body, "blob_id": blob.blob_id})


def _where(record: RecordRef) -> Json:
    return {
        "connection_id": record.connection_id,
        "stream": record.stream,
        "record_id": record.record_id,
    }


def encoded_handle(body: object) -> str:
    """A JSON value as characters that any program passes on."""
    return urlsafe_b64encode(compact(body).encode()).decode().rstrip("=")


def parse_record_handle(handle: str) -> RecordRef:
    """The record of a handle.  Raises: ToolError invalid_id."""
    body = _decode(handle, "record", ("connection_id", "stream", "record_id"))
    return _record(body, handle)


def parse_window_handle(handle: str) -> WindowRef:
    """The window of a handle.  Raises: ToolError invalid_id."""
    names = ("connection_id", "stream", "record_id", "field_path", "offset_chars", "limit_chars")
    body = _decode(handle, "field-window", names, optional="digest")
    field, digest = body["field_path"], body.get("digest")
    offset, limit = as_count(body["offset_chars"]), as_count(body["limit_chars"])
    if not isinstance(field, str) or not field or not isinstance(digest, str | None):
        raise _invalid(handle)
    if offset is None or limit is None or offset < 0 or limit < 1:
        raise _invalid(handle)
    return WindowRef(_record(body, handle), field, offset, limit, digest)


def parse_blob_handle(handle: str) -> BlobRef:
    """The blob of a handle.  Raises: ToolError invalid_id."""
    body = _decode(handle, "blob", ("connection_id", "blob_id"))
    connection, blob_id = body["connection_id"], body["blob_id"]
    if not isinstance(blob_id, str) or blob_id in {"", ".", ".."} or not _is_connection(connection):
        raise _invalid(handle)
    return BlobRef(connection, blob_id)


def _record(body: Json, handle: str) -> RecordRef:
    connection, stream, record = body["connection_id"], body["stream"], body["record_id"]
    if not _is_connection(connection) or not isinstance(record, str) or not record:
        raise _invalid(handle)
    if not isinstance(stream, str) or not is_part(stream):
        raise _invalid(handle)
    return RecordRef(connection, stream, record)


def _is_connection(value: Any) -> bool:
    return value is None or (isinstance(value, str) and bool(value))


def _decode(handle: str, kind: str, names: tuple[str, ...], optional: str = "") -> Json:
    body = _json_of(handle)
    members = ("v", "kind", *names)
    allowed = (members, (*members, optional)) if optional else (members,)
    if body is None or tuple(body) not in allowed or encoded_handle(body) != handle:
        raise _invalid(handle)
    if type(body["v"]) is not int or body["v"] != 1 or body["kind"] != kind:
        raise _invalid(handle)
    return body


def _json_of(handle: str) -> Json | None:
    if not handle or len(handle) > HANDLE_CHARS or not handle.isascii():
        return None
    body = decoded_handle(handle)
    return body if is_object(body) else None


def decoded_handle(text: str) -> Any:
    """The JSON behind base64; None for anything that is none, or that could not be written."""
    try:
        body: Any = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
        compact(body).encode()
    except (ValueError, RecursionError):
        return None
    return body
