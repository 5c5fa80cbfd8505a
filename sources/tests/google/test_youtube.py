from pathlib import Path

import pytest

from pdpp_sources.google.youtube import table_kind
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_json, as_zip

CHANNEL = "UC" + "a" * 22
OLD_PLAYLIST = (
    "Playlist Id,Channel Id,Time Created,Time Updated,Title,Description,Visibility\n"
    f'PLx9,{CHANNEL},2015-06-01 16:24:33 UTC,2016-06-01 16:24:33 UTC,Ovens,"Two\nlines",Public\n'
    "\n"
    "Video Id,Time Added\n"
    "abcdefghijk,2015-06-02 10:00:00 UTC\n"
    "bbbbbbbbbbb,2015-06-03 10:00:00 UTC\n"
    "not a video,2015-06-03 10:00:00 UTC\n"
)
CHATS = (
    "Live Chat ID,Channel ID,Live Chat Create Timestamp,Price,Video ID,Live Chat Text\n"
    f"Ugw1,{CHANNEL},2018-09-02T05:16:35.510381+00:00,0,abcdefghijk,"
    '"{""takeoutSegments"":[{""text"":""Hello ""},{""text"":""all""}]}"\n'
)
OLD_COMMENTS = (
    "Comment ID,Channel ID,Comment Create Timestamp,Price,Parent Comment ID,Video ID,Comment Text\n"
    f"Ug1.x,{CHANNEL},2023-08-30T01:54:46Z,0,Ug0,abcdefghijk,Plain words\n"
)
NEWEST_COMMENTS = (
    "Kanal-ID,Zeit,Preis,Kommentar-ID,Eltern,Beitrag,Video-ID,Text,Oberster\n"
    f'{CHANNEL},2025-02-11T19:04:00Z,0,Ug2,,Ugkx1,,"{{""text"":""Ja""}}",\n'
)
SUBSCRIBED = {
    "kind": "youtube#subscription",
    "snippet": {
        "title": "Bakers",
        "publishedAt": "2016-01-02T03:04:05.000Z",
        "resourceId": {"channelId": CHANNEL},
    },
}
LISTED = {
    "kind": "youtube#playlistItem",
    "contentDetails": {"videoId": "abcdefghijk"},
    "snippet": {"title": "Bread", "playlistId": "PLx1", "publishedAt": "2016-01-02T03:04:05Z"},
}


def test_a_playlist_of_old_says_what_it_is_above_its_videos(tmp_path: Path) -> None:
    items = read_path(as_zip({"Ovens.csv": OLD_PLAYLIST.encode()}, tmp_path / "t.zip"))
    (playlist,) = records_of(items, "youtube_playlists")
    assert (playlist["title"], playlist["description"]) == ("Ovens", "Two\nlines")
    assert playlist["updated_at"] == "2016-06-01T16:24:33Z"
    videos = records_of(items, "youtube_playlist_videos")
    assert [(v["playlist_id"], v["playlist"], v["added_at"]) for v in videos] == [
        ("PLx9", "Ovens", "2015-06-02T10:00:00Z"),
        ("PLx9", "Ovens", "2015-06-03T10:00:00Z"),
    ]
    assert skips_of(items) == ["bad_record"]


@pytest.mark.parametrize(
    ("table", "kind", "text", "parent"),
    [
        (CHATS, "live chat", "Hello all", None),
        (OLD_COMMENTS, "comment", "Plain words", "Ug0"),
        (NEWEST_COMMENTS, "comment", "Ja", None),
    ],
)
def test_comments_of_every_layout(
    table: str, kind: str, text: str, parent: str | None, tmp_path: Path
) -> None:
    items = read_path(as_zip({"c.csv": table.encode()}, tmp_path / "t.zip"))
    (comment,) = records_of(items, "youtube_comments")
    assert (comment["kind"], comment["text"], comment["parent_id"]) == (kind, text, parent)
    assert comment["channel_id"] == CHANNEL


def test_a_comment_below_a_post_names_the_post(tmp_path: Path) -> None:
    items = read_path(as_zip({"c.csv": NEWEST_COMMENTS.encode()}, tmp_path / "t.zip"))
    (comment,) = records_of(items, "youtube_comments")
    assert (comment["post_id"], comment["video_id"], comment["url"]) == ("Ugkx1", None, None)


def test_the_lists_of_before_2020(tmp_path: Path) -> None:
    odd = {"kind": "youtube#channelSection"}
    files = {
        "subscriptions.json": as_json([SUBSCRIBED, odd]),
        "playlists/Doughs.json": as_json([LISTED]),
    }
    items = read_path(as_zip(files, tmp_path / "t.zip"))
    (followed,) = records_of(items, "youtube_subscriptions")
    assert (followed["title"], followed["subscribed_at"]) == ("Bakers", "2016-01-02T03:04:05Z")
    (video,) = records_of(items, "youtube_playlist_videos")
    assert (video["title"], video["playlist"]) == ("Bread", "Doughs")
    assert skips_of(items) == ["unknown_record_type"]


@pytest.mark.parametrize("table", ["a,b\n1,2\n", "id,title\n", "", 'x,"torn\n', "a,b,c\n,,\n"])
def test_another_table_is_none_of_youtube(table: str) -> None:
    assert table_kind(table.encode()) is None
