"""Names and values apart from the sentence round them, whichever way they are written.

Rule: every `{{ }}` of a template and every value of a text stands in a `<bdi>` of its own, unless
it is markup of ours, so that a name written from right to left takes no date apart; templates need
not think of it.  Where no element can stand, in attributes, titles and options, a value is plain.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from functools import cache

import msgspec
from jinja2 import Environment, nodes
from markupsafe import Markup, escape
from msgspec.structs import replace

_FSI, _PDI = "\u2068", "\u2069"
_TAG = re.compile(r'<(/?)([a-zA-Z!][^\s>/]*)|>|"')
_IN_TAG = re.compile(r"<[^>]*>")
_VALUE = re.compile(r"%\((\w+)\)s")
_OURS = re.compile(r"</?(?:bdi|time)\b[^>]*>")


class Isolation(StrEnum):
    """How a value of a template is shown, by the name of the filter that does it."""

    CONTENT = "isolated"
    NAME = "named"
    """In the text of an element that holds no other."""
    ATTRIBUTE = "plain"


class _Position(msgspec.Struct, frozen=True):
    """Where in a page a template is."""

    is_in_tag: bool = False
    is_quoted: bool = False
    element: str = ""

    @property
    def isolation(self) -> Isolation:
        if self.is_in_tag or self.element == "textarea":
            return Isolation.ATTRIBUTE
        return Isolation.NAME if self.element else Isolation.CONTENT

    def after(self, text: str) -> _Position:
        """Where it is when this text was written."""
        position = self
        for match in _TAG.finditer(text):
            mark, closing, name = match[0], match[1], match[2]
            if position.is_in_tag:
                if mark == '"':
                    position = replace(position, is_quoted=not position.is_quoted)
                elif mark == ">" and not position.is_quoted:
                    position = replace(position, is_in_tag=False)
            elif name:
                is_plain = name.lower() in ("title", "option", "textarea")
                element = name.lower() if is_plain and not closing else ""
                position = _Position(is_in_tag=True, element=element or _kept(position, closing))
        return position


def _kept(position: _Position, closing: str) -> str:
    return "" if closing else position.element


_BLOCKS = {
    "title": _Position(element="title"),
    "width": _Position(is_in_tag=True, is_quoted=True),
    "main_attributes": _Position(is_in_tag=True),
}
"""Where the layout puts what a page fills in; elsewhere elements can stand."""


class IsolatingEnvironment(Environment):
    """Templates whose values are isolated when they are compiled."""

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        defer_init: bool = False,
    ) -> str:
        isolate(source)
        return super()._generate(source, name, filename, defer_init)


def isolate(template: nodes.Template) -> None:
    """Send each value of a template through the filter of the place in which it stands."""
    _walk(template, _Position())


def _walk(node: nodes.Node, position: _Position) -> _Position:
    match node:
        case nodes.Output():
            for number, each in enumerate(node.nodes):
                if isinstance(each, nodes.TemplateData):
                    position = position.after(each.data)
                else:
                    filter_name = position.isolation.value
                    node.nodes[number] = nodes.Filter(each, filter_name, [], [], None, None)
            return position
        case nodes.If():
            ends = [_walk_all(branch, position) for branch in (node.body, node.elif_, node.else_)]
            return ends[0]
        case nodes.Block() if node.name in _BLOCKS:
            _walk_all(node.body, _BLOCKS[node.name])
            return position
        case nodes.Macro() | nodes.CallBlock():
            _walk_all(node.body, _Position())
            return position
        case _:
            inner = (each for each in node.iter_child_nodes() if isinstance(each, nodes.Stmt))
            return _walk_all(inner, position)


def _walk_all(found: Iterable[nodes.Node], position: _Position) -> _Position:
    for each in found:
        position = _walk(each, position)
    return position


def isolated(text: str) -> Markup:
    """A plain text in an element of its own, if it has letters or figures at all."""
    if any(character.isalnum() for character in text):
        return Markup("<bdi>{}</bdi>").format(text)
    return escape(text)


def plain(markup: Markup) -> Markup:
    """Markup of ours where no element can stand."""
    return Markup(_OURS.sub("", markup))  # noqa: S704 (what is left was escaped before)


def named(text: str) -> str:
    """A plain text apart from its neighbours, where it runs from right to left."""
    runs_left = any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
    return f"{_FSI}{text}{_PDI}" if runs_left else text


@cache
def attribute_values(text: str) -> frozenset[str]:
    """The values that stand in tags of a text of the catalogue, by name."""
    return frozenset(name for tag in _IN_TAG.findall(text) for name in _VALUE.findall(tag))
