"""A small export: a Google archive, with something broken in it."""

from __future__ import annotations

from personal_server.domain.source_item import Data
from tests.sources.specimens.files import Files, as_json

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

FILES: Files = {
    "Takeout/YouTube/history/watch-history.json": as_json(WATCHED),
    "Takeout/My Activity/YouTube/MyActivity.html": ACTIVITY_PAGE,
    "Takeout/Chrome/History.json": as_json(CHROME),
    "Takeout/Location/Records.json": as_json(RECORDS),
    "Takeout/Location/2022/2022_JANUARY.json": as_json(SEMANTIC),
    "Timeline.json": as_json(TIMELINE),
    "location-history.json": as_json(IPHONE),
    "Takeout/archive_browser.html": b"<html><title>Your archive</title></html>",
}
