"""A small export: an account of Telegram, with something broken in it."""

from __future__ import annotations

from pdpp_kernel.source_item import Data
from sources.tests.specimens.files import Files, as_json

NOT_INCLUDED = "(File not included. Change data exporting settings to download.)"

ADA: list[Data] = [
    {
        "id": 1,
        "type": "service",
        "date": "2024-01-13T20:00:00",
        "date_unixtime": "1705176000",
        "actor": "Ada",
        "actor_id": "user100",
        "action": "create_group",
        "text": "",
    },
    {
        "id": 2,
        "type": "message",
        "date": "2024-01-13T21:05:00",
        "date_unixtime": "1705179900",
        "edited": "2024-01-13T21:06:00",
        "edited_unixtime": "1705179960",
        "from": "Ada",
        "from_id": "user100",
        "text": ["The ", {"type": "text_link", "text": "recipe", "href": "https://example.org/r"}],
    },
    {
        "id": 3,
        "type": "message",
        "date": "2024-01-13T21:07:00",
        "from": "Ann Byron",
        "from_id": "user200",
        "reply_to_message_id": 2,
        "forwarded_from": "Baker",
        "photo": "chats/chat_1/photos/loaf.jpg",
        "text": "Like this {one}?",
        "reactions": [
            {
                "type": "emoji",
                "count": 1,
                "emoji": "❤",
                "recent": [{"from": "Ada", "from_id": "user100", "date": "2024-01-13T21:08:00"}],
            }
        ],
    },
    {"id": 4, "type": "message", "date": "yesterday", "from": "Ada", "text": "no date"},
    {
        "id": 5,
        "type": "message",
        "date": "2024-01-13T21:09:00",
        "date_unixtime": "1705180140",
        "from": None,
        "from_id": "user300",
        "file": NOT_INCLUDED,
        "media_type": "voice_message",
        "mime_type": "audio/ogg",
        "text": "",
    },
]

SAVED: list[Data] = [
    {
        "id": 2,
        "type": "message",
        "date": "2024-02-01T08:00:00",
        "date_unixtime": "1706774400",
        "from": "Ada",
        "from_id": "user100",
        "poll": {"question": "Rye or wheat?", "answers": []},
        "text": "",
    },
]

ACCOUNT: Data = {
    "about": "Here is the data you requested. Remember: Telegram is ad free.",
    "personal_information": {"user_id": 100, "first_name": "Ada"},
    "contacts": {"about": "", "list": [{"first_name": "Ann", "phone_number": "00"}]},
    "chats": {
        "about": "This page lists all chats from this export.",
        "list": [
            {"name": 'Bread "and" {salt}', "type": "private_group", "id": 7, "messages": ADA},
            {"type": "saved_messages", "id": 100, "messages": SAVED},
        ],
    },
}


def reacted(recent: list[Data], *others: Data) -> Data:
    """A chat of one message, to which those in `recent` reacted with a heart, and others did."""
    return {
        "name": "C",
        "type": "personal_chat",
        "id": 1,
        "messages": [
            {
                "id": 1,
                "type": "message",
                "date": "2025-01-12T15:40:00",
                "date_unixtime": "1736692800",
                "from": "Ann",
                "from_id": "user1",
                "text": "hi",
                "reactions": [
                    {"type": "emoji", "count": 1, "emoji": "❤", "recent": recent},
                    *others,
                ],
            }
        ],
    }


FILES: Files = {
    "DataExport/result.json": as_json(ACCOUNT),
    "DataExport/chats/chat_1/photos/loaf.jpg": b"\xff\xd8",
    "DataExport/export_results.html": b"<html></html>",
}
