"""OFX cut into its entries, one at a time: SGML (version 1), XML (version 2), what is neither.

Nothing is trusted but the names of the parts that hold an entry (a payment, a trade, a balance …).
Version 1 closes no element that holds text; banks leave out more. So an entry ends where it is
closed, where the next begins or where what is around it ends, and a damaged byte costs one entry.

Source: OFX 1.6 and 2.2, sections 2.3 (elements), 3.2 (values), 11 (banks) and 13 (brokers).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import cached_property
from typing import BinaryIO

import msgspec

from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.text import decoded, one_line, or_none, unescaped

PAYMENT_KINDS = frozenset({"stmttrn"})
PENDING_KINDS = frozenset({"stmttrnp"})
_TRADES = (
    "buydebt buymf buyopt buyother buystock closureopt income invexpense jrnlfund jrnlsec"
    " margininterest reinvest retofcap selldebt sellmf sellopt sellother sellstock split transfer"
)
TRADE_KINDS = frozenset(_TRADES.split())
POSITION_KINDS = frozenset({"posmf", "posstock", "posopt", "posother", "posdebt"})
BALANCE_KINDS = {"ledgerbal": "booked", "availbal": "available", "invbal": "cash"}
SECURITY_KINDS = frozenset({"secinfo"})
LISTED_ACCOUNTS = frozenset({"bankacctinfo", "ccacctinfo", "invacctinfo"})
_ENTRIES = (
    PAYMENT_KINDS
    | PENDING_KINDS
    | TRADE_KINDS
    | POSITION_KINDS
    | SECURITY_KINDS
    | LISTED_ACCOUNTS
    | BALANCE_KINDS.keys()
)
_ACCOUNTS = frozenset({"bankacctfrom", "ccacctfrom", "invacctfrom"})
_STATEMENTS = frozenset({"stmtrs", "ccstmtrs", "invstmtrs"})
_COLLECTED = _ENTRIES | _ACCOUNTS | {"fi"}

_CHUNK_BYTES = 64 * 1024
_LONGEST_PIECE_BYTES = 64 * 1024  # of a tag with its text; of a text less is shown
_MOST_PARTS = 1_000  # of an entry; the largest known has some fifty
_DEEPEST = 64
_TAG = re.compile(rb"(/?)(?:[\w.-]{1,64}:)?([A-Za-z][\w.-]{0,63})(?:\s[^>]*|/)?>")
_LONGEST_AMOUNT = 60
_AMOUNT = re.compile(r"[-+]?[0-9]*(?:[.,'][0-9]+)*[.,]?[0-9]*")
_DAY = re.compile(r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})([0-9]{6})?")
_ZONE = re.compile(r"\[\s*([-+]?\d{1,2}(?:\.\d{1,2})?)\s*(?::[^\]]*)?\]?$")
_HEADER_BYTES = 2_048
_CHARSET = re.compile(rb"""(?:^|\s)CHARSET\s*[:=]\s*"?([\w-]{1,20})|encoding=["']([\w-]{1,20})""")
_KNOWN_CHARSET = re.compile(
    r"utf-?8|(?:iso-?)?8859-\d{1,2}|(?:windows-|cp)\d{3,4}|koi8-[ru]|gb\w+|big5|shift_jis|euc-\w+"
)


class OfxEntry:
    """One part of a statement (a payment, a trade, a balance …), asked by the names OFX gives."""

    def __init__(self, name: str, text: bytes, charset: str | None) -> None:
        self.kind = name
        self._text = [text]
        self._text_bytes = len(text)
        self._charset = charset
        self._children: list[OfxEntry] = []

    def add(self, part: OfxEntry) -> None:
        """Take a part in."""
        self._children.append(part)

    def say(self, more: bytes) -> None:
        """Its text goes on; of what is longer than any, the rest is left out."""
        if self._text_bytes < _LONGEST_PIECE_BYTES:
            self._text.append(more)
            self._text_bytes += len(more)

    @cached_property
    def own(self) -> str | None:
        """What it says itself, outside of any part."""
        return line_or_none(unescaped(decoded(b"".join(self._text), self._charset)))

    @cached_property
    def _parts(self) -> dict[str, OfxEntry]:
        """The first part of each name, at any depth, found in one walk."""
        entries: dict[str, OfxEntry] = {}
        waiting = self._children[::-1]
        while waiting:
            part = waiting.pop()
            entries.setdefault(part.kind, part)
            waiting += part._children[::-1]
        return entries

    def inner(self, name: str) -> OfxEntry | None:
        """The first part of that name, at any depth."""
        return self._parts.get(name)

    def text(self, *names: str) -> str | None:
        """The first of these parts that says something."""
        parts = (part.own for name in names if (part := self.inner(name)))
        return next(filter(None, parts), None)

    def amount(self, name: str) -> Decimal | None:
        """A number, with a point or a comma. Raises: BadRecord."""
        text = self.text(name)
        if text is None or text.lower() in ("null", "-null"):
            return None
        if len(text) > _LONGEST_AMOUNT:
            raise BadRecord("bad_amount", "the amount of the payment is out of range")
        amount = parse_amount(text)
        if amount is None:
            raise BadRecord("bad_amount", "the amount of the payment is missing or not a number")
        return amount

    def moment(self, name: str) -> datetime | None:
        """A time by the bank's clock, aware if the statement names a zone. Raises: BadRecord."""
        text = self.text(name)
        try:
            return _moment(text[:60]) if text else None
        except (ValueError, OverflowError):
            raise BadRecord(
                "bad_date", "the date of the payment is missing or does not exist"
            ) from None


def line_or_none(text: str | None) -> str | None:
    """A text of a statement on one line; None if it says nothing."""
    return or_none(one_line(text, 4000)) if text else None


def parse_amount(text: str) -> Decimal | None:
    """A number as banks write it: the last mark in it is that of the decimals, if it comes once."""
    plain = "".join(text.split())
    if not _AMOUNT.fullmatch(plain) or not any(c.isdigit() for c in plain):
        return None
    marks = [c for c in plain if c in ".,"]
    whole, point, decimals = plain, "", ""
    if marks and marks.count(marks[-1]) == 1:
        whole, point, decimals = plain.rpartition(marks[-1])
    return Decimal(re.sub(r"[.,']", "", whole) + (point and ".") + decimals)


def _moment(text: str) -> datetime | None:
    """A time of OFX, `20240131233000.000[-5:EST]`. Raises: ValueError, OverflowError."""
    match = _DAY.match(text)
    if match is None:
        return None
    year, month, day_of_month, clock = match.groups()
    if year == "0000":
        return None
    moment = datetime(int(year), int(month), int(day_of_month))  # noqa: DTZ001  # the bank's day
    zone = _ZONE.search(text)
    if clock is None or int(clock[:2]) > 23 or int(clock[2:4]) > 59 or int(clock[4:]) > 59:
        return moment
    moment = moment.replace(hour=int(clock[:2]), minute=int(clock[2:4]), second=int(clock[4:]))
    if zone is None:
        return moment
    return moment.replace(tzinfo=timezone(timedelta(hours=float(zone.group(1)))))


class OfxStatement(msgspec.Struct):
    """What is said of all entries of one account before they are listed."""

    account: OfxEntry | None = None
    currency: str | None = None
    as_of: OfxEntry | None = None  # what holds its date


class OfxPart(msgspec.Struct, frozen=True):
    """An entry, or the end of a statement (`None`), and what it belongs to.

    Shapes: `fault` says why the entry cannot be used, as a code and a reason.
    Units: `offset` in bytes from the start of the file.
    """

    entry: OfxEntry | None
    statement: OfxStatement | None
    offset: int
    fault: tuple[str, str] | None = None


class _Tag(msgspec.Struct, frozen=True):
    """One tag with the text behind it; without a name it is text that goes on."""

    name: str
    closes: bool
    text: bytes
    offset: int


class OfxFile:
    """Reads one file from its start to its end."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._charset: str | None = None
        self.institution: str | None = None
        self._open: list[OfxEntry] = []  # the elements that are not closed yet
        self._last: OfxEntry | None = None  # the element that was opened last
        self._begun = 0  # where the entry begins that is open
        self._collecting = -1  # how deep it lies; -1: none is open
        self._parts = 0
        self._statement: OfxStatement | None = None
        self._offset = 0

    def parts(self) -> Iterator[OfxPart]:
        """Every entry in its order."""
        for tag in self._tags():
            self._offset = tag.offset
            if not tag.name:
                if self._last is not None:
                    self._last.say(tag.text)
            elif tag.closes:
                yield from self._closed(tag)
            else:
                yield from self._opened(tag)
        if self._open:
            reason = message("the file ends before the bank statement ends")
            unfinished = OfxPart(None, None, self._offset, ("truncated", reason))
            yield from self._cut_to(0)
            yield unfinished

    def _opened(self, tag: _Tag) -> Iterator[OfxPart]:
        element = OfxEntry(tag.name, tag.text, self._charset)
        holds_text = bool(tag.text.strip())
        is_entry = tag.name in _ENTRIES and not holds_text
        if is_entry and self._collecting >= 0:
            yield from self._cut_to(self._collecting)  # entries lie beside each other
        if self._collecting >= 0:
            self._parts += 1
            if self._parts <= _MOST_PARTS:
                self._open[-1].add(element)
        elif tag.name in _STATEMENTS:
            self._statement = OfxStatement()
        elif tag.name in _COLLECTED and not holds_text:
            self._collecting, self._begun, self._parts = len(self._open), tag.offset, 0
        elif tag.name == "curdef":
            self._described().currency = element.own
        elif tag.name == "dtasof":
            dated = OfxEntry("statement", b"", None)
            dated.add(element)
            self._described().as_of = dated
        self._last = element
        if not holds_text and (len(self._open) < _DEEPEST or is_entry):
            self._open.append(element)

    def _closed(self, tag: _Tag) -> Iterator[OfxPart]:
        last, self._last = self._last, None
        is_leaf = last is not None and (not self._open or self._open[-1] is not last)
        if last is not None and is_leaf and last.kind == tag.name:
            return
        names = [element.kind for element in self._open]
        depth = len(names) - 1 - names[::-1].index(tag.name) if tag.name in names else None
        if depth is not None:
            yield from self._cut_to(depth)
        elif tag.name in _ENTRIES:
            reason = message("the beginning of the bank statement cannot be read")
            yield OfxPart(None, self._statement, tag.offset, ("bad_record", reason))
        if tag.name in _STATEMENTS and self._statement is not None:
            yield OfxPart(None, self._statement, tag.offset)
            self._statement = None

    def _cut_to(self, depth: int) -> Iterator[OfxPart]:
        """Close all elements from a depth on, the entry too if it is one of them."""
        if self._collecting >= depth:
            element = self._open[self._collecting]
            self._collecting = -1
            if element.kind == "fi":
                self.institution = self.institution or element.text("org")
            elif element.kind in _ACCOUNTS:
                self._account(element)
            else:
                too_many = (
                    "too_large",
                    message("the bank statement has more than %(most)s parts", most=_MOST_PARTS),
                )
                fault = too_many if self._parts > _MOST_PARTS else None
                yield OfxPart(element, self._statement, self._begun, fault)
        del self._open[depth:]
        self._last = None

    def _account(self, element: OfxEntry) -> None:
        before = self._described()
        if before.account is not None:
            self._statement = OfxStatement(currency=before.currency, as_of=before.as_of)
        self._described().account = element

    def _described(self) -> OfxStatement:
        """The statement that is open; where its beginning was damaged, one is assumed."""
        self._statement = self._statement or OfxStatement()
        return self._statement

    def _tags(self) -> Iterator[_Tag]:
        until: bytes | None = None  # the end of a comment or of text as it stands
        for offset, piece in self._pieces():
            text = piece
            if until is None and piece.startswith((b"!--", b"![CDATA[")):
                until = b"-->" if piece.startswith(b"!--") else b"]]>"
                text = piece[3:] if until == b"-->" else piece[8:]
            elif until is not None:
                text = b"<" + piece
            if until is not None:
                content, end, after = text.partition(until)
                if until == b"]]>":
                    yield _Tag("", False, content.replace(b"&", b"&amp;"), offset)
                if end:
                    until = None
                    yield _Tag("", False, after, offset)
                continue
            match = _TAG.match(piece)
            if match is not None:
                name = match.group(2).decode().lower()
                closes, after = bool(match.group(1)), piece[match.end() :]
                yield _Tag(name, closes, after, offset)
            elif not piece.startswith((b"?", b"!")):
                yield _Tag("", False, b"<" + piece, offset)  # a bracket that opens nothing

    def _pieces(self) -> Iterator[tuple[int, bytes]]:
        """What lies between two opening brackets, from the first on, and where."""
        buffer = self._stream.read(_CHUNK_BYTES)
        self._charset = charset_of(buffer[:_HEADER_BYTES])
        offset = -1  # of the piece in `rest`, with the bracket before it
        is_first, beyond = True, 0
        while True:
            chunk = self._stream.read(_CHUNK_BYTES)
            *whole, buffer = (buffer + chunk).split(b"<") if chunk else [*buffer.split(b"<"), b""]
            for piece in whole:
                if not is_first:
                    yield offset, piece
                offset += len(piece) + 1 + beyond
                is_first, beyond = False, 0
            if not chunk:
                return
            beyond += max(0, len(buffer) - _LONGEST_PIECE_BYTES)
            buffer = buffer[:_LONGEST_PIECE_BYTES]


def charset_of(header: bytes) -> str | None:
    """The charset that a file names, if it is one of bytes."""
    match = _CHARSET.search(header)
    if match is None:
        return None
    name = (match.group(1) or match.group(2)).decode().lower()
    name = f"cp{name}" if name.isdigit() else f"iso-{name}" if name.startswith("8859") else name
    return name if _KNOWN_CHARSET.fullmatch(name) else None
