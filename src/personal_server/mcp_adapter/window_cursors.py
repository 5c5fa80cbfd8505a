"""Cursors of field windows: opaque, bound to record, field, place and content.

Source: MCP adapter contract 9.4; decision C22.
"""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from personal_server.mcp_adapter.handles import RecordRef
from personal_server.rs_client.json_values import as_count, compact, is_list

check_chars = 6
digest_chars = 12
hex_digest = re.compile(r"sha256:([0-9a-f]{12,})")


@dataclass(frozen=True, slots=True)
class WindowCursor:
    """Where a walk through a field continues, and what the field held when it began."""

    key: str
    offset_chars: int
    limit_chars: int
    digest: str


def field_key(record: RecordRef, field_path: str) -> str:
    """What a cursor is bound to; a legacy id does not know its connection, so that is left out."""
    text = compact([record.stream, record.record_id, field_path])
    return sha256(text.encode()).hexdigest()[:digest_chars]


def short_digest(digest: str | None) -> str:
    """The part of a content digest that a cursor carries; empty when there is none."""
    if not digest:
        return ""
    found = hex_digest.match(digest)
    return found[1][:digest_chars] if found else sha256(digest.encode()).hexdigest()[:digest_chars]


def render_cursor(cursor: WindowCursor) -> str:
    """The opaque form."""
    body = [1, cursor.key, cursor.offset_chars, cursor.limit_chars, cursor.digest]
    text = urlsafe_b64encode(compact(body).encode()).decode().rstrip("=")
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
    payload, check = text[:-check_chars], text[-check_chars:]
    if not text.isascii() or not payload or _check(payload) != check:
        return None
    try:
        body: Any = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, RecursionError):
        return None
    return body if is_list(body) else None


def _check(payload: str) -> str:
    return sha256(payload.encode()).hexdigest()[:check_chars]
