"""`<mark>` tags that stay balanced, whatever a server sent and wherever a cut falls.

Source: MCP adapter contract 8.3. No other markup is produced or interpreted.
"""

import html
import re
from collections.abc import Sequence

from personal_server.mcp_adapter.evidence.cutting import cut_position
from personal_server.rs_client.json_values import as_list

opening, closing = "<mark>", "</mark>"
tag = re.compile(r"</?mark>")


def is_balanced(text: str) -> bool:
    """Whether tags alternate, opening first, none left open."""
    tags = tag.findall(text)
    return tags == [opening, closing] * (len(tags) // 2)


def repaired(text: str) -> str:
    """The text itself when its tags are balanced, else without any."""
    return text if is_balanced(text) else tag.sub("", text)


def cut_marked(text: str, limit_chars: int) -> str:
    """At most limit_chars of visible text; tags do not count, none is split, none stays open."""
    text = repaired(text)
    pieces = tag.split(text)
    shown: list[str] = []
    left = limit_chars
    for position, piece in enumerate(pieces):
        kept = piece if len(piece) <= left else piece[: cut_position(piece, left)] if left else ""
        left -= len(kept)
        marked = position % 2 == 1
        shown.append(f"{opening}{kept}{closing}" if marked and kept else kept)
        if len(kept) < len(piece):
            return "".join(shown) + "…"
    return "".join(shown)


def mark_ranges(text: str, start_chars: int, ranges: object) -> str:
    """An excerpt with its matches tagged; one whose own text holds a tag is left plain."""
    if tag.search(text):
        return tag.sub("", text)
    shown: list[str] = []
    at = 0
    for begin, end in _inside(as_list(ranges), start_chars, len(text)):
        if begin >= at:
            shown += (text[at:begin], opening, text[begin:end], closing)
            at = end
    return "".join(shown) + text[at:]


def _inside(ranges: Sequence[object], start_chars: int, size: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for item in ranges:
        match item:
            case [int(begin), int(end)] if 0 <= begin - start_chars < end - start_chars <= size:
                found.append((begin - start_chars, end - start_chars))
            case _:
                continue
    return sorted(found)


def unescaped(snippet: str) -> str:
    """A snippet's text: entities resolved outside its own tags, which stay only when balanced."""
    if not is_balanced(snippet):
        return tag.sub("", html.unescape(tag.sub("", snippet)))
    parts = [html.unescape(part) for part in tag.split(snippet)]
    if any(tag.search(part) for part in parts):
        return tag.sub("", "".join(parts))
    return "".join(
        f"{opening}{part}{closing}" if position % 2 else part for position, part in enumerate(parts)
    )
