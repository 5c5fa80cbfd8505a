"""The Evernote reader: notes with their pictures and documents, as `.enex` holds them.

Source: the document type that Evernote published for its exports, and files in the tests and
trackers of published readers. A note says no id of its own: it is known by when it was made and its
title. Encrypted passages stay so and are left out of its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC
from functools import partial
from html import unescape
from pathlib import PurePosixPath

from msgspec.structs import replace

from pdpp_kernel.source_item import (
    Data,
    Skipped,
    SourceItem,
    SourceRecord,
    stable_id,
)
from pdpp_kernel.texts import message
from pdpp_sources.common.attachments import UNKNOWN_KIND, with_decoded
from pdpp_sources.common.declaration import (
    StreamForm,
    blob,
    declaration,
    file_text,
    integer,
    key,
    moment,
    names,
    plain,
    reference,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.html_text import html_to_text
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import one_line, or_none, printable
from pdpp_sources.common.times import from_iso
from pdpp_sources.common.xml_elements import XmlElement, XmlPart, charset_of_xml, cut_elements

_ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>(?:\s|<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>)*)<en-export[\s>]", re.DOTALL
)
_TODO = re.compile(r"<en-todo\b([^>]{0,200})>", re.IGNORECASE)
_CRYPTED = re.compile(r"<en-crypt\b[^>]{0,1000}>[^<]*</en-crypt>", re.IGNORECASE)
_LINK = re.compile(r"""\bhref\s*=\s*["'](https?://[^"'<>\s]{1,2000})["']""", re.IGNORECASE)
_MOST_LINKS = 200
_OPENED, _CLOSED, _CDATA = b"<content>", b"</content>", b"<![CDATA["

NOTES = StreamForm(
    "notes",
    "Your notes",
    "Title, text, tags and links of every note.",
    [
        key(),
        text("title", "Title of the note", title=True),
        text("body", "What it says"),
        word("notebook", "Notebook, as the file is called"),
        names("tags", "Tags"),
        text("tagged", "All tags, to search in"),
        names("links", "Pages it links to"),
        moment("created_at", "When it was made"),
        moment("modified_at", "When it was last changed, or made", event=True),
        word("author", "Who wrote it, as the note says"),
        plain("source_url", "Page it was clipped from"),
        integer("file_count", "Number of pictures and documents in it", summed=True),
        integer("word_count", "Number of words", summed=True),
    ],
    time_field="modified_at",
    views={"titles": ("Titles and tags only", ["id", "title", "tags", "modified_at"])},
    children={"files": ("files", "note_id")},
    semantic=["title", "body"],
)
FILES = StreamForm(
    "files",
    "Pictures and documents in your notes",
    "Name, kind and content of each file.",
    [
        key(),
        reference("note_id", "The note", required=True),
        moment("modified_at", "When the note was last changed", event=True),
        text("filename", "Name of the file", title=True),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        blob(),
        *file_text(),
    ],
    time_field="modified_at",
    parents={"note": ("notes", "note_id")},
)


class EvernoteSource:
    """Reads what Evernote exports."""

    connector_key = "evernote"
    declaration: Data = declaration(
        "evernote", "Evernote", "Notes of Evernote with their files.", [NOTES, FILES]
    )
    how_to_export = (
        "In Evernote for Windows or Mac open the menu of a notebook, choose Export notebook, as "
        "ENEX; export each notebook into a file called as it."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim the XML by its outermost element."""
        return claim(matching(export, is_enex, ".enex", ".xml"), "it holds notes of Evernote")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each note before its files."""
        return beginning_at(start, without_repeats(each_member(export, _read_member)))


def is_enex(head: bytes) -> bool:
    """Whether a file begins as an export of Evernote does."""
    return _ROOT.match(head) is not None


def _read_member(member: ExportMember) -> Iterator[SourceItem]:
    alike: dict[str, int] = {}
    charset = charset_of_xml(member.head())
    for element in cut_elements(member, "note"):
        if isinstance(element, Skipped):
            yield element
        else:
            build = partial(_note, element, charset, member, alike)
            yield from one_record(element.where, element.position, build)


def _note(
    element: XmlElement, charset: str | None, member: ExportMember, alike: dict[str, int]
) -> Iterator[SourceItem]:
    """A note and its files. Raises: BadRecord."""
    note = replace(element, content=_escaped(element.content)).tree(charset)
    title = one_line(note.said("title") or "", 1000)
    content = note.said("content") or ""
    if not title and not content:
        raise BadRecord("bad_record", message("the note has neither title nor text"))
    created_at, modified_at = (_time(note.said(name)) for name in ("created", "updated"))
    own = stable_id("note", title, created_at or content)
    alike[own] = alike.get(own, 0) + 1
    note_id = own if alike[own] == 1 else f"{own}.{alike[own]}"
    body = _body(content)
    tags = [one_line(tag.text, 200) for tag in note.all("tag") if tag.text.strip()]
    files = list(note.all("resource"))
    links = list(dict.fromkeys(map(unescape, _LINK.findall(content))))
    data: Data = {
        "id": note_id,
        "title": or_none(title),
        "body": body,
        "notebook": or_none(one_line(PurePosixPath(member.name).stem, 200)),
        "tags": tags,
        "tagged": or_none(" ".join(tags)),
        "links": links[:_MOST_LINKS],
        "created_at": created_at,
        "author": or_none(one_line(note.said("note-attributes/author") or "", 200)),
        "source_url": note.said("note-attributes/source-url"),
        "file_count": len(files),
        "word_count": len(body.split()),
    }
    when = modified_at or created_at
    timed: Data = {"modified_at": when} if when else {}
    yield SourceRecord("notes", data | timed, element.position)
    if len(links) > _MOST_LINKS:
        reason = message("only the first %(most)s links were imported", most=_MOST_LINKS)
        yield Skipped(element.where, "beyond_bounds", reason, element.position)
    for number, file in enumerate(files, 1):
        facts: Data = {"id": f"{note_id}.{number}", "note_id": note_id} | timed
        yield from _file(file, facts, element)


def _escaped(note: bytes) -> bytes:
    """A note whose content is plain text, whether it stood in CDATA, in several, or in none."""
    begin = note.find(_OPENED) + len(_OPENED)
    end = note.find(_CLOSED, begin)
    if begin < len(_OPENED) or end < 0:
        return note
    content = note[begin:end].strip()
    if content.startswith(_CDATA):
        content = content.removesuffix(b"]]>").replace(_CDATA + b">]]>", b"")
        content = content.replace(_CDATA, b"").replace(b"]]>", b"")
    elif b"<en-note" not in content:
        return note
    written = content.replace(b"&", b"&amp;").replace(b"<", b"&lt;")
    return note[:begin] + written + note[end:]


def _body(content: str) -> str:
    """The words of a note; what is to do is marked as in Markdown, encrypted passages left out."""
    marked = _TODO.sub(lambda m: "[x] " if "true" in m[1] else "[ ] ", content)
    return printable(html_to_text(_CRYPTED.sub("", marked))).strip()


def _file(file: XmlPart, facts: Data, element: XmlElement) -> Iterator[SourceItem]:
    kind = one_line(file.said("mime") or UNKNOWN_KIND, 200).lower()
    filename = or_none(one_line(file.said("resource-attributes/file-name") or "", 255))
    data = facts | {"filename": filename, "mime_type": kind, "size_bytes": None}
    record = SourceRecord("files", data, element.position)
    yield from with_decoded(record, file.said("data") or "", element.where)


def _time(instant: str | None) -> str | None:
    try:
        return from_iso(instant, UTC) if instant else None
    except BadRecord:
        return None
