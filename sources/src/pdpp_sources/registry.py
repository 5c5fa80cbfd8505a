"""Every built-in source, and which of them and of those of other packages reads an export."""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_declaration import OWN_FILE_PREFIX
from pdpp_kernel.source_item import Skipped, SourceItem, SourceRecord
from pdpp_kernel.texts import message, text_of
from pdpp_sources.apple_health.reader import AppleHealthSource
from pdpp_sources.bank import BankSource
from pdpp_sources.browser.reader import BrowserSource
from pdpp_sources.calendar.reader import CalendarSource
from pdpp_sources.chatgpt import ChatGptSource
from pdpp_sources.claude import ClaudeSource
from pdpp_sources.common.errors import (
    BadRecord,
    ExportError,
    ExportNotRecognized,
    ExportTooCostly,
    MemberDamaged,
)
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.source import SourceReader
from pdpp_sources.contacts import ContactsSource
from pdpp_sources.evernote import EvernoteSource
from pdpp_sources.export_files import ARCHIVES
from pdpp_sources.google.reader import GoogleSource
from pdpp_sources.google_voice import GoogleVoiceSource
from pdpp_sources.imessage import MessagesSource
from pdpp_sources.kindle import KindleSource
from pdpp_sources.likeness import Likeness, likeness_of
from pdpp_sources.mail import MailSource
from pdpp_sources.meta_chats import MetaChatsSource
from pdpp_sources.notes import NotesSource
from pdpp_sources.phone_backup import PhoneBackupSource
from pdpp_sources.slack import SlackSource
from pdpp_sources.tables.csv_file import SUFFIXES
from pdpp_sources.tables.files import could_be_table, looks_like_table, views_of_notion
from pdpp_sources.tables.reader import TableSource
from pdpp_sources.tables.table_fit import UNGUIDED, Guidance
from pdpp_sources.telegram import TelegramSource
from pdpp_sources.tracks.tracks_source import TracksSource
from pdpp_sources.unmentioned_files import with_unmentioned
from pdpp_sources.whatsapp import WhatsAppSource

# The surest first: where two claim one file, the first of them reads it.
_OF_ONE_FORMAT: tuple[SourceReader, ...] = (
    MailSource(),
    BankSource(),
    ChatGptSource(),
    ClaudeSource(),
    SlackSource(),
    WhatsAppSource(),
    TelegramSource(),
    MetaChatsSource(),
    PhoneBackupSource(),
    GoogleVoiceSource(),
    MessagesSource(),
    CalendarSource(),
    ContactsSource(),
    AppleHealthSource(),
    TracksSource(),
    KindleSource(),
    EvernoteSource(),
    BrowserSource(),
    GoogleSource(),
)
# These take any text and any table, so readers of other packages are asked before them.
_OF_ANY_CONTENT: tuple[SourceReader, ...] = (NotesSource(), TableSource())
SOURCES = (*_OF_ONE_FORMAT, *_OF_ANY_CONTENT)

_LOOKED_AT = 100
_TRIED_ITEMS = 200
_PACKED = (".zip", ".tgz", ".gz")
_WIDE = (BOM_UTF16_LE, BOM_UTF16_BE)
_IS_RECIPE = re.compile(rb"(?m)^[ \t]*recipe[ \t]*=")


class Reading(msgspec.Struct, frozen=True):
    """A source, and the part of an export that it reads.

    Shapes: `missed` are reports of what it sought in the whole export and did not find.
    """

    source: SourceReader
    export: Export
    why: str
    missed: tuple[Skipped, ...] = ()

    @property
    def captured_at(self) -> datetime:
        """When the export was made, as far as its files tell."""
        return self.export.captured_at

    @property
    def fingerprint(self) -> str:
        """What tells these very files from others."""
        return self.export.fingerprint

    def items(self, start: int = 0) -> Iterator[SourceItem]:
        """What the source yields from a place on."""
        yield from (each for each in self.missed if each.position >= start)
        yield from with_unmentioned(self.export, self.source.read, start)


def with_outside(
    outside: Sequence[SourceReader], recipes: Sequence[SourceReader] = ()
) -> tuple[SourceReader, ...]:
    """All sources in the order in which they are asked, those of others and recipes among them."""
    return (*_OF_ONE_FORMAT, *outside, *recipes, *_OF_ANY_CONTENT)


def source_named(
    connector_key: str, sources: Sequence[SourceReader] = SOURCES
) -> SourceReader | None:
    """The source of that key."""
    return next((source for source in sources if source.connector_key == connector_key), None)


def readings(
    export: Export, guidance: Guidance = UNGUIDED, sources: Sequence[SourceReader] = SOURCES
) -> tuple[Reading, ...]:
    """Who reads what: each source takes of its members what those before it left.

    Raises: ExportNotRecognized.
    """
    paths: set[str] = set()
    chosen: list[Reading] = []
    for source in sources:
        claim = source.recognize(export)
        if not (claim or chosen) and isinstance(source, TableSource):
            claim = source.folder_of_json(export)
        members = [m for m in claim.members if m.name not in paths] if claim else []
        if claim and members:
            paths.update(member.name for member in members)
            made = _reading(source, export.only(members), claim.why, guidance)
            chosen.append(replace(made, missed=claim.missed))
        if len(paths) == len(export.members):
            break
    if not chosen:
        raise _unrecognized(export)
    return tuple(chosen)


def reading_as(
    export: Export,
    source: SourceReader,
    guidance: Guidance = UNGUIDED,
    sources: Sequence[SourceReader] = SOURCES,
) -> Reading:
    """Let one source read what it claims; else what looks like it; else everything.

    Raises: ExportNotRecognized, if there is nothing to read, or nothing that it can.
    """
    if not any(member.size_bytes for member in export.members):
        raise _unrecognized(export)
    is_table = isinstance(source, TableSource)
    claim = source.every_table(export) if is_table else source.recognize(export)
    if claim:
        made = _reading(source, export.only(claim.members), claim.why, guidance)
        return replace(made, missed=claim.missed)
    alike = [m for m in export.members if _likeness(m).connector_key == source.connector_key]
    reading = _tried(source, export.only(alike or export.members), guidance)
    if reading is None:
        raise _not_of_kind(export, source, sources)
    return reading


def _tried(source: SourceReader, export: Export, guidance: Guidance = UNGUIDED) -> Reading | None:
    """A source's reading of what it did not claim, if it finds something. Raises: BadRecord."""
    try:
        reading = _reading(source, export, "you said so", guidance)
        items = islice(reading.items(), _TRIED_ITEMS)
        return reading if any(isinstance(item, SourceRecord) for item in items) else None
    except (ExportError, MemberDamaged):
        return None


def _not_of_kind(
    export: Export, source: SourceReader, sources: Sequence[SourceReader]
) -> ExportError:
    """Why a source that was asked for by name is not the one."""
    sentence = message(
        "`%(source)s` finds nothing readable in this file.", source=source.connector_key
    )
    try:
        keys = [reading.source.connector_key for reading in readings(export, sources=sources)]
    except ExportError as refused:
        return ExportNotRecognized(f"{sentence} {refused.sentence}", refused.next_step)
    key = "table" if keys[0].startswith(OWN_FILE_PREFIX) else keys[0]
    return ExportNotRecognized(sentence, f"Import it with `--as {key}`, or without `--as`.")


def _reading(source: SourceReader, export: Export, reason: str, guidance: Guidance) -> Reading:
    """A table is read by a source made for it, whose guess stands for the reason."""
    if not isinstance(source, TableSource):
        return Reading(source, export, reason)
    fitted = source.fitted(export, guidance)
    guess = fitted.recognize(export)
    return Reading(fitted, export, guess.why if guess else reason)


def unread_of(export: Export, readers: Sequence[Export]) -> dict[str, list[str]]:
    """The files that nobody read, by what they are.

    Shapes: `costly` to look at, `unreadable`, `archives` further inside, `wide` (UTF-16),
        `recipes` that lie there, or `unknown`; `as_mail` and the like, which that source reads if
        it is told to; `tables` among other things; `views` of a database of Notion that is there
        whole; `empty`; `hidden` ones and `links`.
    """
    is_folder = export.path.is_dir()
    sorts: dict[str, list[str]] = {}
    views = views_of_notion(export)
    for member in export.without(readers):
        own_import = member.name.lower().endswith(ARCHIVES) and is_folder and "/" not in member.name
        if not own_import:
            sort = _sort_of(member, export) if member.size_bytes else "empty"
            sorts.setdefault("views" if member.name in views else sort, []).append(member.name)
    for sort, name in export.passed_by:
        sorts.setdefault(sort, []).append(name)
    return sorts


def _sort_of(member: ExportMember, export: Export) -> str:
    """Why nobody read a file."""
    if _is_costly(member):
        return "costly"
    head = _head(member)
    if member.suffix in _PACKED:
        return "archives"
    if member.suffix == ".toml" and _IS_RECIPE.search(head):
        return "recipes"
    if could_be_table(head) if member.suffix in SUFFIXES else looks_like_table(head):
        return "tables"
    if head.startswith(_WIDE) or not head:
        return "wide" if head else "unreadable"
    key = likeness_of(head).connector_key
    likely = key not in (None, "table") and _works_as(str(key), export.only([member]))
    return f"as_{key}" if likely else "unknown"


def _is_costly(member: ExportMember) -> bool:
    """Whether looking at a file ended the reader before."""
    try:
        BOOKMARK.looking_at(member)
    except BadRecord:
        return True
    return False


def _unrecognized(export: Export) -> ExportError:
    """Why no source took an export, as far as a look at it tells, and what its owner can do."""
    filled = [member for member in export.members if member.size_bytes]
    if filled and all(map(_is_costly, filled)):
        return ExportTooCostly(
            "Recognizing this file takes more time or memory than any export should.",
            "Download this export again, or in another format.",
        )
    heads = [head for member in filled[:_LOOKED_AT] if (head := _head(member))]
    if not filled and export.refused:
        sentence = message(
            "No file of this export can be read (%(reason)s).",
            reason=text_of(export.refused[0].reason),
        )
        next_step = message(
            "Download the export again, without a password, as a plain .zip or a folder."
        )
    elif not filled:
        sentence = message("This file or folder is empty.")
        next_step = message("Download or copy the export again, and check that it has content.")
    elif all(member.suffix in _PACKED for member in filled):
        sentence = message(
            "This archive contains only nested archives, which the import does not open."
        )
        next_step = message("Unpack this archive and import the archives inside.")
    elif not heads:
        sentence = message("The files of this export cannot be read.")
        next_step = message("Check that your user may read the files, or copy them again.")
    elif any(head.startswith(_WIDE) for head in heads):
        sentence = message("This file is written in UTF-16.")
        next_step = message("Save the file as UTF-8 (or CSV UTF-8), and import that.")
    elif any(map(looks_like_table, heads)):
        sentence = message(
            "Some files in this folder are tables; the others are of unknown formats."
        )
        next_step = message("Import the tables with `--as table`.")
    else:
        sentence, next_step = _likenesses(export, filled[:_LOOKED_AT])
    return ExportNotRecognized(sentence, next_step)


def _likenesses(export: Export, members: Sequence[ExportMember]) -> tuple[str, str]:
    """What the files look like that most of them do, and the `--as` that was tried and works."""
    looks = [_likeness(member) for member in members]
    counted = Counter(looks)
    most = max(looks, key=lambda look: (_says(look), counted[look]))
    sentence, next_step = most.sentence, most.next_step
    if counted[most] < len(members):
        sentence = message(
            "For %(some)s of %(all)s files: %(sentence)s",
            some=counted[most],
            all=len(members),
            sentence=text_of(sentence),
        )
    alike = export.only(m for m, look in zip(members, looks, strict=True) if look == most)
    if most.connector_key and _works_as(most.connector_key, alike):
        next_step = message("Import this file with `--as %(source)s`.", source=most.connector_key)
    return sentence, next_step


def _says(look: Likeness) -> int:
    """How much a likeness tells: what bears the mark of a source before what may be any table."""
    return (look.connector_key is not None) + (look.connector_key not in (None, "table"))


def _works_as(connector_key: str, export: Export) -> bool:
    """Whether a source that did not claim files finds something in them all the same."""
    source = source_named(connector_key)
    with suppress(BadRecord):
        return source is not None and _tried(source, export) is not None
    return False


def _likeness(member: ExportMember) -> Likeness:
    return likeness_of(_head(member))


def _head(member: ExportMember) -> bytes:
    try:
        return member.head()
    except (BadRecord, MemberDamaged):
        return b""
