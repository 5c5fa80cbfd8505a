"""What YouTube exports beside histories: subscriptions, playlists, comments.

Since 2020 as CSV whose names are in the account's language, so what a file is shows in its values;
before as JSON, in the shapes of YouTube's interface for programs.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath

import orjson

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_sources.common import json_values
from pdpp_sources.common.declaration import (
    StreamForm,
    key,
    moment,
    plain,
    sensitive,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.json_stream import Element
from pdpp_sources.common.source import one_record
from pdpp_sources.common.text import decoded, one_line, or_none, printable
from pdpp_sources.common.times import from_iso
from pdpp_sources.tables.csv_file import CsvForm, rows_of_csv

SUBSCRIPTIONS = StreamForm(
    "youtube_subscriptions",
    "Channels you follow on YouTube",
    "Name of every channel.",
    [
        key(),
        text("title", "Name of the channel", title=True),
        word("channel_id", "YouTube's id of the channel"),
        plain("url", "Address of the channel"),
        text("description", "What the channel says of itself; exports since 2020 leave it out"),
        moment("subscribed_at", "Since when, in UTC; exports since 2020 leave it out", event=True),
    ],
    time_field="subscribed_at",
)

PLAYLISTS = StreamForm(
    "youtube_playlists",
    "Your playlists on YouTube",
    "Title, description and visibility of each.",
    [
        key(),
        text("title", "Title of the playlist", title=True),
        text("description", "What it says below"),
        word("visibility", "Public, Unlisted or Private, in the account's language"),
        moment("created_at", "When it was made, in UTC", event=True),
        moment("updated_at", "When it last changed, in UTC"),
        plain("playlist_id", "YouTube's id of the playlist"),
    ],
    time_field="created_at",
)

PLAYLIST_VIDEOS = StreamForm(
    "youtube_playlist_videos",
    "Videos in your playlists on YouTube",
    "Which video you put into which playlist, and when.",
    [
        key(),
        word("playlist", "Title of the playlist", searched=True),
        word("playlist_id", "YouTube's id of the playlist, where the export says it"),
        text("title", "Title of the video; exports since 2020 leave it out", title=True),
        word("video_id", "YouTube's id of the video"),
        plain("url", "Address of the video"),
        moment("added_at", "When it was added, in UTC", event=True),
    ],
    time_field="added_at",
)

COMMENTS = StreamForm(
    "youtube_comments",
    "What you wrote below videos on YouTube",
    "Text and time of every comment and message in live chats.",
    [
        key(),
        moment("commented_at", "When, in UTC", event=True),
        sensitive(text("text", "What it says", title=True)),
        word("kind", "comment or live chat"),
        word("video_id", "YouTube's id of the video"),
        word("post_id", "YouTube's id of the post, if it was none of a video"),
        plain("parent_id", "YouTube's id of the comment it answers"),
        word("channel_id", "YouTube's id of your channel"),
        plain("url", "Address of the video"),
    ],
    time_field="commented_at",
    semantic=["text"],
)

LARGEST_LOOK = 4096
_CHANNEL = re.compile(r"UC[\w-]{22}")
_VIDEO = re.compile(r"[\w-]{11}")
_PLAYLIST = re.compile(r"(?:PL|FL|LL|WL|OL|UU|RD)[\w-]{0,80}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| UTC|[+-]\d\d:\d\d)?")
# Behind a playlist's title in the name of its file.
_VIDEOS = re.compile(r"-v[ií]d[eé]o(?:s|er|k)?$", re.IGNORECASE)
# Where a row of so many cells holds its text.
_TEXT_AT = {6: 5, 7: 6, 9: 7}
_USUALLY_DATED_AT = 6  # in a row of playlists; then its description is the third cell


def table_kind(head: bytes) -> str | None:
    """Which of YouTube's tables begins so: told by its first row of values, whatever its names."""
    lines = decoded(head[:LARGEST_LOOK]).splitlines()
    try:
        rows = [row for row in csv.reader(lines[:6]) if row]
    except csv.Error:
        return None
    if len(rows) < 2:
        return None
    first = [cell.strip() for cell in rows[1]]
    if len(first) == 3 and _CHANNEL.fullmatch(first[0]) and _is_channel(first[1]):
        return "subscriptions"
    if len(first) == 2 and _VIDEO.fullmatch(first[0]) and _TIME.fullmatch(first[1]):
        return "playlist videos"
    if len(first) in _TEXT_AT and _is_old_playlist(first):
        return "old playlist"
    if len(first) in _TEXT_AT and _is_comment(first):
        return "comments"
    if len(first) > 6 and _PLAYLIST.fullmatch(first[0]) and _dated_at(first):
        return "playlists"
    return None


def _is_comment(cells: Sequence[str]) -> bool:
    """Its channel and then its time; before June 2024 its id stood before both."""
    pairs = pairwise(cells[:3])
    return any(_CHANNEL.fullmatch(one) and _TIME.fullmatch(other) for one, other in pairs)


def _dated_at(cells: Sequence[str]) -> int:
    """Where two times stand side by side; 0 if they do nowhere."""
    times = [_TIME.fullmatch(cell) is not None for cell in cells]
    return next((n for n, both in enumerate(pairwise(times)) if all(both)), 0)


def _is_channel(url: str) -> bool:
    return not url or "youtube.com/" in url


def _is_old_playlist(cells: Sequence[str]) -> bool:
    """Its facts, as they stood above its videos until 2022."""
    is_one = _PLAYLIST.fullmatch(cells[0]) and _CHANNEL.fullmatch(cells[1])
    return bool(is_one) and all(_TIME.fullmatch(cell) for cell in cells[2:4])


def read_table(member: ExportMember, kind: str) -> Iterator[SourceItem]:
    """The rows of a table of that kind."""
    build = _BUILDS[kind]
    # Rows of playlists of old have two widths, so no width is asked of any.
    form = CsvForm(",", ("",) * 2)
    reading = _Table(member, kind)
    for row in rows_of_csv(member, form):
        position_text, position = member.where(row.offset), member.offset + row.offset
        if row.code:
            yield Skipped(position_text, row.code, row.reason, position)
        else:
            cells = [cell.strip() for cell in row.cells]
            yield from one_record(position_text, position, partial(build, reading, cells, position))


class _Table:
    """A file, and what its rows so far said of the others."""

    def __init__(self, member: ExportMember, kind: str) -> None:
        self.playlist: str | None = _title_of(member)
        self.playlist_id: str | None = None
        self.is_old = kind == "old playlist"


def _subscription(_: _Table, cells: Sequence[str], position: int) -> Iterator[SourceItem]:
    if len(cells) < 3 or not _CHANNEL.fullmatch(cells[0]):
        raise BadRecord("bad_record", "the entry names no channel")
    yield _subscribed(cells[0], cells[2], cells[1], position)


def _subscribed(
    channel_id: str, title: str | None, url: str | None, position: int, further: Data | None = None
) -> SourceRecord:
    data: Data = {
        "id": stable_id("sub", channel_id),
        "title": or_none(one_line(title or "")),
        "channel_id": channel_id,
        "url": or_none(url) or f"https://www.youtube.com/channel/{channel_id}",
        "description": None,
    }
    return SourceRecord("youtube_subscriptions", data | (further or {}), position)


def _playlist(_: _Table, cells: Sequence[str], position: int) -> Iterator[SourceItem]:
    """Id, …, title and its language, two times, order, visibility; some have further columns."""
    at = _dated_at(cells)
    if at < 2 or not _PLAYLIST.fullmatch(cells[0]):
        raise BadRecord("bad_record", "the entry is not a playlist")
    words = (cells[at - 2], cells[2] if at == _USUALLY_DATED_AT else None, cells[-1])
    times = (_instant(cells[at]), _instant(cells[at + 1]))
    yield _playlist_record(cells[0], words, times, position)


def _playlist_record(
    playlist_id: str,
    words: tuple[str | None, str | None, str | None],
    times: tuple[str | None, str | None],
    position: int,
) -> SourceRecord:
    data: Data = {
        "id": stable_id("list", playlist_id),
        "title": or_none(one_line(words[0] or "")),
        "description": or_none(words[1]),
        "visibility": or_none(one_line(words[2] or "")),
        **({"created_at": times[0]} if times[0] else {}),
        "updated_at": times[1],
        "playlist_id": playlist_id,
    }
    return SourceRecord("youtube_playlists", data, position)


def _video(table: _Table, cells: Sequence[str], position: int) -> Iterator[SourceItem]:
    if table.is_old and _is_old_playlist((*cells, "", "", "", "")):
        title, description, visibility = (*cells, "", "", "")[4:7]
        times = (_instant(cells[2]), _instant(cells[3]))
        table.playlist, table.playlist_id = title or table.playlist, cells[0]
        yield _playlist_record(cells[0], (title, description, visibility), times, position)
        return
    if len(cells) < 2 or not _VIDEO.fullmatch(cells[0]):
        if table.is_old and len(cells) == 2 and not _TIME.fullmatch(cells[1]):
            return  # the names of the columns, which stand between the facts and the videos
        raise BadRecord("bad_record", "the entry names no video")
    yield _listed(cells[0], (table.playlist, table.playlist_id), cells[1], position)


def _listed(
    video_id: str,
    playlist: tuple[str | None, str | None],
    added: str | None,
    position: int,
    title: str | None = None,
) -> SourceRecord:
    added_at = _instant(added or "")
    data: Data = {
        "id": stable_id("vid", playlist[1] or playlist[0], video_id, added_at),
        "playlist": playlist[0],
        "playlist_id": playlist[1],
        "title": title,
        "video_id": video_id,
        "url": _watched_at(video_id),
        **({"added_at": added_at} if added_at else {}),
    }
    return SourceRecord("youtube_playlist_videos", data, position)


def _comment(_: _Table, cells: Sequence[str], position: int) -> Iterator[SourceItem]:
    """Until June 2024 its id came first, then the channel; since then the channel does."""
    at = _TEXT_AT.get(len(cells))
    commented_at = next((cell for cell in cells if _TIME.fullmatch(cell)), None)
    if at is None or commented_at is None:
        raise BadRecord("bad_record", "the entry is not a comment")
    is_old = not _CHANNEL.fullmatch(cells[0])
    is_chat = len(cells) == 6
    own, video_id = cells[0 if is_old else 3], cells[at - 1]
    data: Data = {
        "id": stable_id("com", own or f"{commented_at} {video_id}"),
        "commented_at": _instant(commented_at),
        "text": _said(cells[at]),
        "kind": "live chat" if is_chat else "comment",
        "video_id": or_none(video_id),
        "post_id": or_none(cells[5]) if len(cells) > 7 else None,
        "parent_id": None if is_chat else or_none(cells[4]),
        "channel_id": cells[1 if is_old else 0],
        "url": _watched_at(video_id) if video_id else None,
    }
    if data["commented_at"] is None:
        raise BadRecord("bad_date", "the date of the entry cannot be read")
    yield SourceRecord("youtube_comments", data, position)


def _said(cell: str) -> str | None:
    """Words in pieces: one object after the other, or a list of them in an object."""
    try:
        pieces: list[object] = orjson.loads(f"[{cell}]") if cell.startswith("{") else [{}]
    except orjson.JSONDecodeError:
        return or_none(printable(cell))
    holder: Data = {"pieces": pieces}
    words: list[str] = []
    for piece in json_values.objects(holder, "pieces"):
        inside = json_values.objects(piece, "takeoutSegments") or [piece]
        words += (text for part in inside if (text := json_values.text(part, "text")))
    return or_none("".join(words) if words else printable(cell))


_BUILDS = {
    "subscriptions": _subscription,
    "playlists": _playlist,
    "playlist videos": _video,
    "old playlist": _video,
    "comments": _comment,
}


def listed_records(member: ExportMember, element: Element) -> Iterator[SourceItem]:
    """One entry of the lists of before 2020. Raises: BadRecord."""
    value = element.value
    kind = json_values.line(value, "kind")
    snippet = json_values.inner(value, "snippet")
    title = json_values.line(snippet, "title")
    published = json_values.line(snippet, "publishedAt") or ""
    if kind == "youtube#subscription":
        channel_id = json_values.required(json_values.inner(snippet, "resourceId"), "channelId")
        since = _instant(published)
        further: Data = {"description": json_values.text(snippet, "description")}
        further |= {"subscribed_at": since} if since else {}
        yield _subscribed(channel_id, title, None, element.position, further)
    elif kind == "youtube#playlist":
        status = json_values.line(json_values.inner(value, "status"), "privacyStatus")
        words = (title, json_values.text(snippet, "description"), status)
        playlist_id = json_values.required(value, "id")
        yield _playlist_record(playlist_id, words, (_instant(published), None), element.position)
    elif kind == "youtube#playlistItem":
        video_id = json_values.line(json_values.inner(snippet, "resourceId"), "videoId")
        video_id = video_id or json_values.required(
            json_values.inner(value, "contentDetails"), "videoId"
        )
        playlist = (_title_of(member), json_values.line(snippet, "playlistId"))
        yield _listed(video_id, playlist, published, element.position, title)
    else:
        raise BadRecord("unknown_record_type", "entries of this kind are not imported")


def _title_of(member: ExportMember) -> str:
    """The playlist that a file is named after."""
    return one_line(_VIDEOS.sub("", printable(PurePosixPath(member.name).stem)))


def _watched_at(video_id: str) -> str:
    return f"https://www.youtube.com/watch?v={video_id}"


def _instant(cell: str) -> str | None:
    try:
        return from_iso(cell.replace(" UTC", "+00:00")) if cell else None
    except BadRecord:
        return None
