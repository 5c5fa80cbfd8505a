"""What a new text changes of a record, and when it last changed.  Pure, the same for every backend.

Source: docs/contract/resource-server.md 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import orjson

from pdpp_kernel.record import FieldChange, JsonObject


def canonical_json(value: object) -> bytes:
    """One text per JSON value: members sorted, no blanks."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def changed_fields(before: JsonObject, after: JsonObject) -> frozenset[str]:
    """Top-level properties that have another value (or came, or went)."""
    names = before.keys() | after.keys()
    return frozenset(name for name in names if _differs(name, before, after))


def _differs(name: str, before: JsonObject, after: JsonObject) -> bool:
    if name not in before or name not in after:
        return True
    old, new = before[name], after[name]
    if isinstance(old, str) and isinstance(new, str):
        return old != new
    return canonical_json(old) != canonical_json(new)


def latest_change(
    created: FieldChange, changes: Mapping[str, FieldChange], fields: Iterable[str]
) -> FieldChange:
    """The write that last changed one of `fields`, or created the record."""
    relevant = [changes[name] for name in fields if name in changes]
    return max((created, *relevant), key=lambda change: change.sequence)


def blob_ids(row_data: JsonObject, blob_fields: Iterable[str]) -> dict[str, str]:
    """Blob id by blob field."""
    ids: dict[str, str] = {}
    for name in blob_fields:
        reference = row_data.get(name)
        if isinstance(reference, dict):
            blob_id: object = reference.get("blob_id")  # type: ignore[union-attr]
            if isinstance(blob_id, str):
                ids[name] = blob_id
    return ids
