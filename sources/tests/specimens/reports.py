"""Inputs made by hand after public reports of tools that read the same files, by their names.

Such reports: docs/source-defects.md, from *Reports of other tools, tried here* on.
"""

from __future__ import annotations

from pdpp_kernel.source_item import Data
from sources.tests.specimens.files import Files, as_json
from sources.tests.specimens.telegram import reacted


def _mail(subject: str, body: str, sender: str = "From: Ann <ann@example.org>") -> bytes:
    head = f"{sender}\nTo: bo@example.net\nDate: Mon, 4 Jul 2022 10:00:00 +0200\n"
    return f"{head}Message-ID: <{subject}@example.org>\nSubject: {subject}\n\n{body}\n".encode()


def _said(text: str, **others: object) -> Data:
    """A message of an export of Meta's, whose letters are bytes of UTF-8, each a letter."""
    return {
        "sender_name": "Zo\u00c3\u00ab",
        "timestamp_ms": 1700000000000,
        "content": text,
        **others,
    }


def _answer(own: str, parent: str, role: str, words: str) -> Data:
    message: Data = {
        "id": own,
        "author": {"role": role},
        "create_time": 1700000000.0,
        "content": {"content_type": "text", "parts": [words]},
    }
    return {"id": own, "message": message, "parent": parent, "children": []}


_PHOTO = b"\xff\xd8\xff\xe0" + b"\x01" * 40
_PHOTO_FACTS = as_json({"title": "a.jpg", "photoTakenTime": {"timestamp": "1679759460"}})
_QUOTED = "CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE"
_WEEKLY = "BEGIN:VEVENT\r\nUID:1\r\nSUMMARY:s\r\n"

REPORTS: dict[str, Files] = {
    "csv-leading-zero": {"codes.csv": b"Code,Name\n0123,Test\n0456,Sample\n"},
    "csv-routing": {
        "acc.csv": b'Account,RoutingNumber,Amount\n0010,021000021,125.50\n"0100","011000015",50\n'
    },
    "emlx": {
        "V10/A/INBOX.mbox/U/Data/Messages/1.emlx": b"%-10d\n" % len(_mail("one", "hello"))
        + _mail("one", "hello")
        + b'<?xml version="1.0"?>\n<plist version="1.0"><dict><key>flags</key></dict></plist>\n'
    },
    "fb-mixed": {
        "message_1.json": as_json(
            {
                "participants": [{"name": "Bo"}],
                "messages": [_said("\u201cquoted\u201d \u00e9"), _said("\u00c3\u00a9")],
                "title": "Bo",
            }
        )
    },
    "fb-mojibake": {
        "message_1.json": as_json(
            {
                "participants": [{"name": "Zo\u00c3\u00ab"}, {"name": "Bo"}],
                "messages": [
                    _said(
                        "fa\u00c3\u00a7on \u00f0\u009f\u0098\u00a0",
                        reactions=[{"reaction": "\u00f0\u009f\u0091\u008d", "actor": "Bo"}],
                    )
                ],
                "title": "Bo",
            }
        )
    },
    "goodreads-isbn": {
        "goodreads_library_export.csv": (
            b"Book Id,Title,Author,ISBN,ISBN13,My Rating,Date Read,Date Added\n"
            b'11,"A, B",X Y,"=""0316000001""","=""9780316000001""",4,2023/01/05,2022/12/30\n'
            b'12,C,Z,"=""""","=""""",0,,2023/02/01\n'
        )
    },
    "gpt-single": {
        "conversation.json": as_json(
            {
                "title": "T",
                "create_time": 1700000000.0,
                "mapping": {
                    "r": {"id": "r", "message": None, "parent": None, "children": ["a"]},
                    "a": _answer("a", "r", "user", "one"),
                    "b": _answer("b", "a", "assistant", "answer"),
                },
                "conversation_id": "c1",
                "current_node": "b",
            }
        )
    },
    "ics-thisandfuture": {
        "a.ics": (
            f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{_WEEKLY}DTSTART:20240101T090000Z\r\n"
            "DTEND:20240101T100000Z\r\nRRULE:FREQ=WEEKLY;COUNT=4\r\nEND:VEVENT\r\n"
            f"{_WEEKLY}RECURRENCE-ID;RANGE=THISANDFUTURE:20240115T090000Z\r\n"
            "DTSTART:20240115T110000Z\r\nDTEND:20240115T120000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        ).encode()
    },
    "ics-vcal10": {
        "a.vcs": (
            "BEGIN:VCALENDAR\r\nVERSION:1.0\r\nBEGIN:VEVENT\r\nUID:1\r\n"
            f"SUMMARY;{_QUOTED}:Z=C3=BCge\r\nDTSTART:20080101T090000Z\r\n"
            "DTEND:20080101T100000Z\r\nRRULE:W1 TU #3\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
        ).encode()
    },
    "json-folder-spotify": {
        "Playlist1.json": as_json({"playlists": [{"name": "P"}]}),
        "StreamingHistory_music_0.json": as_json(
            [{"endTime": "2024-05-06 18:43", "artistName": "A", "trackName": "B", "msPlayed": 21}]
        ),
        "YourLibrary.json": as_json({"tracks": [{"artist": "A", "track": "C", "uri": "u"}]}),
        "Userdata.json": as_json({"username": "u", "email": "a@example.org"}),
    },
    "linkedin-notes": {
        "Connections.csv": (
            b'Notes:\n"Some of the email addresses are missing."\n\n'
            b"First Name,Last Name,URL,Email Address,Company,Position,Connected On\n"
            b"Ada,Poe,https://www.example.org/in/ada,,ACME,Engineer,05 Jan 2023\n"
            b'Bo,Roe,https://www.example.org/in/bo,bo@example.org,"Foo, Inc",CEO,31 Dec 2022\n'
        )
    },
    "mail-brackets": {
        "a.eml": _mail("s", "body", "From: Shop [Sales] <shop@example.org>").replace(
            b"bo@example.net", b"Doe, John <john@example.org>"
        )
    },
    "mail-self-named": {
        "a.eml": _mail("s", "body", "From: bob@example.org <bob@example.org>").replace(
            b"bo@example.net", b"'ann@example.net' <ann@example.net>, cy@x.org <cy@x.org>"
        )
    },
    "mbox-bare-from": {
        "a.mbox": b"From - \n"
        + _mail("one", "first")
        + b"\nFrom \n"
        + _mail("two", "second")
        + b"\nFrom - Mon Jul 04 10:00:00 2022\n"
        + _mail("three", "third")
    },
    "mbox-quoted-headers": {
        "INBOX.mbox": b"".join(
            b"From ann@example.org Mon Jul  4 10:00:00 2022\n>" + _mail(name, "x") + b"\n"
            for name in ("one", "two")
        )
    },
    "mime-inline-html": {
        "a.eml": (
            b"From: Ann <ann@example.org>\nSubject: n\nMIME-Version: 1.0\nContent-Type: text/html\n"
            b"Content-Disposition: inline; filename=test.html\n\n<p>Words of the mail</p>\n"
        )
    },
    "mime-root-name": {
        "a.eml": (
            b"From: Ann <ann@example.org>\nSubject: n\nMIME-Version: 1.0\n"
            b'Content-Type: text/plain; charset=utf-8; name="msg.txt"\n\nWords of the mail\n'
        )
    },
    "obsidian-nested-tags": {
        "vault/note.md": b"---\ntags: [[misc]]\nauthor:\n  name: me\n---\nBody #inline\n"
    },
    "photos-album-title-only": {
        f"Takeout/Google Photos/{folder}/{name}": content
        for folder in ("Basement Office", "Photos from 2023")
        for name, content in {
            "a.jpg": _PHOTO,
            "a.jpg.supplemental-metadata.json": _PHOTO_FACTS,
        }.items()
    }
    | {
        "Takeout/Google Photos/Basement Office/metadata.json": as_json({"title": "Basement Office"})
    },
    "revolut-old": {
        "Revolut-EUR-Statement.csv": (
            b"Completed Date ; Reference ; Paid Out (EUR) ; Paid In (EUR) ; Exchange Out ; "
            b"Exchange In ; Balance (EUR) ; Exchange Rate ; Category\n"
            b"24 Mar 2020 ; Premium plan fee ; 29.99 ;  ;  ;  ; 13.09 ;  ; Services\n"
            b"1 Apr 2019 ; To Piglet ; ; 1'978.42 ;  ;  ; 43.08 ;  ; Transfers\n"
        )
    },
    "spotify-simple": {
        "StreamingHistory_music_0.json": as_json(
            [{"endTime": "2024-05-06 18:43", "artistName": "A", "trackName": "B", "msPlayed": 21}]
        )
    },
    "strava-german": {
        "activities.csv": (
            "Aktivitäts-ID,Aktivitätsdatum,Name der Aktivität,Verstrichene Zeit,Distanz,"
            "Verstrichene Zeit,Distanz\n"
            '1,"12.09.2018, 15:02:23",Abendrunde,783,"3,68",783,"3681,0"\n'
            '2,"02.05.2019, 07:02:23",Morgen,1783,"13,68",1783,"13681,0"\n'
        ).encode()
    },
    "table-date-compact": {
        "ing.csv": b"Datum;Naam;Bedrag (EUR)\n20240105;Winkel;12,50\n20240131;Werk;2000,00\n"
    },
    "table-date-named-month": {
        "connections.csv": b"Name,Connected On\nA,05 Jan 2023\nB,31 Dec 2022\n"
    },
    "table-date-slashes-ymd": {"books.csv": b"Title,Date Added\nA,2022/12/30\nB,2023/02/01\n"},
    "table-date-utc-word": {
        "comments.csv": b"id,date,body\na,2023-01-05 10:11:12 UTC,x\nb,2023-01-06 10:11:12 UTC,y\n"
    },
    "table-epoch-added": {
        "pocket.csv": (
            b"title,url,time_added,status\nA,https://a.example,1672913472,unread\n"
            b"B,https://b.example,1672999872,archive\n"
        )
    },
    "tg-html": {
        "ChatExport/messages.html": (
            b"<!DOCTYPE html><html><head><title>Exported Data</title></head>"
            b'<body onload="CheckLocation();"><div class="page_wrap"><div class="history">'
            b'<div class="message default clearfix" id="message1"><div class="body">'
            b'<div class="from_name">Ann</div><div class="text">hello</div>'
            b"</div></div></div></div></body></html>"
        ),
        "ChatExport/css/style.css": b"x",
    },
    "tg-reactions": {
        "result.json": as_json(
            reacted([{"from": "Bo", "from_id": "user2", "date": "2025-01-12T15:49:22"}])
        )
    },
    "timeline-edits": {
        "Timeline Edits.json": as_json(
            {
                "timelineEdits": [
                    {
                        "deviceId": "1",
                        "rawSignal": {
                            "signal": {
                                "position": {
                                    "point": {"latE7": 481234567, "lngE7": 111234567},
                                    "accuracyMm": 13000,
                                    "timestamp": "2025-05-01T10:00:00Z",
                                }
                            }
                        },
                    }
                ]
            }
        )
    },
    "tweets-js": {
        "twitter/data/account.js": b'window.YTD.account.part0 = [ {"account":{"email":"a@x"}} ]',
        "twitter/data/manifest.js": b'window.__THAR_CONFIG = {"userInfo":{"accountId":"1"}}',
        "twitter/data/tweets.js": (
            b'window.YTD.tweets.part0 = [\n  {"tweet":{"id_str":"1","full_text":"hello world",'
            b'"created_at":"Wed Nov 09 10:00:00 +0000 2022","lang":"en"}}\n]\n'
        ),
    },
    "vcf-qp-space-fold": {
        "a.vcf": (
            "BEGIN:VCARD\r\nVERSION:2.1\r\n"
            f"N;{_QUOTED}:=D0=9F=D1=83=D0=\r\n =BF=D0=BA=D0=B8=D0=BD;=D0=92=D0=B0=D1=81=\r\n"
            f" =D1=8F;;;\r\nFN;{_QUOTED}:=D0=92=D0=B0=D1=81=\r\n"
            " =D1=8F =D0=9F=D1=83=D0=BF=D0=BA=D0=B8=D0=BD\r\nTEL;CELL:+70005551234\r\n"
            "END:VCARD\r\n"
        ).encode()
    },
}
