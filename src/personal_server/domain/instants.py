"""Instants as the authorization server writes them.

Rule: RFC 3339 UTC with `Z`; whole seconds stand without fraction, finer ones keep every digit, so
that a bound read back is the same bound.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from personal_server.domain.values import NANOSECONDS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_text(ns: int) -> str:
    """The text of an instant, exact to the nanosecond.  Source: AS contract, introduction."""
    seconds, rest = divmod(ns, NANOSECONDS)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment.replace(tzinfo=None).isoformat()}{fraction}Z"
