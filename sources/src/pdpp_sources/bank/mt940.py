"""Statements in SWIFT's MT940, and MT942 of a day, as banks offer them to programs of accounting.

Rule: a statement line (`:61:`) is one payment, told further by the field behind it (`:86:`), which
each country fills in its own way: numbered parts (Germany), words between slashes (Netherlands),
free text.  `RC` takes a credit back, so that money went out; `RD` takes a debit back.

Source: SWIFT user handbook, category 9; Deutsche Kreditwirtschaft, DFÜ-Abkommen, annex 3, 8.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from functools import partial
from typing import BinaryIO

import msgspec

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord
from pdpp_kernel.texts import message
from pdpp_sources.bank.bookings import (
    IBAN,
    Booking,
    balance,
    no_date,
    statement_account,
)
from pdpp_sources.bank.entries import in_range, no_amount
from pdpp_sources.bank.ofx import parse_amount
from pdpp_sources.bank.repeated_ids import Occurrences
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.source import one_record
from pdpp_sources.common.text import decoded, one_line

# What may stand before it: the blocks and lines that banks put around a message.
_BEGINS = re.compile(
    rb"\A(?>[A-Z0-9{}:,;/\x00-\x09\x0b-\x20\x7f-\xff-]{0,300}\n){0,6}?:20:[^\n]{0,100}\n"
    rb"(?>[^\n]{0,200}\n){0,6}?:(?:25[A-Z]?|28C?|60[FM]|61|NS|34F):"
)
_TAG = re.compile(r":([0-9]{2}[A-Z]?|NS):")
_LONGEST_LINE_BYTES = 4_096
_MOST_LINES = 400  # of one field; that of a payment has some twenty
_WRAPPED = 65  # characters of a full line, after which a field goes on in the next
_BALANCES = {
    "60F": "opening",
    "62F": "booked",
    "62M": "interim",
    "64": "available",
    "65": "expected",
}
_BALANCE = re.compile(r"([CD])\s*([0-9]{6})\s*([A-Z]{3})?\s*([0-9.,]{1,24})")
_FLOOR = re.compile(r"([A-Z]{3})")
# `2401021231DR20,50NDDTNONREF//2024A`: value on 2 January, booked on 31 December, 20.50
# went out, R of EUR, kind DDT; no reference of the customer's, 2024A the bank's.
_LINE = re.compile(
    r"(?P<value>[0-9]{6})\s{0,4}(?P<entry>[0-9]{4})?\s{0,4}(?P<way>R[CD]|E?[CD])\s?[A-Z]?\s{0,4}"
    r"(?P<amount>[0-9]{1,15}(?:[.,][0-9]{0,5})?)\s?(?P<type>[NFS][A-Z0-9]{3})?(?P<rest>.*)",
    re.DOTALL,
)
_NOTHING = frozenset({"NONREF", "NOTPROVIDED", "NOREF", ""})
# SWIFT's own types, and the codes of Germany's banks in front of `:86:`, as words of OFX.
_TYPES = {
    **dict.fromkeys(("TRF", "CLR"), "xfer"),
    **dict.fromkeys(("CHG", "COM"), "fee"),
    **dict.fromkeys(("CHK", "CCH"), "check"),
    **dict.fromkeys(("DDT",), "directdebit"),
    **dict.fromkeys(("DIV",), "div"),
    **dict.fromkeys(("INT",), "int"),
    **dict.fromkeys(("STO",), "repeatpmt"),
}
_CODES = {
    **dict.fromkeys(("104", "105", "107", "171", "174", "195", "005"), "directdebit"),
    **dict.fromkeys(("106", "110"), "pos"),
    **dict.fromkeys(("083",), "atm"),
    **dict.fromkeys(("082",), "dep"),
    **dict.fromkeys(("101", "102", "103", "111", "112"), "check"),
    **dict.fromkeys(("108", "109"), "other"),
    **dict.fromkeys(("116", "118", "119", "166", "168", "169", "177", "191", "201", "202"), "xfer"),
    **dict.fromkeys(("117", "152"), "repeatpmt"),
    **dict.fromkeys(("153", "156"), "directdep"),
    **dict.fromkeys(("805", "814"), "int"),
    **dict.fromkeys(("806", "807", "808", "809"), "fee"),
}
_NUMBERED = re.compile(r"([0-9]{3})([^\sA-Za-z0-9/])(?=[0-9]{2})")
_SEPA = re.compile(r"(EREF|KREF|MREF|CRED|DEBT|SVWZ|ABWA|ABWE|COAM|OAMT|IBAN|BIC|PURP)\+")
_SLASHED = re.compile(
    r"/(TRTP|IBAN|BIC|NAME|REMI|EREF|MARF|CSID|ORDP|BENM|CNTP|TRCD|ISDT|PREF|RTRN|ADDR|ID|PURP"
    r"|ULTD|ULTC|SVCL|ACCW|BUSP|EXCH|CHGS1?|CHGS2|OCMT|TRAN|RREF|IREF|INIT)/"
)


def is_mt940(head: bytes) -> bool:
    """Whether a file begins with the fields of a statement of SWIFT."""
    return _BEGINS.match(head.replace(b"\r", b"")) is not None


def read_mt940(member: ExportMember) -> Iterator[SourceItem]:
    """Accounts, each before its entries, with what they held and their payments."""
    reader = _SwiftReader(member)
    with member.open() as stream:
        for tagged in _fields(stream):
            yield from reader.items(tagged)
    yield from reader.waiting()
    if not reader.accounts:
        reason = message("the file contains no account; the bank may have answered with an error")
        yield Skipped(member.name, "empty_statement", reason, max(reader.position, member.offset))


class _TaggedField(msgspec.Struct):
    """One field: its tag, where it begins, and its lines."""

    tag: str
    offset: int
    lines: list[str] = msgspec.field(default_factory=list[str])

    @property
    def text(self) -> str:
        """Its lines as one text: a full line goes on in the next, a shorter one has ended."""
        joined = ""
        for number, line in enumerate(self.lines):
            is_full = number > 0 and len(self.lines[number - 1]) >= _WRAPPED
            joined += line if is_full or not number else f" {line}"
        return joined


def _fields(stream: BinaryIO) -> Iterator[_TaggedField]:
    """The fields of a file in their order; what stands around the messages is passed over."""
    open_field: _TaggedField | None = None
    offset = 0
    while line := stream.readline(_LONGEST_LINE_BYTES):
        text = decoded(line).strip("\r\n")
        match = _TAG.match(text)
        begins_message = text.startswith(("{", "-}")) or text.strip() == "-"
        if match or begins_message:
            if open_field is not None:
                yield open_field
            open_field = None
        if match:
            open_field = _TaggedField(match.group(1), offset, [text[match.end() :]])
        elif open_field is not None and not begins_message and len(open_field.lines) < _MOST_LINES:
            open_field.lines.append(text)
        offset += len(line)
    if open_field is not None:
        yield open_field


class _SwiftReader:
    """One file: the account that is open, and the payment whose details may follow."""

    def __init__(self, member: ExportMember) -> None:
        self.accounts: set[str] = set()
        self.position = 0
        self._member = member
        self._number = ""
        self._currency: str | None = None
        self._line: _TaggedField | None = None
        self._used = Occurrences()

    def items(self, tagged: _TaggedField) -> Iterator[SourceItem]:
        """What was waiting, and what a field says beyond it."""
        if tagged.tag == "86":
            yield from self._payment(tagged)
            return
        yield from self.waiting()
        if tagged.tag == "20":
            self._number, self._currency = "", None
        elif tagged.tag in ("25", "25P"):
            self._number = "".join(tagged.text.split())
        elif tagged.tag == "61":
            self._line = tagged
        elif tagged.tag == "34F" and (floor := _FLOOR.match(tagged.text)):
            self._currency = floor.group(1)
        elif tagged.tag in ("60M", *_BALANCES):
            yield from self._record(tagged, partial(self._balance, tagged))

    def waiting(self) -> Iterator[SourceItem]:
        """The payment that nothing more is said of."""
        yield from self._payment(None)

    def _payment(self, details: _TaggedField | None) -> Iterator[SourceItem]:
        line, self._line = self._line, None
        if line is not None:
            text = _Details.of(details) if details else _Details()
            yield from self._record(line, partial(self._transaction, line, text))

    def _record(
        self, tagged: _TaggedField, build: partial[tuple[str, Data] | None]
    ) -> Iterator[SourceItem]:
        """The account where it is new, and what is built; the account also where that fails."""
        self.position = position = self._member.offset + tagged.offset
        if tagged.tag.startswith("6") and (match := _BALANCE.match(tagged.text)):
            self._currency = match.group(3) or self._currency

        def items() -> list[SourceItem]:
            built = build()
            return [SourceRecord(built[0], built[1], position)] if built else []

        account = self._account()
        if account["id"] not in self.accounts:
            self.accounts.add(account["id"])
            yield SourceRecord("accounts", account, position)
        yield from one_record(self._member.where(tagged.offset), position, items)

    def _account(self) -> Data:
        """The account by what `:25:` says: an IBAN, or the bank and a number."""
        own = self._number
        if self._currency and own.endswith(self._currency):
            own = own.removesuffix(self._currency).rstrip("/")
        iban = IBAN.search(own)
        if iban:
            return statement_account(iban.group(0), self._currency)
        bank, mark, number = own.partition("/")
        return statement_account(
            (number if mark else own) or None, self._currency, bank_code=bank if mark else None
        )

    def _balance(self, tagged: _TaggedField) -> tuple[str, Data] | None:
        if tagged.tag == "60M":  # says the interim balance of the page before again
            return None
        match = _BALANCE.match(tagged.text)
        if match is None:
            raise no_amount()
        amount_held = in_range(parse_amount(match.group(4)))
        amount = -amount_held if match.group(1) == "D" else amount_held
        held_on, own = _day(match.group(2)), self._account()["id"]
        return "balances", balance(own, _BALANCES[tagged.tag], held_on, amount, self._currency)

    def _transaction(self, line: _TaggedField, details: _Details) -> tuple[str, Data]:
        match = _LINE.match("\n".join(line.lines)) or _LINE.match("".join(line.lines))
        amount = parse_amount(match["amount"]) if match else None
        if match is None or amount is None:
            raise BadRecord("bad_record", "the entry of the bank statement cannot be read")
        value = _day(match["value"])
        first, _, supplement = match["rest"].partition("\n")
        customers, _, banks = first.partition("//")
        customers, banks = customers.strip(), banks.strip()
        is_out = match["way"] in ("D", "ED", "RC")
        own_id = None if banks in _NOTHING else banks
        spoken_reference = None if customers in _NOTHING else customers
        booking = Booking(
            amount=-amount if is_out else amount,
            currency=self._currency,
            posted=_booked(match["entry"], value),
            payee=details.payee,
            memo=details.memo or one_line(supplement) or None,
            kind=details.kind or _TYPES.get((match["type"] or "")[1:]),
            available_on=value,
            reference=details.reference or spoken_reference,
            counterparty=details.account or _iban_in(supplement) or _iban_in(customers),
            own_id=own_id,
            apart=() if own_id else (details.reference or spoken_reference,),
        )
        return "transactions", self._used.distinct(booking.data(self._account()["id"]))


def _iban_in(text: str) -> str | None:
    return text.strip() if IBAN.fullmatch(text.strip()) else None


def _day(text: str) -> date:
    """`YYMMDD`; the banks' 30th of February is its last day. Raises: BadRecord."""
    year, month, day = 2000 + int(text[:2]), int(text[2:4]), int(text[4:])
    if year > 2079:
        year -= 100
    try:
        last = monthrange(year, month)[1] if month == 2 and day in (29, 30) else day
        return date(year, month, min(day, last))
    except (ValueError, IndexError):
        raise no_date() from None


def _booked(month_and_day: str | None, value: date) -> date:
    """The day of booking, which says no year: that of the three that is nearest to the value's."""
    if not month_and_day:
        return value
    days: list[date] = []
    for year in (value.year - 1, value.year, value.year + 1):
        try:
            days.append(_day(f"{year % 100:02}{month_and_day}"))
        except BadRecord:
            continue
    return min(days, key=lambda day: abs((day - value).days)) if days else value


class _Details(msgspec.Struct, frozen=True):
    """What `:86:` says of a payment."""

    payee: str | None = None
    memo: str | None = None
    account: str | None = None
    reference: str | None = None
    kind: str | None = None

    @classmethod
    def of(cls, tagged: _TaggedField) -> _Details:
        """The details in the way of the country that wrote them."""
        whole = "".join(tagged.lines)
        numbered = _NUMBERED.match(whole)
        if numbered:
            return _numbered(whole[numbered.end() :], numbered.group(2), numbered.group(1))
        if _SLASHED.match(whole):
            return _slashed(whole)
        return cls(memo=one_line(tagged.text, 4000) or None)


def _numbered(text: str, mark: str, code: str) -> _Details:
    """Germany's parts: `00` kind, `20` to `29`, `60` to `63` purpose, `30` to `33` other party.

    In: `00SALARY?20EREF+E-77?21SVWZ+May?32Acme?33 Ltd`, the mark `?` and the code `153`.
    Out: payee `Acme Ltd`, memo `May`, reference `E-77`, kind `directdep`.
    """
    parts: dict[str, str] = {}
    pieces: list[str] = []
    pattern = re.compile(re.escape(mark) + r"([0-9]{2})")
    for number, piece in zip(*[iter(["", *pattern.split(mark + text)][2:])] * 2, strict=False):
        if number[0] == "2" or number in ("60", "61", "62", "63"):
            pieces.append(piece)
        else:
            parts.setdefault(number, piece)
    purpose = _joined(pieces)
    split = _SEPA.split(purpose)
    named = {name: words.strip() for name, words in zip(split[1::2], split[2::2], strict=True)}
    name = _joined([parts.get("32", ""), parts.get("33", "")])
    account = parts.get("38") or parts.get("31") or named.get("IBAN")
    memo = named.get("SVWZ") or (split[0] if named else purpose) or parts.get("00")
    reference = named.get("EREF") or named.get("KREF")
    return _Details(
        payee=one_line(name) or None,
        memo=one_line(memo or "", 4000) or None,
        account="".join(account.split()) if account and account.strip("0 ") else None,
        reference=None if reference in _NOTHING else reference,
        kind=_CODES.get(code),
    )


def _joined(pieces: list[str]) -> str:
    """Pieces of 27 characters as one text: a full one goes on in the next, a shorter has ended."""
    text = ""
    for piece, before in zip(pieces, ["", *pieces], strict=False):
        goes_on = not before or len(before) >= 27 or text.endswith(" ")
        text += piece if goes_on else f" {piece}"
    return text


def _slashed(text: str) -> _Details:
    """The words between slashes of Dutch banks, the first of each name.

    In: `/TRTP/SEPA/IBAN/NL02ABNA0123456789/NAME/J. Jansen/REMI/Rent/EREF/NOTPROVIDED`.
    Out: payee `J. Jansen`, memo `Rent`, that account, and no reference.
    """
    split = _SLASHED.split(text)
    named: dict[str, str] = {}
    for name, words in zip(split[1::2], split[2::2], strict=True):
        named.setdefault(name, words.strip(" /"))
    party = (named.get("CNTP") or "").split("/")
    purpose = re.sub(r"^(?:USTD//|STRD/[A-Z]{3}/)", "", named.get("REMI") or "")
    account = named.get("IBAN") or party[0] or None
    reference = named.get("EREF")
    return _Details(
        payee=one_line(named.get("NAME") or (party[2] if len(party) > 2 else "")) or None,
        memo=one_line(purpose, 4000) or None,
        account=account if account and IBAN.fullmatch(account) else None,
        reference=None if reference in _NOTHING else reference,
    )
