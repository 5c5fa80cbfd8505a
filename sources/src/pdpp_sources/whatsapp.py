"""WhatsApp: one chat as the phone exports it, a text file with or without its media."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath

import msgspec

from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import (
    Data,
    Skipped,
    SourceItem,
    SourceRecord,
    stable_id,
)
from pdpp_kernel.texts import message
from pdpp_sources.common.attachments import is_media, kind_of, with_file
from pdpp_sources.common.chats import FILES, chat_messages, chat_name, in_chat, message_author
from pdpp_sources.common.declaration import (
    StreamForm,
    author_kind,
    declaration,
    integer,
    key,
    moment,
    names,
    person,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import decoded, one_line, or_none
from pdpp_sources.common.times import DATE_ORDERS_TAKEN, rendered
from pdpp_sources.whatsapp_media import (
    MARK,
    SentFile,
    is_call,
    is_sent_by_a_person,
    left_out,
)

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
_TIME = (
    rf"(?:(?P<before>{_HALF})\s?)?(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?"
    rf"(?:\s?(?P<after>{_HALF})\.?)?"
)
_DATE = (
    r"(?:(?:(?P<era>令和|平成|昭和|[RHS])\s?)?(?P<first>\d{1,4}|元)\s?(?P<separator>[./年-])\s?"
    r"(?P<middle>\d{1,2})\s?[./月-]\s?(?P<last>\d{1,4})(?:日|\.)?"
    r"|(?:(?P<day>\d{1,2})\.?\s(?:de\s)?(?P<month>[^\W\d_]{3,12})|(?P<name>[^\W\d_]{3,12})\s(?P<number>\d{1,2}))"
    r"\.?(?:,?\s(?:de\s)?(?P<year>\d{4}))?)"
)
# Phones left the year out of what was written in the year of the export.
_DAY_OF_YEAR = r"(?P<first>\d{1,2})(?P<separator>[./-])(?P<middle>\d{1,2})\.?"
_END = r"(?P<end>\]|\s-|:)\s(?P<rest>.*)$"
_END_OF_DAY = r"(?P<end>\]|\s-)\s(?P<rest>.*)$"
# The date comes first or the time does; one chat keeps to one form.
_FORMS = tuple(
    re.compile(rf"^\[?{form}{end}", re.DOTALL | re.IGNORECASE)
    for date, end in ((_DATE, _END), (_DAY_OF_YEAR, _END_OF_DAY))
    for form in (rf"{date}[,،]?\s+{_TIME}", rf"{_TIME}[,،]?\s+{date}")
)
_NO_YEAR = -1
_HALF_A_YEAR = 6  # months
_ERAS = {"令和": 2018, "R": 2018, "平成": 1988, "H": 1988, "昭和": 1925, "S": 1925}
_BUDDHIST_YEARS = 543  # ahead of ours
_BUDDHIST_SHORT = _BUDDHIST_YEARS % 100
_NAMED_MONTH = "name"
_UNNAMED = message(
    "the export does not name this chat, so it got the name of its file or of its "
    "people. For another name, put the file into a folder with that name, import "
    "it from there, and delete this chat"
)
_MOST_PEOPLE = 2000
_CROWD = message("only the first %(most)s people are named", most=_MOST_PEOPLE)
_YEARS_TAKEN = message(
    "the dates have no year; the import assumed the last such date before the file was made"
)
_MONTHS = {
    name: number
    for number, names_of_month in enumerate(
        (
            "jan ene gen",
            "feb fév fev",
            "mar mär maa mrt",
            "apr abr avr",
            "may mai mag mei",
            "jun giu juin",
            "jul lug juil",
            "aug ago aoû",
            "sep set",
            "oct okt ott out",
            "nov",
            "dec dez dic déc",
        ),
        1,
    )
    for name in names_of_month.split()
}
# A notice may have a colon too, but mostly in the name of a group, which it quotes.
_AUTHOR = re.compile(r"^([^:\n\"“”«»]{1,120}?): ?(.*)$", re.DOTALL)
_ATTACHED = re.compile(r"^<[^:<>]{2,40}: ([^<>\n]{1,300}\.\w{1,5})>", re.MULTILINE)
_FILE_THEN_WORD = re.compile(r"^(\S[^\n]{0,300}?\.\w{2,5}) \([^()\n]{3,40}\)(?=\n|$)")
# What the program writes at the beginning of a chat or of a membership, in some of its languages.
_NOTICE = re.compile(
    r"end-to-end|ende-zu-ende|extremo a extremo|ponta a ponta|bout en bout|un'estremità"
    r"|invite link|einladungslink|enlace de invitaci|link de convite"
    r"|lien d.invitation|link d.invito"
    r"|created (?:this )?group|hat die gruppe|creó (?:el|este) grupo|criou (?:o|este) grupo"
    r"|a créé (?:le|ce) groupe|ha creato (?:il|questo) gruppo",
    re.IGNORECASE,
)
# What stands in place of a message that was deleted, in the languages of most exports.
_DELETED_WORDS = (
    "This message was deleted|You deleted this message(?: as admin)?"
    r"|This message was deleted by admin [^\n]{1,100}"
    r"|Diese Nachricht wurde (?:von Admin [^\n]{1,100} )?gelöscht|Du hast diese Nachricht gelöscht"
    "|Se eliminó este mensaje|Eliminaste este mensaje|Este mensaje (?:fue eliminado|se eliminó)"
    "|Ce message a été supprimé|Vous avez supprimé ce message"
    "|Questo messaggio è stato eliminato|Hai eliminato questo messaggio"
    "|(?:Esta )?mensagem (?:foi )?(?:apagada|eliminada)|Você apagou esta mensagem"
    "|(?:Apagaste|Eliminou|Eliminaste) esta mensagem"
    "|Dit bericht is verwijderd|(?:U hebt|Je hebt|Jij hebt) dit bericht verwijderd"
    "|(?:Ta )?wiadomość została usunięta|Usunięto tę wiadomość"
    "|(?:Данное|Это) сообщение удалено|Вы удалили (?:данное|это) сообщение|Сообщение удалено"
    "|Це повідомлення (?:було )?видалено|Bu mesaj silindi|Bu mesajı sildiniz"
    "|Pesan ini telah dihapus|Anda telah menghapus pesan ini"
    "|Det här meddelandet har raderats|Denne besked blev slettet|Denne meldingen ble slettet"
    "|Tämä viesti poistettiin|Acest mesaj a fost șters|Tato zpráva byla (?:odstraněna|smazána)"
    "|Ezt az üzenetet törölték|このメッセージは削除されました"
    "|此消息已删除|您删除了此消息|此訊息已刪除|您已刪除此訊息"
    "|यह मैसेज हटा दिया गया था|यह संदेश हटा दिया गया|تم حذف هذه الرسالة|הודעה זו נמחקה"
)
_DELETED = re.compile(rf"(?:{_DELETED_WORDS})\s?[.。।]?", re.IGNORECASE)
_NAMES_NO_CHAT = re.compile(r"_?chat(?:[ _-]?\(?\d{1,4}\)?)?", re.IGNORECASE)
_HEAD_BYTES = 64 * 1024  # a group joined by link begins with many notices
_MOST_NAMED = 5
_SAID_BY_NOBODY = ("notice", "deleted")
CHATS = StreamForm(
    "chats",
    "Your chats",
    "Name and people of each chat.",
    [
        key(),
        chat_name("Name of the person or group"),
        person(names("people", "Who wrote in it"), PersonForm.WRITTEN),
        text("people_named", "The same, to search in"),
        integer("message_count", "Number of messages, notices among them", summed=True),
        moment("began_at", "When its first message was sent", event=True),
    ],
    time_field="began_at",
    children={"messages": ("messages", "chat_id")},
)
MESSAGES = chat_messages(
    "Your chat messages",
    "Text, author and time of every message.",
    [
        *in_chat(),
        moment(
            "sent_at", "When it was sent by the phone's clock; the export names no zone", event=True
        ),
        person(
            message_author("author", "Who wrote it, or called; none for other notices"),
            PersonForm.WRITTEN,
        ),
        author_kind(),
        text("text", "What it says", title=True),
        word("kind", "message, notice, file, deleted, or left_out where media was not exported"),
        integer("file_count", "Number of files, exported or not", summed=True),
    ],
    traffic=("Who wrote when", ["sent_at", "author"]),
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
        chats = list(matching(export, looks_like_chat, ".txt", "", head_bytes=_HEAD_BYTES))
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
    lines = [_clean(line) for line in decoded(head).splitlines() if line.strip()]
    form = next(filter(None, map(_form_of, lines[:40])), None)
    if form is None:
        return False
    first = [line for line in lines[:40] if form.match(line)]
    if not first or (first[0] != lines[0] and 2 * len(first) < len(lines[:40])):
        return False
    begun = (match["rest"] for line in lines if (match := form.match(line)))
    return any(_AUTHOR.match(text) or _NOTICE.search(text) for text in begun)


def holds_messages(head: bytes) -> bool:
    """Whether several lines begin messages, whatever stands between and before them."""
    lines = [_clean(line) for line in decoded(head).splitlines()]
    form = next(filter(None, map(_form_of, lines)), None)
    return form is not None and sum(form.match(line) is not None for line in lines) > 1


class _LineForm(msgspec.Struct, frozen=True):
    """How the lines of one chat begin: its order of date and time, and what ends them."""

    pattern: re.Pattern[str]
    end: str

    def match(self, line: str) -> re.Match[str] | None:
        """The beginning of a message."""
        match = self.pattern.match(line)
        return match if match is not None and match["end"] == self.end else None


def _form_of(line: str) -> _LineForm | None:
    matched = ((pattern, pattern.match(line)) for pattern in _FORMS)
    return next((_LineForm(pattern, match["end"]) for pattern, match in matched if match), None)


def _chat_name(member: ExportMember, export: Export) -> str | None:
    """What the file or its folder calls the chat; nothing where they are called as all are."""
    path = PurePosixPath(member.name)
    if not _NAMES_NO_CHAT.fullmatch(path.stem):
        name = path.stem
    elif path.parent.name:
        name = path.parent.name
    else:
        alone = (
            sum("/" not in member.name and _is_unnamed(member) for member in export.members) == 1
        )
        is_folder = export.is_packed or export.path.is_dir()
        name = export.path.stem if is_folder and alone else ""
    return _EXPORT_NAME.sub("", name).strip()[:LONGEST_CHAT_NAME] or None


def _is_unnamed(member: ExportMember) -> bool:
    """Whether a text is called as every chat of an iPhone is."""
    path = PurePosixPath(member.name)
    return path.suffix.lower() in (".txt", "") and _NAMES_NO_CHAT.fullmatch(path.stem) is not None


class _ChatSurvey(msgspec.Struct):
    """What only the whole chat tells: the order of its dates, and who writes."""

    calendar: ChatCalendar
    people: list[str]
    count: int
    again: frozenset[tuple[int, int, int]]
    is_large: bool  # more people write in it than are named
    is_order_assumed: bool  # no date tells whether the day or the month comes first


class _WhatsAppChat:
    """One chat on its way to records."""

    def __init__(self, member: ExportMember, export: Export) -> None:
        self._member = member
        name = _chat_name(member, export)
        self._is_named = name is not None
        self._name, self._id = name or "", stable_id("chat", name)
        self._export = export
        folder = PurePosixPath(member.name).parent
        self._files = {
            PurePosixPath(each.name).name: each
            for each in export.members
            if PurePosixPath(each.name).parent == folder and each is not member
        }

    def items(self) -> Iterator[SourceItem]:
        facts = self._survey()
        began = False
        same = _Repeats(facts.again)
        for number, entry in enumerate(read_entries(self._member)):
            begins_at = min(entry.offset, _HEAD_BYTES)
            if number == 0 and begins_at and self._member.head(begins_at).strip():
                reason = message("text before the first message was ignored")
                yield Skipped(self._member.where(0), "bad_record", reason, self._member.offset)
            build = partial(self._records, entry, facts.calendar, same.number(entry))
            position_text, position = (
                self._member.where(entry.offset),
                self._member.offset + entry.offset,
            )
            for item in one_record(position_text, position, build):
                if isinstance(item, SourceRecord) and not began:
                    began = True
                    yield self._chat(facts, item)
                    if not self._is_named:
                        yield Skipped(self._member.name, "unnamed_chat", _UNNAMED, item.position)
                    if facts.is_large:
                        yield Skipped(self._member.name, "beyond_bounds", _CROWD, item.position)
                    if facts.is_order_assumed:
                        reason = DATE_ORDERS_TAKEN[facts.calendar.order]
                        yield Skipped(self._member.name, "ambiguous_dates", reason, item.position)
                    if facts.calendar.years:
                        yield Skipped(self._member.name, "no_year", _YEARS_TAKEN, item.position)
                yield item

    def _survey(self) -> _ChatSurvey:
        people: dict[str, None] = {}
        dates: list[tuple[int, int, int]] = []
        days: set[tuple[int, int, int]] = set()
        again: set[tuple[int, int, int]] = set()
        count, american, separator, day = 0, False, "/", None
        for entry in read_entries(self._member):
            count += 1
            if count == 1 and not self._is_named:
                self._call_by(entry)
            if entry.date != day:
                again |= {entry.date} & days
                days.add(entry.date)
                day = entry.date
            if len(people) <= _MOST_PEOPLE and entry.writer:
                people[entry.writer] = None
            if len(dates) < 200_000 and (not dates or dates[-1] != entry.date):
                dates.append(entry.date)
            american |= entry.stamp.rstrip("-] ").endswith(("AM", "PM"))
            separator = entry.separator
        if not self._name:
            more = ", …" if len(people) > _MOST_NAMED else ""
            self._name = ", ".join(list(people)[:_MOST_NAMED]) + more or "Chat"
        order = date_order(dates, separator, american=american)
        calendar = ChatCalendar.of(order, dates, self._export.captured_at)
        is_large = len(people) > _MOST_PEOPLE
        named = list(people)[:_MOST_PEOPLE]
        is_assumed = is_order_assumed(order, dates, separator)
        return _ChatSurvey(calendar, named, count, frozenset(again), is_large, is_assumed)

    def _call_by(self, first: ChatEntry) -> None:
        """Know a chat that nothing names by how it begins: an iPhone's notice is in its name."""
        self._id = stable_id("chat", "begins", first.stamp, first.author, first.text)
        if first.by_program and first.author:
            self._name = first.author[:LONGEST_CHAT_NAME]

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

    def _records(
        self, entry: ChatEntry, calendar: ChatCalendar, number: int
    ) -> Iterator[SourceItem]:
        position = self._member.offset + entry.offset
        if entry.size_chars > LONGEST_MESSAGE_CHARS:
            raise BadRecord("too_large", "the message has over a million characters")
        local = calendar.local(entry)
        sent_at = rendered(local, self._export.zone)
        filename = entry.filename
        sent = SentFile(filename, kind_of(filename)) if filename else entry.left_out
        kind = entry.kind
        message_id = stable_id("msg", self._id, local.isoformat(), entry.author, entry.text, number)
        data: Data = {
            "id": message_id,
            "chat_id": self._id,
            "chat_name": self._name,
            "sent_at": sent_at,
            "author": entry.writer,
            "text": or_none(entry.text),
            "author_kind": "notice" if kind in _SAID_BY_NOBODY else "person",
            "kind": kind,
            "file_count": 1 if sent else 0,
        }
        yield SourceRecord("messages", data, position)
        if sent is None:
            return
        data = {
            "id": f"{message_id}.1",
            "message_id": message_id,
            "sent_at": sent_at,
            "filename": one_line(sent.filename, 255) if sent.filename else None,
            "mime_type": sent.mime_type,
            "size_bytes": None,
        }
        file = SourceRecord("files", data, position)
        if filename is None:  # the export says itself that it lacks the file
            yield file
        else:
            yield from with_file(file, self._files.get(filename))


class _Repeats:
    """Which time a text comes again in one minute: also where the clock steps back to that minute.

    Days that the chat comes back to are remembered, of the others only the one at hand.
    """

    def __init__(self, again: frozenset[tuple[int, int, int]]) -> None:
        self._again = again
        self._day: tuple[int, int, int] | None = None
        self._counts: dict[tuple[int, int, int], Counter[int]] = {}

    def number(self, entry: ChatEntry) -> int:
        """1 for the first of its kind."""
        if entry.date != self._day:
            if self._day is not None and self._day not in self._again:
                self._counts.pop(self._day, None)
            self._day = entry.date
        counts = self._counts.setdefault(entry.date, Counter())
        counts[hash((entry.stamp, entry.author, entry.text))] += 1
        return counts[hash((entry.stamp, entry.author, entry.text))]


class ChatCalendar(msgspec.Struct, frozen=True):
    """How the dates of a chat are read: the order of their numbers, and the years of its calendar.

    Shapes: `ahead` is how many years the chat counts ahead of ours (Buddhist years); `years` those
        of days that are written without one, by month and day.
    """

    order: str
    ahead: int = 0
    years: Mapping[tuple[int, int], int] = msgspec.field(default_factory=dict[tuple[int, int], int])

    @classmethod
    def of(
        cls, order: str, dates: Sequence[tuple[int, int, int]], captured_at: datetime
    ) -> ChatCalendar:
        """No message is sent after it was exported: such years are Buddhist ones."""
        year_index = order.index("y")
        latest = max((date[year_index] for date in dates), default=0)
        full = latest + (2000 if latest < 100 else 0)
        is_buddhist = full > captured_at.year + 1 and full - _BUDDHIST_SHORT <= captured_at.year + 1
        if latest > 2400:
            return cls(order, _BUDDHIST_YEARS)
        month, day = order.index("m"), order.index("d")
        days = [(date[month], date[day]) for date in dates if date[year_index] == _NO_YEAR]
        years = _years_of(days, captured_at)
        return cls(order, _BUDDHIST_SHORT if latest < 100 and is_buddhist else 0, years)

    def local(self, entry: ChatEntry) -> datetime:
        """The time by the phone's clock. Raises: BadRecord."""
        order = "ymd" if entry.era else "dmy" if entry.separator == _NAMED_MONTH else self.order
        parts = dict(zip(order, entry.date, strict=True))
        hour = entry.hour
        if entry.half:
            hour = hour % 12 + (12 if entry.half == "p" else 0)
        try:
            year = self._year(parts["y"], entry.era)
            if parts["y"] == _NO_YEAR:
                year = self.years.get((parts["m"], parts["d"]), 0)
            return datetime(year, parts["m"], parts["d"], hour, entry.minute, entry.second)  # noqa: DTZ001  # the export names no zone
        except ValueError:
            raise BadRecord(
                "bad_date", "the date of the entry does not exist in the calendar"
            ) from None

    def _year(self, written: int, era: str) -> int:
        if era:
            return _ERAS[era] + written
        return written + (2000 if written < 100 else 0) - self.ahead


def _years_of(days: Sequence[tuple[int, int]], captured_at: datetime) -> dict[tuple[int, int], int]:
    """The years of months and days that follow each other up to the making of the file.

    One that is half a year and more earlier than the one before it is of the next year.
    """
    year = captured_at.year
    years: dict[tuple[int, int], int] = {}
    for number, day in enumerate(reversed(days)):
        later = days[len(days) - number] if number else (captured_at.month, captured_at.day)
        is_before = day > later if number == 0 else day[0] - later[0] >= _HALF_A_YEAR
        year -= is_before
        years[day] = year
    return years


def file_named(text: str) -> str | None:
    """The file that a message says it came with; a site with a remark in brackets is none."""
    attached = _ATTACHED.search(text)
    if attached:
        return attached.group(1).strip()
    match = _FILE_THEN_WORD.match(text)
    return match.group(1).strip() if match and kind_of(match.group(1)) else None


def date_order(dates: Sequence[tuple[int, int, int]], separator: str, *, american: bool) -> str:
    """Which of year, month and day each number is, as `dmy`, `mdy` or `ymd`.

    Nothing in the file says it, so the whole file is asked: a number over 12 cannot be a month, and
    time does not run backwards.
    """
    if separator == _NAMED_MONTH:
        return "dmy"
    if separator == "年" or any(first > 99 for first, _, _ in dates):
        return "ymd"
    # On a tie the first wins: Americans write slashes and AM or PM without dots.
    orders = ("mdy", "dmy", "ymd") if separator == "/" and american else ("dmy", "mdy", "ymd")
    possible = [order for order in orders if _fits(order, dates)]
    return min(possible, key=lambda order: _steps_back(order, dates), default="dmy")


def is_order_assumed(order: str, dates: Sequence[tuple[int, int, int]], separator: str) -> bool:
    """Whether the other of day and month could as well come first, and would be another day.

    Dots and month names stand behind the day everywhere.
    """
    other = {"dmy": "mdy", "mdy": "dmy"}.get(order, "")
    return (
        separator in ("/", "-")
        and bool(other)
        and any(date[0] != date[1] for date in dates)
        and _fits(other, dates)
        and _steps_back(other, dates) == _steps_back(order, dates)
    )


def _fits(order: str, dates: Sequence[tuple[int, int, int]]) -> bool:
    month, day, year = order.index("m"), order.index("d"), order.index("y")
    return all(1 <= d[month] <= 12 and 1 <= d[day] <= 31 for d in dates) and (
        year != 0 or all(d[2] <= 31 for d in dates)
    )


def _steps_back(order: str, dates: Sequence[tuple[int, int, int]]) -> int:
    indices = [order.index(unit) for unit in "ymd"]
    ordered = [tuple(date[at] for at in indices) for date in dates]
    return sum(later < earlier for earlier, later in pairwise(ordered))


class ChatEntry(msgspec.Struct):
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
    era: str = ""
    by_program: bool = False
    is_marked: bool = False
    lines: list[str] = msgspec.field(default_factory=list[str])
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
    def filename(self) -> str | None:
        """The file that it says it came with."""
        return file_named(self.text)

    @property
    def writer(self) -> str | None:
        """Who wrote it, deleted it or called; nobody wrote what the program tells of somebody."""
        is_notice = self.by_program and self.kind == "notice" and not is_call(self.text)
        return None if is_notice else self.author

    @property
    def kind(self) -> str:
        """What it is, as far as its form tells."""
        if self.filename:
            return "file"
        if self.author is not None and _DELETED.fullmatch(self.text):
            return "deleted"
        if self.left_out is not None:
            return "left_out"
        is_notice = self.by_program and not is_sent_by_a_person(self.text)
        return "notice" if self.author is None or is_notice else "message"

    @property
    def left_out(self) -> SentFile | None:
        """The file that its author sent and that was not exported."""
        return left_out(self.text, is_marked=self.is_marked) if self.author else None


def read_entries(member: ExportMember) -> Iterator[ChatEntry]:
    """The messages and notices of a chat in their order."""
    current: ChatEntry | None = None
    form: _LineForm | None = None
    offset = 0
    with member.open() as stream:
        while raw := stream.readline(LONGEST_LINE_BYTES):
            marked = decoded(raw).rstrip("\r\n")
            line = _clean(marked)
            form = form or _form_of(line)
            header = form.match(line) if form else None
            if header:
                if current:
                    yield current
                current = _entry(header, offset)
                current.by_program = f": {MARK}" in marked
                current.is_marked = MARK in marked[1:]
            elif current:
                current.add(line)
            offset += len(raw)
    if current:
        yield current


def _entry(header: re.Match[str], offset: int) -> ChatEntry:
    text = header["rest"]
    author = _AUTHOR.match(text)
    return ChatEntry(
        offset,
        header.string[: header.start("rest")],
        _numbers(header),
        header["separator"] or _NAMED_MONTH,
        int(header["hour"]),
        int(header["minute"]),
        int(header["second"] or 0),
        _half(header["before"] or header["after"]),
        author.group(1).strip().removeprefix("~").strip() if author else None,
        era=(header.groupdict().get("era") or "").upper(),
        lines=[author.group(2) if author else text],
    )


def _numbers(header: re.Match[str]) -> tuple[int, int, int]:
    """The three numbers of a date as they stand; a month by its name as its number, else 0."""
    parts = header.groupdict()
    if header["first"]:
        first = 1 if header["first"] == "元" else int(header["first"])
        return first, int(header["middle"]), int(parts.get("last") or _NO_YEAR)
    name = (header["month"] or header["name"]).casefold()
    month = _MONTHS.get(name[:4]) or _MONTHS.get(name[:3], 0)
    return int(header["day"] or header["number"]), month, int(header["year"] or _NO_YEAR)


def _half(word: str | None) -> str:
    """`a` or `p` for the half of the day in any language, or nothing."""
    plain = "".join((word or "").lower().split())
    return "a" if plain in _MORNING else "p" if plain else ""


def _clean(line: str) -> str:
    return _MARKS.sub("", line).replace("\u202f", " ").replace("\xa0", " ")
