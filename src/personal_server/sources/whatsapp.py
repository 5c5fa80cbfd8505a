"""WhatsApp: one chat as the phone exports it, a text file with or without its media."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath

from personal_server.domain.source_item import Data, SourceItem, SourceRecord, stable_id
from personal_server.sources.common.attachments import FILES, is_media, kind_of, with_file
from personal_server.sources.common.declaration import (
    StreamForm,
    declaration,
    integer,
    key,
    moment,
    names,
    reference,
    text,
    word,
)
from personal_server.sources.common.errors import BadRecord
from personal_server.sources.common.export import Export, ExportMember
from personal_server.sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from personal_server.sources.common.text import decoded, one_line, or_none
from personal_server.sources.common.times import rendered

LONGEST_LINE_BYTES = 1_000_000
LONGEST_MESSAGE_CHARS = 1_000_000
LONGEST_CHAT_NAME = 200
_EXPORT_NAME = re.compile(
    r"^WhatsApp[\w ]*? (?:with|mit|con|com|avec|met|-) |\s*\(\d+\)$", re.IGNORECASE
)
_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_MORNING = ("am", "a.m", "上午", "午前", "오전", "ص", "π.μ", "sa")
_EVENING = ("pm", "p.m", "下午", "午後", "오후", "م", "μ.μ", "ch", "中午", "晚上")
_HALF = "|".join(
    re.escape(word).replace(r"\.", r"\.\s?") for word in sorted(_MORNING + _EVENING, key=len)[::-1]
)
_HEADER = re.compile(
    r"^\[?(\d{1,4})([./-])\s?(\d{1,2})[./-]\s?(\d{1,4})\.?[,،]?\s+"
    rf"(?:(?P<before>{_HALF})\s?)?(\d{{1,2}})[:.](\d{{2}})(?:[:.](\d{{2}}))?"
    rf"(?:\s?(?P<after>{_HALF})\.?)?(?:\]|\s-)\s(?P<rest>.*)$",
    re.DOTALL | re.IGNORECASE,
)
# A notice may have a colon too, but mostly in the name of a group, which it quotes.
_AUTHOR = re.compile(r"^([^:\n\"“”«»]{1,120}?): ?(.*)$", re.DOTALL)
_ATTACHED = re.compile(r"^<[^:<>]{2,40}: ([^<>\n]{1,300}\.\w{1,5})>", re.MULTILINE)
_FILE_THEN_WORD = re.compile(r"^(\S[^\n]{0,300}?\.\w{2,5}) \([^()\n]{3,40}\)(?=\n|$)")
_BY_THE_PROGRAM = "\u200e"
_LEFT_OUT = re.compile(r"^<[^<>\n]{3,50}>$")
CHATS = StreamForm(
    "chats",
    "Your chats",
    "Name and people of each chat.",
    [
        key(),
        text("name", "Name of the person or group", title=True),
        names("people", "Who wrote in it"),
        text("people_named", "The same, to search in"),
        integer("message_count", "Number of messages", summed=True),
        moment("began_at", "When its first message was sent", event=True),
    ],
    time_field="began_at",
    children={"messages": ("messages", "chat_id")},
)
MESSAGES = StreamForm(
    "messages",
    "Your chat messages",
    "Text, author and time of every message.",
    [
        key(),
        reference("chat_id", "The chat", required=True),
        word("chat_name", "Name of the chat"),
        moment(
            "sent_at", "When it was sent by the phone's clock; the export names no zone", event=True
        ),
        word("author", "Who wrote it; none for notices", searched=True),
        text("text", "What it says", title=True),
        word("kind", "message, notice, file, or left_out where media was not exported"),
        integer("file_count", "Number of files", summed=True),
    ],
    time_field="sent_at",
    views={"traffic": ("Who wrote when", ["id", "chat_id", "sent_at", "author"])},
    children={"files": ("files", "message_id")},
    parents={"chat": ("chats", "chat_id")},
    semantic=["text"],
)
DECLARATION = declaration(
    "whatsapp", "WhatsApp", "Chats exported from WhatsApp.", [CHATS, MESSAGES, FILES]
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
        return claim(chats + media, "its lines begin as those of an exported chat")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each chat, then its messages with their files."""
        chats = export.only(m for m in export.members if m.suffix in (".txt", ""))
        items = each_member(chats, lambda member: _WhatsAppChat(member, export).items())
        return beginning_at(start, without_repeats(items))


def looks_like_chat(head: bytes) -> bool:
    """Whether the first line, or most of the first ones, begin a message."""
    lines = [line for line in decoded(head).splitlines()[:40] if line.strip()]
    begun = [line for line in lines if _HEADER.match(_clean(line))]
    if not begun or (begun[0] != lines[0] and 2 * len(begun) < len(lines)):
        return False
    return any(_AUTHOR.match(_clean(line).split(" ", 2)[-1]) for line in begun)


def _chat_name(member: ExportMember, export: Export) -> str:
    path = PurePosixPath(member.name)
    outer = path.parent.name or export.path.stem
    name = outer if path.stem in ("_chat", "chat") else path.stem
    return _EXPORT_NAME.sub("", name).strip()[:LONGEST_CHAT_NAME] or "Chat"


@dataclass(slots=True)
class _ChatSurvey:
    """What only the whole chat tells: the order of its dates, and who writes."""

    order: str
    people: list[str]
    count: int


class _WhatsAppChat:
    """One chat on its way to records."""

    def __init__(self, member: ExportMember, export: Export) -> None:
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
        began, stamp = False, ""
        same: Counter[tuple[str | None, str]] = Counter()
        for entry in read_entries(self._member):
            if entry.stamp != stamp:
                same.clear()
                stamp = entry.stamp
            same[entry.author, entry.text] += 1
            build = partial(self._records, entry, facts.order, same[entry.author, entry.text])
            where, position = self._member.where(entry.offset), self._member.offset + entry.offset
            for item in one_record(where, position, build):
                if isinstance(item, SourceRecord) and not began:
                    began = True
                    yield self._chat(facts, item)
                yield item

    def _survey(self) -> _ChatSurvey:
        people: dict[str, None] = {}
        dates: list[tuple[int, int, int]] = []
        count, american, separator = 0, False, "/"
        for entry in read_entries(self._member):
            count += 1
            if entry.author and len(people) < 2000:
                people[entry.author] = None
            if len(dates) < 200_000 and (not dates or dates[-1] != entry.date):
                dates.append(entry.date)
            american |= entry.stamp.rstrip("-] ").endswith(("AM", "PM"))
            separator = entry.separator
        return _ChatSurvey(date_order(dates, separator, american=american), list(people), count)

    def _chat(self, facts: _ChatSurvey, first: SourceRecord) -> SourceRecord:
        data: Data = {
            "id": self._id,
            "name": self._name,
            "people": facts.people,
            "people_named": ", ".join(facts.people) or None,
            "message_count": facts.count,
            "began_at": first.data["sent_at"],
        }
        return SourceRecord("chats", data, first.position)

    def _records(self, entry: ChatEntry, order: str, number: int) -> Iterator[SourceItem]:
        position = self._member.offset + entry.offset
        if entry.size_chars > LONGEST_MESSAGE_CHARS:
            raise BadRecord("too_large", "the message is over a million characters")
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


def _local(entry: ChatEntry, order: str) -> datetime:
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


def file_named(text: str) -> str | None:
    """The file that a message says it came with; a site with a remark in brackets is none."""
    attached = _ATTACHED.search(text)
    if attached:
        return attached.group(1).strip()
    found = _FILE_THEN_WORD.match(text)
    return found.group(1).strip() if found and kind_of(found.group(1)) else None


def date_order(dates: Sequence[tuple[int, int, int]], separator: str, *, american: bool) -> str:
    """Which of year, month and day each number is, as `dmy`, `mdy` or `ymd`.

    Nothing in the file says it, so the whole file is asked: a number over 12 cannot be a month, and
    time does not run backwards.
    """
    if any(first > 99 for first, _, _ in dates):
        return "ymd"
    # On a tie the first wins: Americans write slashes and AM or PM without dots.
    orders = ("mdy", "dmy", "ymd") if separator == "/" and american else ("dmy", "mdy", "ymd")
    possible = [order for order in orders if _fits(order, dates)]
    return min(possible, key=lambda order: _steps_back(order, dates), default="dmy")


def _fits(order: str, dates: Sequence[tuple[int, int, int]]) -> bool:
    month, day, year = order.index("m"), order.index("d"), order.index("y")
    return all(1 <= d[month] <= 12 and 1 <= d[day] <= 31 for d in dates) and (
        year != 0 or all(d[2] <= 31 for d in dates)
    )


def _steps_back(order: str, dates: Sequence[tuple[int, int, int]]) -> int:
    place = [order.index(each) for each in "ymd"]
    ordered = [tuple(date[at] for at in place) for date in dates]
    return sum(later < earlier for earlier, later in pairwise(ordered))


@dataclass(slots=True)
class ChatEntry:
    """One message or notice; the date still as three numbers.

    Units: `offset` in bytes from the start of the file.
    """

    offset: int
    stamp: str
    date: tuple[int, int, int]
    separator: str
    hour: int
    minute: int
    second: int
    half: str
    author: str | None
    by_program: bool = False
    lines: list[str] = field(default_factory=list[str])
    size_chars: int = 0

    def add(self, line: str) -> None:
        """One more line; of a message that is far too long none is kept."""
        self.size_chars += len(line) + 1
        self.lines.append(line)
        if self.size_chars > LONGEST_MESSAGE_CHARS:
            self.lines.clear()

    @property
    def text(self) -> str:
        """All its lines."""
        return "\n".join(self.lines).strip()

    @property
    def kind(self) -> str:
        """What it is, as far as its form tells."""
        if _LEFT_OUT.match(self.text):
            return "left_out"
        return "notice" if self.author is None or self.by_program else "message"


def read_entries(member: ExportMember) -> Iterator[ChatEntry]:
    """The messages and notices of a chat in their order."""
    current: ChatEntry | None = None
    offset = 0
    with member.open() as stream:
        while raw := stream.readline(LONGEST_LINE_BYTES):
            marked = decoded(raw).rstrip("\r\n")
            line = _clean(marked)
            header = _HEADER.match(line)
            if header:
                if current:
                    yield current
                current = _entry(header, offset)
                current.by_program = f": {_BY_THE_PROGRAM}" in marked
            elif current:
                current.add(line)
            offset += len(raw)
    if current:
        yield current


def _entry(header: re.Match[str], offset: int) -> ChatEntry:
    first, separator, second, third, hour, minute, seconds = header.group(1, 2, 3, 4, 6, 7, 8)
    rest = header["rest"]
    author = _AUTHOR.match(rest)
    return ChatEntry(
        offset,
        header.string[: header.start("rest")],
        (int(first), int(second), int(third)),
        separator,
        int(hour),
        int(minute),
        int(seconds or 0),
        _half(header["before"] or header["after"]),
        author.group(1).strip().removeprefix("~").strip() if author else None,
        lines=[author.group(2) if author else rest],
    )


def _half(word: str | None) -> str:
    """`a` or `p` for the half of the day in any language, or nothing."""
    plain = "".join((word or "").lower().split())
    return "a" if plain in _MORNING else "p" if plain else ""


def _clean(line: str) -> str:
    return _MARKS.sub("", line).replace("\u202f", " ").replace("\xa0", " ")
