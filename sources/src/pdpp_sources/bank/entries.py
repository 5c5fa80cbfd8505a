"""The entries of a statement as records, their amounts exact and in the currency they are in."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from functools import lru_cache

from iso18245 import InvalidMCC, MCCNotFound, get_mcc

from pdpp_kernel.source_item import Data, stable_id
from pdpp_sources.bank.ofx import BALANCE_KINDS, OfxEntry, OfxStatement
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.text import one_line, unescaped
from pdpp_sources.common.times import rendered

_KINDS = {"ccacctfrom": "credit_card", "invacctfrom": "investment"}
_ESCAPED = re.compile(r"&(?:lt|gt|amp|quot|apos|#\d{1,5});", re.IGNORECASE)
_NO_NUMBER = "(no number)"
_CODE = re.compile(r"[A-Z]{3}")
# ISO 4217: the currencies that have not two decimals, but none or three.
_WHOLE = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_THOUSANDTHS = "BHD IQD JOD KWD LYD OMR TND"
_DECIMALS: dict[str, int] = {
    **dict.fromkeys(_WHOLE.split(), 0),
    **dict.fromkeys(_THOUSANDTHS.split(), 3),
}


def account_data(account: OfxEntry | None, institution: str | None, currency: str | None) -> Data:
    """One account; where the bank gives no number, its kind and code have to do."""
    number = account.text("acctid") if account else None
    bank_code = account.text("bankid", "brokerid") if account else None
    listed = account.text("accttype") if account else None
    form = _form_of(account)
    kind = _KINDS.get(form) or (listed or "account").lower()
    ending = re.sub(r"\W", "", number)[-4:] if number else None
    name = f"…{ending}" if ending else _NO_NUMBER
    own = (bank_code, number) if number else (bank_code, institution, kind, "without a number")
    return {
        "id": stable_id("acct", *own),
        "name": " ".join(filter(None, [institution, kind.replace("_", " "), name])),
        "institution": institution,
        "kind": kind,
        "currency": currency_code(currency),
        "number_ending": ending,
        "number": number,
        "bank_code": bank_code,
    }


def _form_of(account: OfxEntry | None) -> str:
    """Which element names the account: itself, or one inside it."""
    inside = (name for name in _KINDS if account and (account.kind == name or account.inner(name)))
    return next(inside, "")


def _shown(text: str | None) -> str | None:
    """A text as it was meant, which a bank has escaped twice: `Tea &amp;amp; Co` of its file."""
    return one_line(unescaped(text)) if text and _ESCAPED.search(text) else text


def transaction_data(entry: OfxEntry, account_id: str, currency: str | None) -> Data:
    """One payment. Raises: BadRecord."""
    posted = _required_moment(entry, "dtposted")
    posted_on = posted.date().isoformat()
    # Some banks enter a change of the rate of interest as a payment of nothing.
    is_null = (entry.text("trnamt") or "").lower() in ("null", "-null")
    amount = None if is_null else _required_amount(entry, "trnamt")
    own_id, memo = entry.text("fitid"), entry.text("memo")
    payee = entry.text("extdname", "name")
    parts = (own_id,) if own_id else (payee, memo)
    payee, memo = _shown(payee), _shown(memo)
    merchant, check = entry.text("sic"), entry.text("checknum")
    return {
        "id": stable_id("txn", account_id, posted_on, digits(amount), *parts),
        "account_id": account_id,
        "posted_on": posted_on,
        "posted_at": rendered(posted) if posted.tzinfo else None,
        "payee": payee or memo,
        "memo": memo,
        **_money_abroad("amount", amount, entry, currency),
        "direction": None if amount is None else "out" if amount < 0 else "in",
        "kind": (entry.text("trntype") or "other").lower(),
        "initiated_on": _day(entry, "dtuser"),
        "available_on": _day(entry, "dtavail"),
        # Some banks number what is no check with zeros.
        "check_number": check if (check or "").strip("0") else None,
        "reference": entry.text("refnum"),
        "merchant_category": _merchant_category(merchant or ""),
        "merchant_category_code": merchant,
        "counterparty_account": entry.text("acctid"),
        "bank_transaction_id": own_id,
    }


@lru_cache(maxsize=1024)
def _merchant_category(code: str) -> str | None:
    """What a merchant sells, by a code of ISO 18245."""
    if not re.fullmatch(r"[0-9]{4}", code):
        return None
    try:
        category = get_mcc(code)
    except (InvalidMCC, MCCNotFound):
        return None
    return (
        category.stripe_description or category.iso_description or category.usda_description or None
    )


def balance_data(
    entry: OfxEntry, account_id: str, currency: str | None, statement: OfxStatement
) -> Data:
    """What an account held. Raises: BadRecord."""
    is_cash = entry.kind == "invbal"  # a broker dates the statement, not its parts
    dated = statement.as_of if is_cash and statement.as_of else entry
    held_on = _required_moment(dated, "dtasof").date().isoformat()
    amount = _required_amount(entry, "availcash" if is_cash else "balamt")
    kind = BALANCE_KINDS[entry.kind]
    return {
        "id": stable_id("bal", account_id, kind, held_on, digits(amount)),
        "account_id": account_id,
        "as_of": held_on,
        "kind": kind,
        **money("amount", amount, currency),
    }


def security_data(entry: OfxEntry) -> Data:
    """One security. Raises: BadRecord."""
    code = entry.text("uniqueid")
    return {
        "id": _security_id(code),
        "name": entry.text("secname"),
        "ticker": entry.text("ticker"),
        "code": code,
        "code_kind": entry.text("uniqueidtype"),
    }


def trade_data(entry: OfxEntry, account_id: str, currency: str | None) -> Data:
    """One trade. Raises: BadRecord."""
    traded_on = _required_moment(entry, "dttrade").date().isoformat()
    amount, own_id = _amount(entry, "total"), entry.text("fitid")
    security = entry.text("uniqueid")
    return {
        "id": stable_id("trd", account_id, own_id, traded_on, entry.kind, digits(amount)),
        "account_id": account_id,
        "security_id": _security_id(security) if security else None,
        "traded_on": traded_on,
        "settled_on": _day(entry, "dtsettle"),
        "kind": entry.kind,
        "income_kind": (entry.text("incometype") or "").lower() or None,
        "memo": entry.text("memo"),
        "units": _number(entry, "units"),
        "unit_price": _number(entry, "unitprice"),
        **_money_abroad("amount", amount, entry, currency),
        "commission": _number(entry, "commission"),
        "fees": _number(entry, "fees"),
        "bank_transaction_id": own_id,
    }


def holding_data(entry: OfxEntry, account_id: str, currency: str | None) -> Data:
    """One position. Raises: BadRecord."""
    as_of = _required_moment(entry, "dtpriceasof").date().isoformat()
    units = _amount(entry, "units")
    security_id = _security_id(entry.text("uniqueid"))
    return {
        "id": stable_id("hld", account_id, security_id, as_of, str(units)),
        "account_id": account_id,
        "security_id": security_id,
        "as_of": as_of,
        "units": None if units is None else number_of(units),
        "unit_price": _number(entry, "unitprice"),
        **_money_abroad("market_value", _amount(entry, "mktval"), entry, currency),
    }


def money(name: str, amount: Decimal | None, currency: str | None) -> Data:
    """An amount as a number and exactly, in the smallest unit of its currency (cents)."""
    exact = None if amount is None else amount * 10 ** _DECIMALS.get(currency or "", 2)
    return {
        name: None if amount is None else number_of(amount),
        f"{name}_minor": None if exact is None else int(exact.to_integral_value()),
        "currency": currency,
    }


def _money_abroad(
    name: str, amount: Decimal | None, entry: OfxEntry, account_currency: str | None
) -> Data:
    """An amount of an entry in the currency that the entry names, else in the account's.

    Source: OFX 2.2, section 5.2: amounts beside `CURRENCY` are in that currency, not converted;
        those beside `ORIGCURRENCY` were converted from it to the account's.
    Units: the rate is the account's currency for one unit of the other.
    """
    own, original = entry.inner("currency"), entry.inner("origcurrency")
    currency = _code_in(own) or account_currency
    foreign = own if currency != account_currency else original
    rate = foreign.amount("currate") if foreign else None
    return money(name, amount, currency) | {
        "original_currency": _code_in(original),
        "exchange_rate": number_of(in_range(rate)) if rate else None,
    }


def _code_in(currency: OfxEntry | None) -> str | None:
    return (
        (currency_code(currency.text("cursym")) or currency_code(currency.own))
        if currency
        else None
    )


def currency_code(text: str | None) -> str | None:
    """An ISO 4217 code, if it is one."""
    code = (text or "").upper()
    return code if _CODE.fullmatch(code) else None


def _amount(entry: OfxEntry, name: str) -> Decimal | None:
    amount = entry.amount(name)
    return None if amount is None else in_range(amount)


def _required_amount(entry: OfxEntry, name: str) -> Decimal:
    return in_range(entry.amount(name))


def no_amount() -> BadRecord:
    """The fault of a payment without an amount."""
    return BadRecord("bad_amount", "the amount of the payment is missing or not a number")


def in_range(amount: Decimal | None) -> Decimal:
    """An amount that a bank can mean. Raises: BadRecord."""
    if amount is None:
        raise no_amount()
    if not amount.is_finite() or abs(amount.adjusted()) > 15:
        raise BadRecord("bad_amount", "the amount of the payment is out of range")
    return amount


def _number(entry: OfxEntry, name: str) -> int | float | None:
    amount = _amount(entry, name)
    return None if amount is None else number_of(amount)


def number_of(amount: Decimal) -> int | float:
    """A number as JSON has it, whole where it is."""
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def digits(amount: Decimal | None) -> str:
    """An amount as a part of an id: the same however many zeros are written."""
    return str(amount if amount is None else amount.normalize())


def _required_moment(entry: OfxEntry, name: str) -> datetime:
    moment = entry.moment(name)
    if moment is None:
        raise BadRecord("bad_date", "the date of the payment is missing or does not exist")
    return moment


def _day(entry: OfxEntry, name: str) -> str | None:
    """A day that may be left out, or be written so that nobody can read it."""
    try:
        moment = entry.moment(name)
    except BadRecord:
        return None
    return moment.date().isoformat() if moment else None


def _security_id(code: str | None) -> str:
    if code is None:
        raise BadRecord("bad_record", "the stock, fund or bond has no code")
    return stable_id("sec", code)
