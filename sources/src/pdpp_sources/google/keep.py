"""Notes of Google Keep: a file of JSON each, with the pictures and recordings they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from pdpp_kernel.source_item import Data, SourceItem, SourceRecord, stable_id
from pdpp_sources.common import json_values
from pdpp_sources.common.attachments import kind_of, with_file
from pdpp_sources.common.declaration import (
    StreamForm,
    blob,
    flag,
    integer,
    key,
    moment,
    names,
    reference,
    sensitive,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.text import one_line, or_none, printable
from pdpp_sources.common.times import from_epoch

NOTES = StreamForm(
    "notes",
    "Your notes in Google Keep",
    "Title, text, lists, labels and people of every note, also of archived and deleted ones.",
    [
        key(),
        moment("edited_at", "When it was last changed, in UTC", event=True),
        moment("created_at", "When it was made, in UTC"),
        text("title", "Title of the note", title=True),
        sensitive(text("text", "The text; of a list a line for each item, [x] where it is done")),
        word("kind", "note or list"),
        integer("item_count", "Number of items, if it is a list", summed=True),
        integer("done_count", "Number of items that are done", summed=True),
        names("labels", "Labels"),
        text("labelled", "All labels, to search in"),
        names("links", "Pages it speaks of, each as title and address"),
        sensitive(names("shared_with", "Mail addresses of those who see it")),
        word("color", "Color, as Google names it"),
        flag("is_pinned", "Whether it is pinned"),
        flag("is_archived", "Whether it was archived"),
        flag("is_trashed", "Whether it lies in the trash"),
        integer("attachment_count", "Number of pictures and recordings", summed=True),
    ],
    time_field="edited_at",
    views={"titles": ("Titles and labels only", ["id", "title", "labels", "edited_at"])},
    children={"files": ("note_files", "note_id")},
    semantic=["title", "text"],
)

NOTE_FILES = StreamForm(
    "note_files",
    "Pictures and recordings in your notes",
    "Name, kind and content of each file.",
    [
        key(),
        reference("note_id", "The note", required=True),
        moment("edited_at", "When the note was last changed", event=True),
        text("filename", "Name of the file", title=True),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        blob(),
    ],
    time_field="edited_at",
    parents={"note": ("notes", "note_id")},
)


def note_records(
    value: Data, member: ExportMember, neighbours: Mapping[str, ExportMember]
) -> Iterator[SourceItem]:
    """One note and its files, which lie `beside` it. Raises: BadRecord."""
    edited_at = _instant(value, "userEditedTimestampUsec")
    created_at = _instant(value, "createdTimestampUsec")
    if edited_at is None and created_at is None:
        raise BadRecord("bad_date", "the note has no readable time")
    created_us = json_values.whole(value, "createdTimestampUsec")
    note_id = stable_id("note", created_us or PurePosixPath(member.name).stem)
    items = json_values.objects(value, "listContent")
    labels = _each(value, "labels", "name")
    attached = json_values.objects(value, "attachments")
    edited = {"edited_at": edited_at or created_at}
    data: Data = {
        "id": note_id,
        **edited,
        "created_at": created_at,
        "title": json_values.line(value, "title"),
        "text": _text(value, items),
        "kind": "list" if "listContent" in value else "note",
        "item_count": len(items) if "listContent" in value else None,
        "done_count": sum(json_values.truth(item, "isChecked") for item in items)
        if "listContent" in value
        else None,
        "labels": labels,
        "labelled": or_none(" ".join(labels)),
        "links": _links(value),
        "shared_with": _each(value, "sharees", "email"),
        "color": json_values.line(value, "color"),
        "is_pinned": json_values.truth(value, "isPinned"),
        "is_archived": json_values.truth(value, "isArchived"),
        "is_trashed": json_values.truth(value, "isTrashed"),
        "attachment_count": len(attached),
    }
    yield SourceRecord("notes", data, member.offset)
    for number, attachment in enumerate(attached):
        path = json_values.line(attachment, "filePath")
        file = _file(path, neighbours)
        filename = one_line(printable(PurePosixPath(file.name).name)) if file else path
        facts: Data = {
            "id": stable_id("file", note_id, path or number),
            "note_id": note_id,
            **edited,
            "filename": filename,
            "mime_type": json_values.line(attachment, "mimetype") or kind_of(filename),
            "size_bytes": None,
        }
        yield from with_file(SourceRecord("note_files", facts, member.offset), file)


def files_of_note(value: Data, neighbours: Mapping[str, ExportMember]) -> Iterator[ExportMember]:
    """The files that a note holds, as far as they lie beside it."""
    for attachment in json_values.objects(value, "attachments"):
        if file := _file(json_values.line(attachment, "filePath"), neighbours):
            yield file


def _file(path: str | None, neighbours: Mapping[str, ExportMember]) -> ExportMember | None:
    """The file of that name; Google writes .jpeg for what it names .jpg, and the other way."""
    if path is None:
        return None
    stem = path.rpartition(".")[0]
    spellings = (path, f"{stem}.jpg", f"{stem}.jpeg", f"{stem}.3gp", f"{stem}.m4a")
    return next((neighbours[spelling] for spelling in spellings if spelling in neighbours), None)


def _text(value: Data, items: list[Data]) -> str | None:
    lines: list[str] = []
    for item in items:
        mark = "[x]" if json_values.truth(item, "isChecked") else "[ ]"
        lines.append(f"{mark} {json_values.line(item, 'text') or ''}".rstrip())
    content = json_values.text(value, "textContent")
    return or_none("\n".join(filter(None, [content, *lines])))


def _links(value: Data) -> list[str]:
    links: list[str] = []
    for annotation in json_values.objects(value, "annotations"):
        words, url = json_values.line(annotation, "title"), json_values.line(annotation, "url")
        links += [f"{words} <{url}>" if words else url] if url else []
    return links


def _each(value: Data, lists: str, name: str) -> list[str]:
    names = (json_values.line(element, name) for element in json_values.objects(value, lists))
    return list(dict.fromkeys(filter(None, names)))


def _instant(value: Data, name: str) -> str | None:
    microseconds = json_values.whole(value, name)
    try:
        return from_epoch(microseconds / 1_000_000) if microseconds else None
    except BadRecord:
        return None
