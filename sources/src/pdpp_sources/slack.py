"""Slack: the zip of a workspace export, a folder for each channel with a file for each day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import cast

import msgspec

from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import Data, SourceItem, SourceRecord
from pdpp_sources.common import json_values
from pdpp_sources.common.chats import chat_messages, chat_name, in_chat, message_author
from pdpp_sources.common.declaration import (
    StreamForm,
    author_kind,
    caseless,
    declaration,
    flag,
    integer,
    key,
    marked,
    moment,
    name_word,
    names,
    person,
    plain,
    reference,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.json_stream import Element, json_elements
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_element,
    each_member,
    matching,
    without_repeats,
)
from pdpp_sources.common.text import unescaped
from pdpp_sources.common.times import from_epoch

_DAY = re.compile(rb"^\s*\[\s*\{.*\"ts\"\s*:\s*\"\d{10}\.\d{6}\"", re.DOTALL)
_DATED = re.compile(r"/\d{4}-\d{2}-\d{2}\.json$")
_INDEXES = {
    "channels.json": "channel",
    "groups.json": "private channel",
    "mpims.json": "group conversation",
    "dms.json": "direct conversation",
}
_PEOPLE = frozenset({"users.json", "org_users.json"})
_OF_THE_PLATFORM = {"USLACKBOT": "Slackbot"}  # is in no list of people
# Subtypes of messages that tell what happened in a channel, and to whom.
_NOTICE = re.compile(
    r"(?:channel|group)_(?:join|leave|topic|purpose|name|archive|unarchive|posting_permissions"
    r"|convert_to_(?:private|public))|bot_(?:add|remove|enable|disable)|(?:un)?pinned_item"
    r"|reminder_add|sh_room_(?:created|shared)|huddle_thread|tombstone|app_conversation_(?:join|leave)"
)
_MARK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
CHANNELS = StreamForm(
    "channels",
    "Channels of the workspace",
    "Name, purpose and members of every channel and conversation.",
    [
        key(),
        chat_name("Name of the channel"),
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
PEOPLE = StreamForm(
    "people",
    "People of the workspace",
    "Names, titles and mail addresses of the workspace's people.",
    [
        person(key(), PersonForm.HANDLE, network="slack", named_by="name", card=True),
        caseless(text("name", "Name as shown", title=True)),
        caseless(plain("handle", "User name")),
        caseless(text("real_name", "Full name")),
        person(
            name_word("email", "E-mail address"),
            PersonForm.ADDRESS,
            named_by="name",
            card=True,
        ),
        text("title", "What they do"),
        plain("time_zone", "IANA name of their time zone"),
        flag("is_bot", "Whether it is a program"),
        flag("is_deleted", "Whether the account was closed"),
    ],
    views={"names": ("Names only", ["id", "name"])},
)
MESSAGES = chat_messages(
    "What was written in Slack",
    "Text, author, time and thread of every message.",
    [
        *in_chat("channel"),
        moment("sent_at", "When it was sent", event=True),
        person(
            marked(reference("author_id", "Who wrote it")),
            PersonForm.HANDLE,
            network="slack",
            named_by="author_name",
        ),
        message_author("author_name", "Name of who wrote it"),
        author_kind(),
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
    chat="channel",
    traffic=(
        "Who wrote, when and in which channel",
        ["channel_name", "sent_at", "author_id", "author_name"],
    ),
    parents={"author": ("people", "author_id")},
    threads={"thread": "thread_id"},
)
FILES = StreamForm(
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


class SlackSource:
    """Reads channels, people and messages of a workspace."""

    connector_key = "slack"
    declaration: Data = DECLARATION
    how_to_export = (
        "An owner or admin of the workspace opens Settings > Workspace settings > Import/export "
        "data > Export, and downloads the zip. Free plans export public channels only."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim the files of days, and the indexes beside their folders."""
        days = list(matching(export, _DAY.match, ".json"))
        roots = {_root(day) for day in days}
        claimed = {day.name for day in days}
        days += [m for m in export.members if _is_day(m, roots) and m.name not in claimed]
        indexes = [m for m in export.members if _parent(m) in roots and _is_index(m)]
        return claim([*days, *indexes], "it holds days of a Slack workspace")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield people and channels, then the messages of each channel, day by day."""
        workspaces: dict[str, _Workspace] = {}
        for member in export.members:
            if _is_index(member):
                workspaces.setdefault(_parent(member), _Workspace()).learn(member)
        items = each_member(export, lambda member: _read_member(member, workspaces))
        return beginning_at(start, without_repeats(items))


def _parent(member: ExportMember) -> str:
    return str(PurePosixPath(member.name).parent)


def _root(member: ExportMember) -> str:
    return str(PurePosixPath(member.name).parent.parent)


def _is_day(member: ExportMember, roots: set[str]) -> bool:
    """A day beside others; the first message of one may be longer than what was looked at."""
    return _root(member) in roots and bool(_DATED.search(member.name))


def _is_index(member: ExportMember) -> bool:
    name = PurePosixPath(member.name).name
    return name in _INDEXES or name in _PEOPLE


class _Workspace(msgspec.Struct):
    """Who is who and which folder is which channel."""

    people: dict[str, str] = msgspec.field(default_factory=lambda: dict(_OF_THE_PLATFORM))
    bots: set[str] = msgspec.field(default_factory=lambda: set(_OF_THE_PLATFORM))
    folders: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    channels: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    members: dict[str, list[str]] = msgspec.field(default_factory=dict[str, list[str]])

    def learn(self, member: ExportMember) -> None:
        """Read an index ahead of the messages that need it; its faults are reported later."""
        try:
            values = [
                element.value for element in json_elements(member) if isinstance(element, Element)
            ]
        except (MemberDamaged, BadRecord):
            return
        for value in values:
            own = json_values.line(value, "id") or ""
            if PurePosixPath(member.name).name in _PEOPLE:
                self.people[own] = _shown_name(value) or own
                if bot := json_values.line(json_values.inner(value, "profile"), "bot_id"):
                    self.people[bot] = self.people[own]
                    self.bots |= {bot, own}
                if json_values.truth(value, "is_bot"):
                    self.bots.add(own)
            else:
                self.members[own] = json_values.strings(value, "members")
                self.folders[own] = own
                if name := json_values.line(value, "name"):
                    self.channels[own] = name
                    self.folders[name] = own

    def channel(self, folder: str) -> tuple[str, str]:
        """Id and name of the channel that a folder holds."""
        own = self.folders.get(folder, folder)
        return own, self.channels.get(own) or self.everybody(self.members.get(own, [])) or folder

    def everybody(self, people: list[str]) -> str:
        """The names of some people; a direct conversation has no other name."""
        return ", ".join(self.people.get(person, person) for person in people)


def _shown_name(person: Data) -> str | None:
    profile = json_values.inner(person, "profile")
    return json_values.line(profile, "display_name", "real_name") or json_values.line(
        person, "real_name", "name"
    )


def _read_member(member: ExportMember, workspaces: dict[str, _Workspace]) -> Iterator[SourceItem]:
    name = PurePosixPath(member.name).name
    index = _is_index(member)
    workspace = workspaces.get(_parent(member) if index else _root(member), _Workspace())
    folder = PurePosixPath(member.name).parent.name

    def build(element: Element) -> Iterator[SourceRecord]:
        entry = _Entry(element, workspace, folder)
        if not index:
            return entry.message()
        return entry.person() if name in _PEOPLE else entry.channel(_INDEXES[name])

    return each_element(json_elements(member), build)


class _Entry(msgspec.Struct, frozen=True):
    """One object of the export on its way to records."""

    element: Element
    workspace: _Workspace
    folder: str

    def person(self) -> Iterator[SourceRecord]:
        value = self.element.value
        profile = json_values.inner(value, "profile")
        data: Data = {
            "id": json_values.required(value, "id"),
            "name": _shown_name(value),
            "handle": json_values.line(value, "name"),
            "real_name": json_values.line(profile, "real_name")
            or json_values.line(value, "real_name"),
            "email": json_values.line(profile, "email"),
            "title": json_values.line(profile, "title"),
            "time_zone": json_values.line(value, "tz"),
            "is_bot": json_values.truth(value, "is_bot"),
            "is_deleted": json_values.truth(value, "deleted"),
        }
        yield self._record("people", data)

    def channel(self, kind: str) -> Iterator[SourceRecord]:
        value = self.element.value
        members = json_values.strings(value, "members")
        data: Data = {
            "id": json_values.required(value, "id"),
            "name": json_values.line(value, "name") or self.workspace.everybody(members),
            "kind": kind,
            "topic": json_values.text(json_values.inner(value, "topic"), "value"),
            "purpose": json_values.text(json_values.inner(value, "purpose"), "value"),
            "created_at": json_values.instant(value, "created"),
            "members": [self.workspace.people.get(member, member) for member in members],
            "member_count": len(members),
            "is_archived": json_values.truth(value, "is_archived"),
        }
        yield self._record("channels", data)

    def message(self) -> Iterator[SourceRecord]:
        value = self.element.value
        ts = json_values.required(value, "ts")
        channel_id, channel_name = self.workspace.channel(self.folder)
        thread = json_values.line(value, "thread_ts") or ts
        comment = json_values.inner(value, "comment")  # on a file, until 2018
        author = json_values.line(value, "user") or json_values.line(comment, "user")
        author = author or json_values.line(value, "bot_id")
        edited = json_values.line(json_values.inner(value, "edited"), "ts")
        # Until 2018 a message held one file, as an object of its own.
        files = json_values.objects(value, "files") or [
            file for file in (json_values.inner(value, "file"),) if file
        ]
        reactions = json_values.objects(value, "reactions")
        data: Data = {
            "id": f"{channel_id}.{ts}",
            "channel_id": channel_id,
            "channel_name": channel_name,
            "sent_at": _instant(ts),
            "author_id": author,
            "author_name": self._author(value, author),
            "author_kind": self._author_kind(value, author),
            "text": self._words(value),
            "thread_id": f"{channel_id}.{thread}",
            "is_reply": thread != ts,
            "reply_count": json_values.whole(value, "reply_count") or 0,
            "kind": json_values.line(value, "subtype") or "message",
            "reactions": [
                name for reaction in reactions if (name := json_values.line(reaction, "name"))
            ],
            "reaction_count": sum(
                json_values.whole(reaction, "count") or 0 for reaction in reactions
            ),
            "file_count": len(files),
            "edited_at": _instant_or_none(edited),
        }
        yield self._record("messages", data)
        for number, file in enumerate(files, 1):
            yield self._file(file, number, data)

    def _file(self, value: Data, number: int, message: Data) -> SourceRecord:
        address = json_values.line(value, "url_private", "permalink")
        data: Data = {
            "id": f"{message['id']}.{json_values.line(value, 'id') or number}",
            "message_id": message["id"],
            "sent_at": message["sent_at"],
            "filename": json_values.line(value, "name", "title"),
            "mime_type": json_values.line(value, "mimetype"),
            "size_bytes": json_values.whole(value, "size"),
            "url": address.partition("?")[0] if address else None,
        }
        return self._record("files", data)

    def _words(self, value: Data) -> str | None:
        pieces = [json_values.text(value, "text")]
        for attachment in json_values.objects(value, "attachments"):
            pieces += (json_values.text(attachment, name) for name in ("pretext", "title"))
            pieces.append(json_values.text(attachment, "text", "fallback"))
            for row in json_values.objects(attachment, "fields"):
                named = (json_values.text(row, name) for name in ("title", "value"))
                pieces.append(": ".join(words.strip() for words in named if words))
        blocks = json_values.objects(value, "blocks")
        text = "\n\n".join(filter(None, pieces)) or words_of_blocks(blocks)
        return readable(text, self.workspace.people, self.workspace.channels) or None

    def _author(self, value: Data, author: str | None) -> str | None:
        if author in self.workspace.people:
            return self.workspace.people[author]
        profile = json_values.inner(value, "user_profile")
        return (
            json_values.line(profile, "display_name", "real_name", "name")
            or json_values.line(value, "username")
            or json_values.line(json_values.inner(value, "bot_profile"), "name")
            or json_values.line(value, "user_name", "bot_name")
        )

    def _author_kind(self, value: Data, author: str | None) -> str | None:
        subtype = json_values.line(value, "subtype") or ""
        if _NOTICE.fullmatch(subtype):
            return "notice"
        if subtype == "bot_message" or value.get("bot_id") or author in self.workspace.bots:
            return "bot"
        return "person" if author else None

    def _record(self, stream: str, data: Data) -> SourceRecord:
        return SourceRecord(stream, data, self.element.position)


def _instant(ts: str) -> str:
    try:
        return from_epoch(float(ts))
    except ValueError:
        raise BadRecord("bad_date", "the time of the entry cannot be read") from None


def _instant_or_none(ts: str | None) -> str | None:
    try:
        return _instant(ts) if ts else None
    except BadRecord:
        return None


def readable(text: str, people: Mapping[str, str], channels: Mapping[str, str]) -> str:
    """Resolve mentions of people and channels, unfold links, undo escapes."""

    def resolved(mark: re.Match[str]) -> str:
        sign, target, label = mark.groups()
        if sign == "@":
            return f"@{label or people.get(target, target)}"
        if sign == "#":
            return f"#{label or channels.get(target, target)}"
        if sign == "!":
            return label or f"@{target.partition('^')[0]}"
        return f"{label} ({target})" if label and label != target else target

    return unescaped(_MARK.sub(resolved, text))


def words_of_blocks(blocks: list[Data]) -> str:
    """The words of a message that programs build of blocks, one block a paragraph."""
    return "\n\n".join(filter(None, ("".join(_words(block)).strip() for block in blocks)))


def _words(element: Data) -> Iterator[str]:
    text = element.get("text")
    if isinstance(text, str):
        yield text
    elif isinstance(text, dict):
        yield json_values.text(cast("Data", text), "text") or ""
    kind = element.get("type")
    name = json_values.line(element, "user_id", "channel_id", "name", "url")
    if kind == "user" and name:
        yield f"<@{name}>"
    elif kind == "channel" and name:
        yield f"<#{name}>"
    elif kind == "emoji" and name:
        yield f":{name}:"
    elif kind == "link" and name and not text:
        yield name
    for listed in ("elements", "fields"):
        for inner in json_values.objects(element, listed):
            yield from _words(inner)
