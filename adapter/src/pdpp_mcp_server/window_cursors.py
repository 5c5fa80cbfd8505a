"""Where the next stretch of a long text begins, as a cursor that holds for one text alone.

Source: docs/contract/mcp-adapter.md 9.4.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

import msgspec

from pdpp_mcp_server.handles import RecordRef, decoded_handle, encoded_handle
from pdpp_mcp_server.rs_client.json_values import as_count, compact, is_list

CHECK_CHARS = 6
DIGEST_CHARS = 12
HEX_DIGEST = re.compile(r"sha256:([0-9a-f]{12,})")


class WindowCursor(msgspec.Struct, frozen=True):
    """Where reading a field continues; bound to record, field and content."""

    key: str
    offset_chars: int
    limit_chars: int
    digest: str


def field_key(record: RecordRef, field_path: str) -> str:
    """What a cursor is bound to; a legacy id does not know its connection, so that is left out."""
    text = compact([record.stream, record.record_id, field_path])
    return sha256(text.encode()).hexdigest()[:DIGEST_CHARS]


def short_digest(digest: str | None) -> str:
    """The part of a content digest that a cursor carries; empty when there is none."""
    if not digest:
        return ""
    found = HEX_DIGEST.match(digest)
    return found[1][:DIGEST_CHARS] if found else sha256(digest.encode()).hexdigest()[:DIGEST_CHARS]


def render_cursor(cursor: WindowCursor) -> str:
    """The cursor as the opaque text that a tool hands out."""
    body = [1, cursor.key, cursor.offset_chars, cursor.limit_chars, cursor.digest]
    text = encoded_handle(body)
    return text + _check(text)


def parse_cursor(text: str, key: str) -> WindowCursor | None:
    """The cursor, or None when it is damaged or belongs to another record or field."""
    body = _body(text)
    if body is None or len(body) != 5 or body[0] != 1 or body[1] != key:
        return None
    offset, limit, digest = as_count(body[2]), as_count(body[3]), body[4]
    if offset is None or limit is None or offset < 0 or limit < 1 or not isinstance(digest, str):
        return None
    return WindowCursor(key, offset, limit, digest)


def _body(text: str) -> list[Any] | None:
    payload, check = text[:-CHECK_CHARS], text[-CHECK_CHARS:]
    if not text.isascii() or not payload or _check(payload) != check:
        return None
    body = decoded_handle(payload)
    return body if is_list(body) else None


def _check(payload: str) -> str:
    return sha256(payload.encode()).hexdigest()[:CHECK_CHARS]
