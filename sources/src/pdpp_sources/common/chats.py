"""What the chats of messengers declare alike: a message in its chat, its author, and its files.

Source: docs/contract/resource-server.md 17. A messenger says what its own fields are; that messages
belong to chats, have an author, may bring files and are searched by their text is said here once.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdpp_sources.common.declaration import (
    Field,
    StreamForm,
    blob,
    caseless,
    conversation,
    file_text,
    integer,
    key,
    labelled,
    marked,
    moment,
    name_word,
    reference,
    text,
    word,
    written_by,
)

# The same stream whichever program they were sent with.
FILES = StreamForm(
    "files",
    "Pictures and files in your chats",
    "Name and kind of each file, and its content where it was exported.",
    [
        key(),
        reference("message_id", "The message", required=True),
        moment("sent_at", "When the message was sent", event=True),
        text("filename", "Name of the file", title=True),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        blob(),
        *file_text(),
    ],
    time_field="sent_at",
    parents={"message": ("messages", "message_id")},
)


def chat_name(about: str) -> Field:
    """The `name` of a chat, as titles show it."""
    return caseless(text("name", about, title=True))


def in_chat(
    noun: str = "chat", *, description: str | None = None, required: bool = True
) -> list[Field]:
    """Which chat a message is in: its id and its name; `said` is what people call a chat."""
    description = description or noun
    of = reference(f"{noun}_id", f"The {description}", required=required)
    return [
        labelled(conversation(of), f"{noun}_name"),
        caseless(word(f"{noun}_name", f"Name of the {description}")),
    ]


def message_author(name: str, about: str) -> Field:
    """The name of who wrote a message: `from:` asks for it, and groups mark bots."""
    return written_by(marked(name_word(name, about)))


def chat_messages(
    label: str,
    detail: str,
    fields: Sequence[Field],
    *,
    traffic: tuple[str, Sequence[str]],
    chat: str = "chat",
    children: dict[str, tuple[str, str]] | None = None,
    parents: dict[str, tuple[str, str]] | None = None,
    threads: dict[str, str] | None = None,
) -> StreamForm:
    """The stream `messages`: sent at `sent_at`, in a chat of the stream `<chat>s`, with files.

    Shapes: `fields` come behind the key and have `<chat>_id`, `sent_at` and `text`; `traffic` is
    the label and the fields, behind both keys, of the view that leaves the words out; `children`
    and `parents` are those beside the files and the chat.
    """
    traffic_label, label_field = traffic
    return StreamForm(
        "messages",
        label,
        detail,
        [key(), *fields],
        time_field="sent_at",
        views={"traffic": (traffic_label, ["id", f"{chat}_id", *label_field])},
        children={"files": ("files", "message_id")} | (children or {}),
        parents={chat: (f"{chat}s", f"{chat}_id")} | (parents or {}),
        threads=threads or {},
        semantic=["text"],
    )
