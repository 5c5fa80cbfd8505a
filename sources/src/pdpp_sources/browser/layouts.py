"""How each browser lays out its history database: tables, columns and joins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec

from pdpp_kernel.source_item import Data
from pdpp_sources.browser.history_records import (
    FIREFOX_TAGS,
    Row,
    bookmark_records,
    download_records,
    printed_line,
    search_records,
    visit_records,
)
from pdpp_sources.common.database import Cell, ForeignDatabase, RowTooLarge
from pdpp_sources.common.epochs import APPLE, WEBKIT

_CHROMIUM_REASONS = (
    "link",
    "typed",
    "bookmark",
    "embedded",
    "frame",
    "generated",
    "start_page",
    "form",
    "reload",
    "keyword",
    "keyword_search",
)
_FIREFOX_REASONS = (
    "link",
    "typed",
    "bookmark",
    "embedded",
    "redirect",
    "redirect",
    "download",
    "frame",
    "reload",
)
_FIREFOX_ROOTS = {
    "menu________": "Bookmarks Menu",
    "toolbar_____": "Bookmarks Toolbar",
    "unfiled_____": "Other Bookmarks",
    "mobile______": "Mobile Bookmarks",
}
_DEEPEST = 50
_MOST_FOLDERS = 100_000


class Rows(msgspec.Struct, frozen=True):
    """What is asked of a table, and the records that each of its rows becomes.

    Shapes: `columns` and `joins` name a column as `t.name` or `j.name`; those of which a database
        has no such column are null; `is_cut` says that folders or tags beside them were too many.
    """

    table: str
    columns: Mapping[str, str]
    build: Callable[[Row], Iterator[tuple[str, Data]]]
    joins: tuple[tuple[str, str, str], ...] = ()
    is_cut: bool = False


class _BookmarkFolders(msgspec.Struct):
    """The path of each folder of bookmarks by its number, and the tags of pages by theirs."""

    paths: Mapping[int, str] = msgspec.field(default_factory=dict[int, str])
    tags: Mapping[int, list[str]] = msgspec.field(default_factory=dict[int, list[str]])
    is_cut: bool = False


def layout_of(database: ForeignDatabase) -> tuple[Rows, ...]:
    """What to ask of a database; nothing of one that is no browser's."""
    tables = set(database.table_names())
    if {"urls", "visits"} <= tables and "visit_time" in database.column_names("visits"):
        layout = _chromium()
    elif {"moz_places", "moz_historyvisits"} <= tables:
        folders = _folders_of(database, "moz_bookmarks", _FIREFOX_FOLDER)
        _keep_tags(database, folders)
        layout = _firefox(folders)
    elif {"history", "visits"} <= tables and "history_guid" in database.column_names("visits"):
        layout = _old_android(_folders_of(database, "bookmarks", _OLD_ANDROID_FOLDER))
    elif {"history_items", "history_visits"} <= tables:
        layout = _safari()
    else:
        return ()
    return tuple(rows for rows in layout if rows.table in tables)


def _chromium() -> tuple[Rows, ...]:
    visits = Rows(
        "visits",
        {
            "time": "t.visit_time",
            "url": "u.url",
            "title": "u.title",
            "reason": "t.transition",
            "duration": "t.visit_duration",
            "from_time": "f.visit_time",
            "from_url": "fu.url",
            "from_reason": "f.transition",
        },
        partial(visit_records, WEBKIT, _CHROMIUM_REASONS, 0),
        (
            ("u", "urls", "u.id = t.url"),
            ("f", "visits", "f.id = t.from_visit"),
            ("fu", "urls", "fu.id = f.url"),
        ),
    )
    searches = Rows(
        "keyword_search_terms",
        {"term": "t.term", "time": "u.last_visit_time", "url": "u.url"},
        partial(search_records, WEBKIT),
        (("u", "urls", "u.id = t.url_id"),),
    )
    downloads = Rows(
        "downloads",
        {
            "begun": "t.start_time",
            "ended": "t.end_time",
            "path": "t.target_path",
            "old_path": "t.full_path",
            "url": "t.tab_url",
            "old_url": "t.url",
            "referrer": "t.referrer",
            "size": "t.total_bytes",
            "kind": "t.mime_type",
            "state": "t.state",
        },
        download_records,
    )
    return visits, searches, downloads


def _firefox(folders: _BookmarkFolders) -> tuple[Rows, ...]:
    visits = Rows(
        "moz_historyvisits",
        {
            "time": "t.visit_date",
            "url": "u.url",
            "title": "u.title",
            "reason": "t.visit_type",
            "from_time": "f.visit_date",
            "from_url": "fu.url",
            "from_reason": "f.visit_type",
        },
        partial(visit_records, None, _FIREFOX_REASONS, 1),
        (
            ("u", "moz_places", "u.id = t.place_id"),
            ("f", "moz_historyvisits", "f.id = t.from_visit"),
            ("fu", "moz_places", "fu.id = f.place_id"),
        ),
    )
    bookmarks = Rows(
        "moz_bookmarks",
        {
            "kind": "t.type",
            "folder": "t.parent",
            "title": "t.title",
            "added": "t.dateAdded",
            "modified": "t.lastModified",
            "url": "u.url",
            "page_title": "u.title",
            "page": "t.fk",
        },
        partial(bookmark_records, folders.paths, folders.tags),
        (("u", "moz_places", "u.id = t.fk"),),
        folders.is_cut,
    )
    searches = Rows(
        "moz_places_metadata",
        {"term": "s.term", "time": "t.created_at", "url": "u.url"},
        partial(search_records, None),
        (
            ("s", "moz_places_metadata_search_queries", "s.id = t.search_query_id"),
            ("u", "moz_places", "u.id = t.place_id"),
        ),
    )
    return visits, bookmarks, searches


def _keep_tags(database: ForeignDatabase, folders: _BookmarkFolders) -> None:
    """The tags of each page by its number: folders of their own, in which it lies again."""
    tags: dict[int, list[str]] = {}
    if not any(name.startswith(FIREFOX_TAGS) for name in folders.paths.values()):
        return
    for row in database.rows("moz_bookmarks", {"page": "t.fk", "folder": "t.parent"}):
        if isinstance(row, RowTooLarge) or not isinstance(page := row["page"], int):
            continue
        folder = folders.paths.get(row["folder"], "") if isinstance(row["folder"], int) else ""
        if folder.startswith(FIREFOX_TAGS):
            if page in tags or len(tags) < _MOST_FOLDERS:
                tags.setdefault(page, []).append(folder.removeprefix(FIREFOX_TAGS + "/"))
            else:
                folders.is_cut = True
    folders.tags = tags


_FIREFOX_FOLDER = {"id": "t.id", "parent": "t.parent", "title": "t.title", "guid": "t.guid"}
_OLD_ANDROID_FOLDER = {"id": "t._id", "parent": "t.parent", "title": "t.title", "guid": "t.guid"}


def _folders_of(
    database: ForeignDatabase, table: str, columns: Mapping[str, str]
) -> _BookmarkFolders:
    """The path of each folder of bookmarks, as far as they are not too many."""
    names = set(database.column_names(table))
    if not {column.removeprefix("t.") for column in columns.values()} <= names:
        return _BookmarkFolders()
    nodes: dict[int, tuple[Cell, str, Cell]] = {}
    is_cut = False
    for row in database.rows(table, {**columns, "kind": "t.type"}):
        if isinstance(row, RowTooLarge):
            is_cut = True
        elif row["kind"] in (0, 2) and isinstance(number := row["id"], int):
            if len(nodes) < _MOST_FOLDERS:
                name = _FIREFOX_ROOTS.get(str(row["guid"])) or printed_line(row["title"]) or ""
                nodes[number] = (row["parent"], name, row["guid"])
            else:
                is_cut = True
    return _BookmarkFolders({number: _path(nodes, number) for number in nodes}, is_cut=is_cut)


def _path(nodes: Mapping[int, tuple[Cell, str, Cell]], number: int) -> str:
    names: list[str] = []
    at: Cell = number
    for _ in range(_DEEPEST):
        if not isinstance(at, int) or at not in nodes:
            break
        parent, name, guid = nodes[at]
        if guid == FIREFOX_TAGS:
            return "/".join([FIREFOX_TAGS, *reversed(names)])
        if parent in nodes and parent != at:  # the root of all has no name that says anything
            names.append(name)
        at = parent if parent != at else None
    return " / ".join(reversed(names))


def _old_android(folders: _BookmarkFolders) -> tuple[Rows, ...]:
    """Firefox for Android until 2020."""
    visits = Rows(
        "visits",
        {"time": "t.date", "url": "u.url", "title": "u.title", "reason": "t.visit_type"},
        partial(visit_records, None, _FIREFOX_REASONS, 1),
        (("u", "history", "u.guid = t.history_guid"),),
    )
    bookmarks = Rows(
        "bookmarks",
        {
            "kind": "t.type",
            "folder": "t.parent",
            "title": "t.title",
            "added": "t.created",
            "modified": "t.modified",
            "url": "t.url",
        },
        partial(bookmark_records, folders.paths, {}),
        is_cut=folders.is_cut,
    )
    columns = {"term": "t.query", "time": "t.date"}
    return visits, bookmarks, Rows("searchhistory", columns, partial(search_records, None))


def _safari() -> tuple[Rows, ...]:
    visits = Rows(
        "history_visits",
        {
            "time": "t.visit_time",
            "url": "u.url",
            "title": "t.title",
            "from_time": "f.visit_time",
            "from_url": "fu.url",
        },
        partial(visit_records, APPLE, (), 0),
        (
            ("u", "history_items", "u.id = t.history_item"),
            ("f", "history_visits", "f.id = t.redirect_source"),
            ("fu", "history_items", "fu.id = f.history_item"),
        ),
    )
    return (visits,)
