"""Google Takeout: activity, YouTube, Chrome history, places, Keep, Tasks and Photos.

Mail, calendars and contacts inside the same archive are read by their own sources.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath

from pdpp_kernel.source_item import Data, Skipped, SourceItem
from pdpp_kernel.texts import message
from pdpp_sources.common import json_values
from pdpp_sources.common.declaration import (
    Field,
    StreamForm,
    declaration,
    ending,
    integer,
    key,
    moment,
    names,
    number,
    place,
    plain,
    sensitive,
    shared,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.json_stream import (
    LARGEST_LINE_BYTES,
    Element,
    json_elements,
    parse_object,
)
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_element,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.unit_fields import in_unit
from pdpp_sources.google.activity import activity_records, is_page, read_activity_page
from pdpp_sources.google.keep import NOTE_FILES, NOTES, files_of_note, note_records
from pdpp_sources.google.photos import (
    ALBUM_PHOTOS,
    ALBUMS,
    PHOTOS,
    album_records,
    files_of_photos,
    identity,
    photo_records,
)
from pdpp_sources.google.places import (
    PLACE_ARRAYS,
    edit_records,
    place_records,
    point_records,
    segment_records,
    visit_records,
)
from pdpp_sources.google.tasks import TASK_LISTS, TASKS, task_records
from pdpp_sources.google.youtube import (
    COMMENTS,
    PLAYLIST_VIDEOS,
    PLAYLISTS,
    SUBSCRIPTIONS,
    listed_records,
    read_table,
    table_kind,
)

Build = Callable[[Element], Iterator[SourceItem]]
_KINDS: dict[str, re.Pattern[bytes]] = {
    "note": re.compile(
        rb"^\s*\{(?=.*\"isTrashed\"\s*:)(?=.*\"isPinned\"\s*:)(?=.*\"isArchived\"\s*:)", re.DOTALL
    ),
    "photo": re.compile(rb"^\s*\{(?=.*\"title\"\s*:)(?=.*\"photoTakenTime\"\s*:\s*\{)", re.DOTALL),
    "album": re.compile(
        rb"^\s*\{\s*\"(?:albumData\"\s*:\s*\{|title\"(?=.*\"(?:access|enrichments)\"\s*:)"
        rb"|title\"(?=.*\"date\"\s*:\s*\{\s*\"timestamp\"))",
        re.DOTALL,
    ),
    # Of an album it may know no more than the title, where its pictures tell what it is.
    "bare album": re.compile(
        rb"^\s*\{\s*\"title\"\s*:\s*\"(?:[^\"\\]|\\.)*\"\s*"
        rb"(?:,\s*\"description\"\s*:\s*\"(?:[^\"\\]|\\.)*\"\s*)?\}\s*$"
    ),
    "edits": re.compile(rb"^\s*\{\s*\"timelineEdits\"\s*:\s*\["),
    "tasks": re.compile(rb"^\s*\{.*\"kind\"\s*:\s*\"tasks#taskLists\"", re.DOTALL),
    "listed": re.compile(
        rb"^\s*\[\s*\{.*\"kind\"\s*:\s*\"youtube#(?:subscription|playlist|playlistItem)\"",
        re.DOTALL,
    ),
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
_TEXTS = (".json", ".html", ".csv")  # other files belong to what these tell of
_ARRAYS = {
    "visits": ("Browser History",),
    "points": ("locations",),
    "places": ("timelineObjects",),
    "timeline": PLACE_ARRAYS,
    "edits": ("timelineEdits",),
    "tasks": ("items",),
}
_BUILDS: dict[str, Build] = {
    "activity": activity_records,
    "visits": visit_records,
    "points": point_records,
    "places": place_records,
    "timeline": segment_records,
    "segments": segment_records,
    "edits": edit_records,
    "tasks": task_records,
}


def _happened(about: str) -> list[Field]:
    return [
        key(),
        moment("occurred_at", "When, in UTC", event=True),
        shared(text("title", about, title=True)),
        plain("url", "Address on the web"),
        names("details", "What Google adds, such as: From Google Ads"),
    ]


def _span() -> list[Field]:
    return [
        key(),
        moment("started_at", "When it began, in UTC", event=True),
        ending(moment("ended_at", "When it ended, in UTC")),
        in_unit(integer("minutes", "How long it took, in minutes", summed=True), unit="min"),
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
    views={"sites": ("Names of sites and times only", ["id", "visited_at", "host"])},
)

POINTS = StreamForm(
    "location_points",
    "Where you have been, point by point",
    "Coordinates and time of every observation of your phone.",
    [
        key(),
        moment("observed_at", "When, in UTC", event=True),
        *place(),
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
        sensitive(text("address", "Postal address")),
        word("place_id", "Google's id of the place; newer exports give no name"),
        word("kind", "home, work or another kind, as Google guessed"),
        *place(),
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
        sensitive(number("start_latitude", "Degrees north at the beginning")),
        sensitive(number("start_longitude", "Degrees east at the beginning")),
        sensitive(number("end_latitude", "Degrees north at the end")),
        sensitive(number("end_longitude", "Degrees east at the end")),
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
        *place(),
    ],
)

DECLARATION = declaration(
    "google",
    "Google activity",
    "YouTube, Photos, Keep, Tasks and other activity, Chrome history and location history of a"
    " Google account.",
    [
        *(WATCHES, SEARCHES, SUBSCRIPTIONS, PLAYLISTS, PLAYLIST_VIDEOS, COMMENTS),
        *(ACTIVITY, VISITS),
        *(POINTS, PLACES, TRIPS, FREQUENT),
        *(NOTES, NOTE_FILES),
        *(TASK_LISTS, TASKS),
        *(PHOTOS, ALBUMS, ALBUM_PHOTOS),
    ],
)


class GoogleSource:
    """Reads activity as JSON or HTML, places old and new, notes, tasks, photos, YouTube's lists."""

    connector_key = "google"
    declaration: Data = DECLARATION
    how_to_export = (
        "takeout.google.com, choose Chrome, My Activity, YouTube (format JSON if it offers one), "
        "Keep, Tasks, Google Photos, Mail, Calendar and Contacts, and import all zips together. "
        "The timeline of places is on the phone: Settings > Location > Timeline > Export."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim files by the shape of their first entry, since Google translates their names."""
        kinds = _kinds(export)
        pages = [m for m in matching(export, _is_html, ".html") if m.name not in kinds]
        mine = {*kinds, *(m.name for m in pages if is_page(m))}
        mine |= {m.name for m in matching(export, table_kind, ".csv")}
        mine |= {m.name for m in _beside(export, kinds)}
        reason = "it holds activity, history, places, notes, tasks or photos as Google exports them"
        return claim((m for m in export.members if m.name in mine), reason)

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield what each file holds; ids come from content, so overlaps fall together."""
        texts = export.only(m for m in export.members if m.suffix in _TEXTS)
        items = each_member(texts, _Reading(export).member_items)
        # One point may stand in two files with more and with fewer facts.
        return beginning_at(start, without_repeats(items))


def _beside(export: Export, kinds: Mapping[str, str | None]) -> Iterator[ExportMember]:
    """What belongs to notes and photos: their files, and the page that each note has too."""
    folders = _Folders(export)
    for member in export.members:
        kind = kinds.get(member.name)
        if kind == "note":
            yield from folders.page_of(member)
            with suppress(BadRecord, MemberDamaged):
                yield from files_of_note(_whole(member), folders.beside(member))
        elif kind == "photo":
            yield from (file for file, _ in folders.files_of_photo(member, kinds))


def _kinds(export: Export) -> dict[str, str | None]:
    """What each file is; a bare title is that of an album where pictures are beside it."""
    kinds = {m.name: _kind(m.head()) for m in matching(export, _kind, ".json", ".html")}
    pictured = {PurePosixPath(name).parent for name, kind in kinds.items() if kind == "photo"}
    bare = [name for name, kind in kinds.items() if kind == "bare album"]
    for name in bare:
        if PurePosixPath(name).parent in pictured:
            kinds[name] = "album"
        else:
            del kinds[name]
    return kinds


class _Folders:
    """The files of an export by their folders, and what photos are theirs."""

    def __init__(self, export: Export) -> None:
        self._held: dict[PurePosixPath, dict[str, ExportMember]] = {}
        for member in export.members:
            path = PurePosixPath(member.name)
            self._held.setdefault(path.parent, {})[path.name] = member
        self._photos: dict[PurePosixPath, Mapping[str, list[tuple[str, str]]]] = {}

    def beside(self, member: ExportMember) -> Mapping[str, ExportMember]:
        """The files of its folder by their names."""
        return self._held[PurePosixPath(member.name).parent]

    def page_of(self, member: ExportMember) -> Iterator[ExportMember]:
        """The page that says the same as a note."""
        page = self.beside(member).get(f"{PurePosixPath(member.name).stem}.html")
        return iter([page] if page else [])

    def files_of_photo(
        self, member: ExportMember, kinds: Mapping[str, str | None]
    ) -> Iterator[tuple[ExportMember, str]]:
        """The files that a file of facts is about, with their versions."""
        path = PurePosixPath(member.name)
        members = self.beside(member)
        if path.parent not in self._photos:
            sidecars = {n for n, member in members.items() if kinds.get(member.name) == "photo"}
            self._photos[path.parent] = files_of_photos(sidecars, members.keys() - sidecars)
        for name, version in self._photos[path.parent].get(path.name, ()):
            yield members[name], version


class _Reading:
    """One reading of what was claimed: what each file is, and what lies beside it."""

    def __init__(self, export: Export) -> None:
        self._zone = export.zone
        self._folders = _Folders(export)
        self._kinds = _kinds(export)
        self._alike: dict[str, list[ExportMember]] = {}
        for member in export.members:
            if self._kinds.get(member.name) == "photo":
                self._alike.setdefault(PurePosixPath(member.name).name, []).append(member)
        notes = (m for m in export.members if self._kinds.get(m.name) == "note")
        self._pages = {page.name for note in notes for page in self._folders.page_of(note)}

    def member_items(self, member: ExportMember) -> Iterator[SourceItem]:
        """What a file holds; files of notes and photos are read with what speaks of them."""
        kind = self._kinds.get(member.name)
        if kind in ("note", "photo", "album"):
            return one_record(member.name, member.offset, partial(self._alone, member, kind))
        if member.name in self._pages:
            reason = message("the same note was imported from its JSON file")
            return iter([Skipped(member.name, "duplicate", reason, member.offset)])
        head = member.head()
        if kind == "page" or _is_html(head):
            return read_activity_page(member, self._zone)
        table = table_kind(head) if member.suffix == ".csv" else None
        if table is not None:
            return read_table(member, table)
        if kind is None:
            return iter(())
        elements = json_elements(member, *_ARRAYS.get(kind, ()), deep=kind == "timeline")
        build = partial(listed_records, member) if kind == "listed" else _BUILDS[kind]
        return each_element(elements, build)

    def _alone(self, member: ExportMember, kind: str) -> Iterator[SourceItem]:
        """What a file with one entry holds. Raises: BadRecord, MemberDamaged."""
        value = _whole(member)
        if kind == "note":
            return note_records(value, member, self._folders.beside(member))
        if kind == "album":
            return album_records(value, member)
        return photo_records(value, member, self._files(member, value))

    def _files(self, member: ExportMember, value: Data) -> list[tuple[ExportMember, str]]:
        """The files of a picture; where its album holds none, those of another folder."""
        photo_files = list(self._folders.files_of_photo(member, self._kinds))
        for other in self._alike[PurePosixPath(member.name).name]:
            if photo_files or not json_values.line(value, "url"):
                break
            with suppress(BadRecord, MemberDamaged):
                if other.name != member.name and identity(_whole(other)) == identity(value):
                    photo_files = list(self._folders.files_of_photo(other, self._kinds))
        return photo_files


def _whole(member: ExportMember) -> Data:
    """The one object of a file. Raises: BadRecord, MemberDamaged."""
    if member.size_bytes > LARGEST_LINE_BYTES:
        raise BadRecord("too_large", "the file is over 32 MB")
    with member.open() as stream:
        return parse_object(stream.read())


def _is_html(head: bytes) -> bool:
    return head[:200].lstrip().lower().startswith((b"<html", b"<!doctype html"))


def _kind(head: bytes) -> str | None:
    return next((kind for kind, pattern in _KINDS.items() if pattern.match(head)), None)
