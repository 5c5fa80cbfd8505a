"""Amounts as banks write them, exactly."""

from __future__ import annotations

from decimal import Decimal

from personal_server.sources.errors import BadRecord

_WHOLE = frozenset({"JPY", "KRW", "VND", "CLP", "ISK", "XAF", "XOF", "XPF"})
_THOUSANDTHS = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})


def usable(amount: Decimal | int | None) -> Decimal:
    """An amount that is there, finite and within range. Raises: BadRecord."""
    if amount is None:
        raise BadRecord("bad_amount", "its amount is missing or not a number")
    amount = Decimal(amount)
    if not amount.is_finite() or abs(amount.adjusted()) > 15:
        raise BadRecord("bad_amount", "its amount is out of range")
    return amount


def minor_units(amount: Decimal, currency: str | None) -> int:
    """The amount in the smallest unit of its currency (cents)."""
    digits = 0 if currency in _WHOLE else 3 if currency in _THOUSANDTHS else 2
    return int((amount * 10**digits).to_integral_value())


def as_number(amount: Decimal) -> int | float:
    """The amount as a JSON number."""
    return int(amount) if amount == amount.to_integral_value() else float(amount)
