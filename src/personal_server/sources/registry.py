"""Every source there is, and which of them reads an export."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from personal_server.domain.source_item import Data, SourceItem
from personal_server.sources.bank import BankSource
from personal_server.sources.calendar.reader import CalendarSource
from personal_server.sources.chatgpt import ChatGptSource
from personal_server.sources.claude import ClaudeSource
from personal_server.sources.common.errors import ExportNotRecognized, MemberDamaged
from personal_server.sources.common.export import Export, Member, file_facts
from personal_server.sources.common.source import Claim, Source
from personal_server.sources.contacts import ContactsSource
from personal_server.sources.google.reader import GoogleSource
from personal_server.sources.mail import MailSource
from personal_server.sources.notes import NotesSource
from personal_server.sources.slack import SlackSource
from personal_server.sources.tables.files import looks_like_table
from personal_server.sources.tables.reader import Guidance, TableSource
from personal_server.sources.telegram import TelegramSource
from personal_server.sources.whatsapp import WhatsAppSource

# Why no source took an export, as far as a look at it tells, and what its owner can do.


SEE_SOURCES = "See `pdpp sources` for what can be read, or name one with `--as KEY`."
_LOOKED_AT = 100
_WIDE = (BOM_UTF16_LE, BOM_UTF16_BE)


def unrecognized(export: Export) -> ExportNotRecognized:
    """The error that says most."""
    filled = [member for member in export.members if member.size_bytes]
    if not filled and export.refused:
        return ExportNotRecognized(
            f"Nothing in it may be read ({export.refused[0].reason}).",
            "Get the export anew, without a password, as a plain .zip or a folder.",
        )
    if not filled:
        return ExportNotRecognized(
            "There is nothing in it.", "Download or copy the export again, and look into it first."
        )
    if all(member.suffix == ".zip" for member in filled):
        return ExportNotRecognized(
            "It holds only other zip files.", "Unpack it and import the zip files inside."
        )
    heads = [_head(member) for member in filled[:_LOOKED_AT]]
    if not any(heads):
        return ExportNotRecognized(
            "Its files cannot be read.", "Check that your user may read them, or copy them again."
        )
    return _by_content([head for head in heads if head])


def is_wide(member: Member) -> bool:
    """Whether a file is written in UTF-16, which no source reads."""
    return _head(member).startswith(_WIDE)


def is_readable(member: Member) -> bool:
    """Whether its first bytes can be had at all."""
    return bool(_head(member))


def _head(member: Member) -> bytes:
    try:
        return member.head()
    except MemberDamaged:
        return b""


def _by_content(heads: list[bytes]) -> ExportNotRecognized:
    if any(head.startswith(_WIDE) for head in heads):
        return ExportNotRecognized(
            "It is written in UTF-16.", "Save it as UTF-8 (or CSV UTF-8), and import that."
        )
    if len(heads) > 1 and any(map(looks_like_table, heads)):
        return ExportNotRecognized(
            "It holds several tables.", "Unpack it if it is a zip, and import each file by itself."
        )
    return ExportNotRecognized("No source knows this content.", SEE_SOURCES)


SOURCES: tuple[Source, ...] = (
    MailSource(),
    BankSource(),
    ChatGptSource(),
    ClaudeSource(),
    SlackSource(),
    WhatsAppSource(),
    TelegramSource(),
    CalendarSource(),
    ContactsSource(),
    GoogleSource(),
    NotesSource(),
    TableSource(),
)


UNGUIDED = Guidance()


@dataclass(frozen=True, slots=True)
class Reading:
    """A source, and the part of an export that it reads."""

    source: Source
    export: Export
    why: str

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
        return self.source.read(self.export, start)

    def facts(self) -> Data:
        """What identifies the files that were read."""
        return file_facts(self.export)


def source_named(connector_key: str) -> Source | None:
    """The source of that key."""
    return next((each for each in SOURCES if each.connector_key == connector_key), None)


def readings(export: Export, guidance: Guidance = UNGUIDED) -> tuple[Reading, ...]:
    """Who reads what: the surest source takes its members first, the others what is left.

    Raises: ExportNotRecognized.
    """
    claims = [(source, source.recognize(export)) for source in SOURCES]
    made = [(source, claim) for source, claim in claims if claim is not None]
    taken: set[str] = set()
    chosen: list[Reading] = []
    for source, claim in sorted(made, key=lambda pair: -pair[1].confidence):
        members = [member for member in claim.members if member.name not in taken]
        if members:
            taken.update(member.name for member in members)
            chosen.append(_reading(source, export.only(members), claim.why, guidance))
    if not chosen:
        raise unrecognized(export)
    return tuple(chosen)


def reading_as(export: Export, source: Source, guidance: Guidance = UNGUIDED) -> Reading:
    """Let one source read what it claims, or everything if it claims nothing by itself.

    Raises: ExportNotRecognized, if there is nothing to read.
    """
    if not any(member.size_bytes for member in export.members):
        raise unrecognized(export)
    found = source.recognize(export) or Claim(1, export.members, "you said so")
    return _reading(source, export.only(found.members), found.why, guidance)


def _reading(source: Source, export: Export, why: str, guidance: Guidance) -> Reading:
    """A table is read by a source made for it, whose guess stands for the reason."""
    if not isinstance(source, TableSource):
        return Reading(source, export, why)
    fitted = source.fitted(export, guidance)
    guess = fitted.recognize(export)
    return Reading(fitted, export, guess.why if guess else why)
