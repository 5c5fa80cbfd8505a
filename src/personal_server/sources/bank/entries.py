"""The entries of a statement as records."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

from ofxparse.mcc import codes
from ofxparse.ofxparse import Account, AccountType, InvestmentAccount

from personal_server.domain.source_item import Data, stable_id
from personal_server.sources.bank.ofx import Balance, Entry
from personal_server.sources.common.errors import BadRecord
from personal_server.sources.common.text import one_line, printable
from personal_server.sources.common.times import rendered

# Amounts as banks write them, exactly, each in the currency it is in.


_WHOLE = frozenset(
    {
        "BIF",
        "CLP",
        "DJF",
        "GNF",
        "ISK",
        "JPY",
        "KMF",
        "KRW",
        "PYG",
        "RWF",
        "UGX",
        "UYI",
        "VND",
        "VUV",
        "XAF",
        "XOF",
        "XPF",
    }
)
_THOUSANDTHS = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})
"""ISO 4217: the currencies that have not two decimals, but none or three."""

_CODE = re.compile(r"[A-Z]{3}")


def usable(amount: Decimal | None) -> Decimal:
    """An amount that is there, finite and within range. Raises: BadRecord."""
    if amount is None:
        raise BadRecord("bad_amount", "its amount is missing or not a number")
    return in_range(amount)


def in_range(amount: Decimal) -> Decimal:
    """An amount that is finite and within range. Raises: BadRecord."""
    if not amount.is_finite() or abs(amount.adjusted()) > 15:
        raise BadRecord("bad_amount", "its amount is out of range")
    return amount


def code_of(said: str | None) -> str | None:
    """An ISO 4217 code, if that is what is said."""
    code = (said or "").upper()
    return code if _CODE.fullmatch(code) else None


def minor_units(amount: Decimal, currency: str | None) -> int:
    """The amount in the smallest unit of its currency (cents)."""
    decimals = 0 if currency in _WHOLE else 3 if currency in _THOUSANDTHS else 2
    return int((amount * 10**decimals).to_integral_value())


def as_number(amount: Decimal) -> int | float:
    """The amount as a JSON number."""
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def money(name: str, amount: Decimal | None, currency: str | None) -> Data:
    """An amount as a number and in minor units, with its currency."""
    return {
        name: None if amount is None else as_number(amount),
        f"{name}_minor": None if amount is None else minor_units(amount, currency),
        "currency": currency,
    }


def money_of(name: str, amount: Decimal | None, entry: Entry, account_currency: str | None) -> Data:
    """An amount of an entry in the currency that the entry names, else in the account's.

    Source: OFX 2.2, section 5.2: amounts beside `CURRENCY` are in that currency, not converted;
        those beside `ORIGCURRENCY` were converted from it to the account's.
    Units: the rate is the account's currency for one unit of the other.
    """
    own, original = entry.inner("currency"), entry.inner("origcurrency")
    currency = _code_in(own) or account_currency
    foreign = own if currency != account_currency else original
    return money(name, amount, currency) | {
        "original_currency": _code_in(original),
        "exchange_rate": _rate(foreign),
    }


def _code_in(currency: Entry | None) -> str | None:
    return (code_of(currency.said("cursym")) or code_of(currency.own)) if currency else None


def _rate(currency: Entry | None) -> int | float | None:
    rate = currency.amount("currate") if currency else None
    return as_number(in_range(rate)) if rate else None


_KINDS = {AccountType.CreditCard: "credit_card", AccountType.Investment: "investment"}


def account_data(account: Account, institution: str | None, currency: str | None) -> Data:
    """One account. Raises: BadRecord."""
    number = _said(account.account_id)
    if number is None:
        raise BadRecord("bad_record", "the account has no number")
    broker = account.brokerid if isinstance(account, InvestmentAccount) else None
    bank_code = _said(account.routing_number) or _said(broker)
    kind = _KINDS.get(account.type) or (_said(account.account_type) or "account").lower()
    ending = re.sub(r"\W", "", number)[-4:]
    name = " ".join(filter(None, [institution, kind.replace("_", " "), f"…{ending}"]))
    return {
        "id": stable_id("acct", bank_code, number),
        "name": name,
        "institution": institution,
        "kind": kind,
        "currency": code_of(currency),
        "number_ending": ending,
        "number": number,
        "bank_code": bank_code,
    }


def transaction_data(entry: Entry, account_id: str, currency: str | None) -> Data:
    """One payment. Raises: BadRecord."""
    posted = _required(entry.moment("dtposted"))
    posted_on = posted.date().isoformat()
    amount = usable(entry.amount("trnamt")) if not _is_null(entry) else None
    own_id, memo = entry.said("fitid"), entry.said("memo")
    payee = entry.said("extdname", "name")
    parts = (own_id,) if own_id else (payee, memo)
    merchant = entry.said("sic")
    return {
        "id": stable_id("txn", account_id, posted_on, _spelled(amount), *parts),
        "account_id": account_id,
        "posted_on": posted_on,
        "posted_at": rendered(posted) if posted.tzinfo else None,
        "payee": payee or memo,
        "memo": memo,
        **money_of("amount", amount, entry, currency),
        "direction": None if amount is None else "out" if amount < 0 else "in",
        "kind": (entry.said("trntype") or "other").lower(),
        "initiated_on": _day(entry, "dtuser"),
        "available_on": _day(entry, "dtavail"),
        "check_number": _check_number(entry),
        "reference": entry.said("refnum"),
        "merchant_category": codes.get(merchant or "", {}).get("combined description"),
        "merchant_category_code": merchant,
        "counterparty_account": entry.said("acctid"),
        "bank_transaction_id": own_id,
    }


def balance_data(balance: Balance, account_id: str, currency: str | None) -> Data:
    """What an account held. Raises: BadRecord."""
    held_on = _required(balance.entry.moment("dtasof")).date().isoformat()
    amount = usable(balance.entry.amount(balance.amount_name))
    return {
        "id": stable_id("bal", account_id, balance.kind, held_on, _spelled(amount)),
        "account_id": account_id,
        "as_of": held_on,
        "kind": balance.kind,
        **money("amount", amount, currency),
    }


def security_data(entry: Entry) -> Data:
    """One security. Raises: BadRecord."""
    code = entry.said("uniqueid")
    return {
        "id": _security_id(code),
        "name": entry.said("secname"),
        "ticker": entry.said("ticker"),
        "code": code,
        "code_kind": entry.said("uniqueidtype"),
    }


def trade_data(entry: Entry, account_id: str, currency: str | None) -> Data:
    """One trade. Raises: BadRecord."""
    traded_on = _required(entry.moment("dttrade")).date().isoformat()
    amount, own_id = _amount(entry, "total"), entry.said("fitid")
    security = entry.said("uniqueid")
    return {
        "id": stable_id("trd", account_id, own_id, traded_on, entry.kind, _spelled(amount)),
        "account_id": account_id,
        "security_id": _security_id(security) if security else None,
        "traded_on": traded_on,
        "settled_on": _day(entry, "dtsettle"),
        "kind": entry.kind,
        "income_kind": (entry.said("incometype") or "").lower() or None,
        "memo": entry.said("memo"),
        "units": _number(entry, "units"),
        "unit_price": _number(entry, "unitprice"),
        **money_of("amount", amount, entry, currency),
        "commission": _number(entry, "commission"),
        "fees": _number(entry, "fees"),
        "bank_transaction_id": own_id,
    }


def holding_data(entry: Entry, account_id: str, currency: str | None) -> Data:
    """One position. Raises: BadRecord."""
    as_of = _required(entry.moment("dtpriceasof")).date().isoformat()
    units = _amount(entry, "units")
    security_id = _security_id(entry.said("uniqueid"))
    return {
        "id": stable_id("hld", account_id, security_id, as_of, str(units)),
        "account_id": account_id,
        "security_id": security_id,
        "as_of": as_of,
        "units": None if units is None else as_number(units),
        "unit_price": _number(entry, "unitprice"),
        **money_of("market_value", _amount(entry, "mktval"), entry, currency),
    }


def _said(text: str | None) -> str | None:
    return one_line(printable(text), 4000) or None if text else None


def _is_null(entry: Entry) -> bool:
    """Some banks enter a change of the rate of interest as a payment of nothing."""
    return (entry.said("trnamt") or "").lower() in ("null", "-null")


def _check_number(entry: Entry) -> str | None:
    """Some banks number what is no check with zeros."""
    number = entry.said("checknum")
    return number if number and number.strip("0") else None


def _spelled(amount: Decimal | None) -> str:
    return str(amount if amount is None else amount.normalize())


def _amount(entry: Entry, name: str) -> Decimal | None:
    amount = entry.amount(name)
    return None if amount is None else in_range(amount)


def _number(entry: Entry, name: str) -> int | float | None:
    amount = _amount(entry, name)
    return None if amount is None else as_number(amount)


def _required(moment: datetime | None) -> datetime:
    if moment is None:
        raise BadRecord("bad_date", "its date is missing or does not exist")
    return moment


def _day(entry: Entry, name: str) -> str | None:
    """A day that may be left out, or be written so that nobody can read it."""
    try:
        moment = entry.moment(name)
    except BadRecord:
        return None
    return moment.date().isoformat() if moment else None


def _security_id(code: str | None) -> str:
    if code is None:
        raise BadRecord("bad_record", "the security has no code")
    return stable_id("sec", code)
