"""The files of chats: the same stream whichever program they were sent with."""

from __future__ import annotations

from personal_server.sources.declaration import (
    Stream,
    blob,
    integer,
    key,
    moment,
    reference,
    text,
    word,
)

FILES = Stream(
    "files",
    "Pictures and files in your chats",
    "Name, kind and content of the media that was exported.",
    [
        key(),
        reference("message_id", "The message", required=True),
        moment("sent_at", "When the message was sent", event=True),
        text("filename", "Name of the file", title=True),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        blob(),
    ],
    time_field="sent_at",
    parents={"message": ("messages", "message_id")},
)
