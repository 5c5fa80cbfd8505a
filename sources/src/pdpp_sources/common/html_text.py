"""The words of an HTML mail, in reading order, with its paragraphs as lines, and its links."""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from pdpp_sources.common.hidden_html import HiddenElements, TextLook

_FRAMES = ("iframe", "noframes", "noembed")  # their text is for programs that show none
_SILENT = frozenset(
    ["script", "style", "head", "title", "template", "noscript", "svg", "math", *_FRAMES]
)
_BLOCKS = """
address article aside blockquote br dd details div dl dt fieldset figure footer form h1 h2 h3 h4 h5
h6 header hr li main nav ol p pre section summary table tr ul
"""
_BREAKS = frozenset(_BLOCKS.split())
_BLANKS = re.compile(r"[ \t\r\f\v\xa0\u200b\u200c\u034f]+")
_MANY_LINES = re.compile(r"\n\s*\n\s*")
# HTML's way with open elements takes the square of their number. Real mail nests some dozen tables;
# what is left open in a hundred times as many is not laid out, only its words are read.
_MANY_TAGS = 4_000
_DEEPEST = 2_000
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})[^<>]{0,2000}>?")
_ENDLESS = "area base br col dd dt hr img input li link meta option p td th tr tbody thead"
_CLOSED_BY_THEMSELVES = frozenset(_ENDLESS.split())


_WEB = re.compile(r"https?://[^\s<>]{1,2000}\Z", re.IGNORECASE)
MOST_LINKS = 500
_LONGEST_LINK_TEXT = 200
_PRESSED = frozenset({"submit", "button", "reset"})
_END = (
    "\ue000"  # stands after the document: where it is not read, something swallowed what is before
)
_ANY_TAG = re.compile(r"<(/?[a-zA-Z][a-zA-Z0-9]*)([^<>]*)(>?)")
_OPENER = re.compile(r"<(?:!--|[a-zA-Z]+[^<>]*>?)")
_ATTRIBUTE = re.compile(r"""\s[\w:-]+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""")
_SWALLOWING = ("title", "textarea", "noscript", "template", "svg", "math", *_FRAMES)


_Piece: TypeAlias = "str | tuple[LexborNode, TextLook]"


class HtmlPage(msgspec.Struct, frozen=True):
    """What a document says, and where it leads.

    Shapes: a link is `words <address>`, or the address alone; of the web only, each once; of more
        than `MOST_LINKS` the first ones, and `is_cut`.
    """

    text: str
    links: list[str]
    is_cut: bool = False


def html_to_text(html: str) -> str:
    """The visible text of a document."""
    return read_html(html).text


def read_html(html: str) -> HtmlPage:
    """Read a document, also what stands behind a tag or a remark that never ends."""
    if html.count("<") > _MANY_TAGS and _depth(html) > _DEEPEST:
        html = _TAG.sub(" ", html)
    page = _Page(html + _END)
    if _END not in page.text:
        page = _Page(_mended(html) + _END)
    lines = map(str.strip, _BLANKS.sub(" ", page.text.replace(_END, "")).split("\n"))
    text = _MANY_LINES.sub("\n\n", "\n".join(lines)).strip()
    return HtmlPage(text, list(page.links), page.is_cut)


def _mended(html: str) -> str:
    """The document without what opens and is never closed."""
    for name, closes in (("!--", "-->"), *((tag, f"</{tag}") for tag in _SWALLOWING)):
        opened = html.lower().rfind(f"<{name}")
        if opened > html.lower().rfind(closes):
            html = html[:opened] + _OPENER.sub(" ", html[opened:], count=1)
    return _ANY_TAG.sub(_closed, html)


def _closed(tag: re.Match[str]) -> str:
    name, attributes, end = tag.groups()
    if not end:
        return f" {_ATTRIBUTE.sub('', attributes)}"
    open_quote = attributes.count('"') % 2 or attributes.count("'") % 2
    return f"<{name}>" if open_quote else tag.group()


def _depth(html: str) -> int:
    """How many elements are open at once, at most."""
    depth = deepest = 0
    for match in _TAG.finditer(html):
        closes, name = match.groups()
        if name.lower() not in _CLOSED_BY_THEMSELVES:
            depth = max(0, depth - 1) if closes else depth + 1
            deepest = max(deepest, depth)
    return deepest


class _Page:
    """The words and links of a tree, walked with a stack, since mail nests tables without end."""

    def __init__(self, html: str) -> None:
        self.links: dict[str, None] = {}
        self.is_cut = False
        pieces: list[str] = []
        tree = LexborHTMLParser(html)
        self._hidden = HiddenElements(tree)
        root = tree.body
        stack: list[_Piece] = [(root, TextLook())] if root is not None else []
        while stack:
            piece = stack.pop()
            if isinstance(piece, str):
                pieces.append(piece)
            else:
                pieces.append(self._said(*piece, stack))
        self.text = "".join(pieces)

    def _said(self, node: LexborNode, around: TextLook, stack: list[_Piece]) -> str:
        """What an element says before its children, which are put on the stack."""
        tag = node.tag or ""
        if tag == "-text":
            return self._words(node.text_content or "", around, node)
        if tag in _SILENT or tag.startswith(("-", "!")):
            return ""
        look = self._hidden.look(node, around)
        if look is None:
            return _END if _END in (node.text() or "") else ""
        if tag == "input":
            return _pressed(node)
        if tag == "a" and not self.is_cut and not look.is_hidden:
            self._keep_link(node)
        breaks = tag in _BREAKS
        if breaks:
            stack.append("" if tag == "br" else "\n")
        elif tag in ("td", "th"):
            stack.append(" ")
        stack.extend((child, look) for child in reversed(list(node.iter(include_text=True))))
        return "\n" if breaks else ""

    def _words(self, text: str, look: TextLook, node: LexborNode) -> str:
        """Text as it is shown; of what is hidden only that the document goes on behind it."""
        if look.is_hidden or self._hidden.is_folded(node):
            return _END if _END in text else ""
        return text.replace("\n", " ")

    def _keep_link(self, node: LexborNode) -> None:
        address = (node.attributes.get("href") or "").strip()
        if not _WEB.match(address):
            return
        pictures = (picture.attributes.get("alt") or "" for picture in node.css("img"))
        words = " ".join((node.text() or "").split()) or " ".join(filter(None, pictures))
        words = words.replace(_END, "")[:_LONGEST_LINK_TEXT]
        link = f"{words} <{address}>" if words not in ("", address) else address
        self.is_cut = len(self.links) >= MOST_LINKS and link not in self.links
        if not self.is_cut:
            self.links[link] = None


def _pressed(node: LexborNode) -> str:
    """What stands on a button."""
    kind = (node.attributes.get("type") or "").lower()
    return (node.attributes.get("value") or "") if kind in _PRESSED else ""
