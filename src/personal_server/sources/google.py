"""Google Takeout: YouTube and other activity, Chrome history, and where the phone has been.

Mail, calendars and contacts inside the same archive are read by their own sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from personal_server.domain.source_item import Data, Skipped, SourceItem
from personal_server.sources.export import Export, Member
from personal_server.sources.google_activity import activity_records, is_page, read_activity_page
from personal_server.sources.google_places import (
    PLACE_ARRAYS,
    place_records,
    point_records,
    segment_records,
    visit_records,
)
from personal_server.sources.google_streams import DECLARATION, HOW_TO_EXPORT
from personal_server.sources.json_stream import Element, json_elements
from personal_server.sources.port import (
    CERTAIN,
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
)

Build = Callable[[Element], Iterator[SourceItem]]

_KINDS: dict[str, re.Pattern[bytes]] = {
    "activity": re.compile(
        rb"^\s*\[\s*\{(?=.*\"header\"\s*:)(?=.*\"title\"\s*:)(?=.*\"time\"\s*:)", re.DOTALL
    ),
    "page": re.compile(rb"^\s*<html>.*(mdl-typography--title|outer-cell)", re.DOTALL),
    "visits": re.compile(rb"^\s*\{.*\"Browser History\"\s*:\s*\[", re.DOTALL),
    "points": re.compile(rb"^\s*\{\s*\"locations\"\s*:\s*\["),
    "places": re.compile(rb"^\s*\{\s*\"timelineObjects\"\s*:"),
    "timeline": re.compile(rb"^\s*\{.*\"(semanticSegments|rawSignals)\"\s*:\s*\[", re.DOTALL),
    "segments": re.compile(
        rb"^\s*\[\s*\{(?=.*\"startTime\"\s*:)(?=.*\"(visit|activity|timelinePath)\"\s*:)", re.DOTALL
    ),
}
_ARRAYS = {
    "visits": ("Browser History",),
    "points": ("locations",),
    "places": ("timelineObjects",),
    "timeline": PLACE_ARRAYS,
}
_BUILDS: dict[str, Build] = {
    "activity": activity_records,
    "visits": visit_records,
    "points": point_records,
    "places": place_records,
    "timeline": segment_records,
    "segments": segment_records,
}


class GoogleSource:
    """Reads activity as JSON or HTML, browser history, and location history old and new."""

    connector_key = "google"
    declaration: Data = DECLARATION
    how_to_export = HOW_TO_EXPORT

    def recognize(self, export: Export) -> Claim | None:
        """Claim files by the shape of their first entry, since Google translates their names."""
        lists = list(matching(export, lambda head: _kind(head) is not None, ".json", ".html"))
        pages = [m for m in matching(export, _is_html, ".html") if m not in lists and is_page(m)]
        return claim(
            CERTAIN, [*lists, *pages], "it holds activity, history or places as Google exports them"
        )

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield what each file holds; ids come from content, so overlaps fall together."""
        return beginning_at(start, each_member(export, _read_member))


def _is_html(head: bytes) -> bool:
    return head[:200].lstrip().lower().startswith((b"<html", b"<!doctype html"))


def _kind(head: bytes) -> str | None:
    return next((kind for kind, pattern in _KINDS.items() if pattern.match(head)), None)


def _read_member(member: Member) -> Iterator[SourceItem]:
    head = member.head()
    kind = _kind(head)
    if kind == "page" or _is_html(head):
        yield from read_activity_page(member)
    elif kind is not None:
        for element in json_elements(member, *_ARRAYS.get(kind, ())):
            if isinstance(element, Skipped):
                yield element
                continue
            where = f"{member.name} at byte {element.position - member.offset}"
            yield from one_record(where, element.position, lambda k=kind, e=element: _BUILDS[k](e))
