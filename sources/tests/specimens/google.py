"""A small export: a Google archive, with something broken in it."""

from __future__ import annotations

from pdpp_kernel.source_item import Data
from sources.tests.specimens.files import Files, as_json

WATCHED: list[Data] = [
    {
        "header": "YouTube",
        "title": "Watched Bread in an hour",
        "titleUrl": "https://www.youtube.com/watch?v=abc",
        "subtitles": [{"name": "Bakers", "url": "https://www.youtube.com/channel/b"}],
        "time": "2024-03-01T10:00:00.123Z",
        "products": ["YouTube"],
    },
    {
        "header": "YouTube",
        "title": "Searched for rye bread",
        "titleUrl": "https://www.youtube.com/results?search_query=rye+bread",
        "time": "2024-03-01T09:59:00Z",
        "products": ["YouTube"],
    },
    {"header": "YouTube", "title": "Watched a video that has been removed", "time": "soon"},
    {"header": "Search", "title": "Visited a page", "time": "2024-03-01T08:00:00Z"},
]


ACTIVITY_PAGE = """<html><head><title>Activity</title></head><body><div>
<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid">
<div class="header-cell mdl-cell"><p class="mdl-typography--title">YouTube<br></p></div>
<div class="content-cell mdl-cell mdl-typography--body-1">Watched <a
href="https://www.youtube.com/watch?v=xyz">Sourdough &amp; you</a><br><a
href="https://www.youtube.com/channel/c">Crumbs</a><br>Mar 2, 2024, 1:05:09 PM CET<br></div>
</div></div><div class="outer-cell mdl-cell"><div class="mdl-grid">
<div class="header-cell"><p class="mdl-typography--title">Search</p></div>
<div class="content-cell mdl-typography--body-1">Searched for <a
href="https://www.google.com/search?q=flour">flour</a><br>
3 März 2024, 12:00:00 MEZ</div></div></div>
<div class="outer-cell"><div class="content-cell">Nothing with a date</div></div>
</div></body></html>""".encode()


CHROME: Data = {
    "Browser History": [
        {
            "page_transition": "LINK",
            "title": "Bread",
            "url": "https://example.org/bread",
            "time_usec": 1709287200000000,
        },
        {"page_transition": "LINK", "title": "No address"},
    ]
}


RECORDS: Data = {
    "locations": [
        {"latitudeE7": 457000000, "longitudeE7": 91000000, "timestamp": "2022-01-01T00:00:00Z"},
        {"latitudeE7": 457000001, "longitudeE7": 91000000, "timestampMs": "1640995260000"},
        {"latitudeE7": 4570000000, "longitudeE7": 91000000, "timestampMs": "1640995260000"},
    ]
}


SEMANTIC: Data = {
    "timelineObjects": [
        {
            "placeVisit": {
                "location": {"latitudeE7": 1, "longitudeE7": 2, "name": "Mill", "placeId": "p1"},
                "duration": {
                    "startTimestamp": "2022-01-01T10:00:00Z",
                    "endTimestamp": "2022-01-01T11:30:00Z",
                },
            }
        },
        {"somethingNew": {}},
        {
            "placeVisit": {
                "location": {"placeId": "p2", "semanticType": "TYPE_HOME"},
                "centerLatE7": 457000000,
                "centerLngE7": 91000000,
                "duration": {
                    "startTimestampMs": "1641060000000",
                    "endTimestampMs": "1641063600000",
                },
                "childVisits": [
                    {
                        "location": {"latitudeE7": 3, "longitudeE7": 4, "name": "Cellar"},
                        "duration": {
                            "startTimestampMs": "1641060600000",
                            "endTimestampMs": "1641061200000",
                        },
                    }
                ],
            }
        },
        {
            "activitySegment": {
                "startLocation": {"latitudeE7": 457000000, "longitudeE7": 91000000},
                "endLocation": {"latitudeE7": 458000000, "longitudeE7": 92000000},
                "duration": {
                    "startTimestamp": "2022-01-02T10:00:00Z",
                    "endTimestamp": "2022-01-02T10:30:00Z",
                },
                "distance": 900,
                "activityType": "WALKING",
                "waypointPath": {"waypoints": [{"latE7": 457000000, "lngE7": 91000000}]},
                "simplifiedRawPath": {
                    "points": [
                        {
                            "latE7": 457500000,
                            "lngE7": 91500000,
                            "accuracyMeters": 12,
                            "timestampMs": "1641118200000",
                        },
                        {
                            "latE7": 457600000,
                            "lngE7": 91600000,
                            "timestamp": "2022-01-02T10:20:00Z",
                        },
                        {"latE7": 457700000},
                    ]
                },
            }
        },
    ]
}


TIMELINE: Data = {
    "semanticSegments": [
        {
            "startTime": "2024-05-01T10:00:00.000+02:00",
            "endTime": "2024-05-01T10:20:00.000+02:00",
            "activity": {
                "start": {"latLng": "45.7°, 9.1°"},
                "end": {"latLng": "45.8°, 9.2°"},
                "distanceMeters": 1234.5,
                "topCandidate": {"type": "IN_TRAIN"},
            },
        },
        {
            "startTime": "2024-05-01T12:00:00.000+02:00",
            "endTime": "2024-05-01T14:00:00.000+02:00",
            "timelinePath": [{"point": "45.8°, 9.2°", "time": "2024-05-01T12:03:00Z"}],
        },
    ],
    "rawSignals": [
        {"position": {"LatLng": "45.9°, 9.3°", "timestamp": "2024-05-01T13:00:00Z"}},
        {"wifiScan": {"deliveryTime": "2024-05-01T13:00:01Z"}},
    ],
    "userLocationProfile": {
        "frequentPlaces": [
            {"placeId": "p3", "placeLocation": "45.7°, 9.1°", "label": "HOME"},
            {"placeId": "p4", "placeLocation": "45.8°, 9.2°", "label": "WORK"},
            {"label": "WORK"},
        ]
    },
}


IPHONE: list[Data] = [
    {
        "startTime": "2024-06-01T10:00:00Z",
        "endTime": "2024-06-01T10:20:00Z",
        "visit": {"topCandidate": {"placeLocation": "geo:45.7,9.1", "semanticType": "Home"}},
    },
    {
        "startTime": "2024-06-01T12:00:00Z",
        "endTime": "2024-06-01T14:00:00Z",
        "timelinePath": [{"point": "geo:45.8,9.2", "durationMinutesOffsetFromStartTime": "30"}],
    },
]


NOTE: Data = {
    "attachments": [
        {"filePath": "18a.jpeg", "mimetype": "image/jpeg"},
        {"filePath": "gone.3gp", "mimetype": "audio/3gpp"},
    ],
    "color": "YELLOW",
    "isTrashed": False,
    "isPinned": True,
    "isArchived": False,
    "annotations": [
        {"source": "WEBLINK", "title": "Rye", "url": "https://example.org/rye"},
    ],
    "textContent": "Feed the starter twice",
    "title": "Starter",
    "userEditedTimestampUsec": 1709287200000000,
    "createdTimestampUsec": 1709200800000000,
    "labels": [{"name": "Bakery"}],
    "sharees": [{"isOwner": True, "type": "WRITER", "email": "ada@example.org"}],
}


LIST: Data = {
    "color": "DEFAULT",
    "isTrashed": True,
    "isPinned": False,
    "isArchived": True,
    "listContent": [
        {"text": "Flour", "isChecked": True},
        {"text": "Salt", "isChecked": False},
    ],
    "title": "",
    "userEditedTimestampUsec": 1709287300000000,
}


TASKS: Data = {
    "kind": "tasks#taskLists",
    "items": [
        {
            "kind": "tasks#tasks",
            "id": "l1",
            "title": "Kitchen",
            "updated": "2024-03-01T10:00:00.000Z",
            "items": [
                {
                    "id": "t1",
                    "title": "Order flour",
                    "notes": "Ten kilos",
                    "status": "needsAction",
                    "updated": "2024-03-01T10:00:00.000Z",
                    "due": "2024-03-05T00:00:00.000Z",
                    "scheduled_time": [{"current": True, "start": "2024-03-05T07:00:00Z"}],
                    "links": [{"type": "email", "link": "https://mail.google.com/mail/#all/1"}],
                },
                {"id": "t2", "title": "Rye", "parent": "t1", "status": "completed"},
                {"title": "Without id"},
            ],
        }
    ],
}


def sidecar(title: str, taken: str, **further: object) -> Data:
    """What Google knows of a picture."""
    return {
        "title": title,
        "description": "",
        "imageViews": "3",
        "creationTime": {"timestamp": "1709300000", "formatted": "Mar 1, 2024"},
        "photoTakenTime": {"timestamp": taken, "formatted": "Mar 1, 2024"},
        "geoData": {"latitude": 0.0, "longitude": 0.0, "altitude": 0.0},
        "url": f"https://photos.google.com/photo/{taken}",
        **further,
    }


LOAF = sidecar(
    "loaf.jpg",
    "1709290000",
    description="The first loaf",
    geoDataExif={"latitude": 45.7, "longitude": 9.1, "altitude": 120.5},
    people=[{"name": "Ada"}, {"name": "Ann Byron"}],
    googlePhotosOrigin={"mobileUpload": {"deviceType": "ANDROID_PHONE"}},
    favorited=True,
    sharedAlbumComments=[{"text": "Lovely", "contentOwnerName": "Ann"}],
)


ALBUM: Data = {
    "title": "Bread",
    "description": "All of it",
    "access": "protected",
    "date": {"timestamp": "1709200000", "formatted": "Feb 29, 2024"},
    "enrichments": [{"narrativeEnrichment": {"text": "At the mill"}}],
}


SUBSCRIPTIONS = (
    "Kanal-ID,Kanal-URL,Kanaltitel\n"
    f"UC{'a' * 22},http://www.youtube.com/channel/UC{'a' * 22},Bakers\n"
    "torn,row,here\n\n"
).encode()


COMMENTS = (
    "Channel ID,Comment Create Timestamp,Price,Comment ID,Parent Comment ID,Video ID,Comment Text\n"
    f"UC{'a' * 22},2023-04-14T07:39:35.956042+00:00,0,Ug1,,abcdefghijk,"
    '"{""text"":""More ""},{""text"":""salt!""}"\n'
).encode()


PLAYLISTS = (
    b"Playlist ID,Add new videos to top,Playlist Description (Original),Language,"
    b"Playlist Title (Original),Language,Playlist Create Timestamp,Playlist Update Timestamp,"
    b"Playlist Video Order,Playlist Visibility\n"
    b"PLx1,False,What rises,,Doughs,,2022-06-06T15:28:31+00:00,2023-06-06T15:28:31+00:00,"
    b"Manual,Private\n"
)

FILES: Files = {
    "Takeout/Keep/Starter.json": as_json(NOTE),
    "Takeout/Keep/Starter.html": b"<html><title>Starter</title></html>",
    "Takeout/Keep/18a.jpg": b"\xff\xd8",
    "Takeout/Notizen/2024-03-01T11_01_40.json": as_json(LIST),
    "Takeout/Aufgaben/Aufgaben.json": as_json(TASKS),
    "Takeout/Google Fotos/Fotos von 2024/loaf.jpg.supplemental-metada.json": as_json(LOAF),
    "Takeout/Google Fotos/Fotos von 2024/loaf.jpg": b"\xff\xd8loaf",
    "Takeout/Google Fotos/Fotos von 2024/loaf.jpg(1).json": as_json(
        sidecar("loaf.jpg", "1709290001")
    ),
    "Takeout/Google Fotos/Bread/loaf.jpg.json": as_json(LOAF),
    "Takeout/Google Fotos/Bread/loaf.jpg": b"\xff\xd8loaf",
    "Takeout/Google Fotos/Bread/Metadaten.json": as_json(ALBUM),
    "Takeout/YouTube/Abos/Abos.csv": SUBSCRIPTIONS,
    "Takeout/YouTube/comments/comments.csv": COMMENTS,
    "Takeout/YouTube/playlists/playlists.csv": PLAYLISTS,
    "Takeout/YouTube/playlists/Doughs-Videos.csv": (
        b"Video-ID,Zeitstempel\nabcdefghijk,2022-06-06T15:28:31+00:00\n"
    ),
    "Takeout/YouTube/history/watch-history.json": as_json(WATCHED),
    "Takeout/My Activity/YouTube/MyActivity.html": ACTIVITY_PAGE,
    "Takeout/Chrome/History.json": as_json(CHROME),
    "Takeout/Location/Records.json": as_json(RECORDS),
    "Takeout/Location/2022/2022_JANUARY.json": as_json(SEMANTIC),
    "Timeline.json": as_json(TIMELINE),
    "location-history.json": as_json(IPHONE),
    "Takeout/archive_browser.html": b"<html><title>Your archive</title></html>",
}
