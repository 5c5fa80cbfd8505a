"""Notes: a folder of texts in Markdown or pages of HTML, as Obsidian, Notion or an editor leave it.

What Bear and Apple's Notes say of notes beside their text: `note_exports.py`. Notes that are pages
of HTML: `note_pages.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any, cast
from urllib.parse import unquote

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common import json_values
from pdpp_sources.common.attachments import is_media, kind_of, with_decoded, with_file
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
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import decoded, one_line, printable
from pdpp_sources.common.times import rendered
from pdpp_sources.note_exports import NoteExports, NoteFacts, as_markdown

LARGEST_NOTE_BYTES = 8 * 1024 * 1024
_CREATED = ("created", "created_at", "created-at", "createdat", "date created", "date")
_MODIFIED = (
    *("updated", "updated_at", "updated-at", "modified", "modified_at", "lastmod"),
    *("date modified", "date_modified", "last_modified", "updatedat"),
)
_FACTS = ("title", "tags", "tag", "keywords", *_CREATED, *_MODIFIED)
# Logseq writes the facts of a page, and of a block, as `name:: value`.
_PROPERTY = re.compile(r"^(?:- )?([A-Za-z][\w-]{0,60})::[^\S\n]+(\S[^\n]*)$")
_LOGSEQ_TAGS = re.compile(r"^[^\S\n]*(?:- )?tags::[^\S\n]+(\S[^\n]*)$", re.MULTILINE)
_PAGE_NAME = re.compile(r"#?\[\[([^\[\]]+)\]\]|#?([^,#\[\]]+)")
_PAGE = re.compile(r"\[\[(.*)\]\]")
_AROUND_TAG = re.compile(r"^[\s\"'#\[]+|[\s\"'\]]+$")
_BRACKETED_TAG = re.compile(r"(?:^|(?<=\s))#\[\[([^\[\]\n]{1,100})\]\]")
# Notes of one day, as journals are called: `2024_01_05`, `2024-01-05`, `20240105`.
_DAY = re.compile(
    r"(?:.*\D)?((?:19|20)\d\d)([-_. ]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?!\d).*"
)
_JOURNALS = frozenset({"journals", "journal", "daily", "daily notes", "dailies", "diary"})
# Pages of names with a slash, whose files cannot be called so.
_SLASH = re.compile(r"___|%2F", re.IGNORECASE)
# Files that were unpacked or copied at once bear the time of that.
_UNPACKED_WITHIN = timedelta(minutes=10)
_FEWEST_UNPACKED = 3
_SUFFIXES = (".md", ".markdown", ".mdown")
_PAGES = (".html", ".htm")
# What comes with an export of something else, and is no note of its owner's.
_READ_ME = frozenset({"readme", "read me", "read_me", "license", "licence", "liesmich", "lisezmoi"})
_HEADING = re.compile(r"^#{1,3}[^\S\n]+(\S[^\n]*)", re.MULTILINE)
_TAG = re.compile(r"(?:^|(?<=\s))#([A-Za-zÀ-ÿ][\w/-]{0,80})")
_CLOSED_TAG = re.compile(
    r"(?:^|(?<=\s))#([^\s#][^#\n]{0,80} [^#\n]{0,80}[^\s#])#(?=\s|$)", re.MULTILINE
)
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
        text("body", "Text; Markdown where the note has it", media="text/markdown"),
        word("folder", "Folder it lies in"),
        text("path", "Path in the export"),
        names("tags", "Tags"),
        text("tagged", "All tags, to search in"),
        names("links", "Notes and files it links to"),
        moment("modified_at", "When it was last changed, or the day it is about", event=True),
        moment("created_at", "When it was begun, as the note or its name says"),
        word("status", "archived or deleted, where the program says so"),
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
    """Reads each text or page as a note, with the pictures and documents beside them."""

    connector_key = "notes"
    declaration: Data = declaration("notes", "Notes", "Notes with their files.", [NOTES, FILES])
    how_to_export = (
        "Obsidian, Logseq: import the vault's folder itself. Notion: Settings > Export all "
        "workspace content > Markdown & CSV. Bear: File > Back up notes. Apple Notes: "
        "privacy.apple.com > Request a copy of your data > iCloud Notes, and import the zip; or "
        "File > Export as > Markdown. Any folder or zip of .md files, or of the pages (HTML) that "
        "Notion and programs for Apple Notes export."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim Markdown by its ending, pages by how they begin, and the media of both."""
        theirs = list(NoteExports(export).members)
        others = export.only(export.without([export.only(theirs)]))
        notes = list(matching(others, lambda head: b"\x00" not in head, *_SUFFIXES))
        notes += _note_pages(others)
        if theirs:
            media = [m for m in others.members if notes and is_media(m.name)]
            return claim([*theirs, *notes, *_of_notes(notes, media)], "it holds notes of a program")
        if all(map(_tells_of_others, notes)) and _has_others(export, notes):
            return None
        media = [m for m in export.members if notes and is_media(m.name)]
        return claim([*notes, *_of_notes(notes, media)], "it holds notes in Markdown or HTML")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each note and each file in order of their paths."""
        exports, unpacked = NoteExports(export), _unpacked(export)
        texts = export.only(m for m in export.members if not exports.tells_of_notes(m))
        export.accounted_for.update(m.name for m in export.members if exports.tells_of_notes(m))

        def read_member(member: ExportMember) -> Iterator[SourceItem]:
            if exports.is_note(member) or member.suffix in (*_SUFFIXES, *_PAGES):
                return _read_note(member, exports.facts_of(member), unpacked=unpacked)
            return with_file(_file(member, unpacked), member)

        # Two backups of Bear hold a note of one id.
        return beginning_at(start, without_repeats(each_member(texts, read_member)))


def _note_pages(export: Export) -> list[ExportMember]:
    """The pages of HTML that are notes."""
    if not any(member.suffix in _PAGES for member in export.members):
        return []
    from pdpp_sources.note_pages import PAGE_HEAD_BYTES, is_note_page  # noqa: PLC0415 (of few)

    return list(matching(export, is_note_page, *_PAGES, head_bytes=PAGE_HEAD_BYTES))


def _tells_of_others(note: ExportMember) -> bool:
    """Whether a note is called as one that only explains what lies beside it."""
    return PurePosixPath(note.name).stem.casefold() in _READ_ME


def _has_others(export: Export, notes: list[ExportMember]) -> bool:
    """Whether anything but notes and their media is there."""
    names = {note.name for note in notes}
    other_members = (
        member for member in export.members if member.name not in names and member.size_bytes
    )
    return any(not is_media(member.name) for member in other_members)


def _of_notes(notes: list[ExportMember], media: list[ExportMember]) -> Iterator[ExportMember]:
    """The files that notes link to, and others beside them where these are no more than notes.

    A note among a folder of photographs makes them no part of it.
    """
    linked = _linked(notes, media) if media else set[str]()
    in_folder = Counter(PurePosixPath(note.name).parent for note in notes)
    neighbours: dict[PurePosixPath, list[ExportMember]] = {}
    for member in media:
        path = PurePosixPath(member.name)
        if member.name in linked:
            yield member
        elif nearest := next((folder for folder in path.parents if folder in in_folder), None):
            neighbours.setdefault(nearest, []).append(member)
    for folder, members in neighbours.items():
        if len(members) <= in_folder[folder]:
            yield from members


def _linked(notes: list[ExportMember], media: list[ExportMember]) -> set[str]:
    """The files that notes link to: by their path from the note, else by their bare name."""
    by_name: dict[str, list[str]] = {}
    for member in media:
        by_name.setdefault(PurePosixPath(member.name).name, []).append(member.name)
    linked: set[str] = set()
    for note in notes:
        folder = PurePosixPath(note.name).parent
        for link in _links_of(note):
            candidates = by_name.get(PurePosixPath(link).name, [])
            path = normpath(folder / link)
            linked.update([path] if path in candidates else candidates)
    return linked


def _links_of(note: ExportMember) -> list[str]:
    """The notes and files that a note links to, before it is read."""
    try:
        BOOKMARK.looking_at(note)
        if note.suffix in _PAGES:
            from pdpp_sources.note_pages import (  # noqa: PLC0415 (of few)
                LARGEST_PAGE_BYTES,
                page_links,
            )

            return page_links(decoded(note.head(LARGEST_PAGE_BYTES)))
        return [unquote(link) for link in _links(decoded(note.head(LARGEST_NOTE_BYTES)))]
    except (MemberDamaged, BadRecord):
        return []


def _unpacked(export: Export) -> bool:
    """Whether the times of the files are those of the copy: all within a few minutes."""
    texts = (member for member in export.members if member.suffix in (*_SUFFIXES, *_PAGES))
    times = sorted(member.modified_at for member in texts)
    return len(times) >= _FEWEST_UNPACKED and times[-1] - times[0] <= _UNPACKED_WITHIN


def _read_note(member: ExportMember, known: NoteFacts, *, unpacked: bool) -> Iterator[SourceItem]:
    read = _of_page if member.suffix in _PAGES else _note
    yield from one_record(member.name, member.offset, lambda: read(member, known, unpacked))
    if known.fault is not None:
        where, reason = known.fault
        yield Skipped(where, "no_value", reason, member.offset)


def _note(member: ExportMember, known: NoteFacts, unpacked: bool) -> list[SourceItem]:
    content = _content(member, LARGEST_NOTE_BYTES)
    if known.is_plain:
        facts, body = dict[str, Any](), as_markdown(content).strip()
    else:
        facts, body = _split_front_matter(content)
    return [_record(member, known, facts, body, _links(body), unpacked=unpacked)]


def _of_page(member: ExportMember, known: NoteFacts, unpacked: bool) -> list[SourceItem]:
    """A note that is a page of HTML, and the pictures within it."""
    from pdpp_sources.note_pages import LARGEST_PAGE_BYTES, note_page  # noqa: PLC0415 (of few)

    page = note_page(_content(member, LARGEST_PAGE_BYTES))
    facts: Data = {"title": page.title}
    note = _record(member, known, facts, page.text, page.links, unpacked=unpacked)
    items: list[SourceItem] = [note]
    around = _placed(member) | {n: v for n, v in note.data.items() if n == "modified_at"}
    for number, (kind, content) in enumerate(page.pictures, 1):
        data: Data = {
            "id": stable_id("file", member.name, str(number)),
            "filename": f"{PurePosixPath(member.name).stem} {number}"[-200:],
            **around,
            "mime_type": kind,
            "size_bytes": None,
        }
        items += with_decoded(SourceRecord("files", data, member.offset), content, member.name)
    if page.is_cut:
        reason = message("only the first %(most)s pictures were imported", most=len(page.pictures))
        items.append(Skipped(member.name, "beyond_bounds", reason, member.offset))
    return items


def _content(member: ExportMember, most_bytes: int) -> str:
    if member.size_bytes > most_bytes:
        most = most_bytes // 1024**2
        raise BadRecord("too_large", message("the note is over %(most)s MB", most=most))
    with member.open() as stream:
        return decoded(stream.read()).replace("\r\n", "\n")


def _record(
    member: ExportMember,
    known: NoteFacts,
    facts: dict[str, Any],
    body: str,
    links: list[str],
    *,
    unpacked: bool,
) -> SourceRecord:
    plain = _CODE.sub(" ", body)
    heading = _HEADING.search(plain)
    path = PurePosixPath(member.name)
    facts = _properties(plain) | {
        name: value for name, value in (facts | known.dates).items() if value is not None
    }
    tags = _tags(facts, plain)
    if known.own is not None:  # of Bear, which closes a tag of several words: `#big plans#`
        long = _CLOSED_TAG.findall(plain)
        cut = {name.split()[0] for name in long}
        tags = list(dict.fromkeys([*long, *(tag for tag in tags if tag not in cut)]))
    is_page = path.parent.name in ("pages", *_JOURNALS)  # of Logseq: a heading is one of a block
    is_page = is_page or known.is_plain
    stem = known.name or _SLASH.sub("/", unquote(path.stem))
    name = None if is_page else _words_of(heading)
    title = json_values.line(facts, "title") or name or stem
    data: Data = {
        "id": stable_id("note", known.own or member.name),
        "title": one_line(printable(title), 300),
        "body": body,
        **_placed(member),
        **({} if known.folder is None else {"folder": known.folder or None}),
        "status": known.status,
        **_dated(facts, member, unpacked=unpacked),
        "tags": tags,
        "tagged": " ".join(tags) or None,
        "links": links,
        "word_count": len(body.split()),
    }
    return SourceRecord("notes", data, member.offset)


def _dated(facts: Data, member: ExportMember, *, unpacked: bool) -> Data:
    """When a note was begun and last changed, by the best that is known.

    Shapes: what the note says, then the day in the name of a journal's page, then the file's time,
        unless that is the time of a copy of them all: then a note without another has none.
    """
    day = _day_of(member)
    created_at = json_values.instant(facts, *_CREATED) or day
    modified = json_values.instant(facts, *_MODIFIED)
    own = None if unpacked else rendered(member.modified_at)
    modified_at = (
        modified or (day if day and (unpacked or _is_journal(member)) else own) or created_at
    )
    dates: Data = {"created_at": created_at}
    return dates | ({"modified_at": modified_at} if modified_at else {})


def _is_journal(member: ExportMember) -> bool:
    return any(folder.name.casefold() in _JOURNALS for folder in PurePosixPath(member.name).parents)


def _day_of(member: ExportMember) -> str | None:
    """The day that a note is called after."""
    match = _DAY.fullmatch(PurePosixPath(member.name).stem)
    if match is None:
        return None
    year, _, month, day = match.groups()
    try:
        return rendered(datetime(int(year), int(month), int(day)))  # noqa: DTZ001 (a day)
    except ValueError:
        return None


def _properties(plain: str) -> Data:
    """What Logseq writes at the top of a page: `title:: Bread`, `tags:: [[baking]], rye`."""
    properties: Data = {}
    for line in plain.split("\n"):
        written = _PROPERTY.match(line)
        if written is None:
            break
        properties.setdefault(written[1].lower(), written[2].strip())
    title = properties.get("title")
    page = _PAGE.fullmatch(title) if isinstance(title, str) else None
    return properties | ({"title": page[1]} if page else {})


def _words_of(heading: re.Match[str] | None) -> str:
    """A heading without the marks that may close it."""
    return heading.group(1).rstrip().rstrip("#").rstrip() if heading else ""


def _file(member: ExportMember, unpacked: bool) -> SourceRecord:
    data: Data = {
        "id": stable_id("file", member.name),
        "filename": one_line(printable(PurePosixPath(member.name).name), 255),
        **_placed(member),
        **({} if unpacked else {"modified_at": rendered(member.modified_at)}),
        "mime_type": kind_of(member.name),
        "size_bytes": member.size_bytes,
    }
    return SourceRecord("files", data, member.offset)


def _placed(member: ExportMember) -> Data:
    path = PurePosixPath(member.name)
    return {
        "path": printable(member.name),
        "folder": printable(str(path.parent)) if path.parent.name else None,
    }


def _yaml_value(text: str) -> object:
    """What front matter says. Raises: ValueError and others, for what is no YAML."""
    import yaml  # noqa: PLC0415 (most exports have no notes with front matter)

    # The loader in C is ten times as fast, and ends the process where values nest too deeply.
    nested = sum(text.count(mark) for mark in ("[", "{", "- ", "? "))
    in_c = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # where the C library is missing
    try:
        return yaml.load(text, yaml.SafeLoader if nested > _NESTED else in_c)  # noqa: S506 (safe)
    except yaml.YAMLError:
        raise ValueError from None


def _split_front_matter(content: str) -> tuple[Data, str]:
    """Front matter and text; front matter that is no YAML stays part of the text."""
    front = _FRONT.match(content)
    if front is None or len(front.group(1)) > LONGEST_FRONT_CHARS:
        return {}, content.strip()
    text = front.group(1)
    try:
        facts = _yaml_value(text)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}, content.strip()
    front_matter = cast("Data", facts) if isinstance(facts, dict) else {}
    body = content[front.end() :].strip()
    lower = {str(name).lower(): value for name, value in front_matter.items()}
    return {name: _as_json(lower.get(name)) for name in _FACTS}, body


def _as_json(value: Any) -> Any:
    """A value of front matter, or a flat list of them; dates as text.

    Nothing is followed further down: a few lines of YAML can name more than memory holds.
    """
    if isinstance(value, list):
        return [_scalar(_linked_name(element)) for element in cast("list[Any]", value)]
    return _scalar(value)


def _linked_name(value: Any) -> Any:
    """What `[[misc]]` means without quotes, which YAML takes for a list of one word in a list."""
    outer = _entries(value)
    if len(outer) != 1:
        return value
    inner = _entries(outer[0])
    return inner[0] if len(inner) == 1 else outer[0]


def _entries(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _scalar(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return value if isinstance(value, str | int | float | bool) else None


def _tags(facts: Data, plain: str) -> list[str]:
    """The tags of front matter, of Logseq's properties and of the text, each once."""
    listed: list[str] = []
    for name in ("tags", "tag", "keywords"):
        words = json_values.strings(facts, name)
        text = json_values.text(facts, name) or ""
        listed += words or re.split(r",\s*" if "," in text else r"\s+", text)
    for line in _LOGSEQ_TAGS.findall(plain):
        listed += [page or word for page, word in _PAGE_NAME.findall(line)]
    inline = [*_TAG.findall(plain), *_BRACKETED_TAG.findall(plain)]
    tags = [_AROUND_TAG.sub("", tag).strip() for tag in [*listed, *inline]]
    return list(dict.fromkeys(filter(None, tags)))


def _links(body: str) -> list[str]:
    files = (link for link in _LINK.findall(body) if PurePosixPath(link).suffix)
    links = (*_WIKI_LINK.findall(body), *files)
    return list(dict.fromkeys(one_line(link, 500) for link in links))
