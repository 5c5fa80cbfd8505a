"""Small exports of every kind, shaped as the platforms' own descriptions say.

They are written by us. Where real files that others made can be had, `test_registry` reads those.
"""

from __future__ import annotations

import json
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from personal_server.sources.item import Data

Files = dict[str, bytes]
WRITTEN_AT = datetime(2024, 2, 1, 12, tzinfo=UTC)

MAIL = b"""\
From 1790512345678@xxx Mon Mar 14 06:30:00 +0000 2022
X-GM-THRID: 1790512345678
X-Gmail-Labels: =?UTF-8?Q?Inbox,Wichtig,"Reisen,_Italien",Ge=C3=B6ffnet?=
Delivered-To: ada@example.org
Message-ID: <a1@example.org>
Date: Mon, 14 Mar 2022 07:30:00 +0100
From: =?utf-8?q?J=C3=BCrgen?= <Juergen@Example.ORG>
To: Ada <ada@example.org>, "Byron, Ann" <ann@example.org>
Subject: =?utf-8?b?w4RwZmVsIHVu?= =?utf-8?b?ZCBCaXJuZW4=?=
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="m"

--m
Content-Type: multipart/alternative; boundary="a"

--a
Content-Type: text/html; charset=utf-8

<html><head><style>p{color:red}</style></head>
<body><p>Hello <b>Ada</b>,</p><p>see below.</p></body></html>
--a--
--m
Content-Type: application/pdf; name="../../etc/bill.pdf"
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename="../../etc/bill.pdf"

JVBERi0xLjQK
--m--

From - Tue Mar 15 08:00:00 2022
Message-ID: <a2@example.org>
In-Reply-To: <a1@example.org>
References: <a1@example.org>
Date: not a date at all
From: ada@example.org
To: undisclosed-recipients:;
Subject: caf\xe9 =?x-unheard-of?q?na=EFve?=
Content-Type: text/plain; charset=x-unheard-of

Na\xefve text, 8 bit.
>From the beginning.

"""

BANK = b"""\
OFXHEADER:100
DATA:OFXSGML
VERSION:102
ENCODING:USASCII
CHARSET:1252

<OFX><SIGNONMSGSRSV1><SONRS><STATUS><CODE>0<SEVERITY>INFO</STATUS>
<FI><ORG>Bank of Nowhere<FID>1</FI></SONRS></SIGNONMSGSRSV1>
<BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>EUR
<BANKACCTFROM><BANKID>10020030<ACCTID>DE0012345678<ACCTTYPE>CHECKING</BANKACCTFROM>
<BANKTRANLIST><DTSTART>20240101<DTEND>20240131
<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20240105230000[-5:EST]<TRNAMT>-1.234,56
<FITID>7<NAME>B\xe4cker &amp; Co<MEMO></STMTTRN>
<STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20240131<TRNAMT>2500.00<FITID>8<NAME>Wages<MEMO>January</STMTTRN>
<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20240131<TRNAMT>-3.10<FITID>9<NAME>Coffee<MEMO>one</STMTTRN>
<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20240131<TRNAMT>-3.10<FITID>9<NAME>Coffee<MEMO>two</STMTTRN>
</BANKTRANLIST><LEDGERBAL><BALAMT>1262.24<DTASOF>20240131</LEDGERBAL></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>
"""

BROKER = b"""\
OFXHEADER:100

<OFX><INVSTMTMSGSRSV1><INVSTMTTRNRS><INVSTMTRS><CURDEF>USD
<INVACCTFROM><BROKERID>broker.example<ACCTID>998877</INVACCTFROM>
<INVTRANLIST><BUYSTOCK><INVBUY><INVTRAN><FITID>1<DTTRADE>20240110<MEMO>bought</INVTRAN>
<SECID><UNIQUEID>037833100<UNIQUEIDTYPE>CUSIP</SECID><UNITS>2<UNITPRICE>10.50
<TOTAL>-21.00</INVBUY><BUYTYPE>BUY</BUYSTOCK></INVTRANLIST>
<INVPOSLIST><POSSTOCK><INVPOS><SECID><UNIQUEID>037833100<UNIQUEIDTYPE>CUSIP</SECID>
<UNITS>2<UNITPRICE>11<MKTVAL>22.00<DTPRICEASOF>20240131</INVPOS></POSSTOCK></INVPOSLIST>
</INVSTMTRS></INVSTMTTRNRS></INVSTMTMSGSRSV1>
<SECLISTMSGSRSV1><SECLIST><STOCKINFO><SECINFO><SECID><UNIQUEID>037833100<UNIQUEIDTYPE>CUSIP
</SECID><SECNAME>Fruit Co<TICKER>FRT</SECINFO></STOCKINFO></SECLIST></SECLISTMSGSRSV1></OFX>
"""

CHATGPT: list[Data] = [
    {
        "title": "Sourdough",
        "create_time": 1700000000.5,
        "update_time": 1700000100.25,
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["q"]},
            "q": {
                "id": "q",
                "parent": "root",
                "children": ["a1", "a2"],
                "message": {
                    "id": "q",
                    "author": {"role": "user", "name": None, "metadata": {}},
                    "create_time": 1700000000.5,
                    "content": {
                        "content_type": "multimodal_text",
                        "parts": [
                            {
                                "content_type": "image_asset_pointer",
                                "asset_pointer": "file-service://file-AbC123",
                                "size_bytes": 4,
                            },
                            "Why is my loaf flat?",
                        ],
                    },
                    "metadata": {
                        "attachments": [
                            {"id": "file-AbC123", "name": "loaf.png", "mimeType": "image/png"},
                            {"id": "file-Gone99", "name": "gone.pdf", "size": 12},
                        ]
                    },
                },
            },
            "a1": {
                "id": "a1",
                "parent": "q",
                "children": [],
                "message": {
                    "id": "a1",
                    "author": {"role": "assistant"},
                    "create_time": None,
                    "content": {"content_type": "text", "parts": ["Replaced answer"]},
                },
            },
            "a2": {
                "id": "a2",
                "parent": "q",
                "children": [],
                "message": {
                    "id": "a2",
                    "author": {"role": "assistant"},
                    "create_time": 1700000050,
                    "content": {"content_type": "text", "parts": ["Too little \ud83d heat."]},
                    "metadata": {"model_slug": "gpt-4o"},
                },
            },
        },
        "current_node": "a2",
        "conversation_id": "c-1",
    },
    {"title": "Without id", "mapping": {}, "current_node": None},
    {"title": "Empty", "create_time": 1700000200, "mapping": {}, "id": "c-2"},
]

CLAUDE: list[Data] = [
    {
        "uuid": "c-1",
        "name": "Garden",
        "created_at": "2024-05-01T10:00:00.123456Z",
        "updated_at": "2024-05-01T10:05:00Z",
        "chat_messages": [
            {
                "uuid": "m-1",
                "sender": "human",
                "text": "When to sow beans?",
                "content": [{"type": "text", "text": "When to sow beans?"}],
                "created_at": "2024-05-01T10:00:01Z",
                "attachments": [
                    {"file_name": "bed.txt", "file_size": 9, "extracted_content": "South bed"}
                ],
                "files": [{"file_name": "photo.jpg"}],
            },
            {
                "uuid": "m-2",
                "sender": "assistant",
                "text": "",
                "content": [
                    {"type": "thinking", "thinking": "Frost ends in May."},
                    {"type": "tool_use", "name": "web_search", "input": {}},
                    {"type": "something_new", "payload": 1},
                    {"type": "text", "text": "After the last frost."},
                ],
                "created_at": "2024-05-01T10:00:09Z",
                "attachments": [],
                "files": [],
            },
        ],
    }
]

CLAUDE_PROJECT: Data = {
    "uuid": "p-1",
    "name": "Allotment",
    "description": "Plans",
    "prompt_template": "Be brief",
    "created_at": "2024-04-01T00:00:00Z",
    "docs": [{"uuid": "d-1", "filename": "plan.md", "content": "# Plan"}],
}

CLAUDE_MEMORIES: list[Data] = [
    {"conversations_memory": "Grows beans.", "project_memories": {"p-1": "South bed."}}
]


SLACK_USERS: list[Data] = [
    {"id": "U1", "name": "ada", "profile": {"display_name": "Ada", "email": "ada@example.org"}},
    {"id": "U2", "name": "byron", "deleted": True, "profile": {"real_name": "Ann Byron"}},
]

SLACK_DAY: list[Data] = [
    {
        "type": "message",
        "user": "U1",
        "ts": "1700000000.000100",
        "text": "Hi <@U2>, see <https://example.org|the plan> &amp; <#C1|general>",
        "reactions": [{"name": "tada", "users": ["U2"], "count": 1}],
        "files": [
            {
                "id": "F1",
                "name": "plan.pdf",
                "mimetype": "application/pdf",
                "size": 9,
                "url_private": "https://files.example.org/F1/plan.pdf?t=secret",
            }
        ],
        "reply_count": 1,
        "thread_ts": "1700000000.000100",
    },
    {
        "type": "message",
        "subtype": "thread_broadcast",
        "user": "U2",
        "ts": "1700000060.000200",
        "thread_ts": "1700000000.000100",
        "text": "Fine",
        "edited": {"user": "U2", "ts": "1700000090.000000"},
    },
    {"type": "something_new", "payload": [1]},
    {"type": "message", "subtype": "bot_message", "username": "robot", "ts": "1700000061.000000"},
]

WHATSAPP = """\
\u200e[13/01/24, 9:05:00\u202fPM] Ada & Ann: \u200eMessages and calls are end-to-end encrypted.
[13/01/24, 9:05:10\u202fPM] Ada: Good evening
on two lines: yes
[13/01/24, 9:06:00\u202fPM] ~\u202fAnn Byron: \u200e<attached: 00000003-PHOTO.jpg>
[13/01/24, 9:06:00\u202fPM] Ada: ok
[13/01/24, 9:06:00\u202fPM] Ada: ok
[2/02/24, 12:00:00\u202fAM] Ada: <Media omitted>
[31/02/24, 12:00:00\u202fAM] Ada: on no day at all
""".encode()


CALENDAR = """\
BEGIN:VCALENDAR\r
X-WR-CALNAME:Home\r
X-WR-TIMEZONE:Europe/Rome\r
BEGIN:VTIMEZONE\r
TZID:/vendor/Custom\r
BEGIN:STANDARD\r
DTSTART:16010101T000000\r
TZOFFSETFROM:+0500\r
TZOFFSETTO:+0500\r
END:STANDARD\r
END:VTIMEZONE\r
BEGIN:VEVENT\r
UID:1@example.org\r
DTSTART;TZID=/vendor/Custom:20240105T100000\r
DURATION:PT90M\r
SUMMARY:Caffè\\, and a very long title that goes on and on until the line has\r
  to be folded\r
ATTENDEE;CN="Byron, Ann":mailto:ann@example.org\r
CATEGORIES:work,coffee\r
RRULE:FREQ=WEEKLY;COUNT=4\r
BEGIN:VALARM\r
TRIGGER:-PT5M\r
END:VALARM\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:1@example.org\r
RECURRENCE-ID;TZID=/vendor/Custom:20240112T100000\r
DTSTART:20240112T110000\r
SUMMARY:Floating, so Rome\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:2@example.org\r
DTSTART;VALUE=DATE:20240201\r
SUMMARY:All day\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:3@example.org\r
SUMMARY:Never begins\r
END:VEVENT\r
BEGIN:VTODO\r
UID:4@example.org\r
SUMMARY:Sow beans\r
DUE:20240501T080000Z\r
STATUS:COMPLETED\r
END:VTODO\r
BEGIN:VJOURNAL\r
UID:5@example.org\r
END:VJOURNAL\r
END:VCALENDAR\r
""".encode()

CONTACTS = b"""\
BEGIN:VCARD
VERSION:2.1
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=BCrgen;;;
TEL;CELL:+49 30 1234
PHOTO;ENCODING=BASE64;JPEG:/9j/
 4AAQ

NOTE;ENCODING=QUOTED-PRINTABLE:first line=0D=0A=
second line
END:VCARD
BEGIN:VCARD
VERSION:3.0
FN:Ada Lovelace
N:Lovelace;Ada;;;
item1.EMAIL;TYPE=INTERNET:ada@example.org
item1.X-ABLabel:Mine
ORG:Analytical Engines\\, Ltd;Notes
ADR;TYPE=home:;;12 St James's Square;London;;SW1Y;England
BDAY:1815-12-10
CATEGORIES:friends,mathematics
UID:urn:uuid:1
END:VCARD
BEGIN:VCARD
VERSION:4.0
END:VCARD
"""


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
    "rawSignals": [{"position": {"LatLng": "45.9°, 9.3°", "timestamp": "2024-05-01T13:00:00Z"}}],
    "userLocationProfile": {},
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


NOTE = b"""\
---
title: Sourdough
tags: [bread, baking]
created: 2024-01-02
---
# Not the title

Feed it twice, see [[Rye starter|rye]] and ![loaf](images/loaf.png). #kitchen/oven
`#not-a-tag`
"""

TABLE = b"""\
id,name,price,bought,kind,paid\r
1,"Flour, white",1.20,2024-01-05,food,true\r
2,Salt,0.80,2024-01-06,food,false\r
3,"two
lines",12,2024-01-07,tool,true\r
4,odd,1,2024-01-08,tool,true,too many\r
5,,,2024-01-09,,\r
"""


def as_json(value: object) -> bytes:
    """JSON as platforms write it, with escapes beyond ASCII."""
    return json.dumps(value).encode()


SPECIMENS: dict[str, Files] = {
    "mail": {"Takeout/Mail/All mail.mbox": MAIL},
    "bank": {"statement.ofx": BANK, "broker.qfx": BROKER},
    "chatgpt": {
        "conversations.json": as_json(CHATGPT),
        "file-AbC123-loaf.png": b"\x89PNG",
        "chat.html": b"<html></html>",
        "user.json": b'{"id": "user-1"}',
    },
    "claude": {
        "conversations.json": as_json(CLAUDE),
        "projects/p-1.json": as_json(CLAUDE_PROJECT),
        "memories.json": as_json(CLAUDE_MEMORIES),
        "users.json": b'[{"uuid": "u-1", "full_name": "Ada"}]',
    },
    "slack": {
        "Workspace/users.json": as_json(SLACK_USERS),
        "Workspace/channels.json": as_json([{"id": "C1", "name": "general", "members": ["U1"]}]),
        "Workspace/dms.json": as_json([{"id": "D1", "created": 1690000000, "members": ["U1"]}]),
        "Workspace/general/2023-11-14.json": as_json(SLACK_DAY),
        "Workspace/general/2023-11-15.json": b"[]",
        "Workspace/D1/2023-11-14.json": as_json(SLACK_DAY[1:2]),
    },
    "calendar": {"Calendar/Home.ics": CALENDAR},
    "contacts": {"Contacts/All.vcf": CONTACTS},
    "google": {
        "Takeout/YouTube/history/watch-history.json": as_json(WATCHED),
        "Takeout/My Activity/YouTube/MyActivity.html": ACTIVITY_PAGE,
        "Takeout/Chrome/History.json": as_json(CHROME),
        "Takeout/Location/Records.json": as_json(RECORDS),
        "Takeout/Location/2022/2022_JANUARY.json": as_json(SEMANTIC),
        "Timeline.json": as_json(TIMELINE),
        "location-history.json": as_json(IPHONE),
        "Takeout/archive_browser.html": b"<html><title>Your archive</title></html>",
    },
    "notes": {
        "Vault/Bread/Sourdough.md": NOTE,
        "Vault/Bread/Rye starter.md": b"No front matter\n---\nbut a rule",
        "Vault/Bread/Broken.md": b"---\na: [1\n---\n# Broken front matter",
        "Vault/Bread/images/loaf.png": b"\x89PNG",
    },
    "table": {"shopping.csv": TABLE},
    "whatsapp": {
        "WhatsApp Chat - Ada & Ann/_chat.txt": WHATSAPP,
        "WhatsApp Chat - Ada & Ann/00000003-PHOTO.jpg": b"\xff\xd8",
    },
}


def as_folder(files: Files, folder: Path) -> Path:
    """The files under a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (WRITTEN_AT.timestamp(), WRITTEN_AT.timestamp()))
    return folder


def as_zip(files: Files, path: Path) -> Path:
    """The files in an archive, dated alike so that the archive is always the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, WRITTEN_AT.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path
