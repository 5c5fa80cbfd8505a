"""Slack's markup as people read it: names for ids, plain links, plain signs."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import cast

from personal_server.domain.source_item import Data
from personal_server.sources import shape

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


def words_of_blocks(blocks: list[Data]) -> str:
    """The words of a message that programs build of blocks, one block a paragraph."""
    return "\n\n".join(filter(None, ("".join(_words(block)).strip() for block in blocks)))


def _words(element: Data) -> Iterator[str]:
    text = element.get("text")
    if isinstance(text, str):
        yield text
    elif isinstance(text, dict):
        yield shape.text(cast("Data", text), "text") or ""
    kind, name = element.get("type"), shape.line(element, "user_id", "channel_id", "name", "url")
    if kind == "user" and name:
        yield f"<@{name}>"
    elif kind == "channel" and name:
        yield f"<#{name}>"
    elif kind == "emoji" and name:
        yield f":{name}:"
    elif kind == "link" and name and not text:
        yield name
    for inner in (*shape.objects(element, "elements"), *shape.objects(element, "fields")):
        yield from _words(inner)
