"""Records for people: the columns of a table, and how values read.  Pure.

Rule: everything here comes from disclosed records; a value is cut and cleaned before it is shown.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import replace

from pdpp_kernel.declaration import Property, Stream
from pdpp_kernel.record import key_text
from pdpp_kernel.texts import Minute, Text, date_of, day_of_text, message
from pdpp_kernel.values import ValueKind, day_number, instant_ns
from personal_server.console.record_view import MOST_LINK_BYTES, RecordsView, sortable_fields
from personal_server.console.viewpoints import records_path
from personal_server.console.words import cut, field_words, said
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.timeline import time_field

Data = Mapping[str, object]
AUTHOR, NAME_CHARS = "author", 80
COLUMNS = 6
READ_CHARS = 1_500
CELL_CHARS, FIELD_CHARS, SHORT_CHARS = 80, 2_000, 120
RECORD_CHARS = 24_000
LISTED_VALUES = 20
FIELDS_SHOWN = 150

# What a browser may show of what came with a record: never SVG or PDF, which can run something.
PICTURES: Mapping[str, tuple[int, bytes]] = {
    "image/png": (0, b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": (0, b"\xff\xd8\xff"),
    "image/gif": (0, b"GIF8"),
    "image/webp": (8, b"WEBP"),
    "image/avif": (4, b"ftypavif"),
}
"""Media types, each with where its bytes say so."""
TEXTS: Mapping[str, str] = {
    "text/html": "text/html",
    **dict.fromkeys(
        ("text/plain", "text/csv", "text/markdown", "text/calendar", "text/vcard"),
        "text/plain; charset=utf-8",
    ),
    "application/json": "text/plain; charset=utf-8",
}
"""Media types, each with that as which it is shown."""


def brief(value: object, kind: ValueKind | None = None, limit: int = CELL_CHARS) -> Text:
    """A value in one short line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return message("yes") if value else message("no")
    if isinstance(value, str):
        return _moment(value, kind) or cut(value, limit)
    if isinstance(value, list):
        several = cast("list[object]", value)
        texts = ", ".join(
            str(brief(value_shown, None, limit)) for value_shown in several[:LISTED_VALUES]
        )
        return cut(texts + (", …" if len(several) > LISTED_VALUES else ""), limit)
    return cut(json.dumps(value, ensure_ascii=False), limit)


def _moment(text: str, kind: ValueKind | None) -> Text | None:
    if kind is ValueKind.INSTANT:
        at_ns = instant_ns(text)
        return None if at_ns is None else Minute(at_ns)
    day = day_number(text) if kind is ValueKind.DATE else None
    return None if day is None else date_of(day)


class ShownColumn(msgspec.Struct, frozen=True):
    """A column of a table; `sorts` is the link that sorts by it, if it can be sorted by."""

    name: str
    words: str
    sorts: str | None
    order: str | None
    counts: bool


def joining_fields(declared: Stream) -> frozenset[str]:
    """Fields whose values name other records, and so say nothing to a reader."""
    own = (
        relationship.foreign_key
        for relationship in declared.relationships
        if relationship.foreign_key_on != "target"
    )
    return frozenset({*own, declared.conversation_field or ""})


def columns_of(source: ReadableSource) -> tuple[str, ...]:
    """The fields that tell records apart at a glance: when, what, of whom, then short ones."""
    declared, time = source.declared, time_field(source)
    names = [
        declared.title_field,
        None if time is None else time.name,
        *declared.fields_with_role("author"),
        *declared.lexical_fields,
        *(name for name in declared.properties if name not in declared.primary_key),
    ]
    unread = {*declared.blob_fields, *joining_fields(declared)}
    columns = [n for n in dict.fromkeys(names) if n in source.fields and n not in unread]
    return tuple(columns[:COLUMNS]) or source.fields[:COLUMNS]


def told_columns(view: RecordsView, names: Sequence[str], datas: Sequence[Data]) -> tuple[str, ...]:
    """Those columns that say something here: the first, the one sorted by, those with values."""
    always = {names[0], (view.sort or "").removeprefix("-")}
    return tuple(n for n in names if n in always or any(data.get(n) for data in datas))


def table_columns(
    view: RecordsView, source: ReadableSource, names: Iterable[str]
) -> list[ShownColumn]:
    """The head of a table; a field by which it is sorted turns it round."""
    sortable = sortable_fields(source)
    columns: list[ShownColumn] = []
    for name in names:
        down = view.sort == f"-{name}"
        order = "descending" if down else "ascending" if view.sort == name else None
        turned = replace(view, sort=name if down else f"-{name}").link
        declared = source.declared.properties[name]
        counts = declared.kind in (ValueKind.INTEGER, ValueKind.NUMBER)
        link = turned if name in sortable else None
        columns.append(ShownColumn(name, field_words(name), link, order, counts))
    return columns


class Row(msgspec.Struct, frozen=True):
    """A record in a table: its page, what it is called, and its cells after the first.

    `text` is the beginning of what it says, where it is shown to be read.
    """

    link: str
    name: Text
    cells: tuple[Text, ...]
    text: str = ""


def author_of(source: ReadableSource, data: Mapping[str, object]) -> str:
    """Who wrote a record, by the first of its names; empty where it says nothing of that."""
    values = (data.get(name) for name in source.declared.fields_with_role(AUTHOR))
    return next((cut(each, NAME_CHARS) for each in values if isinstance(each, str) and each), "")


def called(source: ReadableSource, data: Mapping[str, object]) -> Text | None:
    """What a record without a title is called: by its sender and day, if it has both."""
    author, dated = author_of(source, data), time_field(source)
    at = None if dated is None else data.get(dated.name)
    if not author or not isinstance(at, str):
        return None
    return message("%(author)s, %(day)s", author=author, day=day_of_text(at))


def table_row(root: str, source: ReadableSource, key: str, data: Data, names: Sequence[str]) -> Row:
    """The cells of one record in the table of its stream."""
    kinds = {name: source.declared.properties[name].kind for name in names}
    first, *cells = [brief(data.get(name), kinds[name]) for name in names]
    link = records_path(root, source.connection_id, source.stream, key)
    return Row(link, first or called(source, data) or cut(key, CELL_CHARS), tuple(cells))


def read_fields(source: ReadableSource) -> tuple[str, ...]:
    """The fields that may hold what a record says at length."""
    declared = source.declared
    return tuple(
        n for n in declared.lexical_fields if n in source.fields and n != declared.title_field
    )


def read_row(root: str, source: ReadableSource, key: str, data: Data, names: Sequence[str]) -> Row:
    """One record to be read: the longest of its texts, which stands in no cell then."""
    texts = {n: text for n in read_fields(source) if isinstance(text := data.get(n), str)}
    longest = max(texts, key=lambda name: len(texts[name]), default=None)
    row = table_row(root, source, key, data, [n for n in names if n != longest] or names)
    if longest is None:
        return row
    mark = "…" if len(texts[longest]) > READ_CHARS else ""
    return replace(row, text=said(texts[longest], READ_CHARS) + mark)


class RecordField(msgspec.Struct, frozen=True):
    """A field of a record; `more` is where the rest of a long text stands, `file` its bytes."""

    name: str
    words: str
    text: Text
    is_long: bool
    chars: int | None = None
    more: str | None = None
    file: str | None = None
    same: str | None = None
    sensitive: bool = False
    shown: str | None = None
    is_picture: bool = False


def record_fields(root: str, source: ReadableSource, key: str, data: Data) -> list[RecordField]:
    """The fields that hold something, as much of each as there is room for."""
    path = records_path(root, source.connection_id, source.stream, key)
    view = RecordsView(source.connection_id, source.stream, root=root)
    chars_left = RECORD_CHARS
    fields: list[RecordField] = []
    for name, value in data.items():
        if value is None or value in ("", [], {}):
            continue
        declared = source.declared.properties[name]
        field = _field(declared, path, value, min(FIELD_CHARS, max(chars_left, CELL_CHARS)))
        if _is_for_links(source, name) and isinstance(value, str | int | bool):
            text = json.dumps(value) if not isinstance(value, str) else value
            same = view.having(FilterText(name, None, text))
            if len(urlencode(same.pairs)) <= MOST_LINK_BYTES:
                field = replace(field, same=same.link)
        chars_left -= len(str(field.text))
        fields.append(field)
    return fields


def _is_for_links(source: ReadableSource, name: str) -> bool:
    declared = source.declared
    return name in declared.aggregations.group_by and name in declared.indexed


def _field(declared: Property, path: str, value: object, limit: int) -> RecordField:
    name, path_name = declared.name, quote(declared.name, safe="")
    words, sensitive = field_words(name), declared.is_sensitive
    if declared.is_blob and isinstance(value, dict):
        reference = cast("dict[str, object]", value)
        label = brief(reference.get("filename") or reference.get("mime_type")) or message("file")
        file, kind = f"{path}/files/{path_name}", reference.get("mime_type")
        return RecordField(
            name,
            words,
            label,
            False,
            file=file,
            sensitive=sensitive,
            shown=f"{file}/shown" if kind in PICTURES or kind in TEXTS else None,
            is_picture=kind in PICTURES,
        )
    if isinstance(value, str):
        if len(value) <= SHORT_CHARS and "\n" not in value:
            text = brief(value, declared.kind, SHORT_CHARS)
            return RecordField(name, words, text, False, sensitive=sensitive)
        text, is_cut = said(value, limit), len(value) > limit
        more = f"{path}/text/{path_name}" if is_cut else None
        chars = len(value) if is_cut else None
        mark = "…" if is_cut else ""
        return RecordField(name, words, text + mark, True, chars, more, sensitive=sensitive)
    if not isinstance(value, bool | int | float):
        text = json.dumps(value, ensure_ascii=False, indent=1)
        if len(text) > SHORT_CHARS:
            chars = len(text) if len(text) > limit else None
            mark = "" if chars is None else "…"
            return RecordField(
                name, words, said(text, limit) + mark, True, chars, sensitive=sensitive
            )
    return RecordField(name, words, brief(value, limit=SHORT_CHARS), False, sensitive=sensitive)


class RelatedLink(msgspec.Struct, frozen=True):
    """What a record belongs with, as a link: a view of several, or the record with that `key`."""

    words: Text
    view: RecordsView
    key: str | None = None

    @property
    def link(self) -> str:
        """The address of its page, below the root of this server."""
        view = self.view
        if self.key is None:
            return view.link
        return records_path(view.root, view.connection_id, view.stream, self.key)


def related_to(
    root: str,
    source: ReadableSource,
    siblings: Mapping[str, ReadableSource],
    key: str,
    data: Data,
) -> list[RelatedLink]:
    """The relations of a record, and its conversation; `siblings` are what its account shows."""
    declared, connection_id = source.declared, source.connection_id
    links: list[RelatedLink] = []
    joined: set[str] = set()
    for relationship in declared.relationships:
        other = siblings.get(relationship.stream)
        if other is None:
            continue
        value = (
            key if relationship.foreign_key_on == "target" else data.get(relationship.foreign_key)
        )
        if not isinstance(value, str | int) or value == "":
            continue
        view, one = RecordsView(connection_id, relationship.stream, root=root), None
        if relationship.foreign_key_on == "self":
            one = key_text(value)
        elif relationship.foreign_key not in other.fields:
            continue
        else:
            view = view.having(FilterText(relationship.foreign_key, None, str(value)))
            if len(urlencode(view.pairs)) > MOST_LINK_BYTES:
                continue
            joined.add(relationship.foreign_key if relationship.foreign_key_on == "both" else "")
        links.append(RelatedLink(field_words(relationship.name), view, one))
    conversation_field = declared.conversation_field
    value = data.get(conversation_field or "")
    if (
        conversation_field is not None
        and conversation_field not in joined
        and isinstance(value, str)
        and value
    ):
        whole = RecordsView(connection_id, source.stream, root=root)
        view = whole.having(FilterText(conversation_field, None, value))
        if len(urlencode(view.pairs)) <= MOST_LINK_BYTES:
            links.append(RelatedLink(message("conversation"), view))
    return links


def title_of(source: ReadableSource, data: Data) -> Text:
    """What a record is called; empty where it has no title."""
    return brief(data.get(source.declared.title_field or ""), limit=SHORT_CHARS)


def plain_records(records: object) -> list[dict[str, Any]]:
    """Disclosed records as plain values."""
    return msgspec.json.decode(msgspec.json.encode(records))
