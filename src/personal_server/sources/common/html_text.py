"""The words of an HTML mail, in reading order, with its paragraphs as lines."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

_SILENT = frozenset({"script", "style", "head", "title", "template", "noscript", "svg", "math"})
_BLOCKS = """
address article aside blockquote br dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6
header hr li main nav ol p pre section table tr ul
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


def html_to_text(html: str) -> str:
    """The visible text of a document; links and pictures leave no trace but their words."""
    if html.count("<") > _MANY_TAGS and _depth(html) > _DEEPEST:
        html = _TAG.sub(" ", html)
    root = LexborHTMLParser(html).body
    if root is None:
        return ""
    pieces: list[str] = []
    _gather(root, pieces)
    lines = (line.strip() for line in "".join(pieces).split("\n"))
    return _MANY_LINES.sub("\n\n", "\n".join(lines)).strip()


def _depth(html: str) -> int:
    """How many elements are open at once, at most."""
    depth = deepest = 0
    for found in _TAG.finditer(html):
        closes, name = found.groups()
        if name.lower() not in _CLOSED_BY_THEMSELVES:
            depth = max(0, depth - 1) if closes else depth + 1
            deepest = max(deepest, depth)
    return deepest


def _gather(root: LexborNode, pieces: list[str]) -> None:
    """Walk the tree with a stack of its own, since mail nests tables without end."""
    stack: list[LexborNode | str] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            pieces.append(node)
            continue
        tag = node.tag or ""
        if tag == "-text":
            pieces.append(_BLANKS.sub(" ", (node.text_content or "").replace("\n", " ")))
            continue
        if tag in _SILENT or tag.startswith(("-", "!")):
            continue
        breaks = tag in _BREAKS
        if breaks:
            pieces.append("\n")
            stack.append("" if tag == "br" else "\n")
        elif tag in ("td", "th"):
            stack.append(" ")
        stack.extend(reversed(list(node.iter(include_text=True))))
