"""Slack's markup as people read it: names for ids, plain links, plain signs."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

_MARK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


def readable(text: str, people: Mapping[str, str], channels: Mapping[str, str]) -> str:
    """Resolve mentions of people and channels, unfold links, undo escapes."""

    def resolved(mark: re.Match[str]) -> str:
        sign, target, label = mark.groups()
        if sign == "@":
            return f"@{label or people.get(target, target)}"
        if sign == "#":
            return f"#{label or channels.get(target, target)}"
        if sign == "!":
            return label or f"@{target.partition('^')[0]}"
        return f"{label} ({target})" if label and label != target else target

    return html.unescape(_MARK.sub(resolved, text))
