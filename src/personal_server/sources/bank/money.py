"""Amounts as banks write them, exactly."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from personal_server.sources.errors import BadRecord

_WHOLE = frozenset({"JPY", "KRW", "VND", "CLP", "ISK", "XAF", "XOF", "XPF"})
_THOUSANDTHS = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})


def parse_amount(text: str | None) -> Decimal:
    """An amount with either decimal sign and any grouping. Raises: BadRecord."""
    digits = re.sub(r"[\s'\u00a0\u202f+]", "", text or "")
    if "," in digits and "." in digits:
        grouping = "," if digits.rindex(".") > digits.rindex(",") else "."
        digits = digits.replace(grouping, "")
    try:
        amount = Decimal(digits.replace(",", "."))
    except InvalidOperation:
        raise BadRecord("bad_amount", "its amount is missing or not a number") from None
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
