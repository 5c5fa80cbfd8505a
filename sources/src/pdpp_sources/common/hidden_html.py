"""What an HTML document hides from its readers: text for filters and models, not for people.

Rule: only what the element itself says counts, and the simple rules of a style sheet that hold
everywhere; what a narrow screen or a print hides is shown to others.
Source: CSS 2.2 (display, visibility, overflow, clip), CSS Color, CSS Transforms, HTML (`hidden`,
`details`, `dialog`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec
from msgspec.structs import replace
from selectolax.lexbor import LexborHTMLParser, LexborNode

_NUMBER = re.compile(r"\s*([-+]?[0-9]*\.?[0-9]+)\s*([a-z%]*)")
_NUMBER_IN = re.compile(r"[0-9]")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_PIXELS_A_UNIT = {"": 1.0, "px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "ex": 8.0, "%": 0.16}
"""About how many pixels a unit of length has; of fonts 16 are usual."""
_SMALLEST_FONT = 1.0
_FAR_AWAY = -200.0
"""Pixels: a text that far to the left or above is on no screen."""
_FAINTEST = 0.05
"""The opacity up to which nobody reads a text."""
_FALLBACKS = frozenset({"canvas", "datalist"})
"""Elements that show a drawing, or nothing, in the place of the text in them."""
_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|([^\n]))")
_DISPLAY = re.compile(
    r"none|inline|block|contents|flow|list-item|flex|grid|table|ruby|run-in|inherit|initial"
    r"|unset|revert|-webkit-|-ms-|-moz-"
)
_NO_FONT_SIZE = re.compile(r"(?:^|\s)0(?:\.0+)?(?:[a-z]{2,3}|%)?(?:/\S+)?\s")
_MOST_RULES = 500
_OFTEN_CHARS = 300
_SIMPLE_SELECTOR = re.compile(
    r"(?=.)(?:[a-zA-Z][\w-]{0,99})?(?:[.#][a-zA-Z_][\w-]{0,99}){0,3}\Z", re.ASCII
)

Style = Mapping[str, str]
"""Declarations by property, in lower case; the last one of a property counts."""


class TextLook(msgspec.Struct, frozen=True):
    """How text inside an element looks, as far as children take it over from their parents."""

    is_tiny: bool = False
    is_invisible: bool = False
    is_painted_over: bool = False

    @property
    def is_hidden(self) -> bool:
        """Whether nobody sees it."""
        return self.is_tiny or self.is_invisible or self.is_painted_over


class HiddenElements:
    """Judges the elements of one document."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._has_folds = tree.css_first("details") is not None
        self._of_sheet: dict[int, dict[str, str]] = {}
        for selector, style in _rules(tree):
            for node in tree.css(selector):
                self._of_sheet.setdefault(node.mem_id, {}).update(style)

    def look(self, node: LexborNode, around: TextLook) -> TextLook | None:
        """How text in an element looks; `None` where the element shows nothing at all.

        In: `<td style="font-size:0">`, then `<b style="font-size:13px">` in it. Out: tiny,
        then not, as programs that build mails write it.
        """
        attributes = node.attributes
        if (node.tag == "dialog" and "open" not in attributes) or node.tag in _FALLBACKS:
            return None
        if "hidden" in attributes or "popover" in attributes or self.is_folded(node):
            return None
        own = attributes.get("style")
        of_sheet = self._of_sheet.get(node.mem_id) if self._of_sheet else None
        if not own and not of_sheet:  # as most
            return around
        style, shows_nothing = _judged(own or "")
        if of_sheet:
            style = {**of_sheet, **style}
            shows_nothing = _shows_nothing(style)
        if shows_nothing:
            return None
        look = around
        if _NUMBER_IN.search(style.get("font", "")):
            look = replace(look, is_tiny=_NO_FONT_SIZE.search(style["font"]) is not None)
        if "font-size" in style:
            size = _pixels(style["font-size"])
            is_relative = style["font-size"].endswith(("%", "em"))
            is_tiny = size is not None and size <= _SMALLEST_FONT
            look = replace(look, is_tiny=is_tiny or (is_relative and around.is_tiny))
        if "visibility" in style:
            look = replace(look, is_invisible=style["visibility"] in ("hidden", "collapse"))
        if "color" in style or "-webkit-text-fill-color" in style:
            look = replace(look, is_painted_over=_is_painted_over(style))
        return look

    def is_folded(self, node: LexborNode) -> bool:
        """Whether a closed `details` keeps a part of it, an element or text, folded away."""
        parent = node.parent if self._has_folds else None
        closed = parent is not None and parent.tag == "details" and "open" not in parent.attributes
        return closed and node.tag != "summary"


def _judged(text: str) -> tuple[Style, bool]:
    """What an element declares, and whether it then shows nothing."""
    return _judged_often(text) if len(text) <= _OFTEN_CHARS else _judge(text)


def _judge(text: str) -> tuple[Style, bool]:
    style = _declarations(text)
    return style, _shows_nothing(style)


# of a mail many elements declare the same
_judged_often = lru_cache(maxsize=1_000)(_judge)


def _shows_nothing(style: Style) -> bool:
    """Whether an element is drawn nowhere where it can be seen; no child can change that."""
    if style.get("display") == "none" or style.get("mso-hide") == "all":
        return True
    faded = style.get("filter", "").partition("opacity(")[2]
    if _is_faint(style.get("opacity")) or _is_faint(faded):
        return True
    if style.get("content-visibility") == "hidden":
        return True
    return _is_cut_off(style) or _is_off_screen(style)


def _is_cut_off(style: Style) -> bool:
    """Whether its box has no room and shows nothing beyond it."""
    cuts = any(style.get(name) in ("hidden", "clip") for name in _OVERFLOWS)
    sizes = [_pixels(style[name]) for name in _SIZES if name in style]
    if cuts and any(size is not None and size <= 1.0 for size in sizes):
        return True
    clip = "".join(style.get("clip", "").split())
    if clip.startswith("rect(") and not any(digit in clip for digit in "23456789"):
        return True
    path = "".join(style.get("clip-path", "").split())
    return path.startswith(("inset(50%", "inset(100%", "circle(0", "polygon(00"))


def _is_off_screen(style: Style) -> bool:
    """Whether it is drawn beyond the left or upper edge, or at no size."""
    moved = [style.get(name) for name in ("text-indent", "margin-left", "margin-top")]
    if style.get("position") in ("absolute", "fixed"):
        moved += [style.get(name) for name in _EDGES]
    moved += style.get("translate", "").split()
    if any((_pixels(offset) or 0.0) <= _FAR_AWAY for offset in moved if offset is not None):
        return True
    if any(_is_zero(factor) for factor in style.get("scale", "").split()):
        return True
    transform = "".join(style.get("transform", "").split())
    if re.search(r"scale[xy3d]*\(0(?:\.0+)?[,)]|matrix\(0,0,0,0,|rotate[xy]\(-?90deg", transform):
        return True
    match = re.search(r"translate[xy3d]*\((?:[^,)]*,)?(-[0-9.]+[a-z%]*)", transform)
    return match is not None and (_pixels(match[1]) or 0.0) <= _FAR_AWAY


_EDGES = ("left", "top", "right", "bottom", "inset", "inset-inline-start", "inset-block-start")
_SIZES = ("max-height", "height", "max-width", "width")
_OVERFLOWS = ("overflow", "overflow-x", "overflow-y")


def _is_painted_over(style: Style) -> bool:
    """Whether its letters have no colour, or that of the background which it sets itself."""
    color = _color(style.get("-webkit-text-fill-color", style.get("color")))
    if color is None:
        return False
    if color == "transparent":
        return True
    ground = style.get("background-color") or style.get("background")
    return ground is not None and "url(" not in ground and color == _color(ground)


_NAMED_COLORS = {"white": "#ffffff", "black": "#000000"}
_SHORT_COLOR = re.compile(r"#([0-9a-f])([0-9a-f])([0-9a-f])\Z")
_NO_COLOR = re.compile(r"#(?:[0-9a-f]{3}0|[0-9a-f]{6}00)\Z|(?:rgb|hsl)a?\(.*[,/]0(?:\.0+)?%?\)\Z")
_RGB = re.compile(r"rgba?\((\d{1,3}),(\d{1,3}),(\d{1,3})(?:,([0-9.]+))?\)\Z")


def _color(text: str | None) -> str | None:
    """A colour as `#rrggbb`, or `transparent`; others as they are written."""
    if text is None:
        return None
    text = "".join(text.split())
    short, rgb = _SHORT_COLOR.match(text), _RGB.match(text)
    if _NO_COLOR.match(text) and (text[0] == "#" or "/" in text or text.count(",") == 3):
        return "transparent"
    if short is not None:
        return "#" + "".join(digit * 2 for digit in short.groups())
    if rgb is not None:
        return "#" + "".join(f"{min(int(part), 255):02x}" for part in rgb.groups()[:3])
    return _NAMED_COLORS.get(text, text)


def _is_faint(text: str | None) -> bool:
    number = None if text is None else _NUMBER.match(text)
    if number is None:
        return False
    return float(number[1]) * (0.01 if number[2] == "%" else 1.0) <= _FAINTEST


def _is_zero(text: str | None) -> bool:
    number = None if text is None else _NUMBER.match(text)
    return number is not None and float(number[1]) == 0.0


def _pixels(text: str) -> float | None:
    """A length in about pixels; `None` for what is no length."""
    number = _NUMBER.match(text)
    if number is None:
        return None
    per_unit = _PIXELS_A_UNIT.get(number[2])
    return None if per_unit is None else float(number[1]) * per_unit


def _declarations(text: str) -> dict[str, str]:
    declarations: dict[str, str] = {}
    text = _COMMENT.sub("", text).lower()
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    for declaration in text.split(";"):
        name, colon, value = declaration.partition(":")
        name, value = name.strip(), value.replace("!important", "").strip()
        if colon and (name != "display" or _DISPLAY.match(value)):  # others are no values of it
            declarations[name] = value
    return declarations


def _unescaped(found: re.Match[str]) -> str:
    """What an escape of CSS stands for, in lower case; nothing where that is no character."""
    code = int(found[1], 16) if found[1] else ord(found[2])
    return chr(code).lower() if code < 0xD800 else ""


def _rules(tree: LexborHTMLParser) -> list[tuple[str, dict[str, str]]]:
    """The rules of the document's style sheets for one tag, class or id, that hold everywhere."""
    rules: list[tuple[str, dict[str, str]]] = []
    for sheet in tree.css("style"):
        text = _COMMENT.sub("", sheet.text(deep=True) or "").replace("<!--", "").replace("-->", "")
        for selectors, body in _blocks(text):
            style = _declarations(body)
            for selector in map(str.strip, selectors.split(",")):
                if style and _SIMPLE_SELECTOR.match(selector) and len(rules) < _MOST_RULES:
                    rules.append((selector, style))
    return rules


def _blocks(text: str) -> list[tuple[str, str]]:
    """Selectors and body of each rule at the top level; what stands in an at-rule is left out."""
    blocks: list[tuple[str, str]] = []
    at = 0
    while (opened := text.find("{", at)) >= 0:
        head, depth, end = text[at:opened].rpartition(";")[2].strip(), 1, opened + 1
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if not head.startswith("@"):
            blocks.append((head, text[opened + 1 : end].removesuffix("}")))
        at = end
    return blocks
