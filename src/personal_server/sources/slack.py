"""Slack: the zip of a workspace export, a folder for each channel with a file for each day."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

from personal_server.domain.source_item import Data, Skipped, SourceItem, SourceRecord
from personal_server.sources import shape
from personal_server.sources.errors import BadRecord, MemberDamaged
from personal_server.sources.export import Export, Member
from personal_server.sources.json_stream import Element, json_elements
from personal_server.sources.port import (
    CERTAIN,
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from personal_server.sources.slack_streams import DECLARATION, HOW_TO_EXPORT
from personal_server.sources.slack_text import readable, words_of_blocks
from personal_server.sources.times import from_epoch

_DAY = re.compile(rb"^\s*\[\s*\{.*\"ts\"\s*:\s*\"\d{10}\.\d{6}\"", re.DOTALL)
_DATED = re.compile(r"/\d{4}-\d{2}-\d{2}\.json$")
_INDEXES = {
    "channels.json": "channel",
    "groups.json": "private channel",
    "mpims.json": "group conversation",
    "dms.json": "direct conversation",
}
_PEOPLE = frozenset({"users.json", "org_users.json"})


class SlackSource:
    """Reads channels, people and messages of a workspace."""

    connector_key = "slack"
    declaration: Data = DECLARATION
    how_to_export = HOW_TO_EXPORT

    def recognize(self, export: Export) -> Claim | None:
        """Claim the files of days, and the indexes beside their folders."""
        days = list(matching(export, lambda head: bool(_DAY.match(head)), ".json"))
        roots = {_root(day) for day in days}
        claimed = {day.name for day in days}
        days += [m for m in export.members if _is_day(m, roots) and m.name not in claimed]
        indexes = [m for m in export.members if _parent(m) in roots and _is_index(m)]
        return claim(CERTAIN, [*days, *indexes], "it holds days of a Slack workspace")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield people and channels, then the messages of each channel, day by day."""
        workspaces: dict[str, _Workspace] = {}
        for member in export.members:
            if _is_index(member):
                workspaces.setdefault(_parent(member), _Workspace()).learn(member)
        items = each_member(export, lambda member: _read_member(member, workspaces))
        return beginning_at(start, without_repeats(items))


def _parent(member: Member) -> str:
    return str(PurePosixPath(member.name).parent)


def _root(member: Member) -> str:
    return str(PurePosixPath(member.name).parent.parent)


def _is_day(member: Member, roots: set[str]) -> bool:
    """A day beside others; the first message of one may be longer than what was looked at."""
    return _root(member) in roots and bool(_DATED.search(member.name))


def _is_index(member: Member) -> bool:
    name = PurePosixPath(member.name).name
    return name in _INDEXES or name in _PEOPLE


@dataclass(slots=True)
class _Workspace:
    """Who is who and which folder is which channel."""

    people: dict[str, str] = field(default_factory=dict[str, str])
    folders: dict[str, str] = field(default_factory=dict[str, str])
    channels: dict[str, str] = field(default_factory=dict[str, str])
    members: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def learn(self, member: Member) -> None:
        """Read an index ahead of the messages that need it; its faults are reported later."""
        try:
            found = [each.value for each in json_elements(member) if isinstance(each, Element)]
        except (MemberDamaged, BadRecord):
            return
        for value in found:
            own = shape.line(value, "id") or ""
            if PurePosixPath(member.name).name in _PEOPLE:
                self.people[own] = _shown_name(value) or own
            else:
                self.members[own] = shape.strings(value, "members")
                self.folders[own] = own
                if name := shape.line(value, "name"):
                    self.channels[own] = name
                    self.folders[name] = own

    def channel(self, folder: str) -> tuple[str, str]:
        """Id and name of the channel that a folder holds."""
        own = self.folders.get(folder, folder)
        return own, self.channels.get(own) or self.everybody(self.members.get(own, [])) or folder

    def everybody(self, people: list[str]) -> str:
        """The names of some people; a direct conversation has no other name."""
        return ", ".join(self.people.get(each, each) for each in people)


def _shown_name(person: Data) -> str | None:
    profile = shape.inner(person, "profile")
    return shape.line(profile, "display_name", "real_name") or shape.line(
        person, "real_name", "name"
    )


def _read_member(member: Member, workspaces: dict[str, _Workspace]) -> Iterator[SourceItem]:
    name = PurePosixPath(member.name).name
    index = _is_index(member)
    workspace = workspaces.get(_parent(member) if index else _root(member), _Workspace())
    for element in json_elements(member):
        if isinstance(element, Skipped):
            yield element
            continue
        where = f"{member.name} at byte {element.position - member.offset}"
        entry = _Entry(element, workspace, PurePosixPath(member.name).parent.name)
        if not index:
            yield from one_record(where, element.position, entry.message)
        elif name in _PEOPLE:
            yield from one_record(where, element.position, entry.person)
        else:
            build = partial(entry.channel, _INDEXES[name])
            yield from one_record(where, element.position, build)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One object of the export on its way to records."""

    element: Element
    workspace: _Workspace
    folder: str

    def person(self) -> Iterator[SourceRecord]:
        value = self.element.value
        profile = shape.inner(value, "profile")
        data: Data = {
            "id": shape.required(value, "id"),
            "name": _shown_name(value),
            "handle": shape.line(value, "name"),
            "real_name": shape.line(profile, "real_name") or shape.line(value, "real_name"),
            "email": shape.line(profile, "email"),
            "title": shape.line(profile, "title"),
            "time_zone": shape.line(value, "tz"),
            "is_bot": shape.truth(value, "is_bot"),
            "is_deleted": shape.truth(value, "deleted"),
        }
        yield self._record("people", data)

    def channel(self, kind: str) -> Iterator[SourceRecord]:
        value = self.element.value
        created = shape.instant(value, "created")
        members = shape.strings(value, "members")
        data: Data = {
            "id": shape.required(value, "id"),
            "name": shape.line(value, "name") or self.workspace.everybody(members),
            "kind": kind,
            "topic": shape.text(shape.inner(value, "topic"), "value"),
            "purpose": shape.text(shape.inner(value, "purpose"), "value"),
            "created_at": created,
            "members": [self._named(each) for each in members],
            "member_count": len(members),
            "is_archived": shape.truth(value, "is_archived"),
        }
        yield self._record("channels", data)

    def message(self) -> Iterator[SourceRecord]:
        value = self.element.value
        ts = shape.required(value, "ts")
        channel_id, channel_name = self.workspace.channel(self.folder)
        thread = shape.line(value, "thread_ts") or ts
        author = shape.line(value, "user", "bot_id")
        files = shape.objects(value, "files")
        reactions = shape.objects(value, "reactions")
        data: Data = {
            "id": f"{channel_id}.{ts}",
            "channel_id": channel_id,
            "channel_name": channel_name,
            "sent_at": _instant(ts),
            "author_id": author,
            "author_name": self._author(value, author),
            "text": self._words(value),
            "thread_id": f"{channel_id}.{thread}",
            "is_reply": thread != ts,
            "reply_count": shape.whole(value, "reply_count") or 0,
            "kind": shape.line(value, "subtype") or "message",
            "reactions": [name for each in reactions if (name := shape.line(each, "name"))],
            "reaction_count": sum(shape.whole(each, "count") or 0 for each in reactions),
            "file_count": len(files),
            "edited_at": _instant_or_none(shape.line(shape.inner(value, "edited"), "ts")),
        }
        yield self._record("messages", data)
        for number, each in enumerate(files, 1):
            yield self._file(each, number, data)

    def _file(self, value: Data, number: int, message: Data) -> SourceRecord:
        address = shape.line(value, "url_private", "permalink")
        data: Data = {
            "id": f"{message['id']}.{shape.line(value, 'id') or number}",
            "message_id": message["id"],
            "sent_at": message["sent_at"],
            "filename": shape.line(value, "name", "title"),
            "mime_type": shape.line(value, "mimetype"),
            "size_bytes": shape.whole(value, "size"),
            "url": address.partition("?")[0] if address else None,
        }
        return self._record("files", data)

    def _words(self, value: Data) -> str | None:
        pieces = [shape.text(value, "text")]
        for attachment in shape.objects(value, "attachments"):
            pieces += [shape.text(attachment, "title"), shape.text(attachment, "text", "fallback")]
        said = "\n\n".join(filter(None, pieces)) or words_of_blocks(shape.objects(value, "blocks"))
        return readable(said, self.workspace.people, self.workspace.channels) or None

    def _author(self, value: Data, author: str | None) -> str | None:
        if author in self.workspace.people:
            return self.workspace.people[author]
        profile = shape.inner(value, "user_profile")
        return (
            shape.line(profile, "display_name", "real_name")
            or shape.line(value, "username")
            or shape.line(shape.inner(value, "bot_profile"), "name")
        )

    def _named(self, person: str) -> str:
        return self.workspace.people.get(person, person)

    def _record(self, stream: str, data: Data) -> SourceRecord:
        return SourceRecord(stream, data, self.element.position)


def _instant(ts: str) -> str:
    try:
        return from_epoch(float(ts))
    except ValueError:
        raise BadRecord("bad_date", "its time cannot be read") from None


def _instant_or_none(ts: str | None) -> str | None:
    try:
        return _instant(ts) if ts else None
    except BadRecord:
        return None
