"""Bookmarks in files of their own: JSON, Safari's property list, the page all browsers export."""

from __future__ import annotations

import plistlib
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import BinaryIO, cast
from xml.parsers.expat import ExpatError

import msgspec

from pdpp_kernel.source_item import Data, Json, Skipped, SourceItem, SourceRecord
from pdpp_sources.browser.history_records import bookmark
from pdpp_sources.common import json_values
from pdpp_sources.common.epochs import UNIX, WEBKIT, epoch_of
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.json_stream import parse_object
from pdpp_sources.common.source import one_record
from pdpp_sources.common.text import decoded, one_line, or_none, printable, unescaped

LARGEST_FILE_BYTES = 64 * 1024 * 1024
LONGEST_LINE_BYTES = 1024 * 1024
LONGEST_TITLE_CHARS = 16 * 1024
_DEEPEST = 100  # so many headings of a page, the innermost
_CHROMIUM = re.compile(rb'\s*\{.{0,400}?"roots"\s*:\s*\{', re.DOTALL)
_FIREFOX = re.compile(rb'\s*\{\s*"guid"\s*:\s*"root________"')
_PLIST = re.compile(rb"bplist00|\s*<\?xml[^>]*>\s*<!DOCTYPE plist", re.DOTALL)
_SAFARI = re.compile(rb"WebBookmarkType|WebBookmarkUUID")
_PAGE = re.compile(rb"\s*<!DOCTYPE NETSCAPE-Bookmark-file-1", re.IGNORECASE)
# No possessive repeat of a group: before Python 3.11.5 one ends where its last, failed round got
# to, and not where that round began.  An atomic group takes memory for each, hence the bound.
_INSIDE = r"""(?>(?:[^<>"]++|"[^"<]*+"){0,10000})"""
# up to the next of these marks
_WORDS = r"(?s:.*?)(?=</?(?:a|h3|dl)\b|\Z)"
_MARKS = re.compile(
    rf"<h3\b{_INSIDE}>(?P<name>{_WORDS})|<a\s(?P<link>{_INSIDE})>(?P<title>{_WORDS})"
    r"|(?P<open><dl\b)|(?P<close></dl\b)|(?P<note><dd\b[^<>]*+>)|<(?:dt|hr)\b",
    re.IGNORECASE,
)
_LONGEST_NOTE_CHARS = 64 * 1024
_ATTRIBUTE = re.compile(r'([A-Za-z_]+)\s*=\s*"([^"]*)"')
_TAGS = re.compile(r"<[^>]*>")


def bookmark_kind(head: bytes) -> str | None:
    """Which kind of file of bookmarks this is, by how it begins."""
    if _PAGE.match(head):
        return "page"
    if _CHROMIUM.match(head) and (b'"bookmark_bar"' in head or b'"checksum"' in head):
        return "chromium"
    if _FIREFOX.match(head):
        return "firefox"
    if _PLIST.match(head) and _SAFARI.search(head):
        return "safari"
    return None


def read_bookmarks(member: ExportMember) -> Iterator[SourceItem]:
    """The bookmarks of a file, which is read as a whole, but for a page of HTML."""
    kind = bookmark_kind(member.head())
    if kind == "page":
        yield from _page(member)
        return
    if member.size_bytes > LARGEST_FILE_BYTES:
        yield Skipped(
            member.name, "too_large", "the file is too large for a list of bookmarks", member.offset
        )
        return
    with member.open() as stream:
        content = stream.read(LARGEST_FILE_BYTES)
    nodes = _safari(content) if kind == "safari" else _json(content)
    for number, build in enumerate(nodes, 1):
        position_text, records = (
            f"{member.name}, entry {number}",
            partial(_records, build, member.offset),
        )
        yield from one_record(position_text, member.offset, records)


def _records(build: partial[Data], position: int) -> list[SourceItem]:
    return [SourceRecord("bookmarks", build(), position)]


def _json(content: bytes) -> Iterator[partial[Data]]:
    """Chromium's `roots`, and Firefox's own backup. Raises: BadRecord."""
    whole = parse_object(content)
    roots = json_values.inner(whole, "roots")
    for root in roots.values():
        if isinstance(root, dict):
            yield from _leaves(cast(Data, root), _CHROMIUM_TREE)
    if not roots:
        yield from _leaves(whole, _FIREFOX_TREE)


class _Tree(msgspec.Struct, frozen=True):
    """How a browser lays out its folders: the members that a node has, and what a leaf is.

    Shapes: `is_leaf` says that a node without nodes is a bookmark; `passed_by` that one is read
        with others.
    """

    children: str
    title: str
    build: Callable[[Data, tuple[str, ...]], Data]
    is_leaf: Callable[[Data], bool]
    is_root_named: bool = False
    passed_by: Callable[[Data], bool] = lambda _: False


def _leaves(root: Data, tree: _Tree) -> Iterator[partial[Data]]:
    """The bookmarks below a node, however deep, with the folders that they lie in.

    In: Chromium's `{"name": "Bar", "children": [{"name": "Bread", "children": [{"url": "u"}]}]}`.
    Out: how to build one bookmark, of `u` in the folders `("Bar", "Bread")`.
    """
    rest: list[Iterator[Json]] = []
    folders: list[tuple[str, ...]] = []
    entered = dict[int, None]()

    def enter(node: Data, around: tuple[str, ...], *, is_named: bool) -> None:
        name = json_values.line(node, tree.title) if is_named else None
        rest.append(iter(json_values.things(node, tree.children)))
        folders.append((*around, name) if name else around)
        entered[id(node)] = None

    enter(root, (), is_named=tree.is_root_named)
    while rest:
        for value in rest[-1]:
            if not isinstance(value, dict):
                yield partial(_no_object)
            elif tree.passed_by(node := cast(Data, value)):
                continue
            elif id(node) in entered:  # which only a binary property list can say
                yield partial(_within_itself)
            elif tree.children in node:
                enter(node, folders[-1], is_named=True)
                break
            elif tree.is_leaf(node):
                yield partial(tree.build, node, folders[-1])
        else:
            rest.pop()
            folders.pop()
            entered.popitem()


def _no_object() -> Data:
    raise BadRecord("bad_record", "the entry is not an object")


def _within_itself() -> Data:
    raise BadRecord("bad_record", "the folder is within itself")


def _chromium_bookmark(node: Data, folder: tuple[str, ...]) -> Data:
    added, modified = (json_values.whole(node, n) for n in ("date_added", "date_modified"))
    return bookmark(
        json_values.required(node, "url"),
        json_values.line(node, "name"),
        " / ".join(folder),
        WEBKIT.instant(added) if added else None,
        WEBKIT.instant(modified) if modified else None,
    )


def _firefox_bookmark(node: Data, folder: tuple[str, ...]) -> Data:
    added, modified = (json_values.whole(node, n) for n in ("dateAdded", "lastModified"))
    unit = UNIX["microseconds"]
    return bookmark(
        json_values.required(node, "uri"),
        json_values.line(node, "title"),
        " / ".join(folder),
        unit.instant(added) if added else None,
        unit.instant(modified) if modified else None,
    ) | {"tags": _tags(json_values.text(node, "tags"))}


def _safari(content: bytes) -> Iterator[partial[Data]]:
    """Safari's tree; a property list holds values only. Raises: BadRecord."""
    try:
        whole: Json = plistlib.loads(content)
    except (
        ValueError,
        TypeError,
        OverflowError,
        AttributeError,
        IndexError,
        RecursionError,
        ExpatError,
        plistlib.InvalidFileException,
    ):
        raise BadRecord("damaged_file", "the file is not a readable property list") from None
    if isinstance(whole, dict):
        yield from _leaves(cast(Data, whole), _SAFARI_TREE)


def _safari_bookmark(node: Data, folder: tuple[str, ...]) -> Data:
    """Only what is to be read later says when it was added."""
    words, later = json_values.inner(node, "URIDictionary"), json_values.inner(node, "ReadingList")
    added: Json = later.get("DateAdded")
    return bookmark(
        json_values.required(node, "URLString"),
        json_values.line(words, "title"),
        " / ".join(folder),
        _utc(added) if isinstance(added, datetime) else None,
        None,
    )


def _utc(moment: datetime) -> str:
    return moment.replace(tzinfo=UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


_CHROMIUM_TREE = _Tree(
    "children",
    "name",
    _chromium_bookmark,
    lambda node: node.get("type") != "folder",
    is_root_named=True,
)
_FIREFOX_TREE = _Tree(
    "children",
    "title",
    _firefox_bookmark,
    lambda node: node.get("typeCode") == 1,
    passed_by=lambda node: node.get("guid") == "tags________",
)
_SAFARI_TREE = _Tree(
    "Children",
    "Title",
    _safari_bookmark,
    lambda node: node.get("WebBookmarkType") == "WebBookmarkTypeLeaf",
)


def _page(member: ExportMember) -> Iterator[SourceItem]:
    """The links of a page, each under the headings that are open."""
    folders: list[str] = []
    name = ""
    link: _Link | None = None
    with member.open() as stream:
        for begin, text in _stretches(stream):
            end = 0  # of the last mark
            for match in _MARKS.finditer(text):
                if link:
                    link.add(text[end : match.start()])
                    link.has_note |= bool(match["note"])
                end = match.end()
                if match["name"] is not None:
                    name = _words(match["name"])
                elif match["open"]:
                    folders.append(name)
                    name = ""
                elif match["close"]:
                    folders[-1:] = []
                if link and not match["note"]:
                    yield from link.records(member)
                    link = None
                if match["link"] is not None:
                    link = _Link(match["link"], match["title"], folders[-_DEEPEST:], begin)
            if link:
                link.add(text[end:])
        if link:
            yield from link.records(member)


class _Link(msgspec.Struct):
    """A link of a page, whose note may follow it on further lines."""

    attributes: str
    title: str
    folders: list[str]
    begin: int
    has_note: bool = False
    note: str = ""

    def add(self, text: str) -> None:
        """What stands behind it, which is its note if one has begun."""
        if self.has_note:
            self.note = (self.note + text)[:_LONGEST_NOTE_CHARS]

    def records(self, member: ExportMember) -> Iterator[SourceItem]:
        """The bookmark, or why it is none."""
        position = member.offset + self.begin
        build = partial(_page_items, self, position)
        yield from one_record(member.where(self.begin), position, build)


def _stretches(stream: BinaryIO) -> Iterator[tuple[int, str]]:
    """Lines with where they begin; those that a title goes over are one."""
    begin, offset, carried, is_open = 0, 0, "", 0
    while line := stream.readline(LONGEST_LINE_BYTES):
        text = decoded(line)
        carried, offset = carried + text, offset + len(line)
        lower = text.lower()
        is_open += lower.count("<a ") + lower.count("<h3") - lower.count("</a>")
        is_open -= lower.count("</h3>")
        if is_open <= 0 or len(carried) > LONGEST_TITLE_CHARS:
            yield begin, carried
            begin, carried, is_open = offset, "", 0
    if carried:
        yield begin, carried


def _page_items(link: _Link, position: int) -> list[SourceItem]:
    facts = {name.lower(): unescaped(value) for name, value in _ATTRIBUTE.findall(link.attributes)}
    url = or_none(printable(facts.get("href", "")).strip())
    if url is None:
        raise BadRecord("bad_record", "the bookmark has no address")
    folder = " / ".join(filter(None, link.folders))
    added, modified = (_counted(facts.get(name)) for name in ("add_date", "last_modified"))
    record = bookmark(url, or_none(_words(link.title)), folder, added, modified)
    record["tags"] = _tags(facts.get("tags"))
    record["note"] = or_none(printable(unescaped(_TAGS.sub("", link.note))).strip())
    return [SourceRecord("bookmarks", record, position)]


def _tags(text: str | None) -> list[str]:
    """Tags as browsers list them: with commas."""
    tags = (one_line(printable(tag)) for tag in (text or "").split(","))
    return list(dict.fromkeys(filter(None, tags)))


def _counted(text: str | None) -> str | None:
    """Seconds since 1970; some programs write finer ones."""
    number = int(text) if text and text.isdecimal() and len(text) < 19 else 0
    epoch = epoch_of(number) or UNIX["seconds"]
    return epoch.instant(number) if number else None


def _words(html: str) -> str:
    return one_line(printable(unescaped(_TAGS.sub("", html))))
