"""What a Slack workspace holds, in the words of the consent page."""

from __future__ import annotations

from personal_server.sources.declaration import (
    Stream,
    declaration,
    flag,
    integer,
    key,
    moment,
    names,
    plain,
    reference,
    text,
    word,
)

CHANNELS = Stream(
    "channels",
    "Channels of the workspace",
    "Name, purpose and members of every channel and conversation.",
    [
        key(),
        text("name", "Name of the channel", title=True),
        word("kind", "channel, private channel, group conversation or direct conversation"),
        text("topic", "Topic"),
        text("purpose", "Purpose"),
        moment("created_at", "When it was made"),
        names("members", "Names of its members"),
        integer("member_count", "Number of members"),
        flag("is_archived", "Whether it is archived"),
    ],
    children={"messages": ("messages", "channel_id")},
)

PEOPLE = Stream(
    "people",
    "People of the workspace",
    "Names, titles and mail addresses of the workspace's people.",
    [
        key(),
        text("name", "Name as shown", title=True),
        plain("handle", "User name"),
        text("real_name", "Full name"),
        word("email", "E-mail address", searched=True),
        text("title", "What they do"),
        plain("time_zone", "IANA name of their time zone"),
        flag("is_bot", "Whether it is a program"),
        flag("is_deleted", "Whether the account was closed"),
    ],
    views={"names": ("Names only", ["id", "name"])},
)

MESSAGES = Stream(
    "messages",
    "What was written in Slack",
    "Text, author, time and thread of every message.",
    [
        key(),
        reference("channel_id", "The channel", required=True),
        word("channel_name", "Name of the channel"),
        moment("sent_at", "When it was sent", event=True),
        reference("author_id", "Who wrote it"),
        word("author_name", "Name of who wrote it", searched=True),
        text("text", "What it says", title=True),
        reference("thread_id", "Messages of one thread share it"),
        flag("is_reply", "Whether it answers in a thread"),
        integer("reply_count", "Number of answers", summed=True),
        word("kind", "message, or the platform's subtype"),
        names("reactions", "Names of the reactions"),
        integer("reaction_count", "Number of reactions", summed=True),
        integer("file_count", "Number of files", summed=True),
        moment("edited_at", "When it was last changed"),
    ],
    time_field="sent_at",
    views={"traffic": ("Who wrote when and where", ["id", "channel_id", "sent_at", "author_id"])},
    children={"files": ("files", "message_id")},
    parents={"channel": ("channels", "channel_id"), "author": ("people", "author_id")},
    semantic=["text"],
)

FILES = Stream(
    "files",
    "Files shared in Slack",
    "Names and kinds of files; Slack's export does not contain the files themselves.",
    [
        key(),
        reference("message_id", "The message", required=True),
        moment("sent_at", "When the message was sent", event=True),
        text("filename", "Name of the file", title=True),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        plain("url", "Where it lies on the web, without its access token"),
    ],
    time_field="sent_at",
    parents={"message": ("messages", "message_id")},
)

DECLARATION = declaration(
    "slack",
    "Slack",
    "Channels, people and messages of a Slack workspace.",
    [CHANNELS, PEOPLE, MESSAGES, FILES],
)

HOW_TO_EXPORT = (
    "An owner or admin of the workspace opens Settings > Workspace settings > Import/export data > "
    "Export, and downloads the zip. Free plans export public channels only."
)
