"""The databases of browsers: visits, bookmarks, downloads and searches, in every layout seen.

Source: the tables themselves, of Chromium (1 to 89), Firefox (desktop, and Android before and after
2020) and Safari; what a version lacks is left out of the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import PureWindowsPath

from pdpp_kernel.source_item import (
    Data,
    Json,
    Skipped,
    SourceItem,
    SourceRecord,
    stable_id,
)
from pdpp_sources.common.database import (
    Cell,
    DatabaseUnreadable,
    ForeignDatabase,
    RowTooLarge,
    opened,
)
from pdpp_sources.common.epochs import APPLE, WEBKIT, Epoch, epoch_of
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.source import one_record
from pdpp_sources.common.text import host_of, one_line, or_none, printable

Row = dict[str, Cell]
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
_DOWNLOAD_STATES = ("in_progress", "complete", "cancelled", "interrupted", "interrupted")
_FIREFOX_ROOTS = {
    "menu________": "Bookmarks Menu",
    "toolbar_____": "Bookmarks Toolbar",
    "unfiled_____": "Other Bookmarks",
    "mobile______": "Mobile Bookmarks",
}
_FIREFOX_TAGS = "tags________"
_DEEPEST = 50
_MOST_FOLDERS = 100_000


@dataclass(frozen=True, slots=True)
class Rows:
    """What is asked of a table, and the records that each of its rows becomes.

    Shapes: `columns` and `joins` name a column as `t.name` or `j.name`; those of which a database
        has no such column are null.
    """

    table: str
    columns: Mapping[str, str]
    build: Callable[[Row], Iterator[tuple[str, Data]]]
    joins: tuple[tuple[str, str, str], ...] = ()


def is_history(database: ForeignDatabase) -> bool:
    """Whether a database is the history of a browser."""
    return bool(_layout(database))


def read_history(export: Export, member: ExportMember) -> Iterator[SourceItem]:
    """All records of a database; each row counts as a byte of it, so positions rise."""
    position = member.offset
    try:
        with opened(export, member) as database:
            for rows in _layout(database):
                asked, joins = _statement(database, rows)
                for number, row in enumerate(database.rows(rows.table, asked, joins), 1):
                    where = f"{member.name}, {rows.table}, row {number}"
                    yield from _row_items(rows, row, where, position)
                    position += 1
    except DatabaseUnreadable:
        yield Skipped(member.name, "damaged_file", "the rest cannot be read", position)


def _row_items(
    rows: Rows, row: Row | RowTooLarge, where: str, position: int
) -> Iterator[SourceItem]:
    if isinstance(row, RowTooLarge):
        yield Skipped(where, "too_large", "it holds a value that is too long", position)
        return

    def build() -> list[SourceItem]:
        return [SourceRecord(stream, data, position) for stream, data in rows.build(row)]

    yield from one_record(where, position, build)


def _statement(database: ForeignDatabase, rows: Rows) -> tuple[dict[str, str], str]:
    """The columns and joins that this database has."""
    known = {"t": database.column_names(rows.table)}
    joins = ""
    for name, table, condition in rows.joins:
        known[name] = database.column_names(table)
        if known[name] and _is_known(condition, known):
            joins += f" LEFT JOIN {table} {name} ON {condition}"
        else:
            known[name] = ()
    return {n: c if _is_known(c, known) else "NULL" for n, c in rows.columns.items()}, joins


def _is_known(expression: str, known: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the tables have every column of an expression: names, `=`, nothing else."""
    for name in expression.replace("=", " ").split():
        table, _, column = name.partition(".")
        if column != "rowid" and column not in known.get(table, ()):
            return False
    return True


def _layout(database: ForeignDatabase) -> tuple[Rows, ...]:
    """What to ask of a database; nothing of one that is no browser's."""
    tables = set(database.table_names())
    if {"urls", "visits"} <= tables and "visit_time" in database.column_names("visits"):
        wanted = _chromium()
    elif {"moz_places", "moz_historyvisits"} <= tables:
        folders = _folders_of(database, "moz_bookmarks", _FIREFOX_FOLDER)
        wanted = _firefox(folders, _tags_of(database, folders))
    elif {"history", "visits"} <= tables and "history_guid" in database.column_names("visits"):
        wanted = _old_android(_folders_of(database, "bookmarks", _OLD_ANDROID_FOLDER))
    elif {"history_items", "history_visits"} <= tables:
        wanted = _safari()
    else:
        return ()
    return tuple(rows for rows in wanted if rows.table in tables)


# Chromium: Chrome, Edge, Brave, Vivaldi, Opera.


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
        partial(_visit, WEBKIT, _CHROMIUM_REASONS, 0),
        (
            ("u", "urls", "u.id = t.url"),
            ("f", "visits", "f.id = t.from_visit"),
            ("fu", "urls", "fu.id = f.url"),
        ),
    )
    searches = Rows(
        "keyword_search_terms",
        {"term": "t.term", "time": "u.last_visit_time", "url": "u.url"},
        partial(_search, WEBKIT),
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
        _download,
    )
    return visits, searches, downloads


# Firefox and its kin on a desktop, and on Android since 2020, which counts milliseconds.


def _firefox(folders: Mapping[int, str], tags: Mapping[int, list[str]]) -> tuple[Rows, ...]:
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
        partial(_visit, None, _FIREFOX_REASONS, 1),
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
        partial(_bookmark, folders, tags),
        (("u", "moz_places", "u.id = t.fk"),),
    )
    searches = Rows(
        "moz_places_metadata",
        {"term": "s.term", "time": "t.created_at", "url": "u.url"},
        partial(_search, None),
        (
            ("s", "moz_places_metadata_search_queries", "s.id = t.search_query_id"),
            ("u", "moz_places", "u.id = t.place_id"),
        ),
    )
    return visits, bookmarks, searches


def _tags_of(database: ForeignDatabase, folders: Mapping[int, str]) -> Mapping[int, list[str]]:
    """The tags of each page by its number: folders of their own, in which it lies again."""
    tags: dict[int, list[str]] = {}
    if not any(each.startswith(_FIREFOX_TAGS) for each in folders.values()):
        return tags
    for row in database.rows("moz_bookmarks", {"page": "t.fk", "folder": "t.parent"}):
        if isinstance(row, dict) and isinstance(row["page"], int) and len(tags) < _MOST_FOLDERS:
            folder = folders.get(row["folder"], "") if isinstance(row["folder"], int) else ""
            if folder.startswith(_FIREFOX_TAGS):
                tags.setdefault(row["page"], []).append(folder.removeprefix(_FIREFOX_TAGS + "/"))
    return tags


_FIREFOX_FOLDER = {"id": "t.id", "parent": "t.parent", "title": "t.title", "guid": "t.guid"}
_OLD_ANDROID_FOLDER = {"id": "t._id", "parent": "t.parent", "title": "t.title", "guid": "t.guid"}


def _folders_of(
    database: ForeignDatabase, table: str, columns: Mapping[str, str]
) -> Mapping[int, str]:
    """The path of each folder of bookmarks by its number."""
    names = set(database.column_names(table))
    if not {each.removeprefix("t.") for each in columns.values()} <= names:
        return {}
    nodes: dict[int, tuple[Cell, str, Cell]] = {}
    for row in database.rows(table, {**columns, "kind": "t.type"}):
        if isinstance(row, RowTooLarge) or row["kind"] not in (0, 2) or len(nodes) > _MOST_FOLDERS:
            continue
        if isinstance(number := row["id"], int):
            name = _FIREFOX_ROOTS.get(str(row["guid"])) or _line(row["title"]) or ""
            nodes[number] = (row["parent"], name, row["guid"])
    return {number: _path(nodes, number) for number in nodes}


def _path(nodes: Mapping[int, tuple[Cell, str, Cell]], number: int) -> str:
    names: list[str] = []
    at: Cell = number
    for _ in range(_DEEPEST):
        if not isinstance(at, int) or at not in nodes:
            break
        parent, name, guid = nodes[at]
        if guid == _FIREFOX_TAGS:
            return "/".join([_FIREFOX_TAGS, *reversed(names)])
        if parent in nodes and parent != at:  # the root of all has no name that says anything
            names.append(name)
        at = parent if parent != at else None
    return " / ".join(reversed(names))


def _old_android(folders: Mapping[int, str]) -> tuple[Rows, ...]:
    """Firefox for Android until 2020."""
    visits = Rows(
        "visits",
        {"time": "t.date", "url": "u.url", "title": "u.title", "reason": "t.visit_type"},
        partial(_visit, None, _FIREFOX_REASONS, 1),
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
        partial(_bookmark, folders, {}),
    )
    columns = {"term": "t.query", "time": "t.date"}
    return visits, bookmarks, Rows("searchhistory", columns, partial(_search, None))


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
        partial(_visit, APPLE, (), 0),
        (
            ("u", "history_items", "u.id = t.history_item"),
            ("f", "history_visits", "f.id = t.redirect_source"),
            ("fu", "history_items", "fu.id = f.history_item"),
        ),
    )
    return (visits,)


def _visit(
    epoch: Epoch | None, reasons: tuple[str, ...], first: int, row: Row
) -> Iterator[tuple[str, Data]]:
    url = _address(row["url"])
    if url is None:
        raise BadRecord("bad_record", "the page of this visit is not in the file")
    visited_at = _instant(row["time"], epoch)
    if visited_at is None:
        raise BadRecord("bad_date", "its time cannot be read")
    duration, reason = row.get("duration"), row.get("reason")
    from_url = _address(row.get("from_url"))
    origin = (row.get("from_time"), from_url, row.get("from_reason")) if from_url else None
    yield (
        "visits",
        {
            "id": _visit_id(row["time"], url, reason),
            "visited_at": visited_at,
            "title": _line(row["title"]),
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


def _bookmark(
    folders: Mapping[int, str], tags: Mapping[int, list[str]], row: Row
) -> Iterator[tuple[str, Data]]:
    """A bookmark; folders and separators are none, and a tag stands with the page that has it."""
    parent, page = row["folder"], row.get("page")
    folder = folders.get(parent, "") if isinstance(parent, int) else ""
    if row["kind"] != 1 or folder.startswith(_FIREFOX_TAGS):
        return
    url = _address(row["url"])
    if url is None:
        raise BadRecord("bad_record", "the page of this bookmark is not in the file")
    title = _line(row["title"]) or _line(row.get("page_title"))
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
        "modified_at": modified_at,
    }
    return data | ({"added_at": added_at} if added_at else {})


def _search(epoch: Epoch | None, row: Row) -> Iterator[tuple[str, Data]]:
    """Words that were searched; a page of Firefox that nobody searched for has none."""
    term = _line(row["term"])
    if term is None:
        return
    searched_at, url = _instant(row["time"], epoch), _address(row.get("url"))
    data: Data = {"id": stable_id("sch", term, repr(row["time"]), url), "term": term, "url": url}
    host: Data = {"host": host_of(url) if url else None}
    yield "searches", data | host | ({"searched_at": searched_at} if searched_at else {})


def _download(row: Row) -> Iterator[tuple[str, Data]]:
    path = _line(row["path"]) or _line(row["old_path"])
    url = _address(row["url"]) or _address(row["old_url"])
    begun_at, size = _instant(row["begun"]), row["size"]
    data: Data = {
        "id": stable_id("dwn", repr(row["begun"]), path, url),
        "filename": PureWindowsPath(path).name if path else None,
        "path": path,
        "url": url,
        "referrer": _address(row["referrer"]),
        "ended_at": _instant(row["ended"]),
        "mime_type": _line(row["kind"]),
        "size_bytes": size if isinstance(size, int) and size >= 0 else None,
        "state": _named(_DOWNLOAD_STATES, row["state"], 0),
    }
    yield "downloads", data | ({"started_at": begun_at} if begun_at else {})


def _instant(value: Json, epoch: Epoch | None = None) -> str | None:
    """The instant of a number; where no epoch is known, its size says which. Raises: BadRecord."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        return None
    known = epoch or epoch_of(value)
    return known.instant(value) if known else None


def _line(value: Cell) -> str | None:
    return or_none(one_line(printable(value))) if isinstance(value, str) else None


def _address(value: Cell) -> str | None:
    """An address on the web; those of the browser's own pages too."""
    return or_none(printable(value).strip()) if isinstance(value, str) else None
