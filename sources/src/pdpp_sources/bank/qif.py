"""Quicken's old format (QIF): a line for each field, told by its first letter, `^` behind an entry.

Rule: what the owner split over several categories is a payment for each, so that the sums of the
categories are right.  An entry "Opening Balance" is what the account held, no payment.  The file
names no currency, so none is made up.

Source: Quicken Interchange Format (QIF) files, as Intuit described it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import partial

import msgspec

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.bank.bookings import Booking, balance, in_range, no_date, statement_account
from pdpp_sources.bank.csv_layouts import DateOrder
from pdpp_sources.bank.entries import digits, money, number_of
from pdpp_sources.bank.ofx import line_or_none, parse_amount
from pdpp_sources.bank.repeated_ids import Occurrences
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.source import one_record
from pdpp_sources.common.text import decoded
from pdpp_sources.tables.csv_file import charset_of

_BEGINS = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*!(?:Type:|Account\b|Option:|Clear:)", re.IGNORECASE)
_LONGEST_LINE_BYTES = 4_096
_MOST_LINES = 2_000  # of one entry; one that is split a hundred times has some four hundred
_KINDS = {
    "bank": "checking",
    "cash": "cash",
    "ccard": "credit_card",
    "oth a": "asset",
    "oth l": "liability",
    "invst": "investment",
    "port": "investment",
    "401(k)/403(b)": "investment",
}
# Quicken writes a year of this century behind an apostrophe: 1/15'06, or with blanks for zeros.
_DATE = re.compile(r"([0-9]{1,4})\s*([-/.])\s*([0-9]{1,2})\s*([-/.'])\s*([0-9]{1,4})")
_SPENT = re.compile(r"buyx?|cvrshrtx?|miscexpx?|margintx?|xout|reinv\w*")


def is_qif(head: bytes) -> bool:
    """Whether a file begins as one of Quicken."""
    return _BEGINS.match(head) is not None


def read_qif(member: ExportMember) -> Iterator[SourceItem]:
    """Accounts, each before its entries, with their payments and trades."""
    charset = charset_of(member)
    order = DateOrder(day_first=False)
    for entry in _entries(member, charset):
        order.learn(_with_mark(entry.said("D")))
    yield from order.ambiguous(member)
    reader = _QuickenReader(member, order)
    for entry in _entries(member, charset):
        yield from reader.items(entry)


class _QuickenEntry(msgspec.Struct):
    """The lines up to a `^`, under the heading of their list; `fault` if they cannot be used."""

    heading: str
    offset: int
    lines: list[tuple[str, str]] = msgspec.field(default_factory=list[tuple[str, str]])
    fault: str = ""

    def said(self, letter: str) -> str:
        """The first field of a letter."""
        return next((text for name, text in self.lines if name == letter), "")


def _entries(member: ExportMember, charset: str | None) -> Iterator[_QuickenEntry]:
    """The entries of a file in their order, whatever they are."""
    heading, offset = "", 0
    entry: _QuickenEntry | None = None
    with member.open() as stream:
        while line := stream.readline(_LONGEST_LINE_BYTES):
            text = decoded(line, charset).lstrip("\ufeff").rstrip("\r\n")
            if text.startswith("!"):
                if entry is not None:
                    entry.fault = "truncated"
                    yield entry
                entry, heading = None, text[1:].strip().lower()
            elif text.startswith("^"):
                if entry is not None:
                    yield entry
                entry = None
            elif text.strip():
                entry = entry or _QuickenEntry(heading, offset)
                entry.lines.append((text[0], text[1:].strip()))
                if len(entry.lines) > _MOST_LINES:
                    entry.fault, entry.lines = "too_large", []
            offset += len(line)
    if entry is not None:
        # A bank may leave out the last mark; what says its day and amount is whole.
        entry.fault = entry.fault or ("" if entry.said("D") and entry.said("T") else "truncated")
        yield entry


_FAULTS = {
    "truncated": message("the file ends in the middle of this entry"),
    "too_large": message("the entry is too large"),
}


class _QuickenReader:
    """One file: the account that its entries belong to, and which ids they used."""

    def __init__(self, member: ExportMember, order: DateOrder) -> None:
        self._member = member
        self._order = order
        self._name: str | None = None
        self._accounts: set[str] = set()
        self._securities: set[str] = set()
        self._used = Occurrences()

    def items(self, entry: _QuickenEntry) -> Iterator[SourceItem]:
        """What an entry is: an account, a payment, a trade, or something else, which is named."""
        kind = entry.heading.removeprefix("type:")
        where, position = self._member.where(entry.offset), self._member.offset + entry.offset
        if entry.fault:
            yield Skipped(where, entry.fault, _FAULTS[entry.fault], position)
        elif kind == "account":
            self._name = entry.said("N") or None
        elif kind not in _KINDS:
            reason = message("an entry of Quicken's lists, such as a category, is no payment")
            yield Skipped(where, "unknown_record_type", reason, position)
        else:
            account = statement_account(None, None, kind=_KINDS[kind], name=self._name)
            yield from self._account(account, where, position)
            own: str = account["id"]
            is_trade = _KINDS[kind] == "investment"
            build = partial(self._trade if is_trade else self._payments, entry, own, position)
            yield from one_record(where, position, build)

    def _account(self, account: Data, where: str, position: int) -> Iterator[SourceItem]:
        if account["id"] in self._accounts:
            return
        self._accounts.add(account["id"])
        yield SourceRecord("accounts", account, position)
        if self._name is None:
            reason = message(
                "the account has no number; its payments were imported into an account "
                "without a number"
            )
            yield Skipped(where, "no_account_number", reason, position)

    def _payments(self, entry: _QuickenEntry, own: str, position: int) -> list[SourceItem]:
        """A payment, or one for each of its parts. Raises: BadRecord."""
        amount, posted = self._amount(entry, "T", "U"), self._day(entry)
        if entry.said("P").lower() == "opening balance":
            data = balance(own, "opening", posted, amount, None)
            return [SourceRecord("balances", data, position)]
        parts = _parts(entry)
        if not parts or sum((part.amount for part in parts), Decimal(0)) != amount:
            parts = [_QuickenPart(entry.said("L"), entry.said("M"), amount)]
        found: list[SourceItem] = []
        for number, part in enumerate(parts):
            other = re.fullmatch(r"\[(.*)\](?:/.*)?", part.category)
            booking = Booking(
                amount=part.amount,
                currency=None,
                posted=posted,
                payee=entry.said("P"),
                memo=part.memo or entry.said("M"),
                kind="xfer" if other else None,
                category=None if other else part.category,
                check_number=entry.said("N"),
                counterparty=other.group(1) if other else None,
                apart=(entry.said("N"), part.category, str(number) if number else None),
            )
            found.append(
                SourceRecord("transactions", self._used.distinct(booking.data(own)), position)
            )
        return found

    def _trade(self, entry: _QuickenEntry, own: str, position: int) -> list[SourceItem]:
        """A trade, and its security before the first of them. Raises: BadRecord."""
        kind, name, traded = entry.said("N").lower() or "other", entry.said("Y"), self._day(entry)
        total = self._amount(entry, "T", "U") if entry.said("T") or entry.said("U") else None
        amount = -abs(total) if total is not None and _SPENT.fullmatch(kind) else total
        security = stable_id("sec", name) if name else None
        found: list[SourceItem] = []
        if security and security not in self._securities:
            self._securities.add(security)
            facts = {"id": security, "name": name, "ticker": None, "code": None, "code_kind": None}
            found.append(SourceRecord("securities", facts, position))
        units, price = _number(entry, "Q"), _number(entry, "I")
        day = traded.isoformat()
        data: Data = {
            "id": stable_id("trd", own, day, kind, digits(amount), name, digits(units)),
            "account_id": own,
            "security_id": security,
            "traded_on": day,
            "kind": kind,
            "memo": line_or_none(entry.said("M") or entry.said("P")),
            "units": None if units is None else number_of(units),
            "unit_price": None if price is None else number_of(price),
            **money("amount", amount, None),
            "commission": None if (paid := _number(entry, "O")) is None else number_of(paid),
            "bank_transaction_id": None,
        }
        return [*found, SourceRecord("trades", self._used.distinct(data), position)]

    def _amount(self, entry: _QuickenEntry, *letters: str) -> Decimal:
        text = next((text for letter in letters if (text := entry.said(letter))), "")
        return in_range(_decimal(text))

    def _day(self, entry: _QuickenEntry) -> date:
        day = self._order.parse(_with_mark(entry.said("D")))
        if day is None:
            raise no_date()
        return day


class _QuickenPart(msgspec.Struct, frozen=True):
    """One part of a payment that was split: its category, its memo, its amount."""

    category: str
    memo: str
    amount: Decimal


def _parts(entry: _QuickenEntry) -> list[_QuickenPart]:
    """What a payment was split over: `S` begins a part, `E` and `$` tell it. Raises: BadRecord."""
    parts: list[_QuickenPart] = []
    category, memo = "", ""
    for letter, text in entry.lines:
        if letter == "S":
            category, memo = text, ""
        elif letter == "E":
            memo = text
        elif letter == "$":
            amount = in_range(_decimal(text))
            if category or memo or amount:  # a blank line of the split is none
                parts.append(_QuickenPart(category, memo, amount))
    return parts


def _with_mark(text: str) -> str:
    """A date with one mark between its numbers, and a year of this century in full."""
    match = _DATE.match(text.strip())
    if match is None:
        return text.strip()
    first, mark, second, before_year, year = match.groups()
    if before_year == "'":
        year = str(2000 + int(year)) if len(year) < 3 else year
    elif len(first) < 3 and len(year) < 3:
        year = str((2000 if int(year) < 50 else 1900) + int(year))
    return f"{first}{mark}{second}{mark}{year}"


def _number(entry: _QuickenEntry, letter: str) -> Decimal | None:
    text = entry.said(letter)
    return in_range(_decimal(text)) if text else None


def _decimal(text: str) -> Decimal | None:
    """A number of Quicken: thousands apart by commas, or as the owner's country writes it."""
    plain = text.replace("$", "").replace("€", "").replace("£", "").strip()
    if re.fullmatch(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+", plain):
        plain = plain.replace(",", "")
    return parse_amount(plain) if len(plain) <= 60 else None
