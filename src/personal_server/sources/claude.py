"""Claude: the zip that Anthropic mails, with conversations, projects and memories."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from personal_server.domain.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from personal_server.sources.common import json_values
from personal_server.sources.common.conversations import (
    ATTACHMENTS,
    CONVERSATIONS,
    MESSAGES,
    created,
)
from personal_server.sources.common.declaration import (
    StreamForm,
    declaration,
    key,
    moment,
    plain,
    reference,
    text,
)
from personal_server.sources.common.errors import BadRecord, MemberDamaged
from personal_server.sources.common.export import Export, ExportMember
from personal_server.sources.common.json_stream import (
    LARGEST_LINE_BYTES,
    Element,
    json_elements,
    json_lines,
    parse_object,
)
from personal_server.sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_element,
    each_member,
    matching,
    others_in,
    without_repeats,
)
from personal_server.sources.common.text import or_none

LONGEST_BEGINNING_BYTES = 256 * 1024
_BEGINNING = re.compile(rb"^\s*\[?\s*\{\s*\"uuid\"\s*:")
_CONVERSATION = re.compile(rb"^\s*\[?\s*\{.*\"chat_messages\"\s*:", re.DOTALL)
_PROJECT = re.compile(rb"^\s*\[?\s*\{.*\"prompt_template\"\s*:", re.DOTALL)
_MEMORIES = re.compile(rb"^\s*\[?\s*\{.*\"conversations_memory\"\s*:", re.DOTALL)
PROJECTS = StreamForm(
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
DOCUMENTS = StreamForm(
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
MEMORIES = StreamForm(
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


class ClaudeSource:
    """Reads conversations, projects and memories, as arrays or as lines."""

    connector_key = "claude"
    declaration: Data = DECLARATION
    how_to_export = (
        "In Claude choose Settings > Privacy > Export data. A mail brings links to one or more "
        "zips; import each as it is."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim files of conversations, projects or memories."""
        candidates = matching(export, _may_be_claude, ".json", ".jsonl")
        found = [member for member in candidates if _kind(_beginning(member))]
        return claim(found, "it holds conversations as Claude exports them")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each conversation with its messages, each project with its documents."""
        return beginning_at(start, without_repeats(each_member(export, _read_member)))


def _may_be_claude(head: bytes) -> bool:
    return _kind(head) is not None or bool(_BEGINNING.match(head))


def _beginning(member: ExportMember) -> bytes:
    """As much of a file as tells what it is: a summary may stand before the messages."""
    try:
        head = member.head()
        longer = _kind(head) is None and _BEGINNING.match(head)
        return member.head(LONGEST_BEGINNING_BYTES) if longer else head
    except MemberDamaged:
        return b""


def _kind(head: bytes) -> str | None:
    kinds = {"conversations": _CONVERSATION, "memories": _MEMORIES, "projects": _PROJECT}
    return next((kind for kind, pattern in kinds.items() if pattern.match(head)), None)


def _read_member(member: ExportMember) -> Iterator[SourceItem]:
    head = _beginning(member)
    builds = {"conversations": _conversation, "projects": _project}
    return each_element(_elements(member, head), builds.get(_kind(head) or "", _memories))


def _elements(member: ExportMember, head: bytes) -> Iterable[Element | Skipped]:
    """One array, one object in a file of its own, or one object on each line."""
    if head.lstrip().startswith(b"["):
        return json_elements(member)
    with member.open() as stream:
        first = stream.readline(LARGEST_LINE_BYTES)
    if first.rstrip().endswith(b"}") and first.count(b'"chat_messages"') == 1:
        return json_lines(member)
    with member.open() as stream:
        value = parse_object(stream.read(LARGEST_LINE_BYTES))
    return [Element(member.offset, member.where(0), value)]


def _conversation(element: Element) -> Iterator[SourceItem]:
    value = element.value
    conversation_id = json_values.required(value, "uuid")
    if "chat_messages" not in value:
        raise BadRecord("unknown_record_type", "it is no conversation")
    title = json_values.line(value, "name")
    messages = _in_order(json_values.objects(value, "chat_messages"))
    created_at = created(json_values.instant(value, "created_at", "updated_at"))
    yield SourceRecord(
        "conversations",
        {
            "id": conversation_id,
            "title": title,
            **created_at,
            "updated_at": json_values.instant(value, "updated_at"),
            "project_id": json_values.line(json_values.inner(value, "project"), "uuid"),
            "model": json_values.line(value, "model"),
            "message_count": len(messages),
            "is_archived": json_values.truth(value, "is_archived"),
            "url": f"https://claude.ai/chat/{conversation_id}",
        },
        element.position,
    )
    yield from others_in(element, "chat_messages")
    ids = [_message_id(conversation_id, message) for message in messages]
    known = {json_values.line(m, "uuid"): own for m, own in zip(messages, ids, strict=True)}
    previous = {after: before for before, after in dict(pairwise(ids)).items()}
    for message, own in zip(messages, ids, strict=True):
        named = known.get(json_values.line(message, "parent_message_uuid"))
        facts: Data = {
            "id": own,
            "conversation_id": conversation_id,
            "parent_id": named or previous.get(own),
            "conversation_title": title,
        } | (created(json_values.instant(message, "created_at")) or created_at)
        yield from _message(message, facts, element.position)


def _in_order(messages: list[Data]) -> list[Data]:
    """By their times, if all have one."""
    times = [json_values.instant(message, "created_at") for message in messages]
    if not all(times):
        return messages
    return [messages[at] for at in sorted(range(len(messages)), key=lambda at: times[at] or "")]


def _message_id(conversation_id: str, message: Data) -> str:
    own = json_values.line(message, "uuid") or json.dumps(message, sort_keys=True)
    return stable_id("msg", conversation_id, own)


def _message(message: Data, facts: Data, position: int) -> Iterator[SourceItem]:
    blocks = json_values.objects(message, "content")
    attached = json_values.objects(message, "attachments") + [
        each for name in ("files", "files_v2") for each in json_values.objects(message, name)
    ]
    tools = [block for block in blocks if block.get("type") == "tool_use"]
    sender = json_values.line(message, "sender")
    distinct = {json.dumps(each, sort_keys=True): each for each in attached}
    yield SourceRecord(
        "messages",
        facts
        | {
            "role": "user" if sender == "human" else sender,
            "text": _words(blocks, "text") or json_values.text(message, "text"),
            "thinking": _words(blocks, "thinking"),
            "tools": list(filter(None, (json_values.line(each, "name") for each in tools))),
            "kind": "message",
            "model": json_values.line(message, "model"),
            "is_current": True,
            "attachment_count": len(distinct),
        },
        position,
    )
    for mark, each in distinct.items():
        yield SourceRecord("attachments", _attachment(each, mark, facts), position)


def _attachment(value: Data, mark: str, message: Data) -> Data:
    return {
        "id": stable_id("att", message["id"], mark),
        "message_id": message["id"],
        "conversation_id": message["conversation_id"],
        **created(message.get("created_at")),
        "filename": json_values.line(value, "file_name"),
        "mime_type": json_values.line(value, "file_type", "file_kind"),
        "size_bytes": json_values.whole(value, "file_size"),
        "extracted_text": json_values.text(value, "extracted_content"),
    }


def _words(blocks: list[Data], kind: str) -> str | None:
    pieces = [json_values.text(block, kind) for block in blocks if block.get("type") == kind]
    return or_none("\n\n".join(filter(None, pieces)))


def _project(element: Element) -> Iterator[SourceItem]:
    value = element.value
    project_id = json_values.required(value, "uuid")
    created_at = created(json_values.instant(value, "created_at", "updated_at"))
    yield SourceRecord(
        "projects",
        {
            "id": project_id,
            "name": json_values.line(value, "name"),
            "description": json_values.text(value, "description"),
            "instructions": json_values.text(value, "prompt_template"),
            **created_at,
            "updated_at": json_values.instant(value, "updated_at"),
        },
        element.position,
    )
    yield from others_in(element, "docs")
    for document in json_values.objects(value, "docs"):
        content = json_values.text(document, "content")
        filename = json_values.line(document, "filename")
        own = json_values.line(document, "uuid") or stable_id("doc", str(content))
        data: Data = {
            "id": stable_id("doc", project_id, own, filename),
            "project_id": project_id,
            "filename": filename,
            "text": content,
        } | (created(json_values.instant(document, "created_at")) or created_at)
        yield SourceRecord("documents", data, element.position)


def _memories(element: Element) -> Iterator[SourceItem]:
    whole = json_values.text(element.value, "conversations_memory")
    projects = json_values.inner(element.value, "project_memories")
    notes = [(project, json_values.text(projects, project)) for project in sorted(projects)]
    for project, note in [(None, whole), *notes]:
        if note:
            data = {"id": stable_id("mem", project, note), "project_id": project, "text": note}
            yield SourceRecord("memories", data, element.position)
