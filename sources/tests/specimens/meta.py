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


def on_page(author: str, words: str, at: str, *, more: str = "", shown: str = "") -> str:
    """A message as the pages of HTML have it; `shown` are its files, `more` its reactions."""
    return (
        f'<div class="pam _3-95 _2ph- _a6-g uiBoxWhite noborder"><h2 class="_2pim _a6-h">{author}'
        f'</h2><div class="_3-95 _a6-p"><div><div></div><div>{words}</div><div>{shown}</div>'
        f'<div></div>{more}</div></div><div class="_3-94 _a6-o">{at}</div></div>'
    )


def in_section(author: str, words: str, at: str) -> str:
    """The same in the layout of 2025."""
    return (
        f'<section class="_a6-g" aria-labelledby="u"><h2 class="_2ph_ _a6-h _a6-i" id="u">{author}'
        f'</h2><div class="_2ph_ _a6-p"><div><div></div><div>{words}</div></div></div>'
        f'<footer class="_3-94 _a6-o"><div class="_a72d">{at}</div></footer></section>'
    )


def page(title: str, *messages: str) -> bytes:
    """A page of a chat."""
    head = f"<html><head><title>Instagram</title><style>._a6-g{{}}</style></head><body><h1>{title}"
    return f'{head}</h1><main class="_a706">{"".join(messages)}</main></body></html>'.encode()


_LIKED = '<div><ul class="_a6-q"><li><span>❤Ada</span></li></ul></div>'
JSON_FILES: Files = {
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
PAGES: Files = {
    "messages/inbox/dan_4/message_1.html": page(
        "Dan",
        on_page("Dan", "Rye &amp; spelt<br />both", "Jan 16, 2024 4:05 pm", more=_LIKED),
        on_page(
            "Ada", "", "Jan 16, 2024 4:04 pm", shown='<img src="messages/inbox/dan_4/photos/3.jpg">'
        ),
        on_page("Dan", "Hello", "once"),
    ),
    "messages/inbox/dan_4/photos/3.jpg": JPEG,
}
FILES: Files = JSON_FILES | PAGES
