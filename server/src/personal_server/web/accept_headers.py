"""What a weighted header (`Accept`, `Accept-Encoding`) prefers.

Source: RFC 9110 12.5.1, 12.5.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_WEIGHT = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\Z")


def weights(header: str) -> Mapping[str, float]:
    """What a weighted header names, and how much each is wanted; a malformed weight is none."""
    found: dict[str, float] = {}
    for part in header.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((p[2:].strip() for p in parameters if p.startswith("q=")), "1")
        if name:
            found[name] = max(found.get(name, 0.0), float(weight) if _WEIGHT.match(weight) else 0.0)
    return found


def prefers_html(accept: str) -> bool:
    """Whether HTML is wanted more than JSON."""
    wanted = weights(accept)
    return _rank(wanted, "text/html") > _rank(wanted, "application/json")


def prefers_json(accept: str) -> bool:
    """Whether JSON is wanted more than HTML."""
    wanted = weights(accept)
    return _rank(wanted, "application/json") > _rank(wanted, "text/html")


def _rank(wanted: Mapping[str, float], media_type: str) -> tuple[float, bool]:
    """How much a media type is wanted: its own name counts before a wildcard of equal weight."""
    for name in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        weight = wanted.get(name)
        if weight is not None:
            return (weight, weight > 0 and name == media_type)
    return (0.0, False)
