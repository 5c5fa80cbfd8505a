"""Characters that steer a display and not a reader: taken out of text faces, escaped in JSON ones.

Source: docs/contract/mcp-adapter.md 7.4; docs/decisions.md C27. Structured faces and REST keep
exact values.
"""

import re
import unicodedata

from pdpp_mcp_server import contract
from pdpp_mcp_server.rs_client.json_values import LONE_SURROGATE, compact

# Controls; what Unicode calls default ignorable (DerivedCoreProperties), but for the selectors; and
# letters that are drawn as nothing: fillers of Hangul, a blank of Braille, a null note.
INVISIBLE = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f"
STEERING = re.compile(f"[{INVISIBLE}]")
BREAKS = re.compile("[\u0085\u2028\u2029\n\r]")
SUSPECT = re.compile(f"[{INVISIBLE}{SELECTORS}]")
_ESCAPED = re.compile(f"[{INVISIBLE}{SELECTORS}\u2028\u2029]")
SELECTOR = re.compile(f"[{SELECTORS}]")
WHITE_SPACE = re.compile(r"\s")
_ASCII_STEERING = dict.fromkeys(code for code in range(128) if STEERING.match(chr(code)))
JOINERS = "\u200c\u200d"
JOINED_KINDS = ("L", "M", "S")


def is_unicode(text: str) -> bool:
    """Whether a text can be written as UTF-8."""
    return LONE_SURROGATE.search(text) is None


def has_steering(text: str) -> bool:
    """Whether a text holds characters that would be removed, or a line break."""
    return bool(STEERING.search(text) or BREAKS.search(text))


def is_plain(text: str) -> bool:
    """Whether a text can be written as UTF-8 and holds nothing that steers a display."""
    if text.isascii() and text.isprintable():
        return True
    return is_unicode(text) and not has_steering(text)


def has_white_space(text: str) -> bool:
    """Whether a text is more than one word."""
    return WHITE_SPACE.search(text) is not None


def clean(text: str) -> str:
    """The text without steering characters; joiners and selectors stay where they have a base."""
    if text.isascii():
        return text if text.isprintable() else text.translate(_ASCII_STEERING)
    return SUSPECT.sub(lambda found: found[0] if _kept(text, found.start()) else "", text)


def _kept(text: str, at: int) -> bool:
    char = text[at]
    if char in JOINERS:
        return _is_joined(text, at - 1) and _is_joined(text, at + 1)
    return SELECTOR.match(char) is not None and _is_base(text, at - 1)


def _is_joined(text: str, at: int) -> bool:
    if not 0 <= at < len(text):
        return False
    if SELECTOR.match(text[at]):
        return _is_base(text, at - 1)
    return _is_base(text, at) and unicodedata.category(text[at]).startswith(JOINED_KINDS)


def _is_base(text: str, at: int) -> bool:
    """Whether one selector may follow; hundreds in a row would carry a hidden text."""
    if at < 0 or SUSPECT.match(text[at]):
        return False
    return unicodedata.category(text[at])[0] in "LMSNP"


def one_line(text: str, limit_chars: int | None = None) -> str:
    """One clean line; runs of white space are single spaces; cut with an ellipsis."""
    if limit_chars is not None and len(text) > limit_chars * 16:
        start = " ".join(clean(text[: limit_chars * 16]).split())
        text = start if len(start) > limit_chars else text
    line = " ".join(clean(text).split())
    if limit_chars is None or len(line) <= limit_chars:
        return line
    return line[: limit_chars - 1].rstrip() + "…"


def label(text: str) -> str:
    """A declared name or an owner's label, fit to stand outside the fence; many are file names."""
    return unlinked(one_line(text, contract.LABEL))


def quoted(value: object) -> str:
    """A caller's value for a message: JSON, one line, short."""
    text = value if isinstance(value, str) else compact(value)
    return one_line(text, contract.QUOTED_VALUE)


def clean_json(value: object) -> str:
    """Compact JSON on one line, steering characters removed."""
    text = clean(compact(value))
    return text if text.isascii() else BREAKS.sub(_escape, text)  # JSON spells out the others


# `![text](address)`, `[text](address)` and a tag (`<img src=address>`, `<svg><image …>` and
# all others; `<mark>` is ours): a host that draws Markdown fetches an image as soon as it shows
# it, and so tells its address, whatever a record put into that.
_LINK = re.compile(r"(?<=\])(?=\()|(?<=!)(?=\[)")
_TAG = re.compile(r"(?<!\\)(\\*)<(?=(?!mark>)[a-z][a-z0-9-]*(?:[\s/>\"]|\Z))", re.IGNORECASE)


def unlinked(text: str) -> str:
    """A preview in which no Markdown link, image or tag of a record is one: each gets a backslash.

    Backslashes that stand before a tag are doubled, or they would take away what ours says.
    """
    text = _LINK.sub(r"\\", text) if _may_link(text) else text
    # of a hit all tags are ours, most of the time
    is_ours = text.count("<") == text.count("<mark>") + text.count("</mark>")
    return text if is_ours else _TAG.sub(r"\1\1\\<", text)


def preview_json(value: object) -> str:
    """Compact JSON of a preview on one line, cleaned and unlinked; `<` of a tag is spelled out."""
    text = clean_json(value)
    text = _LINK.sub(r"\\\\", text) if _may_link(text) else text
    return _TAG.sub(r"\1\\\\\\u003c", text) if "<" in text else text


def _may_link(text: str) -> bool:
    """Whether `_LINK` is worth asking, which looks at every character."""
    return "](" in text or "![" in text


def escaped_json(value: object) -> str:
    """Compact JSON on one line, steering characters escaped: it still parses to the value."""
    return escape_steering(compact(value))


def escape_steering(document: str) -> str:
    """A JSON text with steering characters escaped; it still parses to the same value.

    Line breaks between members stay, and strings of JSON hold none.
    """
    return _ESCAPED.sub(
        lambda found: found[0] if _kept(document, found.start()) else _escape(found), document
    )


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
