"""Chats of Messenger and Instagram in the pages (HTML) that Meta exports by default.

Source: pages as owners and readers published them, of both layouts: `div` elements, and since 2024
`section` elements with a `footer`. A message becomes what the JSON of the same export says of it,
but for its time, which a page tells to the minute or second and without a zone, in the language of
the account.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, tzinfo

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pdpp_kernel.source_item import Data
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.html_text import html_to_text
from pdpp_sources.common.json_stream import Element
from pdpp_sources.common.page_pieces import page_pieces
from pdpp_sources.common.text import decoded, one_line, or_none, printable

MESSAGE = re.compile(rb'<(?:div|section)\b[^<>]{0,60}\bclass="(?:[^"<>]{0,200} )?_a6-g[ "]')
_TITLES = ("h1", "._a70e", "title")
_WEB = re.compile(r"https?://", re.IGNORECASE)
_KINDS = {"img": "photos", "video": "videos", "audio": "audio_files"}
_REACTIONS = re.compile(rb'<ul class="_a6-q">(?:(?!<ul\b).){0,100000}?</ul>', re.DOTALL)
_NO_REACTION = re.compile(r"[\w(\[].*", re.DOTALL)  # behind the emoji who reacted


def is_meta_page(head: bytes) -> bool:
    """Whether a page holds messages as Meta lays them out."""
    found = MESSAGE.search(head)
    return found is not None and b"_a6-h" in head[found.end() :] and b"_a6-o" in head[found.end() :]


def page_title(head: bytes) -> str | None:
    """What the chat of a page is called."""
    tree = LexborHTMLParser(decoded(head))
    found = (one_line(node.text(), 200) for name in _TITLES for node in tree.css(name)[:1])
    return next((title for title in found if title), None)


def page_messages(member: ExportMember) -> Iterator[tuple[Element, bytes]]:
    """Each message of a page, as markup yet. Raises: BadRecord, MemberDamaged."""
    pieces = page_pieces(member, MESSAGE)
    next(pieces, None)
    for offset, piece in pieces:
        yield Element(member.offset + offset, member.where(offset), {}), piece


def message_of(piece: bytes, zone: tzinfo) -> Data:
    """What the JSON would say of a message. Raises: BadRecord."""
    reacted = _REACTIONS.findall(piece)
    tree = LexborHTMLParser(decoded(_REACTIONS.sub(b"", piece)))
    date, content = tree.css_first("._a72d") or tree.css_first("._a6-o"), tree.css_first("._a6-p")
    author = tree.css_first("._a6-h")
    message: Data = {
        "sender_name": one_line(author.text(), 200) if author else "",
        "timestamp_ms": _milliseconds(one_line(date.text(), 200) if date else "", zone),
        "reactions": [
            {"reaction": emoji}
            for each in LexborHTMLParser(decoded(b"".join(reacted))).css("li")
            if (emoji := _NO_REACTION.sub("", one_line(each.text(), 100)).strip())
        ],
    }
    if content is None:
        return message
    words, rest = _parts(content)
    for node in content.css("img, video, audio"):
        if (uri := (node.attributes.get("src") or "").strip()) and not _WEB.match(uri):
            message.setdefault(_KINDS[str(node.tag)], []).append({"uri": uri})
    links = (node.attributes.get("href") or "" for part in rest for node in part.css("a"))
    if link := next(filter(_WEB.match, links), None):
        message["share"] = {"link": link, "share_text": _text(*rest)}
    message["content"] = words or (None if link else or_none(_text(*rest)))
    return message


def _parts(content: LexborNode) -> tuple[str | None, list[LexborNode]]:
    """What was written, and the elements behind it: of a share, of files.

    The first of the inner elements is of the message that it answers, the second is what was
    written; older pages have the words alone.
    """
    inner = [node for node in content.iter() if node.tag == "div"]
    parts = [node for node in inner[0].iter() if node.tag == "div"] if inner else []
    if len(parts) < 2:
        return or_none(_text(content)), []
    return or_none(_text(parts[1])), [parts[0], *parts[2:]]


def _text(*nodes: LexborNode) -> str:
    """The words of elements."""
    texts = (html_to_text(node.html or "") for node in nodes)
    return printable("\n".join(filter(None, texts))).strip()


def _milliseconds(words: str, zone: tzinfo) -> int:
    # its library takes half a second to load, and most exports are JSON
    from pdpp_sources.common.page_dates import parse_page_date  # noqa: PLC0415

    instant = datetime.fromisoformat(parse_page_date(words, zone, with_seconds=False))
    return int(instant.timestamp() * 1000)
