"""A small export: chats of Instagram and of Messenger, with something broken in them."""

from __future__ import annotations

from pdpp_kernel.source_item import Data
from sources.tests.specimens.files import Files, as_json

INBOX = "your_instagram_activity/messages/inbox/boadair_17"
JPEG = b"\xff\xd8\xff\xe0 a loaf"


def _meant(text: str) -> str:
    """A text as Meta writes it: each byte of UTF-8 as if it were a letter."""
    return text.encode().decode("latin-1")


def _part(*messages: object) -> bytes:
    chat: Data = {
        "participants": [{"name": _meant("Bö Adair")}, {"name": "Ada"}],
        "messages": list(messages),
        "title": _meant("Bö Adair"),
        "is_still_participant": True,
        "thread_path": "inbox/boadair_17",
        "magic_words": [],
    }
    return as_json(chat)


FILES: Files = {
    f"{INBOX}/message_1.json": _part(
        {
            "sender_name": _meant("Bö Adair"),
            "timestamp_ms": 1705328500000,
            "content": _meant("Crème brûlée 🍮"),
            "reactions": [{"reaction": _meant("❤"), "actor": "Ada"}],
            "is_geoblocked_for_viewer": False,
        },
        {
            "sender_name": "Ada",
            "timestamp_ms": 1705328450000,
            "share": {"link": "https://example.org/oven", "share_text": "An oven"},
        },
        {
            "sender_name": "Ada",
            "timestamp_ms": 1705328400000,
            "photos": [
                {"uri": f"{INBOX}/photos/1.jpg", "creation_timestamp": 1705328400},
                {"uri": f"{INBOX}/photos/2.jpg", "creation_timestamp": 1705328400},
            ],
        },
        {"sender_name": "Ada", "content": "without a time"},
    ),
    f"{INBOX}/message_2.json": _part(
        {
            "sender_name": "Ada",
            "timestamp_ms": 1705328000000,
            "content": "Hello",
            "call_duration": 9,
        }
    ),
    f"{INBOX}/photos/1.jpg": JPEG,
    "messages/Cy_3.json": as_json(
        {
            "participants": ["Ada", "Cy"],
            "threadName": "Cy_3",
            "messages": [
                {
                    "isUnsent": False,
                    "senderName": "Cy",
                    "text": "Stone “oven”",
                    "timestamp": 1725328000000,
                    "type": "text",
                }
            ],
        }
    ),
}
