"""Payments in the CSV of banks and services whose columns are known, each told by its header.

Rule: `amount` is what the account changed by, so sums mean the same over every layout and over OFX;
what of it was a fee stands beside it. What is not booked, and what is no payment, is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal

import msgspec

from pdpp_kernel.source_item import Data, Skipped, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.bank.entries import digits, money, no_amount, number_of
from pdpp_sources.bank.ofx import line_or_none, parse_amount
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.times import DATE_ORDERS_TAKEN
from pdpp_sources.tables.csv_file import CsvForm, form_with_header

Row = Mapping[str, str]
_SYMBOLS = {"€": "EUR", "£": "GBP", "¥": "JPY"}  # a dollar may be of many countries
_DATE = re.compile(r"(\d{1,4})([-./])(\d{1,2})\2(\d{1,4})")
_NOT_AMOUNT = re.compile(r"[^0-9.,'()+-]")


class CsvLayout(msgspec.Struct, frozen=True):
    """One known layout: the columns that tell it, and where a payment's parts stand.

    Shapes: of several columns for one part the first that says something counts; `booked` are the
        words of `status` for what was booked (empty: every row was).
    """

    name: str
    kind: str
    required: frozenset[str]
    posted: str
    payee: tuple[str, ...]
    amount: tuple[str, ...] = ("amount",)
    spent: tuple[str, ...] = ()
    received: tuple[str, ...] = ()
    gross: tuple[str, ...] = ()
    fee: tuple[str, ...] = ()
    fee_is_extra: bool = False
    memo: tuple[str, ...] = ()
    account: tuple[str, ...] = ()
    currency: tuple[str, ...] = ()
    always_in: str | None = None
    own_id: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    type: tuple[str, ...] = ("type",)
    category: tuple[str, ...] = ()
    counterparty: tuple[str, ...] = ()
    balance: tuple[str, ...] = ()
    original: tuple[str, ...] = ()
    rate: tuple[str, ...] = ()
    initiated: tuple[str, ...] = ()
    status: str = ""
    booked: frozenset[str] = frozenset()
    no_payments: frozenset[str] = frozenset()  # words of `type` for what moves no money
    day_first: bool = False
    is_debit: Callable[[Row], bool] = msgspec.field(default=lambda _: False)
    payee_of: Callable[[Row, Decimal], str | None] = msgspec.field(
        default=lambda _row, _amount: None
    )


def _columns(names: str) -> frozenset[str]:
    return frozenset(name.strip() for name in names.lower().split(","))


def _venmo_payee(row: Row, amount: Decimal) -> str | None:
    """Who was on the other side: of a charge it is asked of `To`, of a payment it goes there."""
    is_charge = _said(row, "type").lower() == "charge"
    return _said(row, "to" if is_charge == (amount > 0) else "from") or None


_BOOKED_BY_PAYPAL = "completed, refunded, partially refunded, reversed, cleared, paid"
LAYOUTS = (
    CsvLayout(
        "PayPal",
        "wallet",
        _columns("date, time, name, type, status, currency, gross, fee, net, transaction id"),
        "date",
        ("name",),
        amount=("net",),
        gross=("gross",),
        fee=("fee",),
        memo=("item title", "subject", "note"),
        currency=("currency",),
        own_id=("transaction id",),
        reference=("reference txn id", "invoice number"),
        counterparty=("to email address",),
        balance=("balance",),
        status="status",
        booked=_columns(_BOOKED_BY_PAYPAL),
        no_payments=frozenset({"shopping cart item"}),
    ),
    CsvLayout(
        "Venmo",
        "wallet",
        _columns("id, datetime, type, status, note, from, to, amount (total), funding source"),
        "datetime",
        ("destination", "funding source"),
        amount=("amount (total)",),
        fee=("amount (fee)",),
        memo=("note",),
        always_in="USD",
        own_id=("id",),
        status="status",
        booked=frozenset({"complete", "issued"}),
        payee_of=_venmo_payee,
    ),
    CsvLayout(
        "Mint",
        "budget",
        _columns("date, description, original description, amount, transaction type, account name"),
        "date",
        ("description",),
        memo=("original description", "notes"),
        account=("account name",),
        type=("transaction type",),
        category=("category",),
        is_debit=lambda row: _said(row, "transaction type").lower() == "debit",
    ),
    CsvLayout(
        "Monarch",
        "budget",
        _columns("date, merchant, category, account, original statement, notes, amount"),
        "date",
        ("merchant",),
        memo=("original statement", "notes"),
        account=("account",),
        category=("category",),
    ),
    CsvLayout(
        "YNAB",
        "budget",
        _columns("account, date, payee, category, memo, outflow, inflow"),
        "date",
        ("payee",),
        amount=(),
        spent=("outflow",),
        received=("inflow",),
        memo=("memo",),
        account=("account",),
        category=("category",),
    ),
    CsvLayout(
        "Schwab",
        "checking",
        _columns("date, type, description, runningbalance"),
        "date",
        ("description",),
        amount=(),
        spent=("withdrawal", "withdrawal (-)"),
        received=("deposit", "deposit (+)"),
        always_in="USD",
        check=("checknumber", "check #"),
        balance=("runningbalance",),
        status="status",
        booked=frozenset({"posted", ""}),
    ),
    CsvLayout(
        "Schwab",
        "brokerage",
        _columns("date, action, symbol, description, quantity, price, fees & comm, amount"),
        "date",
        ("description", "action"),
        fee=("fees & comm",),
        memo=("symbol",),
        always_in="USD",
        type=("action",),
    ),
    CsvLayout(
        "N26",
        "checking",
        _columns("booking date, partner name, type, payment reference, amount (eur)"),
        "booking date",
        ("partner name",),
        amount=("amount (eur)",),
        memo=("payment reference",),
        account=("account name",),
        always_in="EUR",
        counterparty=("partner iban",),
        original=("original currency",),
        rate=("exchange rate",),
        initiated=("value date",),
    ),
    CsvLayout(
        "N26",
        "checking",
        _columns("date, payee, account number, transaction type, payment reference, amount (eur)"),
        "date",
        ("payee",),
        amount=("amount (eur)",),
        memo=("payment reference",),
        always_in="EUR",
        type=("transaction type",),
        category=("category",),
        counterparty=("account number",),
        original=("type foreign currency",),
        rate=("exchange rate",),
    ),
    CsvLayout(
        "Revolut",
        "checking",
        _columns("type, started date, completed date, description, amount, fee, currency, state"),
        "completed date",
        ("description",),
        gross=("amount",),
        fee=("fee",),
        fee_is_extra=True,
        account=("product",),
        currency=("currency",),
        balance=("balance",),
        initiated=("started date",),
        status="state",
        booked=frozenset({"completed"}),
    ),
    CsvLayout(
        "Wise",
        "checking",
        _columns("transferwise id, date, amount, currency, description, running balance"),
        "date",
        ("merchant", "payee name", "payer name", "description"),
        fee=("total fees",),
        memo=("description", "note"),
        currency=("currency",),
        own_id=("transferwise id",),
        reference=("payment reference",),
        counterparty=("payee account number",),
        balance=("running balance",),
        rate=("exchange rate",),
        day_first=True,
    ),
)


def layout_of(head: bytes) -> tuple[CsvLayout, CsvForm] | None:
    """The layout that one of the first rows names the columns of, and how its cells are written."""
    for layout in LAYOUTS:
        form = form_with_header(head, layout.required)
        if form is not None:
            return layout, form
    return None


class DateOrder(msgspec.Struct):
    """Whether days or months stand first, learnt from all dates of a file."""

    day_first: bool
    month_beyond_12: bool = False
    day_beyond_12: bool = False
    seen: bool = False

    def learn(self, text: str) -> None:
        """Look at one more date."""
        match = _DATE.search(text)
        if match and len(match.group(1)) < 4:
            self.seen |= match.group(2) == "/"
            self.month_beyond_12 |= int(match.group(1)) > 12
            self.day_beyond_12 |= int(match.group(3)) > 12

    def ambiguous(self, member: ExportMember) -> Iterator[Skipped]:
        """A report, where no date with slashes of a file shows which of the two stands first."""
        if self.seen and not (self.month_beyond_12 or self.day_beyond_12 or self.day_first):
            reason = DATE_ORDERS_TAKEN["mdy"]
            yield Skipped(member.name, "ambiguous_dates", reason, member.offset)

    def parse(self, text: str) -> date | None:
        """A day. Raises: BadRecord, where it does not exist."""
        match = _DATE.search(text)
        if match is None:
            return None
        first, mark, second, third = match.groups()
        try:
            if len(first) == 4:
                return date(int(first), int(second), int(third))
            year = int(third) + (2000 if len(third) == 2 else 0)
            day_first = self.month_beyond_12 or (
                (self.day_first or mark == ".") and not self.day_beyond_12
            )
            month, day = (second, first) if day_first else (first, second)
            return date(year, int(month), int(day))
        except ValueError:
            raise BadRecord(
                "bad_date", "the date of the entry does not exist in the calendar"
            ) from None


class CsvPayments(msgspec.Struct, frozen=True):
    """Rows of one file of a layout as accounts and payments."""

    layout: CsvLayout
    dates: DateOrder

    def why_none(self, row: Row) -> tuple[str, str] | None:
        """Why a row is no payment that was booked, as a code and a reason."""
        layout = self.layout
        status = _said(row, layout.status).lower()
        if layout.booked and status and status not in layout.booked:
            return "not_booked", message("the payment is pending or has failed")
        if _first(row, layout.type).lower() in layout.no_payments:
            return "unknown_record_type", message("the row is a part of another payment")
        if self.dates.parse(_said(row, layout.posted)) is None:
            return "unknown_record_type", message(
                "the row has no date, so the row is not a payment"
            )
        return None

    def account(self, row: Row) -> Data:
        """The account that a row belongs to."""
        layout, currency = self.layout, self._currency(row)
        own = line_or_none(_first(row, layout.account))
        parts = [layout.name, own or layout.kind, currency if layout.currency else None]
        return {
            "id": stable_id("acct", *parts),
            "name": " ".join(filter(None, parts)),
            "institution": layout.name,
            "kind": layout.kind,
            "currency": currency,
            "number_ending": None,
            "number": None,
            "bank_code": None,
        }

    def payment(self, row: Row, account: Data) -> Data:
        """One payment. Raises: BadRecord."""
        layout = self.layout
        posted = self.dates.parse(_said(row, layout.posted))
        if posted is None:
            raise BadRecord("bad_date", "the date of the payment is missing or does not exist")
        fee, gross = _amount(row, layout.fee), _amount(row, layout.gross)
        amount = self._amount(row, fee)
        currency = self._currency(row)
        balance = _amount(row, layout.balance)
        own_id = line_or_none(_first(row, layout.own_id))
        memo = line_or_none(_first(row, layout.memo))
        payee = (layout.payee_of(row, amount) if amount else None) or _first(row, layout.payee)
        initiated = self.dates.parse(_first(row, layout.initiated))
        parts = (own_id,) if own_id else (payee, memo, digits(balance))
        rate = _amount(row, layout.rate)
        return {
            "id": stable_id("txn", account["id"], posted.isoformat(), digits(amount), *parts),
            "account_id": account["id"],
            "posted_on": posted.isoformat(),
            "payee": line_or_none(payee) or memo,
            "memo": memo,
            **money("amount", amount, currency),
            "direction": None if amount is None else "out" if amount < 0 else "in",
            "kind": (line_or_none(_first(row, layout.type)) or "other").lower(),
            "category": line_or_none(_first(row, layout.category)),
            "fee": None if fee is None else number_of(abs(fee)),
            "gross_amount": None if gross is None else number_of(gross),
            "balance_after": None if balance is None else number_of(balance),
            "initiated_on": initiated.isoformat() if initiated else None,
            "check_number": line_or_none(_first(row, layout.check)),
            "reference": line_or_none(_first(row, layout.reference)),
            "counterparty_account": line_or_none(_first(row, layout.counterparty)),
            "original_currency": line_or_none(_first(row, layout.original)),
            "exchange_rate": None if rate is None else number_of(rate),
            "bank_transaction_id": own_id,
        }

    def _amount(self, row: Row, fee: Decimal | None) -> Decimal | None:
        layout = self.layout
        if layout.spent:
            spent, received = _amount(row, layout.spent), _amount(row, layout.received)
            if spent is None and received is None:
                raise no_amount()
            return (received or Decimal(0)) - abs(spent or Decimal(0))
        amount = _amount(row, layout.amount)
        if amount is None and layout.kind != "brokerage":  # shares that come in cost nothing
            raise no_amount()
        if amount is not None and layout.is_debit(row):
            return -abs(amount)
        return (
            amount - abs(fee or Decimal(0))
            if amount is not None and layout.fee_is_extra
            else amount
        )

    def _currency(self, row: Row) -> str | None:
        layout = self.layout
        code = _first(row, layout.currency).upper()
        if re.fullmatch(r"[A-Z]{3}", code):
            return code
        columns = (*layout.amount, *layout.spent, *layout.received)
        cells_text = "".join(_said(row, column) for column in columns)
        return layout.always_in or next((c for s, c in _SYMBOLS.items() if s in cells_text), None)


def _said(row: Row, column: str) -> str:
    return (row.get(column) or "").strip()


def _first(row: Row, columns: tuple[str, ...]) -> str:
    return next(filter(None, (_said(row, column) for column in columns)), "")


def _amount(row: Row, columns: tuple[str, ...]) -> Decimal | None:
    """A number with any sign of a currency; None where nothing stands. Raises: BadRecord."""
    text = _first(row, columns)
    if not text:
        return None
    plain = _NOT_AMOUNT.sub("", text)
    if plain.startswith("(") and plain.endswith(")"):
        plain = f"-{plain[1:-1]}"
    amount = _with_thousands(plain) if len(plain) <= 60 else None
    if amount is None or abs(amount.adjusted()) > 15:
        raise no_amount()
    return amount


def _with_thousands(text: str) -> Decimal | None:
    """A number of a table; a lone comma before three digits parts thousands."""
    return parse_amount(
        text.replace(",", "") if re.fullmatch(r"[-+]?\d{1,3},\d{3}", text) else text
    )
