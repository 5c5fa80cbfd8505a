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


def html_to_text(html: str) -> str:
    """The visible text of a document; links and pictures leave no trace but their words."""
    root = LexborHTMLParser(html).body
    if root is None:
        return ""
    pieces: list[str] = []
    _gather(root, pieces)
    lines = (line.strip() for line in "".join(pieces).split("\n"))
    return _MANY_LINES.sub("\n\n", "\n".join(lines)).strip()


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
