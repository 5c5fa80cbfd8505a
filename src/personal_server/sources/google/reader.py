"""Google Takeout: YouTube and other activity, Chrome history, and where the phone has been.

Mail, calendars and contacts inside the same archive are read by their own sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import tzinfo

from personal_server.domain.source_item import Data, SourceItem
from personal_server.sources.common.declaration import (
    Field,
    StreamForm,
    declaration,
    integer,
    key,
    moment,
    names,
    number,
    plain,
    text,
    word,
)
from personal_server.sources.common.export import Export, ExportMember
from personal_server.sources.common.json_stream import Element, json_elements
from personal_server.sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_element,
    each_member,
    matching,
    without_repeats,
)
from personal_server.sources.google.activity import activity_records, is_page, read_activity_page
from personal_server.sources.google.places import (
    PLACE_ARRAYS,
    place_records,
    point_records,
    segment_records,
    visit_records,
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


def _happened(about: str) -> list[Field]:
    return [
        key(),
        moment("occurred_at", "When, in UTC", event=True),
        text("title", about, title=True),
        plain("url", "Address on the web"),
        names("details", "What Google adds, such as: From Google Ads"),
    ]


def _span() -> list[Field]:
    return [
        key(),
        moment("started_at", "When it began, in UTC", event=True),
        moment("ended_at", "When it ended, in UTC"),
        integer("minutes", "How long it took, in minutes", summed=True),
    ]


WATCHES = StreamForm(
    "youtube_watches",
    "Videos you watched on YouTube",
    "Title, channel and time of every video.",
    [
        *_happened("Title of the video"),
        word("channel", "Channel", searched=True),
        plain("channel_url", "Address of the channel"),
    ],
    time_field="occurred_at",
)

SEARCHES = StreamForm(
    "youtube_searches",
    "What you searched on YouTube",
    "Words and time of every search.",
    [*_happened("What Google wrote about it"), text("query", "Words searched")],
    time_field="occurred_at",
)

ACTIVITY = StreamForm(
    "activity",
    "What you did in Google's products",
    "Searches, pages and other activity, with product and time.",
    [
        *_happened("What was done"),
        word("product", "Google's product"),
        text("query", "Words searched, if it was a search"),
        text("answer", "What an assistant (Gemini) answered"),
    ],
    time_field="occurred_at",
)

VISITS = StreamForm(
    "browser_visits",
    "Web pages you visited in Chrome",
    "Title, address and time of every visit.",
    [
        key(),
        moment("visited_at", "When, in UTC", event=True),
        text("title", "Title of the page", title=True),
        text("url", "Address of the page"),
        word("host", "Site", searched=True),
        word("transition", "How the page was reached: link, typed, reload …"),
    ],
    time_field="visited_at",
    views={"sites": ("Sites and times only", ["id", "visited_at", "host"])},
)

POINTS = StreamForm(
    "location_points",
    "Where you have been, point by point",
    "Coordinates and time of every observation of your phone.",
    [
        key(),
        moment("observed_at", "When, in UTC", event=True),
        number("latitude", "Degrees north"),
        number("longitude", "Degrees east"),
        integer("accuracy_meters", "Radius of uncertainty in meters"),
        word("origin", "GPS, Wi-Fi or cell"),
    ],
    time_field="observed_at",
)

PLACES = StreamForm(
    "location_visits",
    "Places you visited",
    "Place, time and length of every stay.",
    [
        *_span(),
        word("place_name", "Name of the place", title=True, searched=True),
        text("address", "Postal address"),
        word("place_id", "Google's id of the place; newer exports give no name"),
        word("kind", "home, work or another kind, as Google guessed"),
        number("latitude", "Degrees north"),
        number("longitude", "Degrees east"),
    ],
    time_field="started_at",
    views={"names": ("Without coordinates", ["id", "started_at", "place_name"])},
)

TRIPS = StreamForm(
    "location_trips",
    "Ways you went",
    "Time, length and means of every movement between places.",
    [
        *_span(),
        word("mode", "walking, in passenger vehicle …", title=True),
        number("distance_meters", "Length in meters", summed=True),
        number("start_latitude", "Degrees north at the beginning"),
        number("start_longitude", "Degrees east at the beginning"),
        number("end_latitude", "Degrees north at the end"),
        number("end_longitude", "Degrees east at the end"),
        names("waypoints", "Points of the way as Google drew it, each as north,east"),
    ],
    time_field="started_at",
)

FREQUENT = StreamForm(
    "frequent_places",
    "Places you are often at",
    "Your home, your work and other places as your phone guessed them.",
    [
        key(),
        word("kind", "home, work or another kind", title=True),
        word("place_id", "Google's id of the place"),
        number("latitude", "Degrees north"),
        number("longitude", "Degrees east"),
    ],
)

DECLARATION = declaration(
    "google",
    "Google activity",
    "YouTube and other activity, Chrome history and location history of a Google account.",
    [WATCHES, SEARCHES, ACTIVITY, VISITS, POINTS, PLACES, TRIPS, FREQUENT],
)


class GoogleSource:
    """Reads activity as JSON or HTML, browser history, and location history old and new."""

    connector_key = "google"
    declaration: Data = DECLARATION
    how_to_export = (
        "takeout.google.com, choose Chrome, My Activity, YouTube (format JSON if it offers one), "
        "Mail, Calendar and Contacts, and import the zips. The timeline of places is on the phone: "
        "Settings > Location > Timeline > Export."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim files by the shape of their first entry, since Google translates their names."""
        lists = list(matching(export, _kind, ".json", ".html"))
        pages = [m for m in matching(export, _is_html, ".html") if m not in lists and is_page(m)]
        return claim(
            [*lists, *pages], "it holds activity, history or places as Google exports them"
        )

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield what each file holds; ids come from content, so overlaps fall together."""
        items = each_member(export, lambda member: _read_member(member, export.zone))
        # One point may stand in two files with more and with fewer facts.
        return beginning_at(start, without_repeats(items))


def _is_html(head: bytes) -> bool:
    return head[:200].lstrip().lower().startswith((b"<html", b"<!doctype html"))


def _kind(head: bytes) -> str | None:
    return next((kind for kind, pattern in _KINDS.items() if pattern.match(head)), None)


def _read_member(member: ExportMember, zone: tzinfo) -> Iterator[SourceItem]:
    head = member.head()
    kind = _kind(head)
    if kind == "page" or _is_html(head):
        return read_activity_page(member, zone)
    if kind is None:
        return iter(())
    elements = json_elements(member, *_ARRAYS.get(kind, ()), deep=kind == "timeline")
    return each_element(elements, _BUILDS[kind])
