"""A small export: what three browsers keep, with something broken in it.

The tables are those of Chrome 89, Firefox 120 and Safari 14, as their own files show them.
"""

from __future__ import annotations

import plistlib
from datetime import datetime

from pdpp_kernel.source_item import Data
from sources.tests.specimens.databases import Row, database
from sources.tests.specimens.files import Files, as_json

CHROME = """
CREATE TABLE urls (id INTEGER PRIMARY KEY AUTOINCREMENT, url LONGVARCHAR, title LONGVARCHAR,
  visit_count INTEGER DEFAULT 0 NOT NULL, typed_count INTEGER DEFAULT 0 NOT NULL,
  last_visit_time INTEGER NOT NULL, hidden INTEGER DEFAULT 0 NOT NULL);
CREATE TABLE visits (id INTEGER PRIMARY KEY, url INTEGER NOT NULL, visit_time INTEGER NOT NULL,
  from_visit INTEGER, transition INTEGER DEFAULT 0 NOT NULL, segment_id INTEGER,
  visit_duration INTEGER DEFAULT 0 NOT NULL);
CREATE TABLE keyword_search_terms (keyword_id INTEGER NOT NULL, url_id INTEGER NOT NULL,
  term LONGVARCHAR NOT NULL, normalized_term LONGVARCHAR NOT NULL);
CREATE TABLE downloads (id INTEGER PRIMARY KEY, target_path LONGVARCHAR NOT NULL,
  start_time INTEGER NOT NULL, total_bytes INTEGER NOT NULL, state INTEGER NOT NULL,
  end_time INTEGER NOT NULL, referrer VARCHAR NOT NULL, tab_url VARCHAR NOT NULL,
  mime_type VARCHAR(255) NOT NULL);
"""
FIREFOX = """
CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url LONGVARCHAR, title LONGVARCHAR, guid TEXT);
CREATE TABLE moz_historyvisits (id INTEGER PRIMARY KEY, from_visit INTEGER, place_id INTEGER,
  visit_date INTEGER, visit_type INTEGER, session INTEGER);
CREATE TABLE moz_bookmarks (id INTEGER PRIMARY KEY, type INTEGER, fk INTEGER DEFAULT NULL,
  parent INTEGER, position INTEGER, title LONGVARCHAR, dateAdded INTEGER, lastModified INTEGER,
  guid TEXT);
"""
SAFARI = """
CREATE TABLE history_items (id INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL UNIQUE,
  visit_count INTEGER NOT NULL);
CREATE TABLE history_visits (id INTEGER PRIMARY KEY AUTOINCREMENT, history_item INTEGER NOT NULL,
  visit_time REAL NOT NULL, title TEXT NULL, redirect_source INTEGER NULL UNIQUE);
"""
RECIPE, LOAF = (
    "https://bread.example.org/rye?from=search",
    "https://www.example.com/search?q=rye+loaf",
)
MARCH = 13_354_012_800_000_000  # 2024-03-04T08:00:00Z, from 1601

CHROME_ROWS: list[tuple[str, list[Row]]] = [
    ("urls", [(1, LOAF, "rye loaf - Search", 1, 0, MARCH, 0), (2, RECIPE, "Rye", 2, 0, MARCH, 0)]),
    (
        "visits",
        [
            (1, 1, MARCH, 0, 805306369, 0, 4_500_000),
            (2, 2, MARCH + 5_000_000, 1, 805306368, 0, 0),
            (3, 99, MARCH + 6_000_000, 1, 0, 0, 0),
            (4, 2, MARCH + 90_000_000, 0, 805306376, 0, 60_000_000),
        ],
    ),
    ("keyword_search_terms", [(2, 1, "rye loaf", "rye loaf")]),
    (
        "downloads",
        [(1, r"C:\Users\ada\rye.pdf", MARCH, 2048, 1, MARCH + 9, "", RECIPE, "application/pdf")],
    ),
]
APRIL = 1_712_000_000_000_000
FIREFOX_ROWS: list[tuple[str, list[Row]]] = [
    (
        "moz_places",
        [(1, "https://mill.example.org/", "The mill", "a"), (2, "place:sort=8", None, "b")],
    ),
    ("moz_historyvisits", [(1, 0, 1, APRIL, 1, 0), (2, 1, 1, APRIL + 7_000_000, 9, 0)]),
    (
        "moz_bookmarks",
        [
            (1, 2, None, 0, 0, "", APRIL, APRIL, "root________"),
            (2, 2, None, 1, 0, "menu", APRIL, APRIL, "menu________"),
            (3, 2, None, 1, 1, "tags", APRIL, APRIL, "tags________"),
            (4, 2, None, 2, 0, "Baking", APRIL, APRIL, "baking"),
            (5, 2, None, 3, 0, "flour", APRIL, APRIL, "flour"),
            (6, 1, 1, 4, 0, "Mill", APRIL, APRIL, "mill"),
            (7, 1, 1, 5, 0, None, APRIL, APRIL, "tagged"),
            (8, 3, None, 2, 1, "", APRIL, APRIL, "line"),
        ],
    ),
]
SAFARI_ROWS: list[tuple[str, list[Row]]] = [
    ("history_items", [(1, "https://oven.example.org/", 2)]),
    ("history_visits", [(1, 1, 731_000_000.25, "", None), (2, 1, 731_000_001.5, "Ovens", 1)]),
]

BOOKMARKS: Data = {
    "checksum": "0",
    "roots": {
        "bookmark_bar": {
            "name": "Bookmarks bar",
            "type": "folder",
            "children": [
                {
                    "name": "Starters",
                    "type": "folder",
                    "children": [
                        {
                            "name": "Feeding",
                            "type": "url",
                            "url": "https://starter.example.org/",
                            "date_added": str(MARCH),
                        },
                        {"name": "nowhere", "type": "url"},
                    ],
                }
            ],
        }
    },
    "version": 1,
}
READING_LIST: Data = {
    "WebBookmarkType": "WebBookmarkTypeList",
    "Title": "",
    "Children": [
        {
            "WebBookmarkType": "WebBookmarkTypeList",
            "Title": "com.apple.ReadingList",
            "Children": [
                {
                    "WebBookmarkType": "WebBookmarkTypeLeaf",
                    "URLString": "https://crust.example.org/",
                    "URIDictionary": {"title": "Crusts"},
                    "ReadingList": {"DateAdded": datetime(2024, 5, 1, 8)},  # noqa: DTZ001 (UTC)
                }
            ],
        }
    ],
}
PAGE = b"""<!DOCTYPE NETSCAPE-Bookmark-file-1>
<!-- This is an automatically generated file. -->
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE>
<H1>Bookmarks</H1>
<DL><p>
    <DT><H3 ADD_DATE="1700000000">Tools &amp; tins</H3>
    <DL><p>
        <DT><A HREF="https://tins.example.org/?a=1&amp;b=2" ADD_DATE="1700000000">Tins &amp;
  more</A>
        <DT><A ADD_DATE="1700000001">no address</A>
    </DL><p>
    <DT><A HREF="https://scales.example.org/">Scales</A>
</DL><p>
"""

FILES: Files = {
    "Chrome/History": database(CHROME, CHROME_ROWS),
    "Chrome/Bookmarks": as_json(BOOKMARKS),
    "Firefox/places.sqlite": database(FIREFOX, FIREFOX_ROWS),
    "Safari/History.db": database(SAFARI, SAFARI_ROWS),
    "Safari/Bookmarks.plist": plistlib.dumps(READING_LIST, fmt=plistlib.FMT_BINARY),
    "bookmarks.html": PAGE,
}
