r"""The meta reader: chats of Messenger, Facebook and Instagram, from the exports of Meta.

Source: chats that owners published in trackers of readers, and those readers. Each chat lies in a
folder of its own, as `message_1.json`, `message_2.json` …, the newest first; what was sent
encrypted lies in one file for each chat, whose members have other names. Texts are mended
(`meta_text.py`). The pages that Meta exports by default hold less of each (`meta_pages.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import tzinfo
from functools import partial
from pathlib import PurePosixPath

import msgspec

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_sources.common import json_values
from pdpp_sources.common.attachments import is_media, kind_of, with_file
from pdpp_sources.common.chats import FILES, chat_messages, chat_name, in_chat, message_author
from pdpp_sources.common.declaration import (
    StreamForm,
    author_kind,
    declaration,
    flag,
    integer,
    key,
    moment,
    names,
    plain,
    text,
    word,
)
from pdpp_sources.common.epochs import UNIX
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.json_stream import Element, json_elements
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import decoded, one_line, or_none, printable
from pdpp_sources.meta_pages import is_meta_page, message_of, page_messages, page_title
from pdpp_sources.tables.meta_text import MetaText

_HEAD_BYTES = 64 * 1024
_PAGE_HEAD_BYTES = 512 * 1024  # a style sheet comes first
# A message, and what says what it holds, which may fail.
_Found = tuple[Element, Callable[[], Data]]
_MESSAGES = re.compile(rb'"messages"\s*:\s*\[\s*\{')
# Any message may say who wrote it, so that one that is damaged does not hide the others.
_AUTHOR = re.compile(rb'"sender_?[nN]ame"\s*:')
_AUTHOR_WITHIN = 20_000  # so many bytes of the messages
_ABOUT = re.compile(rb'"(?:participants|threadName|thread_path)"\s*:')
_EMPTY = re.compile(rb'\s*\{\s*"participants"\s*:.*"messages"\s*:\s*\[\s*\]', re.DOTALL)
_CHUNK_BYTES = 256 * 1024
_STRING = rb'"((?:[^"\\]|\\.){0,1000})"'
_OF_CHAT = re.compile(rb'"(title|threadName|thread_path)"\s*:\s*' + _STRING)
_PART = re.compile(r"message(?:_\d+)?")
_FIRST_MS = 100_000_000_000  # no chat is of 1973; as seconds it is after the year 5000
_SENT_MEDIA = ("photos", "videos", "audio_files", "files", "gifs", "media")
_FOLDERS = ("photos", "videos", "audio", "files", "gifs", "media")
_OTHERS = (".json", ".html", ".css", ".js", ".zip", ".txt", ".csv")

CHATS = StreamForm(
    "chats",
    "Your chats",
    "Name of each chat and group, and in which box it lies.",
    [
        key(),
        chat_name("Name of the person or group"),
        word("box", "inbox, archived_threads, message_requests, e2ee_cutover …"),
    ],
    children={"messages": ("messages", "chat_id")},
)
MESSAGES = chat_messages(
    "Your messages on Messenger and Instagram",
    "Text, author and time of every message.",
    [
        *in_chat(),
        moment("sent_at", "When it was sent, in UTC", event=True),
        message_author("author", "Who wrote it"),
        author_kind(),
        text("text", "What it says", title=True),
        word("kind", "message, photos, videos, audio_files, files, sticker, share, call …"),
        plain("link", "Address of what it shares"),
        names("reactions", "The reactions to it, each an emoji"),
        integer("reaction_count", "Number of reactions", summed=True),
        integer("call_seconds", "How long the call was, in seconds", summed=True),
        flag("is_unsent", "Whether its author took it back"),
        integer("file_count", "Number of files", summed=True),
    ],
    traffic=("Who wrote when", ["chat_name", "sent_at", "author"]),
)
DECLARATION = declaration(
    "meta",
    "Messenger and Instagram",
    "Chats exported from Facebook, Messenger and Instagram.",
    [CHATS, MESSAGES, FILES],
)


class MetaChatsSource:
    """Reads the chats of an export of Facebook or Instagram, and the files in their folders."""

    connector_key = "meta"
    declaration: Data = DECLARATION
    how_to_export = (
        "In Facebook or Instagram choose Accounts Center > Your information and permissions > "
        "Export your information, the messages among it, for all time; as the format JSON (pages "
        "of HTML are read, too, and hold less). Encrypted chats come from messenger.com > Privacy "
        "& safety > End-to-end encrypted chats > Message storage > Download secure storage data. "
        "Import the zip."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim JSON and pages by how they begin, and the media under the folder of a chat."""
        pages = export.only(
            m for m in export.members if _PART.fullmatch(PurePosixPath(m.name).stem)
        )
        chats = [
            *matching(export, is_meta_chat, ".json", head_bytes=_HEAD_BYTES),
            *matching(pages, is_meta_page, ".html", head_bytes=_PAGE_HEAD_BYTES),
        ]
        roots = {PurePosixPath(member.name).parent for member in chats}
        media = [
            member
            for member in export.members
            if member.suffix not in _OTHERS and _lies_in(PurePosixPath(member.name), roots)
        ]
        return claim([*chats, *media], "it holds chats as Meta exports them")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each chat before its messages, each file after its message."""
        chats = export.only(m for m in export.members if m.suffix in (".json", ".html"))
        files = {member.name: member for member in export.members}
        seen = set[str]()
        items = each_member(chats, lambda m: _read_member(m, files, seen, export.zone))
        return beginning_at(start, without_repeats(items))


def is_meta_chat(head: bytes) -> bool:
    """Whether a file begins as a chat of Meta's."""
    if _EMPTY.match(head):
        return True
    messages = _MESSAGES.search(head) if head.lstrip().startswith(b"{") else None
    if messages is None or not _ABOUT.search(head):
        return False
    return bool(_AUTHOR.search(head, messages.end(), messages.end() + _AUTHOR_WITHIN))


def _lies_in(path: PurePosixPath, roots: set[PurePosixPath]) -> bool:
    """Whether a file is of a chat: in a folder of media beside it, or media itself.

    A chat may lie at the root of what is imported, where anything lies beside it.
    """
    is_in_media = path.parent.parent in roots and path.parent.name in _FOLDERS
    return is_in_media or (path.parent in roots and is_media(path.name))


class _MetaChat(msgspec.Struct, frozen=True):
    """The chat of a file, and the files that its messages may name."""

    id: str
    name: str | None
    box: str | None
    root: PurePosixPath
    files: dict[str, ExportMember]


def _read_member(
    member: ExportMember, files: dict[str, ExportMember], seen: set[str], zone: tzinfo
) -> Iterator[SourceItem]:
    """The messages of a file; before those of its first file the chat, noted in `seen`."""
    texts = MetaText(member)
    is_page = member.suffix == ".html"
    chat = _chat_of_page(member, files) if is_page else _chat_of(member, files, texts)
    facts: Data = {"id": chat.id, "name": chat.name, "box": chat.box}
    alike: dict[str, int] = {}
    found = _of_page(member, zone) if is_page else _of_json(member, texts)
    for element in found:
        if isinstance(element, Skipped):
            yield element
            continue
        build = partial(_message_items, *element, chat, alike)
        for item in one_record(element[0].where, element[0].position, build):
            if chat.id not in seen:
                seen.add(chat.id)
                yield SourceRecord("chats", facts, item.position)
            yield item
    if chat.id not in seen:
        seen.add(chat.id)
        yield SourceRecord("chats", facts, member.end - 1)


def _of_json(member: ExportMember, texts: MetaText) -> Iterator[_Found | Skipped]:
    for element in json_elements(member, "messages", only_named=True):
        if isinstance(element, Skipped):
            yield element
        else:
            yield element, partial(texts.mended, element.value)


def _of_page(member: ExportMember, zone: tzinfo) -> Iterator[_Found]:
    for element, piece in page_messages(member):
        yield element, partial(message_of, piece, zone)


def _chat_of_page(member: ExportMember, files: dict[str, ExportMember]) -> _MetaChat:
    """The chat of a page, whose folder is that of the JSON: by its folder, and its heading."""
    path = PurePosixPath(member.name)
    name = page_title(member.head(_PAGE_HEAD_BYTES))
    own = one_line(path.parent.name or name or "", 200) or "chat"
    return _MetaChat(own, name, or_none(path.parent.parent.name), path.parent, files)


def _chat_of(member: ExportMember, files: dict[str, ExportMember], texts: MetaText) -> _MetaChat:
    """The chat: by the path that the file names, else by its folder, else by its file's name.

    Both the path and the title may stand behind the messages.
    """
    path = PurePosixPath(member.name)
    members = _said_of_chat(member)
    thread = PurePosixPath(members.get("thread_path", ""))
    is_part = _PART.fullmatch(path.stem) is not None
    title = members.get("title") or members.get("threadName")
    name = title and or_none(one_line(texts.name(title), 200))
    own = thread.name or (path.parent.name or name or "" if is_part else path.stem)
    box = thread.parent.name or (path.parent.parent.name if is_part else "")
    return _MetaChat(one_line(own, 200) or "chat", name, or_none(box), path.parent, files)


def _said_of_chat(member: ExportMember) -> dict[str, str]:
    """The title and the path of the chat: the last in the file; messages have none."""
    found: dict[bytes, bytes] = {}
    with member.open() as stream:
        before = b""
        while chunk := stream.read(_CHUNK_BYTES):
            found.update(_OF_CHAT.findall(before + chunk))
            before = chunk[-2048:]
    return {decoded(name): _unescaped(value) for name, value in found.items()}


def _unescaped(value: bytes) -> str:
    try:
        return printable(json.loads(b'"' + value + b'"'))
    except ValueError:
        return decoded(value)


def _message_items(
    element: Element, value_of: Callable[[], Data], chat: _MetaChat, alike: dict[str, int]
) -> Iterator[SourceItem]:
    value = value_of()
    sent_ms = _sent_ms(value)
    sent_at = UNIX["milliseconds"].instant(sent_ms)
    author = json_values.line(value, "sender_name", "senderName")
    words = json_values.text(value, "content", "text")
    media = list(_media(value))
    reactions = [
        reaction
        for each in json_values.objects(value, "reactions")
        if (reaction := json_values.line(each, "reaction"))
    ]
    # by the names of its files alone: Meta has called the folders around them by several names
    filenames = (PurePosixPath(uri).name for uri, _ in media)
    message_id = f"{chat.id}.{stable_id('m', sent_ms, author, words, *filenames)}"
    number = alike[message_id] = alike.get(message_id, 0) + 1
    data: Data = {
        "id": message_id if number == 1 else f"{message_id}.{number}",
        "chat_id": chat.id,
        "chat_name": chat.name,
        "sent_at": sent_at,
        "author": author,
        "author_kind": "person" if author else None,
        "text": words or json_values.text(json_values.inner(value, "share"), "share_text"),
        "kind": _kind(value),
        "link": json_values.line(json_values.inner(value, "share"), "link"),
        "reactions": list(dict.fromkeys(reactions)),
        "reaction_count": len(reactions),
        "call_seconds": json_values.whole(value, "call_duration"),
        "is_unsent": json_values.truth(value, "is_unsent") or json_values.truth(value, "isUnsent"),
        "file_count": len(media),
    }
    yield SourceRecord("messages", data, element.position)
    for number, (path, name) in enumerate(media, 1):
        yield from _file(path, name, data, number, element.position, chat)


def _sent_ms(value: Data) -> int:
    """When it was sent. Raises: BadRecord.

    Exports of 2018 write `timestamp` in seconds, of encrypted chats in milliseconds.
    """
    if sent_ms := json_values.whole(value, "timestamp_ms"):
        return sent_ms
    if sent := json_values.whole(value, "timestamp"):
        return sent * 1000 if abs(sent) < _FIRST_MS else sent
    raise BadRecord("bad_date", "the date of the entry cannot be read")


def _kind(value: Data) -> str:
    """What it carries."""
    for name in (*_SENT_MEDIA, "sticker", "share", "call_duration"):
        if value.get(name):
            return name.partition("_duration")[0]
    return json_values.line(value, "type") or "message"


def _media(value: Data) -> Iterator[tuple[str, str | None]]:
    """The path of each file, and its name where the export says one."""
    for name in _SENT_MEDIA:
        for each in json_values.objects(value, name):
            if uri := json_values.line(each, "uri"):
                yield uri, json_values.line(each, "name")
    if uri := json_values.line(json_values.inner(value, "sticker"), "uri"):
        yield uri, None


def _file(
    path: str, name: str | None, message: Data, number: int, position: int, chat: _MetaChat
) -> Iterator[SourceItem]:
    """The file of a message, whose path is written as if from the root of some part."""
    uri = PurePosixPath(path)
    near = (chat.root / uri.parent.name / uri.name, chat.root / uri, uri)
    member = next((chat.files[str(p)] for p in near if str(p) in chat.files), None)
    filename = or_none(one_line(name or uri.name, 255))
    data: Data = {
        "id": f"{message['id']}.f{number}",
        "message_id": message["id"],
        "sent_at": message["sent_at"],
        "filename": filename,
        "mime_type": kind_of(filename),
        "size_bytes": None,
    }
    yield from with_file(SourceRecord("files", data, position), member)
