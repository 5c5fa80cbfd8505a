"""Pages of long lists: a place in a list as it stands in a link, and the page from there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from pdpp_kernel.errors import InvalidRequest
from personal_server.storage.ports.authorization_store import ListPlace

T = TypeVar("T")

PAGE_LINES = 50
_PLACE = re.compile(r"([0-9]{1,19})-([A-Za-z0-9_-]{1,200})\Z")
_NUMBER = re.compile(r"[0-9]{1,18}\Z")


class ListPage(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list: what stands on it, and where the older ones begin (`None`: nowhere)."""

    lines: Sequence[T]
    older: str | None


def list_page(found: Sequence[T], name: Callable[[T], str]) -> ListPage[T]:
    """The page of up to one line more than it shows; `name` says a line's place."""
    lines = found[:PAGE_LINES]
    return ListPage(lines, name(lines[-1]) if len(found) > PAGE_LINES else None)


def render_place(place: ListPlace) -> str:
    """A place as a link names it."""
    return f"{place.at_ns}-{place.id}"


def parse_place(text: str | None) -> ListPlace | None:
    """The place that a link names; `None` for the beginning.  Raises: InvalidRequest."""
    if text is None:
        return None
    found = _PLACE.match(text)
    if found is None:
        raise _no_place()
    return ListPlace(int(found[1]), found[2])


def parse_number(text: str | None) -> int | None:
    """The same for lists that are numbered.  Raises: InvalidRequest."""
    if text is not None and _NUMBER.match(text) is None:
        raise _no_place()
    return None if text is None else int(text)


def _no_place() -> InvalidRequest:
    return InvalidRequest("This link to a page of a list is not valid.", param="before")
