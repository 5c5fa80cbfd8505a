"""The library's objects as records."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

from ofxparse.ofxparse import (
    Account,
    AccountType,
    InvestmentAccount,
    InvestmentTransaction,
    Position,
    Security,
    Transaction,
)

from personal_server.sources.bank.money import as_number, minor_units, usable
from personal_server.sources.errors import BadRecord
from personal_server.sources.identity import stable_id
from personal_server.sources.item import Data
from personal_server.sources.text import one_line, printable

_KINDS = {AccountType.CreditCard: "credit_card", AccountType.Investment: "investment"}


def account_data(account: Account) -> Data:
    """One account. Raises: BadRecord."""
    number = _said(account.account_id)
    if number is None:
        raise BadRecord("bad_record", "the account has no number")
    broker = account.brokerid if isinstance(account, InvestmentAccount) else None
    bank_code = _said(account.routing_number) or _said(broker)
    institution = _said(account.institution.organization) if account.institution else None
    kind = _KINDS.get(account.type) or (_said(account.account_type) or "account").lower()
    currency = _said(account.curdef) or _said(getattr(account.statement, "currency", None))
    ending = re.sub(r"\W", "", number)[-4:]
    name = " ".join(filter(None, [institution, kind.replace("_", " "), f"…{ending}"]))
    return {
        "id": stable_id("acct", bank_code, number),
        "name": name,
        "institution": institution,
        "kind": kind,
        "currency": currency.upper() if currency else None,
        "number_ending": ending,
        "number": number,
        "bank_code": bank_code,
    }


def transaction_data(entry: Transaction, account_id: str, currency: str | None) -> Data:
    """One payment. Raises: BadRecord."""
    posted_on = _day(entry.date)
    amount = usable(entry.amount)
    own_id = _said(entry.id)
    payee, memo = _said(entry.payee), _said(entry.memo)
    parts = (own_id,) if own_id else (payee, memo)
    return {
        "id": stable_id("txn", account_id, posted_on, str(amount.normalize()), *parts),
        "account_id": account_id,
        "posted_on": posted_on,
        "payee": payee or memo,
        "memo": memo,
        **_money("amount", amount, currency),
        "direction": "out" if amount < 0 else "in",
        "kind": _said(entry.type) or "other",
        "initiated_on": _day_or_none(entry.user_date),
        "check_number": _said(entry.checknum),
        "reference": None,
        "merchant_category": _said(entry.sic),
        "bank_transaction_id": own_id,
    }


def balance_data(
    kind: str,
    amount: Decimal | None,
    as_of: datetime | None,
    account_id: str,
    currency: str | None,
) -> Data:
    """What an account held. Raises: BadRecord."""
    held_on = _day(as_of)
    amount = usable(amount)
    return {
        "id": stable_id("bal", account_id, kind, held_on, str(amount.normalize())),
        "account_id": account_id,
        "as_of": held_on,
        "kind": kind,
        **_money("amount", amount, currency),
    }


def security_data(security: Security) -> Data:
    """One security. Raises: BadRecord."""
    return {
        "id": _security_id(security.uniqueid),
        "name": _said(security.name),
        "ticker": _said(security.ticker),
        "code": _said(security.uniqueid),
        "code_kind": None,
    }


def trade_data(entry: InvestmentTransaction, account_id: str, currency: str | None) -> Data:
    """One trade; the library gives zero for what is missing. Raises: BadRecord."""
    traded_on = _day(entry.tradeDate)
    amount = usable(entry.total) if entry.total else None
    own_id = _said(getattr(entry, "id", None))
    money = _money("amount", amount, currency) if amount is not None else {"currency": currency}
    return {
        "id": stable_id("trd", account_id, own_id, traded_on, entry.type.upper(), str(amount)),
        "account_id": account_id,
        "security_id": _security_id(entry.security) if _said(entry.security) else None,
        "traded_on": traded_on,
        "settled_on": _day_or_none(entry.settleDate),
        "kind": entry.type,
        "memo": _said(entry.memo),
        "units": as_number(usable(entry.units)) if entry.units else None,
        "unit_price": as_number(usable(entry.unit_price)) if entry.unit_price else None,
        **money,
        "bank_transaction_id": own_id,
    }


def holding_data(position: Position, account_id: str, currency: str | None) -> Data:
    """One position. Raises: BadRecord."""
    as_of = _day(getattr(position, "date", None))
    value = usable(position.market_value)
    units = usable(position.units)
    security_id = _security_id(position.security)
    return {
        "id": stable_id("hld", account_id, security_id, as_of, str(units)),
        "account_id": account_id,
        "security_id": security_id,
        "as_of": as_of,
        "units": as_number(units),
        "unit_price": as_number(usable(position.unit_price)),
        **_money("market_value", value, currency),
    }


def _said(text: str | None) -> str | None:
    return one_line(printable(text), 4000) or None if text else None


def _day(moment: datetime | None) -> str:
    if moment is None:
        raise BadRecord("bad_date", "its date is missing or does not exist")
    return moment.date().isoformat()


def _day_or_none(moment: datetime | None) -> str | None:
    return moment.date().isoformat() if moment else None


def _money(name: str, amount: Decimal, currency: str | None) -> Data:
    return {
        name: as_number(amount),
        f"{name}_minor": minor_units(amount, currency),
        "currency": currency,
    }


def _security_id(code: str) -> str:
    code_said = _said(code)
    if code_said is None:
        raise BadRecord("bad_record", "the security has no code")
    return stable_id("sec", code_said)
