"""Finished OFX elements as records."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from personal_server.sources.bank.elements import Element
from personal_server.sources.bank.money import as_number, minor_units, parse_amount
from personal_server.sources.errors import BadRecord
from personal_server.sources.identity import stable_id
from personal_server.sources.item import Data

_DATE = re.compile(r"^(\d{4})-?(\d\d)-?(\d\d)")
_KINDS = {"CCACCTFROM": "credit_card", "INVACCTFROM": "investment"}


def account_data(element: Element, institution: str | None, currency: str | None) -> Data:
    """The account that an ACCTFROM aggregate names. Raises: BadRecord."""
    number = element.leaf("ACCTID")
    if number is None:
        raise BadRecord("bad_record", "the account has no number")
    bank_code = element.leaf("BANKID", "BROKERID")
    kind = _KINDS.get(element.name) or (element.leaf("ACCTTYPE") or "account").lower()
    ending = re.sub(r"\W", "", number)[-4:]
    name = " ".join(filter(None, [institution, kind.replace("_", " "), f"…{ending}"]))
    return {
        "id": stable_id("acct", bank_code, number),
        "name": name,
        "institution": institution,
        "kind": kind,
        "currency": currency,
        "number_ending": ending,
        "number": number,
        "bank_code": bank_code,
    }


def transaction_data(element: Element, account_id: str, currency: str | None) -> Data:
    """One STMTTRN. Raises: BadRecord."""
    posted_on = parse_day(element.leaf("DTPOSTED"))
    amount = parse_amount(element.leaf("TRNAMT"))
    currency = element.inside("CURRENCY").leaf("CURSYM") or currency
    own_id = element.leaf("FITID")
    payee = element.leaf("NAME") or element.inside("PAYEE").leaf("NAME")
    memo = element.leaf("MEMO")
    parts = (own_id,) if own_id else (payee, memo)
    return {
        "id": stable_id("txn", account_id, posted_on, str(amount.normalize()), *parts),
        "account_id": account_id,
        "posted_on": posted_on,
        "payee": payee or element.leaf("EXTDNAME") or memo,
        "memo": memo,
        **_money("amount", amount, currency),
        "direction": "out" if amount < 0 else "in",
        "kind": (element.leaf("TRNTYPE") or "other").lower(),
        "initiated_on": day_or_none(element.leaf("DTUSER")),
        "check_number": element.leaf("CHECKNUM"),
        "reference": element.leaf("REFNUM"),
        "merchant_category": element.leaf("SIC"),
        "bank_transaction_id": own_id,
    }


def balance_data(element: Element, account_id: str, currency: str | None) -> Data:
    """One LEDGERBAL or AVAILBAL. Raises: BadRecord."""
    as_of = parse_day(element.leaf("DTASOF"))
    amount = parse_amount(element.leaf("BALAMT"))
    kind = "available" if element.name == "AVAILBAL" else "booked"
    return {
        "id": stable_id("bal", account_id, kind, as_of, str(amount.normalize())),
        "account_id": account_id,
        "as_of": as_of,
        "kind": kind,
        **_money("amount", amount, currency),
    }


def security_data(element: Element) -> Data:
    """One SECINFO. Raises: BadRecord."""
    return {
        "id": _security_id(element),
        "name": element.leaf("SECNAME"),
        "ticker": element.leaf("TICKER"),
        "code": element.inside("SECID").leaf("UNIQUEID"),
        "code_kind": element.inside("SECID").leaf("UNIQUEIDTYPE"),
    }


def trade_data(element: Element, account_id: str, currency: str | None) -> Data:
    """One entry of an investment statement. Raises: BadRecord."""
    facts = element.inside("INVTRAN")
    whole = _flat(element)
    traded_on = parse_day(facts.leaf("DTTRADE"))
    amount = _number_in(whole, "TOTAL")
    own_id = facts.leaf("FITID")
    money = _money("amount", amount, currency) if amount is not None else {"currency": currency}
    return {
        "id": stable_id("trd", account_id, own_id, traded_on, element.name, str(amount)),
        "account_id": account_id,
        "security_id": _security_id(element) if element.inside("SECID").leaves else None,
        "traded_on": traded_on,
        "settled_on": day_or_none(facts.leaf("DTSETTLE")),
        "kind": element.name.lower(),
        "memo": facts.leaf("MEMO"),
        "units": _plain_number(whole, "UNITS"),
        "unit_price": _plain_number(whole, "UNITPRICE"),
        **money,
        "bank_transaction_id": own_id,
    }


def holding_data(element: Element, account_id: str, currency: str | None) -> Data:
    """One INVPOS. Raises: BadRecord."""
    as_of = parse_day(element.leaf("DTPRICEASOF"))
    value = parse_amount(element.leaf("MKTVAL"))
    security_id = _security_id(element)
    units = element.leaf("UNITS")
    return {
        "id": stable_id("hld", account_id, security_id, as_of, units, element.leaf("POSTYPE")),
        "account_id": account_id,
        "security_id": security_id,
        "as_of": as_of,
        "units": _plain_number(element, "UNITS"),
        "unit_price": _plain_number(element, "UNITPRICE"),
        **_money("market_value", value, currency),
    }


def parse_day(text: str | None) -> str:
    """The day as the bank wrote it, in the bank's own zone. Raises: BadRecord."""
    found = _DATE.match(text or "")
    try:
        return date(*map(int, found.groups())).isoformat() if found else _no_day()
    except ValueError:
        return _no_day()


def day_or_none(text: str | None) -> str | None:
    """The day, or None where none that exists is given."""
    try:
        return parse_day(text)
    except BadRecord:
        return None


def _no_day() -> str:
    raise BadRecord("bad_date", "its date is missing or does not exist")


def _money(name: str, amount: Decimal, currency: str | None) -> Data:
    return {
        name: as_number(amount),
        f"{name}_minor": minor_units(amount, currency),
        "currency": currency,
    }


def _security_id(element: Element) -> str:
    code = element.inside("SECID").leaf("UNIQUEID")
    if code is None:
        raise BadRecord("bad_record", "the security has no code")
    return stable_id("sec", element.inside("SECID").leaf("UNIQUEIDTYPE"), code)


def _flat(element: Element) -> Element:
    """All leaves of an aggregate, the outer ones first."""
    leaves = dict(element.leaves)
    for inner in element.inner.values():
        leaves = _flat(inner).leaves | leaves
    return Element(element.name, element.offset, leaves)


def _number_in(element: Element, name: str) -> Decimal | None:
    value = element.leaf(name)
    return parse_amount(value) if value else None


def _plain_number(element: Element, name: str) -> int | float | None:
    number = _number_in(element, name)
    return None if number is None else as_number(number)
