"""Records and their keys.

Rule: the canonical key string is the identity of a record within a connection and stream.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import msgspec

from pdpp_kernel.errors import InvalidRequest

MAX_KEY_CODE_POINTS = 1_024
ENCODED_KEY_PREFIX = "~b64."
BLOB_PREFIX = "blob_sha256_"

JsonObject = Mapping[str, object]


def key_text(part: object) -> str:
    """One key value in its string form; booleans as JSON writes them."""
    if isinstance(part, str):
        return part
    if isinstance(part, int):
        return str(part).lower() if isinstance(part, bool) else str(part)
    raise InvalidRequest("A record key must be a string, an integer or a boolean.", param="key")


def canonical_key(parts: Sequence[object]) -> str:
    """The canonical key of the values of a primary key, in its order.

    Shapes: one field: its string form; several: minified JSON array of strings.
    Source: docs/contract/resource-server.md 2.4.
    """
    texts = [key_text(part) for part in parts]
    if len(texts) == 1:
        return texts[0]
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def key_segment(key: str) -> str:
    """A record key as one path segment; keys that paths damage are sent as base64url.

    Source: docs/contract/resource-server.md 9.1.
    """
    if key in (".", "..") or key.startswith(ENCODED_KEY_PREFIX):
        encoded = base64.urlsafe_b64encode(key.encode()).rstrip(b"=").decode("ascii")
        return ENCODED_KEY_PREFIX + encoded
    return quote(key, safe="")


def blob_references(data: Mapping[str, Any]) -> Mapping[str, dict[str, Any]]:
    """The blobs that a record points to, by their id, as it describes them."""
    references: dict[str, dict[str, Any]] = {}
    for value in data.values():
        if isinstance(value, dict):
            reference = cast("dict[str, Any]", value)
            blob_id = reference.get("blob_id")
            if isinstance(blob_id, str) and blob_id.startswith(BLOB_PREFIX):
                references[blob_id] = reference
    return references


class FieldChange(NamedTuple):
    """When a field of a record last got another value: the write's number and `emitted_at` (ns)."""

    sequence: int
    emitted_at_ns: int


RecordPlace = tuple[str, str, str]
"""What tells a record from all others: connection, stream, key."""


class StoredRecord(NamedTuple):
    """A record as a backend hands it to `disclose`: whole, with what dates its fields.

    A tuple, like all that there is for each row of a page: it is made in a third of the time.

    `created` dates the write that created the record; `field_changes` holds only the fields that
    changed after it.  Nothing of a row may leave the server but through `enforcement.disclose`.
    """

    connection_id: str
    stream: str
    key: str
    data: JsonObject
    created: FieldChange
    field_changes: Mapping[str, FieldChange]


class DamagedRow(msgspec.Struct, frozen=True):
    """A record whose stored bytes are not those that were written, so that it is never shown.

    `key` is `None` where the key may be damaged itself.
    """

    connection_id: str
    stream: str
    key: str | None


class TombstoneRow(msgspec.Struct, frozen=True):
    """What is left of a record that left the visible set.

    `left_at_ns` and `emitted_at_ns` are those of the change by which it left; `is_filtered`: it
    is visible still and does not satisfy the conditions of the read.
    """

    connection_id: str
    stream: str
    key: str
    left_at_ns: int
    emitted_at_ns: int
    is_filtered: bool = False
