"""Notes: a folder of Markdown files, as Obsidian, Logseq, Notion's export or an editor leave it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any, cast
from urllib.parse import unquote

import yaml
from yaml import SafeLoader

try:
    from yaml import CSafeLoader
except ImportError:  # where the C library is missing
    CSafeLoader = SafeLoader

from pdpp_kernel.source_item import Data, SourceItem, SourceRecord, stable_id
from pdpp_sources.common import json_values
from pdpp_sources.common.attachments import is_media, kind_of, with_file
from pdpp_sources.common.declaration import (
    StreamForm,
    blob,
    declaration,
    file_text,
    integer,
    key,
    moment,
    names,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.source import Claim, beginning_at, claim, each_member, matching, one_record
from pdpp_sources.common.text import decoded, one_line, printable
from pdpp_sources.common.times import rendered

LARGEST_NOTE_BYTES = 8 * 1024 * 1024
_FACTS = ("title", "tags", "created", "created_at", "date")
_SUFFIXES = (".md", ".markdown", ".mdown")
_HEADING = re.compile(r"^#{1,3}[^\S\n]+(\S[^\n]*)", re.MULTILINE)
_TAG = re.compile(r"(?:^|(?<=\s))#([A-Za-zÀ-ÿ][\w/-]{0,80})")
_WIKI_LINK = re.compile(r"\[\[([^\]|#^\n]+)")
_LINK = re.compile(r"\]\((?!\w{1,40}:)([^)\s#\[\]]+)\)")
_FRONT = re.compile(r"\A\s*---[^\S\n]*\n(.*?)^---[^\S\n]*$\n?", re.DOTALL | re.MULTILINE)
LONGEST_FRONT_CHARS = 64 * 1024
_NESTED = 200
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)

NOTES = StreamForm(
    "notes",
    "Your notes",
    "Title, text, tags and links of every note.",
    [
        key(),
        text("title", "Title of the note", title=True),
        text("body", "Text in Markdown", media="text/markdown"),
        word("folder", "Folder it lies in"),
        text("path", "Path in the export"),
        names("tags", "Tags"),
        text("tagged", "All tags, to search in"),
        names("links", "Notes and files it links to"),
        moment("modified_at", "When the file was last changed", event=True),
        moment("created_at", "When it was begun, as the note itself says"),
        integer("word_count", "Number of words", summed=True),
    ],
    time_field="modified_at",
    views={"titles": ("Titles and tags only", ["id", "title", "tags", "modified_at"])},
    semantic=["title", "body"],
)

FILES = StreamForm(
    "files",
    "Pictures and documents among your notes",
    "Name, kind and content of each file.",
    [
        key(),
        text("filename", "Name of the file", title=True),
        text("path", "Path in the export"),
        word("folder", "Folder it lies in"),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        moment("modified_at", "When the file was last changed", event=True),
        blob(),
        *file_text(),
    ],
    time_field="modified_at",
)


class NotesSource:
    """Reads each Markdown file as a note, with the pictures and documents beside them."""

    connector_key = "notes"
    declaration: Data = declaration(
        "notes", "Notes", "Markdown notes with their files.", [NOTES, FILES]
    )
    how_to_export = (
        "Obsidian, Logseq: import the vault's folder itself. Notion: Settings > Export all "
        "workspace content > Markdown & CSV. Any folder or zip of .md files."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim Markdown by its ending and by being text, and the media that belong to it."""
        notes = list(matching(export, lambda head: b"\x00" not in head, *_SUFFIXES))
        media = [m for m in export.members if notes and is_media(m.name)]
        return claim([*notes, *_of_notes(notes, media)], "it holds Markdown files")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each note and each file in order of their paths."""
        return beginning_at(start, each_member(export, _read_member))


def _of_notes(notes: list[ExportMember], media: list[ExportMember]) -> Iterator[ExportMember]:
    """The files that notes link to, and others beside them where these are no more than notes.

    A note among a folder of photographs makes them no part of it.
    """
    linked = _linked(notes, media) if media else set[str]()
    in_folder = Counter(PurePosixPath(note.name).parent for note in notes)
    beside: dict[PurePosixPath, list[ExportMember]] = {}
    for member in media:
        path = PurePosixPath(member.name)
        if member.name in linked:
            yield member
        elif nearest := next((each for each in path.parents if each in in_folder), None):
            beside.setdefault(nearest, []).append(member)
    for folder, others in beside.items():
        if len(others) <= in_folder[folder]:
            yield from others


def _linked(notes: list[ExportMember], media: list[ExportMember]) -> set[str]:
    """The files that notes link to: by their path from the note, else by their bare name."""
    called: dict[str, list[str]] = {}
    for member in media:
        called.setdefault(PurePosixPath(member.name).name, []).append(member.name)
    linked: set[str] = set()
    for note in notes:
        folder = PurePosixPath(note.name).parent
        for link in _links_of(note):
            known = called.get(PurePosixPath(link).name, [])
            path = normpath(folder / link)
            linked.update([path] if path in known else known)
    return linked


def _links_of(note: ExportMember) -> list[str]:
    """The notes and files that a note links to, before it is read."""
    try:
        BOOKMARK.looking_at(note)
        return [unquote(link) for link in _links(decoded(note.head(LARGEST_NOTE_BYTES)))]
    except (MemberDamaged, BadRecord):
        return []


def _read_member(member: ExportMember) -> Iterator[SourceItem]:
    if member.suffix in _SUFFIXES:
        yield from one_record(member.name, member.offset, lambda: [_note(member)])
    else:
        yield from with_file(_file(member), member)


def _note(member: ExportMember) -> SourceRecord:
    if member.size_bytes > LARGEST_NOTE_BYTES:
        raise BadRecord("too_large", "the note is over 8 MB")
    with member.open() as stream:
        content = decoded(stream.read()).replace("\r\n", "\n")
    facts, body = _split_front_matter(content)
    plain = _CODE.sub(" ", body)
    heading = _HEADING.search(plain)
    path = PurePosixPath(member.name)
    tags = _tags(facts, plain)
    title = json_values.line(facts, "title") or (_words_of(heading) or path.stem)
    data: Data = {
        "id": stable_id("note", member.name),
        "title": one_line(printable(title), 300),
        "body": body,
        **_placed(member),
        "tags": tags,
        "tagged": " ".join(tags) or None,
        "links": _links(body),
        "created_at": json_values.instant(facts, "created", "created_at", "date"),
        "word_count": len(body.split()),
    }
    return SourceRecord("notes", data, member.offset)


def _words_of(heading: re.Match[str] | None) -> str:
    """A heading without the marks that may close it."""
    return heading.group(1).rstrip().rstrip("#").rstrip() if heading else ""


def _file(member: ExportMember) -> SourceRecord:
    data: Data = {
        "id": stable_id("file", member.name),
        "filename": one_line(printable(PurePosixPath(member.name).name), 255),
        **_placed(member),
        "mime_type": kind_of(member.name),
        "size_bytes": member.size_bytes,
    }
    return SourceRecord("files", data, member.offset)


def _placed(member: ExportMember) -> Data:
    path = PurePosixPath(member.name)
    return {
        "path": printable(member.name),
        "folder": printable(str(path.parent)) if path.parent.name else None,
        "modified_at": rendered(member.modified_at),
    }


def _split_front_matter(content: str) -> tuple[Data, str]:
    """Front matter and text; front matter that is no YAML stays part of the text."""
    front = _FRONT.match(content)
    if front is None or len(front.group(1)) > LONGEST_FRONT_CHARS:
        return {}, content.strip()
    text = front.group(1)
    # The loader in C is ten times as fast, and ends the process where values nest too deeply.
    nested = sum(text.count(mark) for mark in ("[", "{", "- ", "? "))
    loader = SafeLoader if nested > _NESTED else CSafeLoader
    try:
        facts: object = yaml.load(text, loader)  # noqa: S506 (both are safe)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError):
        return {}, content.strip()
    named = cast("Data", facts) if isinstance(facts, dict) else {}
    body = content[front.end() :].strip()
    return {name: _as_json(named.get(name)) for name in _FACTS}, body


def _as_json(value: Any) -> Any:
    """A value of front matter, or a flat list of them; dates as text.

    Nothing is followed further down: a few lines of YAML can name more than memory holds.
    """
    if isinstance(value, list):
        return [_scalar(each) for each in cast("list[Any]", value)]
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, str | int | float | bool) else None


def _tags(facts: Data, plain: str) -> list[str]:
    text = json_values.text(facts, "tags") or ""
    listed = json_values.strings(facts, "tags") or re.split(r"[,\s]+", text)
    found = [tag.lstrip("#") for tag in [*listed, *_TAG.findall(plain)]]
    return list(dict.fromkeys(filter(None, found)))


def _links(body: str) -> list[str]:
    files = (each for each in _LINK.findall(body) if PurePosixPath(each).suffix)
    found = (*_WIKI_LINK.findall(body), *files)
    return list(dict.fromkeys(one_line(each, 500) for each in found))
