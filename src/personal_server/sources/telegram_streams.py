"""What an export of Telegram holds, in the words of the consent page."""

from __future__ import annotations

from personal_server.sources.chat_files import FILES
from personal_server.sources.declaration import (
    Stream,
    declaration,
    flag,
    integer,
    key,
    moment,
    plain,
    reference,
    text,
    word,
)

CHATS = Stream(
    "chats",
    "Your chats",
    "Name and kind of each chat, group and channel.",
    [
        key(),
        text("name", "Name of the person, group or channel", title=True),
        word("kind", "personal_chat, private_group, public_channel …, as Telegram names it"),
        moment("began_at", "When the first of its messages was sent", event=True),
    ],
    time_field="began_at",
    children={"messages": ("messages", "chat_id")},
)

MESSAGES = Stream(
    "messages",
    "Your messages on Telegram",
    "Text, author and time of every message.",
    [
        key(),
        reference("chat_id", "The chat", required=True),
        word("chat_name", "Name of the chat"),
        moment("sent_at", "When it was sent, in UTC", event=True),
        word("author", "Who wrote it or did it", searched=True),
        plain("author_id", "Telegram's id of the author"),
        text("text", "What it says; of a poll the question, of a place its name", title=True),
        word("kind", "message, photo, file, voice_message, sticker, poll … or what was done"),
        flag("is_notice", "Whether it tells what happened instead of saying something"),
        reference("reply_to_id", "The message it answers"),
        word("forwarded_from", "Who wrote it first"),
        moment("edited_at", "When it was last changed"),
        integer("file_count", "Number of files", summed=True),
    ],
    time_field="sent_at",
    views={"traffic": ("Who wrote when", ["id", "chat_id", "sent_at", "author"])},
    children={"files": ("files", "message_id")},
    parents={"chat": ("chats", "chat_id")},
    semantic=["text"],
)

DECLARATION = declaration(
    "telegram", "Telegram", "Chats exported from Telegram.", [CHATS, MESSAGES, FILES]
)

HOW_TO_EXPORT = (
    "In Telegram Desktop (not the phone) choose Settings > Advanced > Export Telegram data, or the "
    "menu of one chat > Export chat history; as the format JSON, with the media you want. Import "
    "the folder that holds result.json."
)
