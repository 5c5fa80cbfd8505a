"""WhatsApp: one chat as the phone exports it, a text file with or without its media."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from personal_server.domain.source_item import Data, SourceItem, SourceRecord, stable_id
from personal_server.sources.attachments import is_media, kind_of, with_file
from personal_server.sources.errors import BadRecord
from personal_server.sources.export import Export, Member
from personal_server.sources.port import (
    CERTAIN,
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from personal_server.sources.text import one_line, or_none
from personal_server.sources.times import rendered
from personal_server.sources.whatsapp_lines import (
    Entry,
    date_order,
    file_named,
    looks_like_chat,
    read_entries,
)
from personal_server.sources.whatsapp_streams import DECLARATION

LONGEST_CHAT_NAME = 200
_EXPORT_NAME = re.compile(
    r"^WhatsApp[\w ]*? (?:with|mit|con|com|avec|met|-) |\s*\(\d+\)$", re.IGNORECASE
)


class WhatsAppSource:
    """Reads the text of a chat, on Android and iPhone, in any order of dates."""

    connector_key = "whatsapp"
    declaration: Data = DECLARATION
    how_to_export = (
        "In WhatsApp open the chat, choose More > Export chat, with or without media, and save the "
        "file. Import the zip or text file of each chat; several in one folder are fine."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim texts whose lines begin with a date, a time and a name, and the media they name."""
        chats = list(matching(export, looks_like_chat, ".txt", ""))
        folders = {PurePosixPath(chat.name).parent for chat in chats}
        media = [
            member
            for member in export.members
            if PurePosixPath(member.name).parent in folders and is_media(member.name)
        ]
        return claim(CERTAIN, chats + media, "its lines begin as those of an exported chat")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each chat, then its messages with their files."""
        chats = export.only(m for m in export.members if m.suffix in (".txt", ""))
        items = each_member(chats, lambda member: _Chat(member, export).items())
        return beginning_at(start, without_repeats(items))


def _chat_name(member: Member, export: Export) -> str:
    path = PurePosixPath(member.name)
    outer = path.parent.name or export.path.stem
    name = outer if path.stem in ("_chat", "chat") else path.stem
    return _EXPORT_NAME.sub("", name).strip()[:LONGEST_CHAT_NAME] or "Chat"


@dataclass(slots=True)
class _Facts:
    """What only the whole chat tells: the order of its dates, and who writes."""

    order: str
    people: list[str]
    count: int


class _Chat:
    """One chat on its way to records."""

    def __init__(self, member: Member, export: Export) -> None:
        self._member = member
        self._name = _chat_name(member, export)
        self._id = stable_id("chat", self._name)
        self._zone = export.zone
        folder = PurePosixPath(member.name).parent
        self._files = {
            PurePosixPath(each.name).name: each
            for each in export.members
            if PurePosixPath(each.name).parent == folder and each is not member
        }

    def items(self) -> Iterator[SourceItem]:
        facts = self._survey()
        began = False
        same: Counter[tuple[str | None, str]] = Counter()
        stamp = ""
        for entry in read_entries(self._member):
            if entry.stamp != stamp:
                same.clear()
                stamp = entry.stamp
            same[entry.author, entry.text] += 1
            number = same[entry.author, entry.text]
            for item in self._entry(entry, facts.order, number):
                if isinstance(item, SourceRecord) and not began:
                    began = True
                    yield self._chat(facts, item)
                yield item

    def _survey(self) -> _Facts:
        people: dict[str, None] = {}
        dates: list[tuple[int, int, int]] = []
        count = 0
        american = False
        separator = "/"
        for entry in read_entries(self._member):
            count += 1
            if entry.author and len(people) < 2000:
                people[entry.author] = None
            if len(dates) < 200_000 and (not dates or dates[-1] != entry.date):
                dates.append(entry.date)
            american |= entry.stamp.rstrip("-] ").endswith(("AM", "PM"))
            separator = entry.separator
        return _Facts(date_order(dates, separator, american=american), list(people), count)

    def _chat(self, facts: _Facts, first: SourceRecord) -> SourceRecord:
        data: Data = {
            "id": self._id,
            "name": self._name,
            "people": facts.people,
            "people_named": ", ".join(facts.people) or None,
            "message_count": facts.count,
            "began_at": first.data["sent_at"],
        }
        return SourceRecord("chats", data, first.position)

    def _entry(self, entry: Entry, order: str, number: int) -> Iterator[SourceItem]:
        position = self._member.offset + entry.offset
        where = f"{self._member.name} at byte {entry.offset}"
        yield from one_record(where, position, lambda: self._records(entry, order, number))

    def _records(self, entry: Entry, order: str, number: int) -> Iterator[SourceItem]:
        position = self._member.offset + entry.offset
        local = _local(entry, order)
        sent_at = rendered(local, self._zone)
        filename = file_named(entry.text)
        message_id = stable_id("msg", self._id, local.isoformat(), entry.author, entry.text, number)
        data: Data = {
            "id": message_id,
            "chat_id": self._id,
            "chat_name": self._name,
            "sent_at": sent_at,
            "author": entry.author,
            "text": or_none(entry.text),
            "kind": "file" if filename else entry.kind,
            "file_count": 1 if filename else 0,
        }
        yield SourceRecord("messages", data, position)
        if filename:
            data = {
                "id": f"{message_id}.1",
                "message_id": message_id,
                "sent_at": sent_at,
                "filename": one_line(filename, 255),
                "mime_type": kind_of(filename),
                "size_bytes": None,
            }
            yield from with_file(SourceRecord("files", data, position), self._files.get(filename))


def _local(entry: Entry, order: str) -> datetime:
    """The time by the phone's clock. Raises: BadRecord."""
    parts = dict(zip(order, entry.date, strict=True))
    year = parts["y"] + (2000 if parts["y"] < 100 else 0)
    hour = entry.hour
    if entry.half:
        hour = hour % 12 + (12 if entry.half == "p" else 0)
    try:
        return datetime(year, parts["m"], parts["d"], hour, entry.minute, entry.second)  # noqa: DTZ001  # the export names no zone
    except ValueError:
        raise BadRecord("bad_date", "its date does not exist") from None
