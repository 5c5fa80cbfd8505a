"""Amounts as banks write them, exactly, each in the currency it is in."""

from __future__ import annotations

import re
from decimal import Decimal

from personal_server.domain.source_item import Data
from personal_server.sources.bank.ofx import Entry
from personal_server.sources.errors import BadRecord

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
