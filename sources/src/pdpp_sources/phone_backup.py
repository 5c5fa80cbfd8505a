"""The phone reader: messages and calls of an Android phone, as SMS Backup & Restore saves them.

Source: the fields that its makers describe, and backups in the tests of published readers. One file
of XML holds text messages (`sms`) and those with files (`mms`, their bytes as base64), another one
the calls. A backup begins again with what earlier ones hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import islice

from msgspec.structs import replace

from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import (
    Data,
    Skipped,
    SourceItem,
    SourceRecord,
    stable_id,
)
from pdpp_kernel.texts import message
from pdpp_sources.common.attachments import UNKNOWN_KIND, with_decoded
from pdpp_sources.common.chats import FILES, chat_messages, chat_name, in_chat, message_author
from pdpp_sources.common.declaration import (
    StreamForm,
    author_kind,
    caseless,
    declaration,
    flag,
    integer,
    key,
    moment,
    names,
    person,
    sensitive,
    text,
    word,
    written_by,
)
from pdpp_sources.common.epochs import UNIX
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import one_line, or_none, printable
from pdpp_sources.common.unit_fields import in_unit
from pdpp_sources.common.xml_elements import XmlElement, cut_elements

# Atomic: what stands before the outermost element is parted in one way only, however it goes on.
_BACKUP = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>(?:\s|<!--.*?-->|<\?.*?\?>)*)<(?:smses|calls|allsms)[\s>]", re.DOTALL
)
_ME = "me"
_NOTHING = frozenset({"null", "(Unknown)", "insert-address-token"})
_WAYS = {1: "received", 2: "sent", 3: "draft", 4: "outgoing", 5: "failed", 6: "queued"}
_CALLS = {
    1: "incoming",
    2: "outgoing",
    3: "missed",
    4: "voicemail",
    5: "rejected",
    6: "blocked",
    7: "answered elsewhere",
}
_FROM = "137"
_MOST_PARTS = 1000
_NO_FILES = ("application/smil", "text/plain")

CHATS = StreamForm(
    "chats",
    "Your text conversations",
    "Name and numbers of each conversation.",
    [
        key(),
        chat_name("Name of the person in your contacts, or the numbers"),
        person(
            sensitive(names("members", "Numbers of its members, but yours")), PersonForm.WRITTEN
        ),
    ],
    children={"messages": ("messages", "chat_id")},
)
MESSAGES = chat_messages(
    "Your text messages",
    "Text, number and time of every text message.",
    [
        *in_chat(description="conversation"),
        moment("sent_at", "When it was sent or came in, in UTC", event=True),
        person(sensitive(message_author("author", "Number of its author; me")), PersonForm.WRITTEN),
        author_kind(),
        flag("is_from_me", "Whether you sent it"),
        sensitive(text("text", "What it says", title=True)),
        text("subject", "Its subject line"),
        word("way", "received, sent, draft, outgoing, failed or queued"),
        word("kind", "sms, or mms if it went to several or had files"),
        integer("file_count", "Number of files", summed=True),
    ],
    traffic=("Who wrote when", ["chat_name", "sent_at", "author"]),
)
CALLS = StreamForm(
    "calls",
    "Your calls",
    "Number, time, direction and length of each call.",
    [
        key(),
        moment("began_at", "When it began, in UTC", event=True),
        person(
            sensitive(written_by(caseless(word("number", "Number of the other")))),
            PersonForm.WRITTEN,
            named_by="name",
        ),
        caseless(text("name", "Name in your contacts", title=True)),
        word("direction", "incoming, outgoing, missed, voicemail, rejected, blocked"),
        in_unit(integer("duration", "How long it was, in seconds", summed=True), unit="s"),
    ],
    time_field="began_at",
)
DECLARATION = declaration(
    "phone",
    "Text messages and calls",
    "Messages and calls of an Android phone.",
    [CHATS, MESSAGES, FILES, CALLS],
)


class PhoneBackupSource:
    """Reads the backups of SMS Backup & Restore."""

    connector_key = "phone"
    declaration: Data = DECLARATION
    how_to_export = (
        "On the Android phone install SMS Backup & Restore, choose Back up now, messages with "
        "their pictures and calls, and copy the files sms-….xml and calls-….xml."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim the XML by its outermost element."""
        return claim(matching(export, is_phone_backup, ".xml"), "it holds texts or calls")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each conversation before its messages, each file after its message."""
        chats = dict[str, Data]()
        items = each_member(export, lambda member: _read_member(member, chats))
        return beginning_at(start, without_repeats(items))


def is_phone_backup(head: bytes) -> bool:
    """Whether a file begins as such a backup."""
    return _BACKUP.match(head) is not None


def _read_member(member: ExportMember, chats: dict[str, Data]) -> Iterator[SourceItem]:
    for element in cut_elements(member, "sms", "mms", "call"):
        if isinstance(element, Skipped):
            yield element
            continue
        build = partial(_call if element.name == "call" else _message, element)
        for item in one_record(element.where, element.position, build):
            if isinstance(item, SourceRecord) and item.stream == "messages":
                chat = _chat(element, item.data)
                if chat["id"] not in chats:
                    chats[chat["id"]] = chat
                    yield SourceRecord("chats", chat, item.position)
                named = {"chat_name": chats[chat["id"]]["name"]}  # that it was first called by
                item = replace(item, data=item.data | named)
            yield item


def _said(element: XmlElement, *members: str) -> str | None:
    """The first of these attributes that says something."""
    for name in members:
        value = printable(element.attributes.get(name, "")).strip()
        if value and value not in _NOTHING:
            return value
    return None


def _whole(value: str | None) -> int | None:
    return int(value) if value and re.fullmatch(r"-?\d{1,18}", value) else None


def _when(element: XmlElement) -> str:
    """Raises: BadRecord."""
    at = _whole(_said(element, "date"))
    if not at:
        raise BadRecord("bad_date", message("the date of the entry cannot be read"))
    return UNIX["milliseconds"].instant(at)


def _numbers(element: XmlElement) -> list[str]:
    """The numbers of a conversation but one's own; those of several stand in one attribute."""
    found = (one_line(each, 200) for each in (_said(element, "address") or "").split("~"))
    return sorted({each for each in found if each and each not in _NOTHING})


def _bare(number: str) -> str:
    """What a number is whichever way it is written; other addresses as they are."""
    return re.sub(r"[\s().\-/]", "", number) if re.fullmatch(r"[+\d\s().\-/]+", number) else number


def _chat(element: XmlElement, data: Data) -> Data:
    numbers = _numbers(element)
    name = one_line(_said(element, "contact_name") or ", ".join(numbers), 200)
    facts: Data = {"id": data["chat_id"], "name": or_none(name)}
    return facts | ({"members": numbers} if numbers else {})


def _message(element: XmlElement) -> Iterator[SourceItem]:
    is_mms = element.name == "mms"
    numbers, sent_at = _numbers(element), _when(element)
    way = _WAYS.get(_whole(_said(element, "msg_box" if is_mms else "type")) or 0)
    parts = list(islice(_parts(element), _MOST_PARTS + 1)) if is_mms else []
    if len(parts) > _MOST_PARTS:
        raise BadRecord("too_large", message("the entry is too large"))
    body = "\n".join(words for kind, words, _, _ in parts if kind == "text/plain" and words)
    words = or_none(body) if is_mms else _said(element, "body")
    is_mine = way != "received" if way else None  # of another number nobody knows
    author = None if is_mine is None else _ME if is_mine else _sender(element, numbers)
    chat_id = stable_id("chat", *sorted({_bare(each) for each in numbers}))
    files = [part for part in parts if part[0] not in _NO_FILES]
    own = _said(element, "m_id") if is_mms else None
    data: Data = {
        # not by its way: what waits in this backup was sent in the next one
        "id": stable_id("msg", chat_id, sent_at, is_mine, words, own),
        "chat_id": chat_id,
        "sent_at": sent_at,
        "author": author,
        "author_kind": "person" if author else None,
        "is_from_me": is_mine,
        "text": words,
        "subject": _said(element, "subject", "sub"),
        "way": way,
        "kind": element.name,
        "file_count": len(files),
    }
    yield SourceRecord("messages", data, element.position)
    for number, (kind, _, name, content) in enumerate(files, 1):
        yield from _file(kind, name, content, f"{data['id']}.{number}", data, element)


def _parts(element: XmlElement) -> Iterator[tuple[str, str | None, str | None, str]]:
    """Of each part its kind, its words, its name, and its bytes as base64."""
    for name, attributes, _ in element.inner():
        if name == "part":
            kind = one_line(attributes.get("ct", ""), 200).lower() or UNKNOWN_KIND
            named = (attributes.get(each, "") for each in ("cl", "name", "fn"))
            filename = next((each for each in named if each and each not in _NOTHING), None)
            words = printable(attributes.get("text", "")).strip()
            content = attributes.get("data", "")
            yield kind, None if words in _NOTHING else or_none(words), filename, content


def _sender(element: XmlElement, numbers: list[str]) -> str | None:
    """Who sent a message that came in: whom it names as that, else the one other."""
    for name, attributes, _ in element.inner():
        if name == "addr" and attributes.get("type") == _FROM:
            address = one_line(attributes.get("address", ""), 200)
            if address and address not in _NOTHING:
                return address
    return numbers[0] if len(numbers) == 1 else None


def _file(
    kind: str, name: str | None, content: str, own: str, sent: Data, element: XmlElement
) -> Iterator[SourceItem]:
    filename = or_none(one_line(name or "", 255))
    data: Data = {
        "id": own,
        "message_id": sent["id"],
        "sent_at": sent["sent_at"],
        "filename": filename,
        "mime_type": kind,
        "size_bytes": None,
    }
    record = SourceRecord("files", data, element.position)
    yield from with_decoded(record, "" if content == "null" else content, element.where)


def _call(element: XmlElement) -> Iterator[SourceItem]:
    began_at, number = _when(element), _said(element, "number")
    direction = _CALLS.get(_whole(_said(element, "type")) or 0)
    name = _said(element, "contact_name")
    data: Data = {
        "id": stable_id("call", number, began_at, direction),
        "began_at": began_at,
        "number": number and one_line(number, 200),
        "name": name and one_line(name, 200),
        "direction": direction,
        "duration": _whole(_said(element, "duration")),
    }
    yield SourceRecord("calls", data, element.position)
