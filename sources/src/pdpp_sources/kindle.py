"""The Kindle reader: highlights, notes and bookmarks in `My Clippings.txt`.

Source: files in the tests and trackers of published readers. An entry is the title with its
author, a line with what it is, where it stands and when it was made, and the words, up to a line
of `=`. The second line is in the language of the device; a place is told by its words, a date by
its form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from functools import partial
from itertools import chain

import msgspec

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common.declaration import (
    StreamForm,
    declaration,
    integer,
    key,
    moment,
    plain,
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
from pdpp_sources.tables.column_days import day_forms, day_value

_BEGINNING = re.compile(rb"(?:\s*\n)?[^\r\n]{1,2000}\r?\n- [^\r\n]{0,400}\d[^\r\n]{0,400}\r?\n")
_END = b"=========="
_LARGEST_ENTRY_BYTES = 4 * 1024 * 1024
_AUTHOR = re.compile(r"(.*?)\s*\(((?:[^()]|\([^()]*\))*)\)\s*")
_KINDS = (
    (
        "bookmark",
        r"bookmark|lesezeichen|signet|marcador|segnalibro|bladwijzer|закладк|书签|ブックマーク",
    ),
    ("note", r"\bnote\b|notiz|\bnota\b|notitie|заметк|примечан|笔记|メモ"),
    (
        "highlight",
        r"highlight|markierung|surlign|subrayado|destaque|evidenz|markering|выдел|标注|ハイライト",
    ),
)
_PAGE = re.compile(r"\bpage\b|seite|página|pagina|страниц|页|ページ", re.IGNORECASE)
_NUMBERS = re.compile(r"\d{1,9}(?:\s?[-–]\s?\d{1,9})?")
_BRACKET = re.compile(r"[(（]")
_CLOCK_WORDS = re.compile(
    r"(\d{1,2})\s?(?:h|时|時)\s?(\d{1,2})\s?(?:min|分)\s?(\d{1,2})\s?(?:s|秒)"
)
_HALVES = re.compile(r"(上午|下午|午前|午後)\s?(\d{1,2}:\d{2}:\d{2})")
_WEEKDAY_BEHIND = re.compile(r"(日)\s*(?:星期[一二三四五六日天]|[月火水木金土日]曜日)")

HIGHLIGHTS = StreamForm(
    "highlights",
    "What you marked in books",
    "Each highlight, note and bookmark: the book, the words, the place and the time.",
    [
        key(),
        word("book", "Title of the book", title=True, searched=True),
        word("book_author", "Who wrote the book", searched=True),
        word("kind", "highlight, note or bookmark"),
        text("text", "The words that were marked, or what you noted"),
        plain("page", "Page, as the device counts, or the first of some"),
        plain("location", "Location in the book, as the device counts"),
        integer("location_begins", "The first location, to sort by"),
        moment("added_at", "When it was made, in UTC", event=True),
    ],
    time_field="added_at",
    semantic=["text"],
)


class KindleSource:
    """Reads the clippings of a Kindle."""

    connector_key = "kindle"
    declaration: Data = declaration(
        "kindle", "Kindle", "What you marked and noted in books on a Kindle.", [HIGHLIGHTS]
    )
    how_to_export = (
        "Connect the Kindle to a computer and copy documents/My Clippings.txt from it. Marks that "
        "were made in the app only are not in it."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim by the first entry: a title, a line that begins with - and a line of =."""
        return claim(matching(export, is_clippings, ".txt"), "it holds marks made on a Kindle")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each mark. One that was made again is told as a repetition."""
        items = each_member(export, partial(_read_member, export.zone))
        return beginning_at(start, without_repeats(items))


def is_clippings(head: bytes) -> bool:
    """Whether a file begins as clippings do."""
    return _BEGINNING.match(head) is not None and b"\n" + _END in head


class _Clipping(msgspec.Struct, frozen=True):
    position: int
    where: str
    content: bytes


def _read_member(zone: tzinfo, member: ExportMember) -> Iterator[SourceItem]:
    for clipping in _clippings(member):
        if isinstance(clipping, Skipped):
            yield clipping
        else:
            build = partial(_record, clipping, zone)
            yield from one_record(clipping.where, clipping.position, build)


def _clippings(member: ExportMember) -> Iterator[_Clipping | Skipped]:
    """The entries of a file; what is longer than any entry is named."""
    begin = at = size = 0
    lines: list[bytes] = []
    with member.open() as stream:
        while line := stream.readline(_LARGEST_ENTRY_BYTES):
            at += len(line)
            size += len(line)
            is_end = line.startswith(_END)
            if not is_end and size <= _LARGEST_ENTRY_BYTES:
                lines.append(line)
            if not is_end:
                continue
            yield from _whole(member, begin, lines, size)
            begin, size, lines = at, 0, []
    if b"".join(lines).strip():
        reason = message("the last entry has no end")
        yield Skipped(member.where(begin), "truncated", reason, member.offset + begin)


def _whole(
    member: ExportMember, begin: int, lines: list[bytes], size: int
) -> Iterator[_Clipping | Skipped]:
    where, position, content = member.where(begin), member.offset + begin, b"".join(lines)
    if size > _LARGEST_ENTRY_BYTES:
        yield Skipped(where, "too_large", message("the entry is too large"), position)
    elif content.strip():
        yield _Clipping(position, where, content)


def _record(clipping: _Clipping, zone: tzinfo) -> Iterator[SourceItem]:
    lines = decoded(clipping.content).strip().splitlines()
    if len(lines) < 2 or not lines[1].lstrip().startswith("-"):
        raise BadRecord("bad_record", message("the entry does not say what it is"))
    *places, made = [part.strip() for part in lines[1].lstrip(" -").split("|")]
    added_at = _instant(made, zone)
    if added_at is None:
        places = places or [made]
        reason = message("the field %(field)s cannot be read", field="added_at")
        yield Skipped(clipping.where, "no_value", reason, clipping.position)
    title = lines[0].strip()
    named = _AUTHOR.fullmatch(one_line(title))
    words = "\n".join(lines[2:]).strip()
    page, location = _place(places)
    kind = _kind(lines[1], has_words=bool(words))
    first = _NUMBERS.search(location or "")
    data: Data = {
        "id": stable_id("clip", title, kind, page or "", location or "", words),
        "book": one_line(named[1] if named and named[1] else title),
        "book_author": or_none(one_line(named[2])) if named and named[1] else None,
        "kind": kind,
        "text": or_none(words),
        "page": page,
        "location": location,
        "location_begins": int(first[0].split("-")[0].split("–")[0]) if first else None,
    }
    yield SourceRecord(
        "highlights", data | ({"added_at": added_at} if added_at else {}), clipping.position
    )


def _kind(line: str, *, has_words: bool) -> str:
    """What an entry is, by its words in a known language, else by whether it has any text."""
    lead = line.partition("|")[0]
    for kind, pattern in _KINDS:
        if re.search(pattern, lead, re.IGNORECASE):
            return kind
    return "highlight" if has_words else "bookmark"


def _place(places: list[str]) -> tuple[str | None, str | None]:
    """The page and the location, of which an entry has one or both.

    In: `["Ihre Markierung auf Seite 28", "bei Position 284-286"]`. Out: `("28", "284-286")`.
    In: `["您在第 31 页（位置 #465-466）的标注"]`. Out: `("31", "465-466")`.
    """
    page = location = None
    for part in chain.from_iterable(map(_BRACKET.split, places)):
        numbers = _NUMBERS.search(part)
        if numbers is None:
            continue
        numbers_shown = re.sub(r"\s", "", numbers[0]).replace("–", "-")
        if _PAGE.search(part):
            first, _, last = numbers_shown.partition("-")
            page = first if last in ("", first) else numbers_shown
        else:
            location = numbers_shown
    return page, location


def _instant(words: str, zone: tzinfo) -> str | None:
    """The instant that words end with: `Added on Sunday, February 10, 2019 8:29:24 AM`."""
    spelled = _WEEKDAY_BEHIND.sub(r"\1", _CLOCK_WORDS.sub(r"\1:\2:\3", words[:200]))
    spelled = _HALVES.sub(lambda m: f"{m[2]} {'AM' if m[1] in '上午午前' else 'PM'}", spelled)
    parts = re.sub(r"(?<=[^\W\d_])(?=\d{4}年)", " ", spelled).split(" ")  # the words may touch it
    for begin in range(len(parts)):
        rest = " ".join(parts[begin:])
        if "date-time" in day_forms(rest) and ":" in rest:
            try:
                return day_value(rest, "date-time", zone)
            except BadRecord:
                return None
    return None
