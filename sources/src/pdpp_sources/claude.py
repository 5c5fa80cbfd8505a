"""Claude: the zip that Anthropic mails, with conversations, projects and memories."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec.structs import replace

from pdpp_kernel.source_item import (
    Data,
    Json,
    Skipped,
    SourceItem,
    SourceRecord,
    stable_id,
)
from pdpp_sources.common import json_values
from pdpp_sources.common.conversations import (
    ATTACHMENTS,
    CONVERSATIONS,
    MESSAGES,
    UNKNOWN_CONTENT,
    cited,
    created,
)
from pdpp_sources.common.declaration import (
    StreamForm,
    declaration,
    key,
    moment,
    plain,
    reference,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.json_stream import (
    LARGEST_LINE_BYTES,
    Element,
    json_elements,
    json_lines,
    parse_object,
)
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_element,
    each_member,
    matching,
    others_in,
    without_repeats,
)
from pdpp_sources.common.text import or_none, printable

LONGEST_BEGINNING_BYTES = 256 * 1024
_BEGINNING = re.compile(rb"^\s*\[?\s*\{\s*\"uuid\"\s*:")
_KINDS = (
    re.compile(rb"^\s*\[?\s*\{.*\"chat_messages\"\s*:", re.DOTALL),
    re.compile(rb"^\s*\[?\s*\{.*\"conversations_memory\"\s*:", re.DOTALL),
    re.compile(rb"^\s*\[?\s*\{.*\"prompt_template\"\s*:", re.DOTALL),
    re.compile(rb"^\s*\[?\s*\{.*\"memory_files\"\s*:\s*\[\s*\{\s*\"path\"", re.DOTALL),
    re.compile(
        rb"^\s*\[?\s*\{(?=.*\"messages\"\s*:\s*\[)(?=.*\"(?:contentBlocks|authorAccountUuid)\"\s*:)",
        re.DOTALL,
    ),
)
# The lists of a file that others made of several, and of whoever wrapped them.
_WRAPPED = ("conversations", "projects", "memories", "design_chats")
_WRAPPER = re.compile(
    rb"\s*\{(?!\s*\"uuid\").*\"(?:" + "|".join(_WRAPPED).encode() + rb")\"\s*:\s*\[", re.DOTALL
)
# Blocks of a message that say nothing a person would look for.
_SILENT = frozenset({"token_budget", "flag", "redacted_thinking", "image", "start", "done"})
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
ARTIFACTS = StreamForm(
    "artifacts",
    "What the assistant made for you",
    "Title and content of every document, page and program, in each of its versions.",
    [
        key(),
        reference("message_id", "The message it came with", required=True),
        reference("conversation_id", "The conversation"),
        moment("created_at", "When it was made", event=True),
        text("title", "Title of it", title=True),
        plain("artifact_id", "What its versions share"),
        word("kind", "Kind of content, as the platform names it"),
        word("command", "create, update or rewrite; of an update only what is new is its content"),
        text("text", "Its content"),
    ],
    time_field="created_at",
    parents={"message": ("messages", "message_id")},
    semantic=["text"],
)
MEMORIES = StreamForm(
    "memories",
    "What the assistant remembers of you",
    "Notes the assistant keeps about you and your projects.",
    [
        key(),
        plain("project_id", "The project it belongs to, if any"),
        text("path", "Name of the file the assistant keeps it in"),
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
        ARTIFACTS,
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
        exports = [member for member in candidates if _is_claude(_beginning(member))]
        return claim(exports, "it holds conversations as Claude exports them")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each conversation with its messages, each project with its documents."""
        return beginning_at(start, without_repeats(each_member(export, _read_member)))


def _may_be_claude(head: bytes) -> bool:
    return _is_claude(head) or bool(_BEGINNING.match(head))


def _beginning(member: ExportMember) -> bytes:
    """As much of a file as tells what it is: a summary may stand before the messages."""
    try:
        head = member.head()
        longer = not _is_claude(head) and _BEGINNING.match(head)
        return member.head(LONGEST_BEGINNING_BYTES) if longer else head
    except MemberDamaged:
        return b""


def _is_claude(head: bytes) -> bool:
    return any(kind.match(head) for kind in _KINDS)


def _read_member(member: ExportMember) -> Iterator[SourceItem]:
    return each_element(_elements(member, _beginning(member)), _entry)


def _elements(member: ExportMember, head: bytes) -> Iterable[Element | Skipped]:
    """One array, lists in an object, one object in a file of its own, or one on each line."""
    if head.lstrip().startswith(b"["):
        return json_elements(member)
    if _WRAPPER.match(head):
        return json_elements(member, *_WRAPPED)
    with member.open() as stream:
        first = stream.readline(LARGEST_LINE_BYTES)
    if first.rstrip().endswith(b"}") and first.count(b'"chat_messages"') == 1:
        return json_lines(member)
    with member.open() as stream:
        value = parse_object(stream.read(LARGEST_LINE_BYTES))
    return [Element(member.offset, member.where(0), value)]


def _entry(element: Element) -> Iterator[SourceItem]:
    """What an entry is, is told by its members. Raises: BadRecord."""
    value = element.value
    if "chat_messages" in value:
        return _conversation(element)
    if "conversations_memory" in value or "memory_files" in value or "project_memories" in value:
        return _memories(element)
    if "prompt_template" in value or "docs" in value:
        return _project(element)
    if "messages" in value:
        return _conversation(replace(element, value=_designed(value)))
    raise BadRecord("unknown_record_type", "the entry is not a conversation, project or memory")


def _designed(value: Data) -> Data:
    """A chat about a design, written as others are."""
    project = json_values.line(json_values.inner(value, "project"), "name")
    title = json_values.line(value, "title", "name") or project
    messages: list[Json] = [
        _designed_message(message) for message in json_values.objects(value, "messages")
    ]
    messages += [e for e in json_values.things(value, "messages") if not isinstance(e, dict)]
    times = {name: value[name] for name in ("created_at", "updated_at") if name in value}
    uuid = json_values.line(value, "uuid")
    return {"uuid": uuid, "name": title, "chat_messages": messages, "url": None} | times


def _designed_message(value: Data) -> Data:
    content = json_values.inner(value, "content")
    blocks = [_designed_block(block) for block in json_values.objects(content, "contentBlocks")]
    files = [
        {"file_name": attachment.get("name"), "extracted_content": attachment.get("content")}
        for attachment in json_values.objects(content, "attachments")
    ]
    return {
        "uuid": value.get("uuid"),
        "sender": "human" if value.get("role") == "user" else value.get("role"),
        "created_at": value.get("created_at") or content.get("timestamp"),
        "text": content.get("content"),
        "content": blocks,
        "attachments": files,
    }


def _designed_block(block: Data) -> Data:
    match block.get("type"):
        case "thinking":
            return {"type": "thinking", "thinking": block.get("text")}
        case "tool_call":
            call = json_values.inner(block, "toolCall")
            return {"type": "tool_use", "name": call.get("name"), "input": call.get("input")}
        case "user_interjection" | "error":
            text = json_values.text(block, "message")
            inner = json_values.inner(block, "message")
            return {"type": "text", "text": text or json_values.text(inner, "content")}
        case _:
            return block


def _conversation(element: Element) -> Iterator[SourceItem]:
    value = element.value
    conversation_id = json_values.required(value, "uuid")
    title = json_values.line(value, "name")
    messages = _in_order(json_values.objects(value, "chat_messages"))
    created_at = created(json_values.instant(value, "created_at", "updated_at"))
    on_the_web = f"https://claude.ai/chat/{conversation_id}"
    yield SourceRecord(
        "conversations",
        {
            "id": conversation_id,
            "title": title,
            "summary": json_values.text(value, "summary"),
            **created_at,
            "updated_at": json_values.instant(value, "updated_at"),
            "project_id": json_values.line(json_values.inner(value, "project"), "uuid"),
            "model": json_values.line(value, "model"),
            "message_count": len(messages),
            "is_archived": json_values.truth(value, "is_archived"),
            "is_starred": json_values.truth(value, "is_starred"),
            "url": None if "url" in value else on_the_web,
        },
        element.position,
    )
    yield from others_in(element, "chat_messages")
    ids = [_message_id(conversation_id, message) for message in messages]
    own_ids = {json_values.line(m, "uuid"): own for m, own in zip(messages, ids, strict=True)}
    previous = {after: before for before, after in dict(pairwise(ids)).items()}
    shown_messages = _shown(messages, json_values.line(value, "current_leaf_message_uuid"))
    for message, own in zip(messages, ids, strict=True):
        parent = own_ids.get(json_values.line(message, "parent_message_uuid"))
        facts: Data = {
            "id": own,
            "conversation_id": conversation_id,
            "parent_id": parent or previous.get(own),
            "conversation_title": title,
            "is_current": shown_messages is None
            or json_values.line(message, "uuid") in shown_messages,
        } | (created(json_values.instant(message, "created_at")) or created_at)
        yield from _message(message, facts, element)


def _shown(messages: list[Data], leaf: str | None) -> set[str] | None:
    """The messages from the last that is shown upwards; all where the export names none."""
    parents = {
        json_values.line(message, "uuid"): json_values.line(message, "parent_message_uuid")
        for message in messages
    }
    if leaf not in parents:
        return None
    path: set[str] = set()
    while leaf and leaf not in path:
        path.add(leaf)
        leaf = parents.get(leaf)
    return path


def _in_order(messages: list[Data]) -> list[Data]:
    """By their times, if all have one."""
    times = [json_values.instant(message, "created_at") for message in messages]
    if not all(times):
        return messages
    return [messages[at] for at in sorted(range(len(messages)), key=lambda at: times[at] or "")]


def _message_id(conversation_id: str, message: Data) -> str:
    own = json_values.line(message, "uuid") or json.dumps(message, sort_keys=True)
    return stable_id("msg", conversation_id, own)


def _message(message: Data, facts: Data, element: Element) -> Iterator[SourceItem]:
    position = element.position
    blocks = json_values.objects(message, "content")
    attached = json_values.objects(message, "attachments") + [
        file for name in ("files", "files_v2") for file in json_values.objects(message, name)
    ]
    tools = [block for block in blocks if block.get("type") == "tool_use"]
    sender = json_values.line(message, "sender")
    distinct = {json.dumps(attachment, sort_keys=True): attachment for attachment in attached}
    used = (json_values.line(tool, "name") for tool in tools)
    is_current = facts["is_current"]
    about: Data = {name: value for name, value in facts.items() if name != "is_current"}
    yield SourceRecord(
        "messages",
        about
        | {
            "role": "user" if sender == "human" else sender,
            "text": _words(blocks, "text") or json_values.text(message, "text"),
            "thinking": _words(blocks, "thinking"),
            "tools": list(dict.fromkeys(filter(None, used))),
            "tool_text": or_none("\n\n".join(filter(None, map(_tool_words, blocks)))),
            "links": cited(page for block in blocks for page in _pages(block)),
            "kind": "message",
            "model": json_values.line(message, "model"),
            "is_current": is_current,
            "attachment_count": len(distinct),
        },
        position,
    )
    for mark, attachment in distinct.items():
        yield SourceRecord("attachments", _attachment(attachment, mark, facts), position)
    for number, block in enumerate(tools):
        if artifact := _artifact(block, number, facts):
            yield SourceRecord("artifacts", artifact, position)
    for block in blocks:
        if not _is_known(block):
            yield Skipped(element.where, *UNKNOWN_CONTENT, position)


def _is_known(block: Data) -> bool:
    kind = json_values.line(block, "type") or ""
    return kind in ("text", "thinking", "tool_use", "tool_result", "voice_note", *_SILENT)


def _tool_words(block: Data) -> str | None:
    """What a tool was given or answered; of an artifact its text stands in a stream of its own."""
    name = json_values.line(block, "name") or "tool"
    match block.get("type"):
        case "tool_use" if name != "artifacts":
            tool_input = json_values.inner(block, "input")
            return (
                f"{name}: {printable(json.dumps(tool_input, ensure_ascii=False))}"
                if tool_input
                else None
            )
        case "tool_result":
            parts = json_values.objects(block, "content")
            texts = [json_values.text(part, "text", "title", "url") for part in parts]
            words = "\n".join(filter(None, texts)) or json_values.text(block, "content")
            return f"{name} answered: {words}" if words else None
        case _:
            return None


def _pages(block: Data) -> Iterator[Data]:
    """What a block names as its sources, or a search has found."""
    for citation in json_values.objects(block, "citations"):
        yield citation
        yield json_values.inner(citation, "details")
    yield from (p for p in json_values.objects(block, "content") if p.get("type") == "knowledge")


def _artifact(block: Data, number: int, facts: Data) -> Data | None:
    """A document as the assistant wrote or changed it."""
    tool_input = json_values.inner(block, "input")
    words = json_values.text(tool_input, "content", "new_str")
    if block.get("name") != "artifacts" or words is None:
        return None
    own = json_values.line(tool_input, "id")
    version = json_values.line(tool_input, "version_uuid") or json_values.line(block, "id")
    return {
        "id": stable_id("art", facts["id"], own, version, number),
        "message_id": facts["id"],
        "conversation_id": facts["conversation_id"],
        **created(facts.get("created_at")),
        "title": json_values.line(tool_input, "title"),
        "artifact_id": own,
        "kind": json_values.line(tool_input, "type", "language"),
        "command": json_values.line(tool_input, "command"),
        "text": words,
    }


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
        "prompt": None,
    }


def _words(blocks: list[Data], kind: str) -> str | None:
    kinds = (kind, "voice_note") if kind == "text" else (kind,)
    pieces = [json_values.text(block, kind) for block in blocks if block.get("type") in kinds]
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
    value = element.value
    whole = json_values.text(value, "conversations_memory")
    projects = json_values.inner(value, "project_memories")
    files = json_values.objects(value, "memory_files")
    notes = [(project, None, json_values.text(projects, project)) for project in sorted(projects)]
    memories = [(None, json_values.line(f, "path"), json_values.text(f, "content")) for f in files]
    for project, path, note in [(None, None, whole), *notes, *memories]:
        if note:
            own = (project, note) if path is None else (project, note, path)
            data: Data = {"id": stable_id("mem", *own), "project_id": project, "path": path}
            yield SourceRecord("memories", data | {"text": note}, element.position)
