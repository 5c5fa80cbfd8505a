"""A small export: Messages of a Mac, with something broken in it.

The tables are those of macOS 14 as readers of others describe them.
"""

from __future__ import annotations

import struct

from sources.tests.specimens.databases import Row, database
from sources.tests.specimens.files import Files

SCHEMA = """
CREATE TABLE handle (ROWID INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, id TEXT NOT NULL,
  service TEXT NOT NULL);
CREATE TABLE chat (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL,
  style INTEGER, chat_identifier TEXT, service_name TEXT, display_name TEXT);
CREATE TABLE message (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL,
  text TEXT, attributedBody BLOB, handle_id INTEGER DEFAULT 0, subject TEXT, service TEXT,
  date INTEGER, date_read INTEGER, is_from_me INTEGER DEFAULT 0, item_type INTEGER DEFAULT 0,
  group_title TEXT, associated_message_guid TEXT, associated_message_type INTEGER DEFAULT 0,
  balloon_bundle_id TEXT, cache_has_attachments INTEGER DEFAULT 0, thread_originator_guid TEXT,
  date_edited INTEGER DEFAULT 0, associated_message_emoji TEXT);
CREATE TABLE attachment (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL,
  filename TEXT, mime_type TEXT, transfer_name TEXT, total_bytes INTEGER DEFAULT 0);
CREATE TABLE chat_handle_join (chat_id INTEGER, handle_id INTEGER, UNIQUE(chat_id, handle_id));
CREATE TABLE chat_message_join (chat_id INTEGER, message_id INTEGER,
  PRIMARY KEY (chat_id, message_id));
CREATE TABLE message_attachment_join (message_id INTEGER, attachment_id INTEGER,
  UNIQUE(message_id, attachment_id));
"""
ANN, BOB = "+15550100", "bob@example.org"
SECOND = 1_000_000_000
MARCH = 731_145_600 * SECOND  # 2024-03-03T08:00:00Z
NO_ATTACHMENT = "~/Library/Messages/Attachments/00/00/gone.mov"


def archived(words: str) -> bytes:
    """An attributed string as Apple archives it: head, classes, then the words."""
    content = words.encode()
    size = len(content)
    length = bytes([size]) if size < 0x80 else b"\x81" + struct.pack("<H", size)
    return (
        b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84\x84\x84\x12NSAttributedString\x00\x84\x84"
        b"\x08NSObject\x00\x85\x92\x84\x84\x84\x08NSString\x01\x94\x84\x01+"
        + length
        + content
        + b"\x86\x84\x02iI\x01"
        + bytes([min(size, 0x7F)])
        + b"\x92\x84\x84\x84\x0cNSDictionary\x00\x94\x84\x01i\x01\x86\x86"
    )


def message(number: int, guid: str | None, **values: object) -> Row:
    """A row of the table of messages; each a minute after the one before."""
    named: dict[str, object] = {
        "text": None,
        "body": None,
        "handle": 1,
        "subject": None,
        "service": "iMessage",
        "date": MARCH + number * 60 * SECOND,
        "read": 0,
        "from_me": 0,
        "item": 0,
        "title": None,
        "about": None,
        "about_type": 0,
        "balloon": None,
        "files": 0,
        "reply_to": None,
        "edited": 0,
        "emoji": None,
    }
    return (number, guid, *(named | values).values())


LONG = "A loaf takes its time, and so does the one who bakes it. " * 5
MESSAGES: list[Row] = [
    message(1, "M1", text="Is the starter awake?", read=MARCH + 90 * SECOND),
    message(2, "M2", body=archived("It doubled — twice!"), from_me=1, handle=0),
    message(3, "M3", body=archived(LONG), handle=2, reply_to="M1"),
    message(4, "M4", about="p:0/M2", about_type=2001),
    message(5, "M5", about="p:0/M2", about_type=2006, emoji="🍞", handle=2),
    message(6, "M6", about="p:0/M2", about_type=3001),
    message(7, "M7", item=2, title="Bread people"),
    message(8, "M8", text="\ufffcLook", files=1),
    message(9, "M9", body=b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01+\x7fcut"),
    message(10, "M10", edited=MARCH + 900 * SECOND, from_me=1),
    message(11, "", text="no id"),
    message(12, "M12", text="Old seconds", date=500_000_000, service="SMS"),
]
ROWS: list[tuple[str, list[Row]]] = [
    ("handle", [(1, ANN, "iMessage"), (2, BOB, "iMessage")]),
    (
        "chat",
        [
            (1, "iMessage;-;+15550100", 45, ANN, "iMessage", ""),
            (2, "iMessage;+;chat7", 43, "chat7", "iMessage", "Bread people"),
        ],
    ),
    ("message", MESSAGES),
    ("chat_handle_join", [(1, 1), (2, 1), (2, 2)]),
    ("chat_message_join", [(1 if number in (1, 12) else 2, number) for number in range(1, 13)]),
    (
        "attachment",
        [
            (
                1,
                "A1",
                "~/Library/Messages/Attachments/ab/11/loaf.jpg",
                "image/jpeg",
                "loaf.jpg",
                2,
            ),
            (2, "A2", NO_ATTACHMENT, "video/quicktime", "gone.mov", 99),
            (3, "A3", NO_ATTACHMENT, None, "orphan", 1),
        ],
    ),
    ("message_attachment_join", [(8, 1), (8, 2)]),
]

FILES: Files = {
    "Messages/chat.db": database(SCHEMA, ROWS),
    "Messages/Attachments/ab/11/loaf.jpg": b"\xff\xd8",
}
