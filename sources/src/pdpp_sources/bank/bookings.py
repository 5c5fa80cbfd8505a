"""What statements of banks outside of OFX say alike: an account, a booking on it, what it held."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

import msgspec

from pdpp_kernel.source_item import Data, stable_id
from pdpp_sources.bank.entries import digits, in_range, money, number_of
from pdpp_sources.bank.ofx import line_or_none
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.times import rendered

IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_NO_DATE = "the date of the payment is missing or does not exist"


def statement_account(
    number: str | None,
    currency: str | None,
    *,
    institution: str | None = None,
    kind: str = "account",
    bank_code: str | None = None,
    name: str | None = None,
) -> Data:
    """One account: one number may have several currencies, each of them an account.

    An IBAN says the bank itself, so that all formats of one account name it alike.
    """
    ending = re.sub(r"\W", "", number)[-4:] if number else None
    shown = f"…{ending}" if ending else name or "(no number)"
    parts = (number, currency) if number else (bank_code, institution, kind, name, currency)
    is_iban = bool(number and IBAN.fullmatch(number))
    own = parts if is_iban or not number else (bank_code, *parts)
    return {
        "id": stable_id("acct", *own),
        "name": " ".join(filter(None, [institution, kind.replace("_", " "), shown])),
        "institution": institution,
        "kind": kind,
        "currency": currency,
        "number_ending": ending,
        "number": number,
        "bank_code": bank_code,
    }


class Booking(msgspec.Struct, frozen=True, kw_only=True):
    """One payment as an account was changed by it.

    Shapes: `apart` is what else tells two of one day and amount apart, beside the bank's own id,
        else the other party and the purpose.
    Units: `amount` in units of `currency`, negative for money spent; `exchange_rate` is the
        account's currency for one unit of the original.
    """

    amount: Decimal
    currency: str | None
    posted: date | datetime
    payee: str | None = None
    memo: str | None = None
    kind: str | None = None
    available_on: date | None = None
    initiated_on: date | None = None
    fee: Decimal | None = None
    category: str | None = None
    check_number: str | None = None
    reference: str | None = None
    counterparty: str | None = None
    original_currency: str | None = None
    exchange_rate: Decimal | None = None
    own_id: str | None = None
    apart: tuple[str | None, ...] = ()

    def data(self, account_id: str) -> Data:
        """The record in `transactions`. Raises: BadRecord."""
        amount, posted = in_range(self.amount), self.posted
        posted_on = (posted.date() if isinstance(posted, datetime) else posted).isoformat()
        posted_at = rendered(posted) if isinstance(posted, datetime) and posted.tzinfo else None
        payee, memo = line_or_none(self.payee), line_or_none(self.memo)
        own_id = line_or_none(self.own_id)
        parts = (own_id or payee, None if own_id else memo, *self.apart)
        direction = "out" if amount < 0 else "in"
        return {
            "id": stable_id("txn", account_id, posted_on, digits(amount), *parts),
            "account_id": account_id,
            "posted_on": posted_on,
            "posted_at": posted_at,
            "payee": payee or memo,
            "memo": memo,
            **money("amount", amount, self.currency),
            "direction": direction,
            "kind": self.kind or ("debit" if amount < 0 else "credit"),
            "fee": None if self.fee is None else number_of(abs(in_range(self.fee))),
            "category": line_or_none(self.category),
            "initiated_on": self.initiated_on.isoformat() if self.initiated_on else None,
            "available_on": self.available_on.isoformat() if self.available_on else None,
            "check_number": line_or_none(self.check_number),
            "reference": line_or_none(self.reference),
            "counterparty_account": line_or_none(self.counterparty),
            "original_currency": self.original_currency,
            "exchange_rate": number_of(self.exchange_rate) if self.exchange_rate else None,
            "bank_transaction_id": own_id,
        }


def balance(
    account_id: str, kind: str, held_on: date, amount: Decimal, currency: str | None
) -> Data:
    """The record in `balances` of what an account held on a day. Raises: BadRecord."""
    return {
        "id": stable_id("bal", account_id, kind, held_on.isoformat(), digits(in_range(amount))),
        "account_id": account_id,
        "as_of": held_on.isoformat(),
        "kind": kind,
        **money("amount", amount, currency),
    }


def no_date() -> BadRecord:
    """The fault of a booking without a day."""
    return BadRecord("bad_date", _NO_DATE)
