"""The lines of an exported chat: headers in any order of dates, texts over many lines.

Nothing in the file says which number of a date is the day, so the whole file is asked: a number
over 12 cannot be a month, and time does not run backwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from personal_server.sources.export import Member
from personal_server.sources.text import decoded

LONGEST_LINE_BYTES = 1_000_000
_MARKS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_HEADER = re.compile(
    r"^\[?(\d{1,4})([./-])\s?(\d{1,2})[./-]\s?(\d{1,4})\.?,?\s+(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?"
    r"(?:\s?([AaPp])\.?\s?[Mm]\.?)?(?:\]|\s-)\s(.*)$",
    re.DOTALL,
)
_AUTHOR = re.compile(r"^([^:\n]{1,120}?): ?(.*)$", re.DOTALL)
_ATTACHED = re.compile(r"^<[^:<>]{2,40}: ([^<>\n]+\.\w{1,5})>", re.MULTILINE)
_FILE_THEN_WORD = re.compile(r"^(\S[^\n]*?\.\w{2,5}) \([^()\n]{3,40}\)", re.MULTILINE)
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
    lines: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """All its lines."""
        return "\n".join(self.lines).strip()

    @property
    def kind(self) -> str:
        """What it is, as far as its form tells."""
        if self.author is None:
            return "notice"
        return "left_out" if _LEFT_OUT.match(self.text) else "message"


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
            line = _clean(decoded(raw).rstrip("\r\n"))
            header = _HEADER.match(line)
            if header:
                if current:
                    yield current
                current = _entry(header, offset)
            elif current:
                current.lines.append(line)
            offset += len(raw)
    if current:
        yield current


def _clean(line: str) -> str:
    return _MARKS.sub("", line).replace("\u202f", " ").replace("\xa0", " ")


def _entry(header: re.Match[str], offset: int) -> Entry:
    first, separator, second, third, hour, minute, seconds, half, rest = header.groups()
    author = _AUTHOR.match(rest)
    return Entry(
        offset,
        header.string[: header.start(9)],
        (int(first), int(second), int(third)),
        separator,
        int(hour),
        int(minute),
        int(seconds or 0),
        (half or "").lower(),
        author.group(1).strip().removeprefix("~").strip() if author else None,
        [author.group(2) if author else rest],
    )


def file_named(text: str) -> str | None:
    """The file that a message says it came with."""
    found = _ATTACHED.search(text) or _FILE_THEN_WORD.search(text)
    return found.group(1).strip() if found else None


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
