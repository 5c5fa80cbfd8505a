"""What an export of Claude holds, in the words of the consent page."""

from __future__ import annotations

from dataclasses import replace

from personal_server.sources.conversations import ATTACHMENTS, CONVERSATIONS, MESSAGES
from personal_server.sources.declaration import (
    Stream,
    declaration,
    key,
    moment,
    plain,
    reference,
    text,
)

PROJECTS = Stream(
    "projects",
    "Your projects",
    "Name, description and instructions of each project.",
    [
        key(),
        text("name", "Name of the project", title=True),
        text("description", "What it is for"),
        text("instructions", "Instructions given to the assistant"),
        moment("created_at", "When it was made", event=True),
        moment("updated_at", "When it last changed"),
    ],
    time_field="created_at",
    children={
        "documents": ("documents", "project_id"),
        "conversations": ("conversations", "project_id"),
    },
)

DOCUMENTS = Stream(
    "documents",
    "Documents in your projects",
    "Name and text of every document given to a project.",
    [
        key(),
        reference("project_id", "The project", required=True),
        text("filename", "Name of the document", title=True),
        text("text", "Its text"),
        moment("created_at", "When it was added", event=True),
    ],
    time_field="created_at",
    parents={"project": ("projects", "project_id")},
    semantic=["text"],
)

MEMORIES = Stream(
    "memories",
    "What the assistant remembers of you",
    "Notes the assistant keeps about you and your projects.",
    [
        key(),
        plain("project_id", "The project it belongs to, if any"),
        text("text", "The note", title=True),
    ],
)

DECLARATION = declaration(
    "claude",
    "Claude",
    "Conversations with Claude, with files, projects and memories.",
    [
        replace(CONVERSATIONS, parents={"project": ("projects", "project_id")}),
        MESSAGES,
        ATTACHMENTS,
        PROJECTS,
        DOCUMENTS,
        MEMORIES,
    ],
)
