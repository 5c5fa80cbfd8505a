"""The telegram reader: chats, messages and files of Telegram Desktop's JSON.

Source: the data export schema that Telegram publishes. One chat is an object with `messages`; a
whole account has such objects in lists further inside, a batch of chats is a list of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import tzinfo
from functools import partial
from pathlib import PurePosixPath

import msgspec
from msgspec.structs import replace

from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import Data, Json, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common import json_values
from pdpp_sources.common.attachments import kind_of, with_file
from pdpp_sources.common.chats import FILES, chat_messages, chat_name, in_chat, message_author
from pdpp_sources.common.declaration import (
    StreamForm,
    author_kind,
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
    written_by,
)
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.json_stream import Element, json_elements, parse_object
from pdpp_sources.common.source import (
    MOST_REMEMBERED,
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import one_line, or_none, printable
from pdpp_sources.common.times import from_epoch, from_iso
from pdpp_sources.telegram_parts import CHAT_KINDS, chats_without_messages, other_parts

_CHAT = re.compile(
    rb'\s*(?:\[\s*)?\{(?=.*"type"\s*:\s*"(?:' + CHAT_KINDS + rb')")(?=.*"messages"\s*:\s*\[)',
    re.DOTALL,
)
# The messages of one chat without anything around them, as some programs save them.
_MESSAGES = re.compile(
    rb'\s*\[\s*\{(?=[^\[\]]*"type"\s*:\s*"(?:message|service)")'
    rb'(?=.*"(?:date_unixtime|from_id|actor_id|text_entities)"\s*:)',
    re.DOTALL,
)
_ACCOUNT = re.compile(rb'\s*\{\s*"about"\s*:\s*"[^"]*Telegram', re.DOTALL)
_STRING = rb'"(?:[^"\\]|\\.)*"'
_FACTS = re.compile(
    rb"\{((?:\s*" + _STRING + rb"\s*:\s*(?:" + _STRING + rb"|[^\s,\[\]{}\"]+)\s*,)*)"
    rb'\s*"messages"\s*:\s*\Z'
)
_DELETED = "Deleted account"
_OTHERS = (".json", ".html", ".css", ".js", ".vcf", ".vcard", ".zip")

CHATS = StreamForm(
    "chats",
    "Your chats",
    "Name and kind of each chat, group and channel.",
    [
        key(),
        chat_name("Name of the person, group or channel"),
        word("kind", "personal_chat, private_group, public_channel …, as Telegram names it"),
        moment("began_at", "When the first of its messages was sent", event=True),
    ],
    time_field="began_at",
    children={"messages": ("messages", "chat_id")},
)

MESSAGES = chat_messages(
    "Your messages on Telegram",
    "Text, author and time of every message.",
    [
        *in_chat(),
        moment("sent_at", "When it was sent, in UTC", event=True),
        message_author("author", "Who wrote it or did it"),
        author_kind(),
        person(
            marked(plain("author_id", "Telegram's id of the author")),
            PersonForm.HANDLE,
            network="telegram",
            named_by="author",
        ),
        text("text", "What it says; of a poll the question, of a place its name", title=True),
        word("kind", "message, photo, file, voice_message, sticker, poll … or what was done"),
        flag("is_notice", "Whether it tells what happened instead of saying something"),
        reference("reply_to_id", "The message it answers"),
        name_word("forwarded_from", "Who wrote it first"),
        moment("edited_at", "When it was last changed"),
        names("reactions", "The reactions to it: an emoji, or its kind"),
        integer("reaction_count", "Number of reactions", summed=True),
        integer("file_count", "Number of files", summed=True),
    ],
    traffic=("Who wrote when", ["chat_name", "sent_at", "author"]),
    children={"reactions": ("reactions", "message_id")},
)

REACTIONS = StreamForm(
    "reactions",
    "Reactions to messages",
    "Who reacted to which message, with what and when; of many the latest few.",
    [
        key(),
        reference("message_id", "The message"),
        moment("reacted_at", "When, in UTC", event=True),
        written_by(name_word("author", "Who reacted")),
        person(
            plain("author_id", "Telegram's id of who reacted"),
            PersonForm.HANDLE,
            network="telegram",
            named_by="author",
        ),
        word("reaction", "The emoji, or the kind of what stands for one"),
    ],
    time_field="reacted_at",
    parents={"message": ("messages", "message_id")},
)

DECLARATION = declaration(
    "telegram", "Telegram", "Chats exported from Telegram.", [CHATS, MESSAGES, REACTIONS, FILES]
)


class TelegramSource:
    """Reads result.json of one chat, of several or of an account, and the files beside it."""

    connector_key = "telegram"
    declaration: Data = DECLARATION
    how_to_export = (
        "In Telegram Desktop (not the phone) choose Settings > Advanced > Export Telegram data, or "
        "the menu of one chat > Export chat history; as the format JSON, with the media you want. "
        "Import the folder that holds result.json."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim the JSON by how it begins, and the media under its folder."""
        exports = list(matching(export, is_telegram, ".json"))
        roots = [PurePosixPath(member.name).parent for member in exports]
        names = {member.name for member in exports}
        media = [
            member
            for member in export.members
            if member.name not in names
            and member.suffix not in _OTHERS
            and any(root in PurePosixPath(member.name).parents for root in roots)
        ]
        return claim([*exports, *media], "it holds chats as Telegram exports them")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each chat before its messages, each file after its message."""
        texts = export.only(member for member in export.members if member.suffix == ".json")
        items = each_member(texts, lambda member: _read_member(member, export))
        return beginning_at(start, without_repeats(items))


def is_telegram(head: bytes) -> bool:
    """Whether a file begins as the export of a chat or of an account."""
    return bool(_CHAT.match(head) or _ACCOUNT.match(head) or _MESSAGES.match(head))


class _TelegramChat(msgspec.Struct, frozen=True):
    """What stands before the messages of a chat, and what its messages need."""

    id: str
    name: str | None
    kind: str | None
    export: Export
    root: PurePosixPath


def _read_member(member: ExportMember, export: Export) -> Iterator[SourceItem]:
    root, people = PurePosixPath(member.name).parent, _People()
    is_bare = _MESSAGES.match(member.head()) is not None
    if _ACCOUNT.match(member.head()):
        yield from other_parts(member)
    chat, lead, began = _chat_of(b"", export, root), b"", False
    if is_bare:
        name = one_line(PurePosixPath(member.name).stem, 200)
        chat = replace(chat, id=f"named {name}", name=name)
    elements = json_elements(member, "messages", deep=True, only_named=True)
    for element in json_elements(member) if is_bare else elements:
        if isinstance(element, Skipped):
            yield element
            continue
        if element.lead != lead and not is_bare:
            lead, chat, began = element.lead, _chat_of(element.lead, export, root), False
        build = partial(_message_items, element, chat, people)
        for item in one_record(element.where, element.position, build):
            if isinstance(item, SourceRecord) and not began:
                began = True
                yield _chat_record(chat, item)
            yield item
    if not is_bare:
        yield from chats_without_messages(member)


def _chat_of(lead: bytes, export: Export, root: PurePosixPath) -> _TelegramChat:
    """The chat whose members stand before its messages; an unknown one if they cannot be read."""
    match = _FACTS.search(lead)
    try:
        facts = parse_object(b"{" + match.group(1).rstrip(b", \r\n\t") + b"}") if match else {}
    except BadRecord:
        facts = {}
    own = json_values.whole(facts, "id")
    name = json_values.line(facts, "name")
    return _TelegramChat(
        str(own) if own is not None else f"named {name or 'Chat'}",
        name,
        json_values.line(facts, "type"),
        export,
        root,
    )


def _chat_record(chat: _TelegramChat, first: SourceRecord) -> SourceRecord:
    data: Data = {"id": chat.id, "name": chat.name, "kind": chat.kind}
    return SourceRecord("chats", data | {"began_at": first.data["sent_at"]}, first.position)


class _People:
    """Names by Telegram's ids; of somebody who deleted the account later messages have none."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, value: Data, chat: _TelegramChat) -> str | None:
        """Who wrote a message or did something, as far as the export ever says it."""
        own = json_values.line(value, "from_id", "actor_id") or ""
        written = json_values.line(value, "from", "actor")
        if written is not None and own and len(self._names) < MOST_REMEMBERED:
            self._names[own] = written
        elsewhere = chat.name if own == f"user{chat.id}" else None
        return written or self._names.get(own) or elsewhere or (_DELETED if own else None)


def _message_items(element: Element, chat: _TelegramChat, people: _People) -> Iterator[SourceItem]:
    value = element.value
    own = json_values.whole(value, "id")
    if own is None:
        raise BadRecord("bad_record", "the entry has no id")
    sent_at = _instant(value, "date", chat.export.zone)
    if sent_at is None:
        raise BadRecord("bad_date", "the date of the entry cannot be read")
    notice = value.get("type") == "service"
    replied = json_values.whole(value, "reply_to_message_id")
    message_id = f"{chat.id}.{own}"
    path = json_values.text(value, "file", "photo")
    reactions = json_values.objects(value, "reactions")
    data: Data = {
        "id": message_id,
        "chat_id": chat.id,
        "chat_name": chat.name,
        "sent_at": sent_at,
        "author": people.name(value, chat),
        "author_id": json_values.line(value, "from_id", "actor_id"),
        "author_kind": _author_kind(value, chat, notice=notice),
        "text": _text(value),
        "kind": _kind(value, notice=notice),
        "is_notice": notice,
        "reply_to_id": f"{chat.id}.{replied}" if replied is not None else None,
        "forwarded_from": json_values.line(value, "forwarded_from"),
        "edited_at": _instant(value, "edited", chat.export.zone),
        "reactions": list(dict.fromkeys(map(_reaction, reactions))),
        "reaction_count": sum(json_values.whole(reaction, "count") or 0 for reaction in reactions),
        "file_count": 1 if path else 0,
    }
    yield SourceRecord("messages", data, element.position)
    for reaction in reactions:
        yield from _reacted(reaction, message_id, element, chat, people)
    if path:
        yield from _file(value, path, data, element.position, chat)


def _reaction(value: Data) -> str:
    """The emoji; of an own picture Telegram exports no more than that it is one."""
    return json_values.line(value, "emoji") or json_values.line(value, "type") or "reaction"


def _reacted(
    value: Data, message_id: str, element: Element, chat: _TelegramChat, people: _People
) -> Iterator[SourceItem]:
    """Who reacted so: the latest few, whom the export names; one without a time has none."""
    for entry in json_values.objects(value, "recent"):
        try:
            reacted_at = _instant(entry, "date", chat.export.zone)
        except BadRecord:
            reacted_at = None
        if reacted_at is None:
            reason = message("a value of the entry is of another kind than its field")
            yield Skipped(element.where, "no_value", reason, element.position)
        own, reaction = json_values.line(entry, "from_id"), _reaction(value)
        data: Data = {
            "id": f"{message_id}.{stable_id('rct', own, reaction)}",
            "message_id": message_id,
            "author": people.name(entry, chat),
            "author_id": own,
            "reaction": reaction,
        }
        timed = data if reacted_at is None else data | {"reacted_at": reacted_at}
        yield SourceRecord("reactions", timed, element.position)


def _author_kind(value: Data, chat: _TelegramChat, *, notice: bool) -> str | None:
    """Of bots Telegram says only whose chats they are; those that write in groups look like people.

    Channels and groups that write in their own name are none of the three.
    """
    if notice:
        return "notice"
    own = json_values.line(value, "from_id") or ""
    if chat.kind == "bot_chat" and own == f"user{chat.id}":
        return "bot"
    return "person" if own.startswith("user") else None


def _instant(value: Data, name: str, zone: tzinfo) -> str | None:
    """By the count of seconds; older exports have the computer's own clock only."""
    seconds = json_values.whole(value, f"{name}_unixtime")
    if seconds is not None:
        return from_epoch(seconds)
    written = json_values.line(value, name)
    return from_iso(written, zone) if written and not written.startswith("1970-01-01") else None


def _text(value: Data) -> str | None:
    """The words: one string, or strings and pieces with a format; else what stands for them."""
    pieces = json_values.things(value, "text") or [value.get("text")]
    whole = "".join(map(_piece, pieces))
    poll, place_name = json_values.inner(value, "poll"), json_values.line(value, "place_name")
    return or_none(printable(whole)) or json_values.text(poll, "question") or place_name


def _piece(piece: Json) -> str:
    if isinstance(piece, str):
        return piece
    for object in json_values.objects({"pieces": [piece]}, "pieces"):
        words, href = json_values.text(object, "text") or "", json_values.line(object, "href")
        return f"{words} ({href})" if href else words
    return ""


def _kind(value: Data, *, notice: bool) -> str:
    """What was done, or what it carries."""
    if notice:
        return json_values.line(value, "action") or "notice"
    for name in ("photo", "poll", "location_information", "contact_information"):
        if name in value:
            return name.partition("_")[0]
    return json_values.line(value, "media_type") or ("file" if "file" in value else "message")


def _file(
    value: Data, path: str, message: Data, position: int, chat: _TelegramChat
) -> Iterator[SourceItem]:
    """The file of a message; a path in parentheses says why there is none.

    Others are written as if from the folder of the JSON.
    """
    missing = path.startswith("(")
    small = json_values.text(value, "thumbnail")
    if small and not missing:  # the same picture, smaller
        chat.export.accounted_for.add(str(chat.root / small))
    name = json_values.line(value, "file_name") or (None if missing else PurePosixPath(path).name)
    data: Data = {
        "id": f"{message['id']}.1",
        "message_id": message["id"],
        "sent_at": message["sent_at"],
        "filename": or_none(one_line(name or "", 255)),
        "mime_type": json_values.line(value, "mime_type") or kind_of(name),
        "size_bytes": json_values.whole(value, "file_size"),
    }
    member = None if missing else chat.export.member(str(chat.root / path))
    yield from with_file(SourceRecord("files", data, position), member)
