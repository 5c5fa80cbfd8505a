"""Notes as pages of HTML: Apple's Notes as programs take them out of it, and Notion's export.

Source: what Apple's Notes gives to programs (a `div` for each line, the first of which is the
title; storizzi/notes-exporter, kzaremski/apple-notes-exporter, robertgaal/notes-export), and pages
of Notion's export as its readers have them (an `article` with the class `page`).
"""

from __future__ import annotations

import re
from itertools import islice
from urllib.parse import unquote

import msgspec
from selectolax.lexbor import LexborHTMLParser

from pdpp_sources.common.html_text import html_to_text
from pdpp_sources.common.text import one_line, or_none, printable

PAGE_HEAD_BYTES = 64 * 1024  # before a page of Notion come its styles
LARGEST_PAGE_BYTES = 64 * 1024 * 1024
# Each part ends in one way only, so that a page of many is judged in one go.
_AROUND = (
    rb"(?:\s|<!doctype html[^<>]{0,200}>|</?html[^<>]{0,200}>|<body>"
    rb"|<head>(?:(?!</head>).){0,8000}</head>)"
)
_APPLE = re.compile(
    rb"\A(?:\xef\xbb\xbf)?" + _AROUND + rb"{0,40}<div>\s{0,20}<(?:h1|b|span|font)\b",
    re.IGNORECASE | re.DOTALL,
)
# what no line of a note is made of, and every site is
_OF_A_SITE = re.compile(
    rb"<(?:p|script|link|nav|header|footer|main|section|form|iframe|input|button)[\s>/]",
    re.IGNORECASE,
)
_NOTION = re.compile(rb'<article id="[0-9a-fA-F-]{32,36}" class="page\b')
_PICTURE = re.compile(r'src\s*=\s*["\']data:(image/[a-z+.-]{1,20});base64,([^"\']*)["\']')
_LINK = re.compile(r"""\b(?:src|href)\s*=\s*["']([^"'<>:#?\s][^"'<>:#?]{0,500})["']""")
_TITLE_WITHIN_CHARS = 128 * 1024
_MOST_PICTURES = 1_000
_TITLES = ("h1.page-title", "title", "h1")


class NotePage(msgspec.Struct, frozen=True):
    """What a page says: title, words, the files beside it that it shows, the pictures within it.

    Shapes: of each picture its kind, and its bytes in base64; `is_cut` says that there are more
        pictures than a page may have.
    """

    title: str | None
    text: str
    links: list[str]
    pictures: list[tuple[str, str]]
    is_cut: bool


def is_note_page(head: bytes) -> bool:
    """Whether a page begins as a note does."""
    if _NOTION.search(head):
        return True
    return bool(_APPLE.match(head)) and not _OF_A_SITE.search(head)


def page_links(html: str) -> list[str]:
    """The files beside a page that it names."""
    return list(dict.fromkeys(unquote(link) for link in _LINK.findall(html)))


def note_page(html: str) -> NotePage:
    """Read a page."""
    within = list(islice(_PICTURE.finditer(html), _MOST_PICTURES + 1))
    pictures = [(found[1], found[2]) for found in within[:_MOST_PICTURES]]
    words = _PICTURE.sub('src=""', html)
    tree = LexborHTMLParser(words[:_TITLE_WITHIN_CHARS])
    found = (one_line(node.text(), 300) for name in _TITLES for node in tree.css(name)[:1])
    text = printable(html_to_text(words)).strip()
    title = next((each for each in found if each), None) or one_line(text.partition("\n")[0], 300)
    return NotePage(or_none(title), text, page_links(words), pictures, len(within) > len(pictures))
