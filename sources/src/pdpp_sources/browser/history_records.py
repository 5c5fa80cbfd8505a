"""Records of a browser's history out of rows: visits, bookmarks, searches and downloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PureWindowsPath

from pdpp_kernel.source_item import Data, Json, stable_id
from pdpp_sources.common.database import Cell
from pdpp_sources.common.epochs import Epoch, epoch_of
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.text import host_of, one_line, or_none, printable

Row = dict[str, Cell]
_DOWNLOAD_STATES = ("in_progress", "complete", "cancelled", "interrupted", "interrupted")
FIREFOX_TAGS = "tags________"


def visit_records(
    epoch: Epoch | None, reasons: tuple[str, ...], first: int, row: Row
) -> Iterator[tuple[str, Data]]:
    """The record of a visit. Raises: BadRecord."""
    url = _address(row["url"])
    if url is None:
        raise BadRecord("bad_record", "the file does not contain the page of this visit")
    visited_at = _instant(row["time"], epoch)
    if visited_at is None:
        raise BadRecord("bad_date", "the time of the entry cannot be read")
    duration, reason = row.get("duration"), row.get("reason")
    from_url = _address(row.get("from_url"))
    origin = (row.get("from_time"), from_url, row.get("from_reason")) if from_url else None
    yield (
        "visits",
        {
            "id": _visit_id(row["time"], url, reason),
            "visited_at": visited_at,
            "title": printed_line(row["title"]),
            "url": url,
            "host": host_of(url),
            "reason": _named(reasons, reason, first),
            "seconds": duration / 1_000_000 if isinstance(duration, int) and duration > 0 else None,
            "from_visit_id": _visit_id(*origin) if origin else None,
        },
    )


def _visit_id(time: Cell, url: str, reason: Cell) -> str:
    """Redirects visit one page twice within a microsecond, for other reasons."""
    return stable_id("vis", repr(time), url, repr(reason))


def _named(names: tuple[str, ...], value: Cell, first: int) -> str | None:
    """The name of a number of which the lowest byte counts."""
    if not isinstance(value, int) or not names:
        return None
    number = (value & 0xFF) - first
    return names[number] if 0 <= number < len(names) else "other"


def bookmark_records(
    folders: Mapping[int, str], tags: Mapping[int, list[str]], row: Row
) -> Iterator[tuple[str, Data]]:
    """A bookmark; folders and separators are none, and a tag stands with the page that has it."""
    parent, page = row["folder"], row.get("page")
    folder = folders.get(parent, "") if isinstance(parent, int) else ""
    if row["kind"] != 1 or folder.startswith(FIREFOX_TAGS):
        return
    url = _address(row["url"])
    if url is None:
        raise BadRecord("bad_record", "the file does not contain the page of this bookmark")
    title = printed_line(row["title"]) or printed_line(row.get("page_title"))
    own_tags = tags.get(page, []) if isinstance(page, int) else []
    added, modified = _instant(row["added"]), _instant(row["modified"])
    yield "bookmarks", bookmark(url, title, folder, added, modified) | {"tags": own_tags}


def bookmark(
    url: str, title: str | None, folder: str, added_at: str | None, modified_at: str | None
) -> Data:
    """The record of a bookmark, whichever file holds it."""
    data: Data = {
        "id": stable_id("bkm", folder, url, title),
        "title": title,
        "url": url,
        "host": host_of(url),
        "folder": folder or None,
        "tags": [],
        "note": None,
        "modified_at": modified_at,
    }
    return data | ({"added_at": added_at} if added_at else {})


def search_records(epoch: Epoch | None, row: Row) -> Iterator[tuple[str, Data]]:
    """Words that were searched; a page of Firefox that nobody searched for has none."""
    term = printed_line(row["term"])
    if term is None:
        return
    searched_at, url = _instant(row["time"], epoch), _address(row.get("url"))
    data: Data = {"id": stable_id("sch", term, repr(row["time"]), url), "term": term, "url": url}
    host: Data = {"host": host_of(url) if url else None}
    yield "searches", data | host | ({"searched_at": searched_at} if searched_at else {})


def download_records(row: Row) -> Iterator[tuple[str, Data]]:
    """The record of a download."""
    path = printed_line(row["path"]) or printed_line(row["old_path"])
    url = _address(row["url"]) or _address(row["old_url"])
    begun_at, size = _instant(row["begun"]), row["size"]
    data: Data = {
        "id": stable_id("dwn", repr(row["begun"]), path, url),
        "filename": PureWindowsPath(path).name if path else None,
        "path": path,
        "url": url,
        "referrer": _address(row["referrer"]),
        "ended_at": _instant(row["ended"]),
        "mime_type": printed_line(row["kind"]),
        "size_bytes": size if isinstance(size, int) and size >= 0 else None,
        "state": _named(_DOWNLOAD_STATES, row["state"], 0),
    }
    yield "downloads", data | ({"started_at": begun_at} if begun_at else {})


def _instant(value: Json, epoch: Epoch | None = None) -> str | None:
    """The instant of a number; where no epoch is known, its size says which. Raises: BadRecord."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        return None
    epoch_used = epoch or epoch_of(value)
    return epoch_used.instant(value) if epoch_used else None


def printed_line(value: Cell) -> str | None:
    """A text on one line, without what cannot be printed; `None` if nothing is left."""
    return or_none(one_line(printable(value))) if isinstance(value, str) else None


def _address(value: Cell) -> str | None:
    """An address on the web; those of the browser's own pages too."""
    return or_none(printable(value).strip()) if isinstance(value, str) else None
