"""Every source there is, and which of them reads an export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from personal_server.domain.source_item import Data, SourceItem
from personal_server.sources.bank import BankSource
from personal_server.sources.calendar import CalendarSource
from personal_server.sources.chatgpt import ChatGptSource
from personal_server.sources.claude import ClaudeSource
from personal_server.sources.contacts import ContactsSource
from personal_server.sources.export import Export, file_facts
from personal_server.sources.google import GoogleSource
from personal_server.sources.mail import MailSource
from personal_server.sources.notes import NotesSource
from personal_server.sources.port import Claim, Source
from personal_server.sources.slack import SlackSource
from personal_server.sources.tables import Guidance, TableSource
from personal_server.sources.telegram import TelegramSource
from personal_server.sources.unrecognized import unrecognized
from personal_server.sources.whatsapp import WhatsAppSource

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
