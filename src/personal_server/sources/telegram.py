"""The telegram reader: chats, messages and files of Telegram Desktop's JSON.

Source: the data export schema that Telegram publishes. One chat is an object with `messages`; a
whole account has such objects in lists further inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import PurePosixPath

from personal_server.domain.source_item import Data, Json, Skipped, SourceItem, SourceRecord
from personal_server.sources import shape
from personal_server.sources.attachments import kind_of, with_file
from personal_server.sources.errors import BadRecord
from personal_server.sources.export import Export, Member
from personal_server.sources.json_stream import Element, json_elements, parse_object
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
from personal_server.sources.telegram_streams import DECLARATION, HOW_TO_EXPORT
from personal_server.sources.text import one_line, or_none, printable
from personal_server.sources.times import from_epoch, from_iso

_KINDS = rb"[a-z_]+_(?:chat|group|supergroup|channel)|saved_messages|replies|verification_codes"
_CHAT = re.compile(
    rb'\s*\{(?=.*"type"\s*:\s*"(?:' + _KINDS + rb')")(?=.*"messages"\s*:\s*\[)', re.DOTALL
)
_ACCOUNT = re.compile(rb'\s*\{\s*"about"\s*:\s*"[^"]*Telegram', re.DOTALL)
_STRING = rb'"(?:[^"\\]|\\.)*"'
_FACTS = re.compile(
    rb"\{((?:\s*" + _STRING + rb"\s*:\s*(?:" + _STRING + rb"|[^\s,\[\]{}\"]+)\s*,)*)"
    rb'\s*"messages"\s*:\s*\Z'
)
_OTHERS = (".json", ".html", ".css", ".js", ".vcf", ".vcard", ".zip")
_PATHS = ("file", "photo")


class TelegramSource:
    """Reads result.json of one chat or of an account, and the files beside it."""

    connector_key = "telegram"
    declaration: Data = DECLARATION
    how_to_export = HOW_TO_EXPORT

    def recognize(self, export: Export) -> Claim | None:
        """Claim the JSON by how it begins, and the media under its folder."""
        found = list(matching(export, is_telegram, ".json"))
        roots = [PurePosixPath(member.name).parent for member in found]
        names = {member.name for member in found}
        media = [
            member
            for member in export.members
            if member.name not in names
            and member.suffix not in _OTHERS
            and any(root in PurePosixPath(member.name).parents for root in roots)
        ]
        return claim(CERTAIN, [*found, *media], "it holds chats as Telegram exports them")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each chat before its messages, each file after its message."""
        texts = export.only(member for member in export.members if member.suffix == ".json")
        items = each_member(texts, lambda member: _read_member(member, export))
        return beginning_at(start, without_repeats(items))


def is_telegram(head: bytes) -> bool:
    """Whether a file begins as the export of a chat or of an account."""
    return bool(_CHAT.match(head) or _ACCOUNT.match(head))


@dataclass(frozen=True, slots=True)
class _Chat:
    """What stands before the messages of a chat, and what its messages need."""

    id: str
    name: str | None
    kind: str | None
    export: Export
    root: PurePosixPath

    def file(self, path: str) -> Member | None:
        """The exported file at a path that is written as if from the folder of the JSON."""
        return self.export.member(str(self.root / path))

    @property
    def zone(self) -> tzinfo:
        """Where times without a zone were written."""
        return self.export.zone


def _read_member(member: Member, export: Export) -> Iterator[SourceItem]:
    root = PurePosixPath(member.name).parent
    chat, lead, began = _chat_of(b"", export, root), b"", False
    for element in json_elements(member, "messages", deep=True):
        if isinstance(element, Skipped):
            yield element
            continue
        if element.lead != lead:
            lead, chat, began = element.lead, _chat_of(element.lead, export, root), False
        where = f"{member.name} at byte {element.position - member.offset}"
        for item in one_record(where, element.position, lambda e=element, c=chat: _items(e, c)):
            if isinstance(item, SourceRecord) and not began:
                began = True
                yield _chat_record(chat, item)
            yield item


def _chat_of(lead: bytes, export: Export, root: PurePosixPath) -> _Chat:
    """The chat whose members stand before its messages; an unknown one if they cannot be read."""
    found = _FACTS.search(lead)
    try:
        facts = parse_object(b"{" + found.group(1).rstrip(b", \r\n\t") + b"}") if found else {}
    except BadRecord:
        facts = {}
    own = shape.whole(facts, "id")
    name = shape.line(facts, "name")
    return _Chat(
        str(own) if own is not None else f"named {name or 'Chat'}",
        name,
        shape.line(facts, "type"),
        export,
        root,
    )


def _chat_record(chat: _Chat, first: SourceRecord) -> SourceRecord:
    data: Data = {"id": chat.id, "name": chat.name, "kind": chat.kind}
    return SourceRecord("chats", data | {"began_at": first.data["sent_at"]}, first.position)


def _items(element: Element, chat: _Chat) -> Iterator[SourceItem]:
    value = element.value
    own = shape.whole(value, "id")
    if own is None:
        raise BadRecord("bad_record", "it has no id")
    sent_at = _instant(value, "date", chat.zone)
    if sent_at is None:
        raise BadRecord("bad_date", "its date cannot be read")
    notice = value.get("type") == "service"
    replied = shape.whole(value, "reply_to_message_id")
    message_id = f"{chat.id}.{own}"
    path = shape.text(value, *_PATHS)
    data: Data = {
        "id": message_id,
        "chat_id": chat.id,
        "chat_name": chat.name,
        "sent_at": sent_at,
        "author": shape.line(value, "from", "actor"),
        "author_id": shape.line(value, "from_id", "actor_id"),
        "text": _text(value),
        "kind": _kind(value, notice=notice),
        "is_notice": notice,
        "reply_to_id": f"{chat.id}.{replied}" if replied is not None else None,
        "forwarded_from": shape.line(value, "forwarded_from"),
        "edited_at": _instant(value, "edited", chat.zone),
        "file_count": 1 if path else 0,
    }
    yield SourceRecord("messages", data, element.position)
    if path:
        yield from _file(value, path, data, element.position, chat)


def _instant(value: Data, name: str, zone: tzinfo) -> str | None:
    """By the count of seconds; older exports have the computer's own clock only."""
    seconds = shape.whole(value, f"{name}_unixtime")
    if seconds is not None:
        return from_epoch(seconds)
    written = shape.line(value, name)
    return from_iso(written, zone) if written and not written.startswith("1970-01-01") else None


def _text(value: Data) -> str | None:
    """The words: one string, or strings and pieces with a format; else what stands for them."""
    pieces = shape.things(value, "text") or [value.get("text")]
    whole = "".join(map(_piece, pieces))
    poll, place = shape.inner(value, "poll"), shape.line(value, "place_name")
    return or_none(printable(whole)) or shape.text(poll, "question") or place


def _piece(piece: Json) -> str:
    if isinstance(piece, str):
        return piece
    for each in shape.objects({"pieces": [piece]}, "pieces"):
        said, href = shape.text(each, "text") or "", shape.line(each, "href")
        return f"{said} ({href})" if href else said
    return ""


def _kind(value: Data, *, notice: bool) -> str:
    """What was done, or what it carries."""
    if notice:
        return shape.line(value, "action") or "notice"
    for name in ("photo", "poll", "location_information", "contact_information"):
        if name in value:
            return name.partition("_")[0]
    return shape.line(value, "media_type") or ("file" if "file" in value else "message")


def _file(
    value: Data, path: str, message: Data, position: int, chat: _Chat
) -> Iterator[SourceItem]:
    """The file of a message; a path in parentheses says why there is none."""
    missing = path.startswith("(")
    name = shape.line(value, "file_name") or (None if missing else PurePosixPath(path).name)
    data: Data = {
        "id": f"{message['id']}.1",
        "message_id": message["id"],
        "sent_at": message["sent_at"],
        "filename": or_none(one_line(name or "", 255)),
        "mime_type": shape.line(value, "mime_type") or kind_of(name),
        "size_bytes": shape.whole(value, "file_size"),
    }
    yield from with_file(
        SourceRecord("files", data, position), None if missing else chat.file(path)
    )
