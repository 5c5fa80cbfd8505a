"""The seam to `ofxparse`: its parser finds the accounts and leaves each entry whole.

The library's own entries drop what a statement says of one payment: its currency, its reference
number, the extended name, the bank's clock. So its parser is made to keep the elements, and
`OfxEntry` reads them with the library's own amounts and dates.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from functools import cached_property

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag
from ofxparse.ofxparse import (
    Account,
    AccountType,
    InvestmentTransaction,
    OfxParser,
    soup_maker,
)

from personal_server.sources.common.errors import BadRecord
from personal_server.sources.common.text import one_line, or_none, printable

_CLOSING = re.compile(r"</([a-z0-9_.]+)>", re.IGNORECASE)
_OPENING = re.compile(r"<([a-z0-9_.]+)>.*?(?=</?[a-z0-9_.]+>|\Z)", re.IGNORECASE | re.DOTALL)
_POSITIONS = ("posmf", "posstock", "posopt", "posother", "posdebt")
# Where accounts stand: statements first, for a list of accounts says less of the same ones.
_LISTINGS = (
    (AccountType.Bank, "stmtrs"),
    (AccountType.CreditCard, "ccstmtrs"),
    (AccountType.Investment, "invstmtrs"),
    (AccountType.Bank, "bankacctinfo"),
    (AccountType.CreditCard, "ccacctinfo"),
    (AccountType.Investment, "invacctinfo"),
)
_CLOCK_DIGITS = 14
_LONGEST_AMOUNT = 60
_ZONE = re.compile(r"\[\s*([-+]?\d{1,2}(?:\.\d{1,2})?)\s*(?::[^\]]*)?\]?$")


class OfxEntry:
    """One part of a statement (a payment, a trade, a balance …), asked by the names OFX gives."""

    def __init__(self, element: Tag) -> None:
        self._element = element

    @cached_property
    def _parts(self) -> dict[str, OfxEntry]:
        """The first part of each name, at any depth, found in one walk."""
        found: dict[str, OfxEntry] = {}
        for each in self._element.find_all(True):
            if each.name not in found:
                found[each.name] = OfxEntry(each)
        return found

    @property
    def kind(self) -> str:
        """What it is: `stmttrn`, `buystock`, `income` and so on."""
        return self._element.name.lower()

    @property
    def own(self) -> str | None:
        """What it says itself, outside of any part."""
        first = next(iter(self._element.contents), None)
        return line_or_none(str(first)) if isinstance(first, NavigableString) else None

    def inner(self, name: str) -> OfxEntry | None:
        """The first part of that name, at any depth."""
        return self._parts.get(name)

    def all(self, *names: str) -> list[OfxEntry]:
        """All parts of these names, in the order of the names."""
        return [OfxEntry(each) for name in names for each in self._element.find_all(name)]

    def text(self, *names: str) -> str | None:
        """The first of these parts that says something."""
        parts = (part.own for name in names if (part := self.inner(name)))
        return next(filter(None, parts), None)

    def amount(self, name: str) -> Decimal | None:
        """A number, with a point or a comma. Raises: BadRecord."""
        found = self.inner(name)
        if found is None or not found.own or found.own.lower() in ("null", "-null"):
            return None
        if len(found.own) > _LONGEST_AMOUNT:
            raise BadRecord("bad_amount", "its amount is out of range")
        try:
            return OfxParser.toDecimal(found._element)
        except (InvalidOperation, IndexError, TypeError, AttributeError):
            raise BadRecord("bad_amount", "its amount is missing or not a number") from None

    def moment(self, name: str) -> datetime | None:
        """A time by the bank's clock, aware if the statement names a zone. Raises: BadRecord."""
        text = self.text(name)
        try:
            return _moment(text) if text else None
        except (ValueError, OverflowError):
            raise BadRecord("bad_date", "its date is missing or does not exist") from None


def line_or_none(text: str | None) -> str | None:
    """A text of a statement on one line; None if it says nothing."""
    return or_none(one_line(printable(text), 4000)) if text else None


def _moment(text: str) -> datetime | None:
    """The library takes a clock without its zone, so that the day stays the bank's own."""
    text = text[:60]
    digits = re.match(r"\d*", text)
    clock = digits.group() if digits else ""
    clock = clock[: _CLOCK_DIGITS if len(clock) >= _CLOCK_DIGITS else 8]
    moment = StatementParser.parseOfxDateTime(clock)
    zone = _ZONE.search(text)
    if moment is None or zone is None or len(clock) < _CLOCK_DIGITS:
        return moment
    return moment.replace(tzinfo=timezone(timedelta(hours=float(zone.group(1)))))


@dataclass(frozen=True, slots=True)
class Balance:
    """One balance: the part of the statement that holds it, and where that says how much."""

    kind: str
    entry: OfxEntry
    amount_name: str = "balamt"


@dataclass(frozen=True, slots=True)
class BankStatement:
    """What one account's statement lists."""

    currency: str | None = None
    payments: list[OfxEntry] = field(default_factory=list[OfxEntry])
    trades: list[OfxEntry] = field(default_factory=list[OfxEntry])
    positions: list[OfxEntry] = field(default_factory=list[OfxEntry])
    balances: list[Balance] = field(default_factory=list[Balance])


class StatementParser(OfxParser):
    """The library's parser, which keeps the entries of a statement as they stand."""

    fail_fast = False
    custom_date_format = None

    @classmethod
    def parseStatement(cls, stmt_ofx: Tag) -> BankStatement:  # noqa: N802 (the library's name)
        """The payments and balances of a bank account or a card."""
        whole = OfxEntry(stmt_ofx)
        kinds = (("booked", "ledgerbal"), ("available", "availbal"))
        balances = [Balance(k, part) for k, name in kinds if (part := whole.inner(name))]
        return BankStatement(whole.text("curdef"), whole.all("stmttrn"), balances=balances)

    @classmethod
    def parseInvestmentStatement(cls, invstmtrs_ofx: Tag) -> BankStatement:  # noqa: N802
        """The trades, positions, payments and cash of an account with a broker."""
        whole = OfxEntry(invstmtrs_ofx)
        cash = [Balance("cash", whole, "availcash")] if whole.text("availcash") else []
        return BankStatement(
            whole.text("curdef"),
            [entry for each_list in whole.all("invbanktran") for entry in each_list.all("stmttrn")],
            whole.all(*InvestmentTransaction.AGGREGATE_TYPES),
            whole.all(*_POSITIONS),
            cash,
        )


@dataclass(frozen=True, slots=True)
class StatementFile:
    """One file: each account's kind and element, and the securities."""

    institution: str | None
    accounts: list[tuple[int, Tag]]
    securities: list[OfxEntry]


def parse_file(text: str) -> StatementFile:
    """What the library's tree of a file holds. Raises: whatever the library raises."""
    tree: BeautifulSoup = soup_maker(io.StringIO(_closed(text[max(text.find("<"), 0) :])))
    whole = OfxEntry(tree)
    accounts = [(kind, each) for kind, name in _LISTINGS for each in tree.find_all(name)]
    bank = whole.inner("fi")
    securities = [each for each_list in whole.all("seclist") for each in each_list.all("secinfo")]
    return StatementFile(bank.text("org") if bank else None, accounts, securities)


def _closed(text: str) -> str:
    """Close the tags that OFX 1 leaves open: those of a name that is nowhere closed.

    The library's own way asks a list of all closing tags for each opening one, which takes many
    minutes for a long statement.
    """
    closed = {name.upper() for name in _CLOSING.findall(text)}

    def whole(found: re.Match[str]) -> str:
        name = found.group(1)
        return found.group() if name.upper() in closed else f"{found.group()}</{name}>"

    return _OPENING.sub(whole, text)


def parse_account(kind: int, element: Tag) -> Account:
    """One account with its statement. Raises: BadRecord."""
    try:
        if kind == AccountType.Investment:
            return StatementParser.parseInvstmtrs([element])[0]
        return StatementParser.parseStmtrs([element], kind)[0]
    except (TypeError, AttributeError, IndexError):
        raise BadRecord("bad_record", "the account's number cannot be read") from None
