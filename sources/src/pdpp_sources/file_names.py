"""What the name of a file says of what is in it, and what it becomes a part of."""

from __future__ import annotations

import re

from pdpp_kernel.source_declaration import OWN_FILE_PREFIX

# What in the name of a file says of when it is, or which copy it is: `2026-10`, `20261001`,
# `01.10.2026`, `Oct_2026`, `Q3`, `(1)`.
_YEAR, _MONTH, _DAY = r"(?:19|20)\d{2}", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
_OF_TIME = re.compile(
    rf"(?<!\d)(?:{_YEAR}(?P<by>[-_. ]?){_MONTH}(?:(?P=by){_DAY})?(?:T\d{{4,6}}Z?|[_ -]\d{{6}})?"
    rf"|{_DAY}(?P<sep>[-_.]?){_MONTH}(?P=sep){_YEAR}|{_YEAR})(?!\d)"
    r"|(?<![a-z])(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-zä]*"
    rf"(?=[-_. ]*{_YEAR})|(?<![a-z0-9])q[1-4](?![a-z0-9])"
    r"| \(\d{1,3}\)|[-_ ]+(?:copy|kopie|copie|copia)(?: \d)?$",
    re.IGNORECASE,
)
_PLACE_IN_SERIES = re.compile(r"[-_ ]?\d{1,3}$")
_SEPARATORS = re.compile(r"[-_. ]{2,}")


def slug(name: str) -> str:
    """A name as a part of keys and of stream names: `Umsätze 2026` is `ums-tze-2026`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50] or "data"


def table_key(name: str) -> str:
    """The key of the source that is made of the owner's own tables of that name."""
    return f"{OWN_FILE_PREFIX}{slug(name)}"[:64]


def family_name(name: str, *, of_series: bool = False) -> str:
    """The name of a file without what says of when it is: what next month's has in common with it.

    Shapes: `of_series` leaves its number among others out, too. A name of nothing else stays.
    """
    family = _OF_TIME.sub("", name)
    family = _PLACE_IN_SERIES.sub("", family) if of_series else family
    if family == name:
        return name
    family = _SEPARATORS.sub(lambda match: match[0][0], family).strip("-_. ()")
    return family if any(map(str.isalpha, family)) else name
