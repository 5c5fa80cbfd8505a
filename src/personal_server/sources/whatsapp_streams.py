"""What a chat of WhatsApp holds, in the words of the consent page."""

from __future__ import annotations

from personal_server.sources.chat_files import FILES
from personal_server.sources.declaration import (
    Stream,
    declaration,
    integer,
    key,
    moment,
    names,
    reference,
    text,
    word,
)

CHATS = Stream(
    "chats",
    "Your chats",
    "Name and people of each chat.",
    [
        key(),
        text("name", "Name of the person or group", title=True),
        names("people", "Who wrote in it"),
        text("people_named", "The same, to search in"),
        integer("message_count", "Number of messages", summed=True),
        moment("began_at", "When its first message was sent", event=True),
    ],
    time_field="began_at",
    children={"messages": ("messages", "chat_id")},
)

MESSAGES = Stream(
    "messages",
    "Your chat messages",
    "Text, author and time of every message.",
    [
        key(),
        reference("chat_id", "The chat", required=True),
        word("chat_name", "Name of the chat"),
        moment(
            "sent_at", "When it was sent by the phone's clock; the export names no zone", event=True
        ),
        word("author", "Who wrote it; none for notices", searched=True),
        text("text", "What it says", title=True),
        word("kind", "message, notice, file, or left_out where media was not exported"),
        integer("file_count", "Number of files", summed=True),
    ],
    time_field="sent_at",
    views={"traffic": ("Who wrote when", ["id", "chat_id", "sent_at", "author"])},
    children={"files": ("files", "message_id")},
    parents={"chat": ("chats", "chat_id")},
    semantic=["text"],
)

DECLARATION = declaration(
    "whatsapp", "WhatsApp", "Chats exported from WhatsApp.", [CHATS, MESSAGES, FILES]
)
