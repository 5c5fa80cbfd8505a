"""Conversations with an assistant: the streams that all such exports share."""

from __future__ import annotations

from collections.abc import Iterable

from pdpp_kernel.source_item import Data
from pdpp_kernel.texts import message
from pdpp_sources.common import json_values
from pdpp_sources.common.declaration import (
    StreamForm,
    blob,
    conversation,
    file_text,
    flag,
    integer,
    key,
    labelled,
    moment,
    names,
    plain,
    reference,
    text,
    word,
    written_by,
)

CONVERSATIONS = StreamForm(
    "conversations",
    "Your conversations with the assistant",
    "Title, time and length of each conversation.",
    [
        key(),
        text("title", "Title of the conversation", title=True),
        text("summary", "What the platform says it was about"),
        moment("created_at", "When it began", event=True),
        moment("updated_at", "When it last went on"),
        word("project_id", "Project or custom assistant it belongs to"),
        word("model", "Model it was begun with"),
        integer("message_count", "Number of messages", summed=True),
        flag("is_archived", "Whether it was archived"),
        flag("is_starred", "Whether it has a star"),
        plain("url", "Where it is on the web"),
    ],
    time_field="created_at",
    views={"titles": ("Titles and times only", ["id", "title", "created_at", "updated_at"])},
    children={"messages": ("messages", "conversation_id")},
    semantic=["title"],
)

MESSAGES = StreamForm(
    "messages",
    "What you and the assistant wrote",
    "Text, author and time of every message, also of versions that were replaced.",
    [
        key(),
        labelled(
            conversation(reference("conversation_id", "The conversation", required=True)),
            "conversation_title",
        ),
        reference("parent_id", "The message before it"),
        moment("created_at", "When it was written", event=True),
        text("conversation_title", "Title of the conversation", title=True),
        written_by(word("role", "user, assistant, system or tool")),
        text("text", "What it says", media="text/markdown"),
        text("thinking", "What the assistant thought before it answered"),
        names("tools", "Tools the assistant used"),
        text("tool_text", "What those tools were given and what they answered"),
        names("links", "Pages it names as its sources, each as title and address"),
        word("kind", "Kind of content, as the platform names it"),
        word("model", "Model that wrote it"),
        flag("is_current", "Whether it is on the branch that is shown"),
        integer("attachment_count", "Number of files that came with it", summed=True),
    ],
    time_field="created_at",
    views={
        "outline": (
            "Who wrote when, without the text",
            ["id", "conversation_id", "created_at", "role"],
        )
    },
    children={"attachments": ("attachments", "message_id")},
    parents={"conversation": ("conversations", "conversation_id")},
    threads={"thread": "conversation_id"},
    semantic=["text"],
)

ATTACHMENTS = StreamForm(
    "attachments",
    "Files in your conversations",
    "Files and pictures you gave the assistant, and pictures it made.",
    [
        key(),
        reference("message_id", "The message it came with", required=True),
        reference("conversation_id", "The conversation"),
        moment("created_at", "When the message was written", event=True),
        text("filename", "Name of the file", title=True),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        text("extracted_text", "Text that the platform read out of it"),
        text("prompt", "Words it was made from, if the assistant made it"),
        blob(),
        *file_text(),
    ],
    time_field="created_at",
    parents={"message": ("messages", "message_id")},
)


# What is told beside a message of which a part is of a kind that no reader knows.
UNKNOWN_CONTENT = ("unknown_content", message("a part of a message is of an unknown kind"))


def cited(pages: Iterable[Data]) -> list[str]:
    """Pages, each once, as title and address."""
    links: list[str] = []
    for page in pages:
        url, title = json_values.line(page, "url"), json_values.line(page, "title")
        links += [f"{title} <{url}>" if title else url] if url else []
    return list(dict.fromkeys(links))


def created(instant: str | None) -> Data:
    """The time of a record, which may be missing from it but is never null."""
    return {"created_at": instant} if instant else {}
