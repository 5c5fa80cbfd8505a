"""Dates of mails that are not written as the standard says: in other languages, or as ISO 8601.

Source: dates that people reported to the trackers of mail programs (docs/source-defects.md).
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from email.utils import format_datetime

from pdpp_sources.tables.column_days import MONTHS

_LONGEST = 100
_LOCAL = re.compile(
    r"\s*(?:[^\W\d]{1,12}\.?,?\s+)?(\d{1,2})[.\s-]{1,3}([^\W\d]{3,12})\.?[\s-]{1,3}(\d{4}),?\s+"
    r"(\d{1,2}:\d\d(?::\d\d)?)(.*)",
    re.DOTALL,
)
_ENGLISH = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_SWEDISH = {"maj": 5, "okt": 10}


def in_standard_form(value: str) -> str | None:
    """The date as the standard writes it, where it can be told what is meant."""
    if len(value) > _LONGEST:
        return None
    if match := _LOCAL.match(value):
        day, word, year, clock, zone = match.groups()
        month = MONTHS.get(word.lower()) or _SWEDISH.get(word.lower())
        return f"{day} {_ENGLISH[month - 1]} {year} {clock}{zone}" if month else None
    with suppress(ValueError):
        return format_datetime(datetime.fromisoformat(value.strip()))
    return None
