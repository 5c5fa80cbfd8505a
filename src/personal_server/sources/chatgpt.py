"""ChatGPT: the zip that OpenAI mails, with its tree of messages for each conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import cast

from personal_server.domain.source_item import (
    Data,
    Json,
    SourceItem,
    SourceRecord,
    stable_id,
)
from personal_server.sources.common import json_values
from personal_server.sources.common.attachments import kind_of, with_file
from personal_server.sources.common.conversations import (
    ATTACHMENTS,
    CONVERSATIONS,
    MESSAGES,
    created,
)
from personal_server.sources.common.declaration import declaration
from personal_server.sources.common.export import Export, ExportMember
from personal_server.sources.common.json_stream import Element, json_elements
from personal_server.sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_element,
    each_member,
    matching,
    without_repeats,
)
from personal_server.sources.common.text import or_none, printable

_CONVERSATION = re.compile(rb"^\s*\[\s*\{.*\"(?:mapping|current_node)\"\s*:", re.DOTALL)
_ASSET = re.compile(r"(file[-_][A-Za-z0-9]+)")
_WORDS = ("text", "result", "content", "user_profile", "user_instructions", "name")
# Where an answer cites a source: its number between characters for private use.
_MARK = re.compile("\ue200[^\ue201]*\ue201")


class ChatGptSource:
    """Reads conversations.json, or its numbered parts, and the files beside it."""

    connector_key = "chatgpt"
    declaration: Data = declaration(
        "chatgpt",
        "ChatGPT",
        "Conversations with ChatGPT, with files and pictures.",
        [CONVERSATIONS, MESSAGES, ATTACHMENTS],
    )
    how_to_export = (
        "In ChatGPT choose Settings > Data controls > Export data. A mail brings a link to a zip; "
        "import the zip as it is."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim lists of conversations with a message tree, and the files they point to."""
        found = list(matching(export, _CONVERSATION.match, ".json"))
        files = [m for m in export.members if found and _asset_id(m.name)]
        return claim(found + files, "it holds conversations as ChatGPT exports them")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each conversation, then its messages, each with its files."""
        files = {name: m for m in export.members if (name := _asset_id(m.name))}
        lists = export.only(m for m in export.members if _asset_id(m.name) is None)
        build = partial(_conversation_items, files=files)
        items = each_member(lists, lambda member: each_element(json_elements(member), build))
        return beginning_at(start, without_repeats(items))


def _asset_id(name: str) -> str | None:
    found = _ASSET.match(PurePosixPath(name).name)
    return found.group(1) if found else None


def _conversation_items(element: Element, files: dict[str, ExportMember]) -> Iterator[SourceItem]:
    return _Conversation(element, files).items()


class _Conversation:
    """One conversation on its way to records."""

    def __init__(self, element: Element, files: dict[str, ExportMember]) -> None:
        value = self._value = element.value
        self._position = element.position
        self._files = files
        self._id = json_values.required(value, "conversation_id", "id")
        self._title = json_values.line(value, "title")
        self._created = created(json_values.instant(value, "create_time", "update_time"))
        self._nodes = {
            n: json_values.inner(value, "mapping", n) for n in json_values.inner(value, "mapping")
        }
        self._current = frozenset(self._upwards(json_values.line(value, "current_node")))
        self._speaking = {name for name, node in self._nodes.items() if _speaks(node)}

    def items(self) -> Iterator[SourceItem]:
        yield self._record("conversations", self._conversation(len(self._speaking)))
        for name, node in self._nodes.items():
            if name in self._speaking:
                yield from self._message(name, node)

    def _upwards(self, name: str | None) -> Iterator[str]:
        """A node and all above it; a tree that bites its tail ends where it began."""
        passed: set[str] = set()
        while name and name not in passed:
            passed.add(name)
            yield name
            name = json_values.line(self._nodes.get(name, {}), "parent")

    def _conversation(self, message_count: int) -> Data:
        value = self._value
        return {
            "id": self._id,
            "title": self._title,
            **self._created,
            "updated_at": json_values.instant(value, "update_time"),
            "project_id": json_values.line(value, "conversation_template_id", "gizmo_id"),
            "model": json_values.line(value, "default_model_slug"),
            "message_count": message_count,
            "is_archived": json_values.truth(value, "is_archived"),
            "url": f"https://chatgpt.com/c/{self._id}",
        }

    def _message(self, name: str, node: Data) -> Iterator[SourceItem]:
        message = json_values.inner(node, "message")
        content = json_values.inner(message, "content")
        metadata = json_values.inner(message, "metadata")
        hidden = json_values.truth(metadata, "is_visually_hidden_from_conversation")
        author = json_values.inner(message, "author")
        attached = _attached(message)
        above = self._upwards(json_values.line(node, "parent"))
        parent = next((each for each in above if each in self._speaking), None)
        created_at = created(json_values.instant(message, "create_time")) or self._created
        data: Data = {
            "id": self._node_id(name),
            "conversation_id": self._id,
            "parent_id": self._node_id(parent) if parent else None,
            **created_at,
            "conversation_title": self._title,
            "role": json_values.line(author, "role"),
            "text": words_of(content, json_values.objects(metadata, "content_references")),
            "thinking": thinking_of(content),
            "tools": list(filter(None, [json_values.line(author, "name")])),
            "kind": json_values.line(content, "content_type"),
            "model": json_values.line(metadata, "model_slug"),
            "is_current": name in self._current and not hidden,
            "attachment_count": len(attached),
        }
        yield self._record("messages", data)
        for asset, facts in attached.items():
            yield from self._attachment(asset, facts, data["id"], created_at)

    def _attachment(
        self, asset: str, facts: Data, message_id: str, created_at: Data
    ) -> Iterator[SourceItem]:
        member = self._files.get(_asset_id(asset) or asset)
        own_name = PurePosixPath(member.name).name if member else None
        filename = json_values.line(facts, "name") or own_name
        data: Data = {
            "id": stable_id("att", message_id, asset),
            "message_id": message_id,
            "conversation_id": self._id,
            **created_at,
            "filename": filename,
            "mime_type": json_values.line(facts, "mime_type", "mimeType") or kind_of(filename),
            "size_bytes": json_values.whole(facts, "size")
            or json_values.whole(facts, "size_bytes"),
            "extracted_text": None,
        }
        yield from with_file(self._record("attachments", data), member)

    def _node_id(self, node: str) -> str:
        return stable_id("msg", self._id, node)

    def _record(self, stream: str, data: Data) -> SourceRecord:
        return SourceRecord(stream, data, self._position)


def _speaks(node: Data) -> bool:
    """Whether a node is a message that says or carries something."""
    message = json_values.inner(node, "message")
    content = json_values.inner(message, "content")
    return bool(words_of(content) or thinking_of(content) or _attached(message))


def _attached(message: Data) -> dict[str, Data]:
    """Files by their id: those the message lists, and the pictures it shows."""
    listed = json_values.objects(json_values.inner(message, "metadata"), "attachments")
    found = {name: facts for facts in listed if (name := json_values.line(facts, "id"))}
    for name, facts in asset_pointers(json_values.inner(message, "content")):
        found.setdefault(name, facts)
    return found


def words_of(content: Data, sources: Sequence[Data] = ()) -> str | None:
    """What a message says, whatever its type, with its sources named; None if it says nothing."""
    kind = json_values.line(content, "content_type")
    if kind in ("thoughts", "reasoning_recap"):
        return None
    parts = [_part_words(part) for part in json_values.things(content, "parts")]
    named = [json_values.text(content, name) for name in _WORDS]
    if kind == "code" and named[0]:
        named[0] = f"```{json_values.line(content, 'language') or ''}\n{named[0]}\n```"
    return or_none(_cited("\n\n".join(filter(None, [*parts, *named])), sources).strip())


def _cited(words: str, sources: Sequence[Data]) -> str:
    """The words with the marks of their sources replaced by what the platform shows for them."""
    for source in sources if _MARK.search(words) else ():
        if mark := json_values.text(source, "matched_text"):
            words = words.replace(mark, json_values.text(source, "alt") or "")
    return _MARK.sub("", words)


def _part_words(part: Json) -> str | None:
    if isinstance(part, str):
        return or_none(printable(part))
    if isinstance(part, dict):
        return json_values.text(cast(Data, part), "text", "title", "url")
    return None


def thinking_of(content: Data) -> str | None:
    """What the assistant thought, where the export says it."""
    kind = json_values.line(content, "content_type")
    if kind == "reasoning_recap":
        return json_values.text(content, "content")
    thoughts = json_values.objects(content, "thoughts") if kind == "thoughts" else []
    pieces = [json_values.text(each, name) for each in thoughts for name in ("summary", "content")]
    return or_none("\n\n".join(filter(None, pieces)))


def asset_pointers(content: Data) -> Iterator[tuple[str, Data]]:
    """The ids of pictures and recordings among the parts, with the facts about them."""
    for part in json_values.objects(content, "parts"):
        for holder in (part, json_values.inner(part, "audio_asset_pointer")):
            pointer = json_values.line(holder, "asset_pointer")
            if pointer:
                yield pointer.partition("://")[2] or pointer, holder
