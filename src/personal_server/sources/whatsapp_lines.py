"""The lines of an exported chat: headers in any order of dates, texts over many lines.

Nothing in the file says which number of a date is the day, so the whole file is asked: a number
over 12 cannot be a month, and time does not run backwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from personal_server.sources.attachments import kind_of
from personal_server.sources.export import Member
from personal_server.sources.text import decoded

LONGEST_LINE_BYTES = 1_000_000
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
_AUTHOR = re.compile(r"^([^:\n\"“”«»]{1,120}?): ?(.*)$", re.DOTALL)
"""A notice may have a colon too, but mostly in the name of a group, which it quotes."""

_ATTACHED = re.compile(r"^<[^:<>]{2,40}: ([^<>\n]+\.\w{1,5})>", re.MULTILINE)
_FILE_THEN_WORD = re.compile(r"^(\S[^\n]*?\.\w{2,5}) \([^()\n]{3,40}\)(?=\n|$)")
_BY_THE_PROGRAM = "\u200e"
_LEFT_OUT = re.compile(r"^<[^<>\n]{3,50}>$")


@dataclass(slots=True)
class Entry:
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


def looks_like_chat(head: bytes) -> bool:
    """Whether the first line, or most of the first ones, begin a message."""
    lines = [line for line in decoded(head).splitlines()[:40] if line.strip()]
    begun = [line for line in lines if _HEADER.match(_clean(line))]
    if not begun or (begun[0] != lines[0] and 2 * len(begun) < len(lines)):
        return False
    return any(_AUTHOR.match(_clean(line).split(" ", 2)[-1]) for line in begun)


def read_entries(member: Member) -> Iterator[Entry]:
    """The messages and notices of a chat in their order."""
    current: Entry | None = None
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
                current.lines.append(line)
            offset += len(raw)
    if current:
        yield current


def _clean(line: str) -> str:
    return _MARKS.sub("", line).replace("\u202f", " ").replace("\xa0", " ")


def _entry(header: re.Match[str], offset: int) -> Entry:
    first, separator, second, third, hour, minute, seconds = header.group(1, 2, 3, 4, 6, 7, 8)
    rest = header["rest"]
    author = _AUTHOR.match(rest)
    return Entry(
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


def file_named(text: str) -> str | None:
    """The file that a message says it came with; a site with a remark in brackets is none."""
    attached = _ATTACHED.search(text)
    if attached:
        return attached.group(1).strip()
    found = _FILE_THEN_WORD.match(text)
    return found.group(1).strip() if found and kind_of(found.group(1)) else None


def date_order(dates: Sequence[tuple[int, int, int]], separator: str, *, american: bool) -> str:
    """Which of year, month and day each number is, as `dmy`, `mdy` or `ymd`."""
    if any(first > 99 for first, _, _ in dates):
        return "ymd"
    possible = [order for order in _preferred(separator, american) if _fits(order, dates)]
    backwards = {order: _steps_back(order, dates) for order in possible}
    return min(possible, key=lambda order: backwards[order], default="dmy")


def _preferred(separator: str, american: bool) -> tuple[str, ...]:
    """On a tie the first wins: Americans write slashes and AM or PM without dots."""
    if separator == "/" and american:
        return ("mdy", "dmy", "ymd")
    return ("dmy", "mdy", "ymd")


def _fits(order: str, dates: Sequence[tuple[int, int, int]]) -> bool:
    month, day, year = order.index("m"), order.index("d"), order.index("y")
    return all(1 <= d[month] <= 12 and 1 <= d[day] <= 31 for d in dates) and (
        year != 0 or all(d[2] <= 31 for d in dates)
    )


def _steps_back(order: str, dates: Sequence[tuple[int, int, int]]) -> int:
    place = [order.index(each) for each in "ymd"]
    ordered = [tuple(date[at] for at in place) for date in dates]
    return sum(later < earlier for earlier, later in pairwise(ordered))
