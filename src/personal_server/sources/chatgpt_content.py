"""The many shapes of a ChatGPT message's content, as words, thoughts and pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast

from personal_server.domain.source_item import Data, Json
from personal_server.sources import shape
from personal_server.sources.text import or_none, printable

_WORDS = ("text", "result", "content", "user_profile", "user_instructions", "name")
_MARK = re.compile("\ue200[^\ue201]*\ue201")
"""Where an answer cites a source: its number between characters for private use."""


def words_of(content: Data, sources: Sequence[Data] = ()) -> str | None:
    """What a message says, whatever its type, with its sources named; None if it says nothing."""
    if shape.line(content, "content_type") in ("thoughts", "reasoning_recap"):
        return None
    parts = [_part_words(part) for part in shape.things(content, "parts")]
    named = [shape.text(content, name) for name in _WORDS]
    if shape.line(content, "content_type") == "code" and named[0]:
        named[0] = f"```{shape.line(content, 'language') or ''}\n{named[0]}\n```"
    return or_none(_cited("\n\n".join(filter(None, [*parts, *named])), sources).strip())


def _cited(words: str, sources: Sequence[Data]) -> str:
    """The words with the marks of their sources replaced by what the platform shows for them."""
    for source in sources if _MARK.search(words) else ():
        if mark := shape.text(source, "matched_text"):
            words = words.replace(mark, shape.text(source, "alt") or "")
    return _MARK.sub("", words)


def thinking_of(content: Data) -> str | None:
    """What the assistant thought, where the export says it."""
    kind = shape.line(content, "content_type")
    if kind == "reasoning_recap":
        return shape.text(content, "content")
    thoughts = shape.objects(content, "thoughts") if kind == "thoughts" else []
    said = [shape.text(each, name) for each in thoughts for name in ("summary", "content")]
    return or_none("\n\n".join(filter(None, said)))


def asset_pointers(content: Data) -> Iterator[tuple[str, Data]]:
    """The ids of pictures and recordings among the parts, with what is said of them."""
    for part in shape.objects(content, "parts"):
        for holder in (part, shape.inner(part, "audio_asset_pointer")):
            pointer = shape.line(holder, "asset_pointer")
            if pointer:
                yield pointer.partition("://")[2] or pointer, holder


def _part_words(part: Json) -> str | None:
    if isinstance(part, str):
        return or_none(printable(part))
    if isinstance(part, dict):
        return shape.text(cast(Data, part), "text", "title", "url")
    return None
