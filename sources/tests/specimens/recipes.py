"""Small exports for the recipes that ship, shaped as public descriptions of the files say.

Each has something in it that is broken or that is no record.
"""

from __future__ import annotations

from pdpp_kernel.source_item import Data
from sources.tests.specimens.files import Files, as_json
from sources.tests.specimens.recipe_tables import TABLE_SPECIMENS


def _play(ts: str, track: str | None, played_ms: int, **others: object) -> Data:
    return {
        "ts": ts,
        "platform": "ios",
        "ms_played": played_ms,
        "conn_country": "DE",
        "master_metadata_track_name": track,
        "master_metadata_album_artist_name": track and "Nina Simone",
        "master_metadata_album_album_name": track and "Little Girl Blue",
        "spotify_track_uri": track and "spotify:track:6EAMrHkNjZ5PhHwCJSrpQ9",
        "episode_name": None,
        "episode_show_name": None,
        "spotify_episode_uri": None,
        "audiobook_title": None,
        "reason_start": "trackdone",
        "reason_end": "endplay",
        "shuffle": False,
        "skipped": None,
        "offline": False,
        "incognito_mode": False,
        **others,
    }


SPOTIFY: Files = {
    "Spotify Extended Streaming History/Streaming_History_Audio_2023-2024_0.json": as_json(
        [
            _play("2023-07-05T23:30:00Z", "My Baby Just Cares for Me", 215000),
            _play(
                "2023-07-06T05:00:00Z",
                None,
                1800000,
                episode_name="Bread",
                episode_show_name="Ovens",
                spotify_episode_uri="spotify:episode:1",
            ),
            _play(
                "2023-07-06T06:00:00Z",
                None,
                60000,
                audiobook_title="The Loaf",
                audiobook_chapter_title="One",
                skipped=True,
            ),
            _play("yesterday", "Good Bait", 1000),
            {"ts": "2023-07-07T05:00:00Z"},
        ]
    ),
    "Spotify Account Data/Playlist1.json": as_json(
        {
            "playlists": [
                {
                    "name": "Baking",
                    "lastModifiedDate": "2024-01-05",
                    "description": "For the oven",
                    "numberOfFollowers": 1,
                    "items": [
                        {
                            "track": {
                                "trackName": "Good Bait",
                                "artistName": "Nina Simone",
                                "albumName": "Little Girl Blue",
                                "trackUri": "spotify:track:2",
                            },
                            "episode": None,
                            "addedDate": "2024-01-04",
                        },
                        {"track": None, "episode": {"episodeName": "Bread"}, "addedDate": "once"},
                    ],
                }
            ]
        }
    ),
    "Spotify Account Data/YourLibrary.json": as_json(
        {
            "tracks": [
                {
                    "artist": "Nina Simone",
                    "album": "Little Girl Blue",
                    "track": "Good Bait",
                    "uri": "spotify:track:2",
                }
            ],
            "albums": [],
        }
    ),
    "Spotify Account Data/StreamingHistory0.json": as_json(
        [
            {
                "endTime": "2023-07-05 23:30",
                "artistName": "Nina Simone",
                "trackName": "Good Bait",
                "msPlayed": 1000,
            },
            {
                "endTime": "2023-07-05 23:30",
                "artistName": "Nina Simone",
                "trackName": "Good Bait",
                "msPlayed": 1000,
            },
        ]
    ),
}


def _js(name: str, value: object) -> bytes:
    """A file of X: a program that is one assignment."""
    return f"window.YTD.{name}.part0 = ".encode() + as_json(value)


TWITTER: Files = {
    "data/tweets.js": _js(
        "tweets",
        [
            {
                "tweet": {
                    "id_str": "1591",
                    "created_at": "Wed Nov 09 10:00:00 +0000 2022",
                    "full_text": "@bo Which oven? #bread https://t.example/1",
                    "in_reply_to_status_id_str": "1590",
                    "in_reply_to_screen_name": "bo",
                    "favorite_count": "3",
                    "retweet_count": "1",
                    "lang": "en",
                    "entities": {
                        "user_mentions": [{"screen_name": "bo"}],
                        "hashtags": [{"text": "bread"}],
                        "urls": [{"expanded_url": "https://example.org/oven"}],
                    },
                }
            },
            {"tweet": {"id_str": "1592", "created_at": "once", "full_text": "Rye"}},
            {"other": {"id_str": "1593"}},
        ],
    ),
    "data/like.js": _js(
        "like",
        [
            {
                "like": {
                    "tweetId": "1500",
                    "fullText": "Stone ovens",
                    "expandedUrl": "https://x.example/1500",
                }
            }
        ],
    ),
    "data/direct-messages.js": _js(
        "direct_messages",
        [
            {
                "dmConversation": {
                    "conversationId": "7-8",
                    "messages": [
                        {
                            "messageCreate": {
                                "id": "91",
                                "senderId": "7",
                                "recipientId": "8",
                                "text": "The stone one.",
                                "createdAt": "2022-11-09T10:05:00.000Z",
                                "mediaUrls": ["https://x.example/m/1"],
                            }
                        },
                        {"joinConversation": {"initiatingUserId": "7"}},
                    ],
                }
            }
        ],
    ),
    "data/follower.js": _js(
        "follower", [{"follower": {"accountId": "7", "userLink": "https://x.example/7"}}]
    ),
    "data/following.js": _js(
        "following", [{"following": {"accountId": "8", "userLink": "https://x.example/8"}}]
    ),
}
_VIDEO = "https://tiktok.example/video/1/"
TIKTOK: Files = {
    "user_data_tiktok.json": as_json(
        {
            "Video": {
                "Videos": {
                    "VideoList": [{"Date": "2021-01-01 00:00:00", "Likes": "3", "Link": _VIDEO}]
                }
            },
            "Post": {
                "Posts": {
                    "VideoList": [{"Date": "2023-01-01 00:00:00", "Likes": "4", "Link": _VIDEO}]
                }
            },
            "Your Activity": {
                "Watch History": {
                    "VideoList": [
                        {"Date": "2024-04-20 23:17:46", "Link": _VIDEO},
                        {"Date": "once", "Link": _VIDEO},
                    ]
                },
                "Share History": {
                    "ShareHistoryList": [
                        {
                            "Date": "2024-04-21 08:00:00",
                            "SharedContent": "video",
                            "Link": _VIDEO,
                            "Method": "copy",
                        }
                    ]
                },
                "Searches": {
                    "SearchList": [{"Date": "2024-04-21 09:00:00", "SearchTerm": "ovens"}]
                },
            },
            "Likes and Favorites": {
                "Like List": {
                    "ItemFavoriteList": [{"date": "2024-04-21 10:00:00", "link": _VIDEO}]
                },
                "Favorite Videos": {
                    "FavoriteVideoList": [{"Date": "2024-04-21 11:00:00", "Link": _VIDEO}]
                },
            },
            "Comment": {
                "Comments": {
                    "CommentsList": [
                        {"date": "2024-04-21 12:00:00", "comment": "Warm", "url": _VIDEO},
                        {"date": "2024-04-21 12:00:01", "comment": "So warm", "url": "N/A"},
                    ]
                }
            },
            "Direct Message": {
                "Direct Messages": {
                    "ChatHistory": {
                        "Chat History with bo:": [
                            {"Date": "2024-04-21 13:00:00", "From": "bo", "Content": "Which one?"},
                            {"Date": "2024-04-21 13:00:05", "From": "ada", "Content": "Stone."},
                        ]
                    }
                }
            },
            "Profile": {
                "Follower List": {"FansList": [{"Date": "2024-01-01 00:00:00", "UserName": "bo"}]},
                "Following List": {
                    "Following": [{"Date": "2024-01-02 00:00:00", "UserName": "cy"}]
                },
            },
        }
    )
}
_SHOW = {"title": "Ovens", "year": 2019, "ids": {"trakt": 5, "imdb": "tt5"}}
_EPISODE = {"season": 1, "number": 2, "title": "Rye", "ids": {"trakt": 52, "imdb": "tt52"}}
_FILM = {"title": "Bread", "year": 1994, "ids": {"trakt": 6, "imdb": "tt6"}}
TRAKT: Files = {
    "watched/history-1.json": as_json(
        [
            {
                "id": 900,
                "watched_at": "2024-03-01T20:00:00.000Z",
                "action": "scrobble",
                "type": "episode",
                "episode": _EPISODE,
                "show": _SHOW,
            },
            {"id": 901, "watched_at": "once", "action": "watch", "type": "movie", "movie": _FILM},
        ]
    ),
    "ratings/ratings-all.json": as_json(
        [
            {
                "rated_at": "2024-03-02T20:00:00.000Z",
                "rating": 9,
                "type": "episode",
                "episode": _EPISODE,
                "show": _SHOW,
            }
        ]
    ),
    "lists/watchlist.json": as_json(
        [
            {
                "listed_at": "2024-03-03T20:00:00.000Z",
                "notes": "With Bo",
                "type": "episode",
                "episode": _EPISODE,
                "show": _SHOW,
            }
        ]
    ),
}
_MADE = "2024-01-10T12:00:00Z"
DAY_ONE: Files = {
    "Kitchen.json": as_json(
        {
            "metadata": {"version": "1.0"},
            "entries": [
                {
                    "uuid": "0A3BFC9847BD4173881DE43749F23B58",
                    "creationDate": "2024-01-10T12:22:12Z",
                    "modifiedDate": "2024-01-11T12:22:12Z",
                    "timeZone": "Europe/Rome",
                    "text": "# Rye\n\nIt rose. ![](dayone-moment://1)",
                    "richText": "{}",
                    "starred": True,
                    "tags": ["bread", "rye"],
                    "creationDevice": "Phone",
                    "location": {
                        "placeName": "Kitchen",
                        "localityName": "Rome",
                        "country": "Italy",
                        "latitude": 41.9,
                        "longitude": 12.5,
                    },
                    "weather": {"conditionsDescription": "Clear", "temperatureCelsius": 11.5},
                    "photos": [
                        {"md5": "ab12", "type": "jpeg", "date": _MADE, "cameraModel": "X"},
                        {"type": "jpeg"},
                    ],
                    "videos": [{"md5": "ab13", "type": "mov", "date": _MADE}],
                    "audios": [{"md5": "ab14", "date": _MADE, "transcription": "It rose."}],
                    "pdfAttachments": [{"md5": "ab15", "date": _MADE, "pdfName": "Rye.pdf"}],
                },
                {"uuid": "0B", "creationDate": "once"},
                {"text": "without an id"},
            ],
        }
    ),
    "photos/ab12.jpeg": b"\xff\xd8\xff\xe0 a loaf",
    "videos/ab13.mov": b"a film",
    "audios/ab14.m4a": b"a voice",
    "pdfs/ab15.pdf": b"%PDF-1.4",
    "photos/ff99.jpeg": b"\xff\xd8 of no entry",
}
RECIPE_SPECIMENS: dict[str, Files] = {
    "spotify": SPOTIFY,
    "twitter": TWITTER,
    "tiktok": TIKTOK,
    "trakt": TRAKT,
    "dayone": DAY_ONE,
} | TABLE_SPECIMENS
