"""ChatGPT: the zip that OpenAI mails, with its tree of messages for each conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath
from typing import cast

from pdpp_kernel.source_item import (
    Data,
    Json,
    Skipped,
    SourceItem,
    SourceRecord,
    stable_id,
)
from pdpp_sources.common import json_values
from pdpp_sources.common.attachments import kind_of, with_file
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
    flag,
    key,
    moment,
    names,
    reference,
    sensitive,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.json_stream import (
    LARGEST_LINE_BYTES,
    Element,
    json_elements,
    parse_object,
)
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_element,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import or_none, printable

_BEGINS = rb"^\s*(?:\{\s*\"conversations\"\s*:\s*)?\[\s*\{"
_CONVERSATION = re.compile(_BEGINS + rb".*\"(?:mapping|current_node)\"\s*:", re.DOTALL)
# One conversation alone, as programs save it: an object whose nodes hold messages.
_ALONE = re.compile(
    rb"^\s*\{(?!\s*\"conversations\")(?=.*\"mapping\"\s*:\s*\{)"
    rb"(?=.*\"(?:message|current_node|create_time)\"\s*:)(?=.*\"(?:parent|children)\"\s*:)",
    re.DOTALL,
)
# What stands beside the conversations, told by its shape.
_BESIDE: dict[str, re.Pattern[bytes]] = {
    "shared": re.compile(
        rb"^\s*\[\s*\{(?=.*\"conversation_id\"\s*:)(?=.*\"is_anonymous\"\s*:)", re.DOTALL
    ),
    "feedback": re.compile(
        rb"^\s*\[\s*\{(?=.*\"conversation_id\"\s*:)(?=.*\"rating\"\s*:)", re.DOTALL
    ),
    "group chats": re.compile(rb"^\s*\{\s*\"chats\"\s*:\s*\[\s*\{"),
    "canvas": re.compile(rb"^\s*\{(?=.*\"title\"\s*:)(?=.*\"content\"\s*:)", re.DOTALL),
    "file names": re.compile(rb"^\s*\{\s*\"file[-_][^\"]{1,200}\"\s*:\s*\""),
}
_CANVAS_FOLDER = "textdocs"
_ASSET = re.compile(r"(file[-_][A-Za-z0-9]+)")
_POINTED = re.compile(r"file[-_][A-Za-z0-9]+")
_WORDS = (
    *("text", "result", "summary", "content", "output_str"),
    *("user_profile", "user_instructions", "model_set_context", "name"),
)
# Members of a message that say nothing by themselves.
_SILENT = frozenset(
    {
        *("content_type", "language", "response_format_name", "source_analysis_msg_id"),
        *("tether_id", "domain", "computer_id", "is_ephemeral", "pub_date"),
    }
)
_HOLDERS = ("audio_asset_pointer", "video_container_asset_pointer", "screenshot")
# Where an answer cites a source: its number between characters for private use.
_MARK = re.compile("\ue200[^\ue201]*\ue201")


SHARED = StreamForm(
    "shared_links",
    "Conversations you shared by a link",
    "Title of each, and whether your name stands on it.",
    [
        key(),
        reference("conversation_id", "The conversation"),
        text("title", "Title it was shared under", title=True),
        flag("is_anonymous", "Whether it was shared without your name"),
    ],
    parents={"conversation": ("conversations", "conversation_id")},
)

FEEDBACK = StreamForm(
    "feedback",
    "Your feedback on answers",
    "Whether you liked an answer, and your words about it.",
    [
        key(),
        reference("conversation_id", "The conversation"),
        moment("created_at", "When you said it", event=True),
        word("rating", "thumbsUp or thumbsDown"),
        text("text", "What you wrote", title=True),
    ],
    time_field="created_at",
    parents={"conversation": ("conversations", "conversation_id")},
)

GROUP_CHATS = StreamForm(
    "group_chats",
    "Group chats you are in",
    "Title and members of each; the export has none of what was said there.",
    [
        key(),
        text("title", "Title of the chat", title=True),
        moment("created_at", "When it began", event=True),
        sensitive(names("members", "Who is in it, as the platform names them")),
    ],
    time_field="created_at",
)

DOCUMENTS = StreamForm(
    "documents",
    "Documents you wrote with the assistant",
    "Title and text of every canvas.",
    [
        key(),
        text("title", "Title of the document", title=True),
        text("text", "Its text", media="text/markdown"),
        word("kind", "Kind of document"),
        moment("created_at", "When it was begun", event=True),
    ],
    time_field="created_at",
    semantic=["text"],
)


class ChatGptSource:
    """Reads conversations.json, or its numbered parts, and the files beside it."""

    connector_key = "chatgpt"
    declaration: Data = declaration(
        "chatgpt",
        "ChatGPT",
        "Conversations with ChatGPT, with files, pictures and recordings.",
        [CONVERSATIONS, MESSAGES, ATTACHMENTS, SHARED, FEEDBACK, GROUP_CHATS, DOCUMENTS],
    )
    how_to_export = (
        "In ChatGPT choose Settings > Data controls > Export data. A mail brings a link to a zip; "
        "import the zip as it is."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim lists of conversations with a message tree, what they point to and what is said."""
        conversations = {m.name for m in matching(export, _is_conversation, ".json")}
        if not conversations and not any(matching(export, _is_only_chatgpts, ".json")):
            return (
                None  # without the conversations, what is kept beside them is still this source's
            )
        companions = {m.name for m in matching(export, _beside, ".json") if _is_beside(m)}
        mine = (
            m for m in export.members if m.name in conversations | companions or _asset_id(m.name)
        )
        return claim(mine, "it holds conversations as ChatGPT exports them")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each conversation, then its messages, each with its files."""
        files = {name: m for m in export.members if (name := _asset_id(m.name))}
        texts = export.only(m for m in export.members if _asset_id(m.name) is None)
        tables = list(matching(texts, _BESIDE["file names"].match, ".json"))
        texts, names = export.only(texts.without([export.only(tables)])), _names(tables)
        build = partial(_conversation_items, files=files, names=names)
        items = each_member(texts, lambda member: _member_items(member, build))
        return beginning_at(start, without_repeats(items))


def _is_conversation(head: bytes) -> bool:
    return _CONVERSATION.match(head) is not None or _ALONE.match(head) is not None


def _is_only_chatgpts(head: bytes) -> bool:
    return _beside(head) in ("shared", "feedback")


def _beside(head: bytes) -> str | None:
    if _is_conversation(head):
        return None
    return next((kind for kind, shape in _BESIDE.items() if shape.match(head)), None)


def _is_beside(member: ExportMember) -> bool:
    """A document has no shape of its own, so its folder has to say that it is one."""
    is_canvas = _beside(member.head()) == "canvas"
    return not is_canvas or PurePosixPath(member.name).parent.name == _CANVAS_FOLDER


def _names(tables: Iterable[ExportMember]) -> dict[str, str]:
    """What files were called, which since 2026 are exported under their ids."""
    names: dict[str, str] = {}
    for member in tables:
        with suppress(BadRecord, MemberDamaged), member.open() as stream:
            listed = parse_object(stream.read(LARGEST_LINE_BYTES))
            listed_names = {
                _asset_id(file) or file: json_values.line(listed, file) for file in listed
            }
            names |= {file: name for file, name in listed_names.items() if name}
    return names


def _member_items(
    member: ExportMember, build: Callable[[Element], Iterator[SourceItem]]
) -> Iterator[SourceItem]:
    if _ALONE.match(member.head()):
        return one_record(member.name, member.offset, lambda: build(_alone(member)))
    kind = _beside(member.head())
    if kind == "canvas":
        return one_record(member.name, member.offset, partial(_document, member))
    lists: dict[str | None, Callable[[Element], Iterator[SourceItem]]] = {
        "shared": _shared,
        "feedback": _feedback,
        "group chats": _group_chat,
    }
    return each_element(json_elements(member, "conversations", "chats"), lists.get(kind, build))


def _alone(member: ExportMember) -> Element:
    """The one conversation of a file. Raises: BadRecord."""
    with member.open() as stream:
        raw = stream.read(LARGEST_LINE_BYTES + 1)
    if len(raw) > LARGEST_LINE_BYTES:
        raise BadRecord("too_large", "the entry is over 64 MB")
    return Element(member.offset, member.name, parse_object(raw))


def _shared(element: Element) -> Iterator[SourceItem]:
    value = element.value
    data: Data = {
        "id": json_values.required(value, "id"),
        "conversation_id": json_values.line(value, "conversation_id"),
        "title": json_values.line(value, "title"),
        "is_anonymous": json_values.truth(value, "is_anonymous"),
    }
    yield SourceRecord("shared_links", data, element.position)


def _feedback(element: Element) -> Iterator[SourceItem]:
    value = element.value
    conversation_id = json_values.line(value, "conversation_id")
    said_at = json_values.instant(value, "create_time", "update_time")
    rating = json_values.required(value, "rating")
    words = json_values.text(value, "text", "content")
    with suppress(BadRecord):  # words and marks as JSON in a string
        words = json_values.text(parse_object((words or "").encode()), "text")
    own = json_values.line(value, "id", "message_id")
    data: Data = {
        "id": stable_id("fdb", own, conversation_id, said_at, None if own else rating),
        "conversation_id": conversation_id,
        **created(said_at),
        "rating": rating,
        "text": words,
    }
    yield SourceRecord("feedback", data, element.position)


def _group_chat(element: Element) -> Iterator[SourceItem]:
    value = element.value
    members = json_values.strings(value, "participants") + [
        name
        for participant in json_values.objects(value, "participants")
        if (name := json_values.line(participant, "name", "display_name", "id"))
    ]
    data: Data = {
        "id": json_values.required(value, "id"),
        "title": json_values.line(value, "title", "name"),
        **created(json_values.instant(value, "create_time", "created_at")),
        "members": members,
    }
    yield SourceRecord("group_chats", data, element.position)


def _document(member: ExportMember) -> Iterator[SourceItem]:
    with member.open() as stream:
        value = parse_object(stream.read(LARGEST_LINE_BYTES))
    data: Data = {
        "id": json_values.line(value, "id") or stable_id("doc", PurePosixPath(member.name).stem),
        "title": json_values.line(value, "title"),
        "text": json_values.text(value, "content"),
        "kind": json_values.line(value, "type", "textdoc_type"),
        **created(json_values.instant(value, "created_at", "updated_at")),
    }
    yield SourceRecord("documents", data, member.offset)


def _asset_id(name: str) -> str | None:
    match = _ASSET.match(PurePosixPath(name).name)
    return match.group(1) if match else None


def _conversation_items(
    element: Element, files: dict[str, ExportMember], names: dict[str, str]
) -> Iterator[SourceItem]:
    return _Conversation(element, files, names).items()


class _Conversation:
    """One conversation on its way to records."""

    def __init__(
        self, element: Element, files: dict[str, ExportMember], names: dict[str, str]
    ) -> None:
        value = self._value = element.value
        self._where = element.where
        self._names = names
        self._position = element.position
        self._files = files
        self._own_id = json_values.line(value, "conversation_id", "id")
        self._title = json_values.line(value, "title")
        self._created = created(json_values.instant(value, "create_time", "update_time"))
        self._nodes = {
            n: json_values.inner(value, "mapping", n) for n in json_values.inner(value, "mapping")
        }
        self._id = self._own_id or self._id_by_root()
        self._current = frozenset(self._upwards(json_values.line(value, "current_node")))
        self._speaking = {name for name, node in self._nodes.items() if _speaks(node)}

    def items(self) -> Iterator[SourceItem]:
        yield self._record("conversations", self._conversation(len(self._speaking)))
        for name, node in self._nodes.items():
            if name in self._speaking:
                yield from self._message(name, node)
            content = json_values.inner(node, "message", "content")
            for _ in range(unknown_parts(content)):
                yield Skipped(self._where, *UNKNOWN_CONTENT, self._position)

    def _id_by_root(self) -> str:
        """An id from the first node, for exports that give none. Raises: BadRecord."""
        roots = [n for n, node in self._nodes.items() if json_values.line(node, "parent") is None]
        if not roots:
            raise BadRecord("bad_record", "the conversation has no conversation_id")
        return stable_id("conversation", roots[0], self._created.get("created_at"))

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
            "summary": None,
            **self._created,
            "updated_at": json_values.instant(value, "update_time"),
            "project_id": json_values.line(value, "conversation_template_id", "gizmo_id"),
            "model": json_values.line(value, "default_model_slug"),
            "message_count": message_count,
            "is_archived": json_values.truth(value, "is_archived"),
            "is_starred": json_values.truth(value, "is_starred"),
            "url": f"https://chatgpt.com/c/{self._own_id}" if self._own_id else None,
        }

    def _message(self, name: str, node: Data) -> Iterator[SourceItem]:
        message = json_values.inner(node, "message")
        content = json_values.inner(message, "content")
        metadata = json_values.inner(message, "metadata")
        hidden = json_values.truth(metadata, "is_visually_hidden_from_conversation")
        author = json_values.inner(message, "author")
        attached = _attached(message)
        above = self._upwards(json_values.line(node, "parent"))
        parent = next((ancestor for ancestor in above if ancestor in self._speaking), None)
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
            "tools": _tools(message),
            "tool_text": None,
            "links": cited([content, *_pages(metadata)]),
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
        name = self._names.get(_asset_id(asset) or asset)
        filename = json_values.line(facts, "name") or name or own_name
        data: Data = {
            "id": stable_id("att", message_id, asset),
            "message_id": message_id,
            "conversation_id": self._id,
            **created_at,
            "filename": filename,
            "mime_type": json_values.line(facts, "mime_type", "mimeType")
            or kind_of(filename)
            or kind_of(f"a.{json_values.line(facts, 'format')}"),
            "size_bytes": json_values.whole(facts, "size")
            or json_values.whole(facts, "size_bytes"),
            "extracted_text": None,
            "prompt": json_values.text(json_values.inner(facts, "metadata", "dalle"), "prompt"),
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
    attachments = {name: facts for facts in listed if (name := json_values.line(facts, "id"))}
    for name, facts in asset_pointers(json_values.inner(message, "content")):
        attachments.setdefault(name, facts)
    run = json_values.inner(message, "metadata", "aggregate_result")
    for shown in json_values.objects(run, "messages"):
        if pointer := json_values.line(shown, "image_url"):
            attachments.setdefault(_pointed(pointer), {})
    return attachments


def _tools(message: Data) -> list[str]:
    """Who answers, and whom the assistant asks."""
    recipient = json_values.line(message, "recipient")
    tools = [json_values.line(json_values.inner(message, "author"), "name")]
    tools += [recipient] if recipient != "all" else []
    return list(dict.fromkeys(filter(None, tools)))


def _pages(metadata: Data) -> Iterator[Data]:
    """What an answer names as its sources, however deep."""
    for name in ("content_references", "citations"):
        for page in json_values.objects(metadata, name):
            yield page
            yield json_values.inner(page, "metadata")
            yield from json_values.objects(page, "items")
    for group in json_values.objects(metadata, "search_result_groups"):
        yield from json_values.objects(group, "entries")


def unknown_parts(content: Data) -> int:
    """How much of a message is of a kind that nothing can be read from."""
    parts = json_values.objects(content, "parts")
    unknown = sum(_is_unknown(part) for part in parts)
    says = words_of(content) or thinking_of(content) or parts
    return unknown or int(not says and _is_unknown(content))


def _is_unknown(value: Data) -> bool:
    kind = json_values.line(value, "content_type") or ""
    if kind.endswith("_asset_pointer") or _part_words(value) or list(_pointers_of(value)):
        return False
    return any(member for name, member in value.items() if name not in _SILENT and name != "parts")


def words_of(content: Data, sources: Sequence[Data] = ()) -> str | None:
    """What a message says, whatever its type, with its sources named; None if it says nothing."""
    kind = json_values.line(content, "content_type")
    if kind in ("thoughts", "reasoning_recap"):
        return None
    parts = [_part_words(part) for part in json_values.things(content, "parts")]
    words = [json_values.text(content, name) for name in _WORDS]
    if kind == "code" and words[0]:
        words[0] = f"```{json_values.line(content, 'language') or ''}\n{words[0]}\n```"
    return or_none(_cited("\n\n".join(filter(None, [*parts, *words])), sources).strip())


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
    if kind != "thoughts":
        return None
    thoughts = json_values.objects(content, "thoughts")
    if not thoughts:
        return json_values.text(content, "thoughts")
    pieces = [
        json_values.text(thought, name) for thought in thoughts for name in ("summary", "content")
    ]
    return or_none("\n\n".join(filter(None, pieces)))


def asset_pointers(content: Data) -> Iterator[tuple[str, Data]]:
    """The ids of pictures and recordings among the parts, with the facts about them."""
    for part in [content, *json_values.objects(content, "parts")]:
        yield from _pointers_of(part)


def _pointers_of(part: Data) -> Iterator[tuple[str, Data]]:
    """Of a picture itself, or of the sound, the film and the single pictures of a call."""
    holders = [json_values.inner(part, name) for name in _HOLDERS]
    for holder in [part, *holders, *json_values.objects(part, "frames_asset_pointers")]:
        if pointer := json_values.line(holder, "asset_pointer"):
            yield _pointed(pointer), holder


def _pointed(pointer: str) -> str:
    """The id in `file-service://file-1` or `sediment://5bd#file_2#p_0.png`."""
    match = _POINTED.search(pointer.partition("://")[2] or pointer)
    return match.group() if match else pointer.partition("://")[2] or pointer
