"""What `pdpp import --json` said of the items of a feed.

Source: docs/contract/feeds.md 5 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from personal_server.feeds.feed_ledger import UNFINISHED

INTERRUPTED, TOO_SLOW = "import_interrupted", "import_too_slow"


class ImportedItems(msgspec.Struct):
    """What became of items.

    Shapes: `codes` by item, `None` where nothing was refused; `connection_ids` are the accounts
        that they went into; `trouble` is why nothing is known of any.
    """

    codes: dict[str, str | None] = msgspec.field(default_factory=dict[str, str | None])
    connection_ids: set[str] = msgspec.field(default_factory=set[str])
    records_new: int = 0
    records_updated: int = 0
    trouble: str | None = None


def imported_items(report: Mapping[str, Any], paths: Mapping[str, Path]) -> ImportedItems:
    """Read a report; `paths` say where each item was, by its name."""
    found = ImportedItems(codes=dict.fromkeys(paths))
    lone = report.get("error")
    if lone is not None and len(paths) > 1:
        found.trouble = str(lone["code"])
    elif lone is not None:
        (item,) = paths
        _refuse(found, item, str(lone["code"]))
    elif "imports" not in report:
        found.trouble = INTERRUPTED
    else:
        for each in report["imports"]:
            _count(found, each, paths)
        for each in report.get("errors", ()):
            item = _item_of(str(each["path"]), paths)
            if item is not None:
                _refuse(found, item, str(each["code"]))
    return found


def _count(found: ImportedItems, report: Mapping[str, Any], paths: Mapping[str, Path]) -> None:
    """One import of a report."""
    item = _item_of(str(report["path"]), paths)
    if item is not None and report.get("unfinished"):
        found.codes[item] = UNFINISHED
    target = report.get("connection")
    if target:
        found.connection_ids.add(str(target["connection_id"]))
    for stream in report["streams"].values():
        found.records_new += stream.get("new", 0)
        found.records_updated += stream.get("updated", 0)


def _refuse(found: ImportedItems, item: str, code: str) -> None:
    """What the owner decides is told before what no reader takes."""
    if code in _OF_STORE:
        found.trouble = code
    elif found.codes.get(item) in (None, UNFINISHED):
        found.codes[item] = code


def _item_of(path: str, paths: Mapping[str, Path]) -> str | None:
    """The item that a path is, or lies in."""
    at = Path(path)
    return next((item for item, each in paths.items() if at == each or each in at.parents), None)


# Refusals of the store, which say nothing of the item.
_OF_STORE = frozenset(
    {"storage_unavailable", "storage_read_only", "internal_error", "connection_busy"}
)
