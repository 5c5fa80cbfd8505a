"""The imessage reader: chats, messages, reactions and files of Apple's Messages (`chat.db`).

Source: the tables themselves, of macOS 10.12 to 14 and of an iPhone's `sms.db`. Since macOS 13 the
words of most messages stand in `attributedBody` only, as Apple's archives of objects spell them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath

import msgspec

from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord
from pdpp_kernel.texts import message
from pdpp_sources.common.attachments import kind_of, with_file
from pdpp_sources.common.chats import FILES, chat_messages, chat_name, in_chat, message_author
from pdpp_sources.common.database import (
    Cell,
    DatabaseUnreadable,
    ForeignDatabase,
    RowTooLarge,
    beside,
    is_database,
    opened,
)
from pdpp_sources.common.declaration import (
    StreamForm,
    author_kind,
    declaration,
    flag,
    key,
    moment,
    name_word,
    names,
    person,
    reference,
    sensitive,
    text,
    word,
    written_by,
)
from pdpp_sources.common.epochs import APPLE, APPLE_NANOSECONDS
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
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

Row = dict[str, Cell]
_TABLES = frozenset({"message", "chat", "handle", "chat_message_join"})
_ATTACHMENTS = "Attachments"
_GROUP_STYLE = 43
_SECONDS_UNTIL = 10**11  # a date beyond is counted in nanoseconds, as since macOS 10.13
_HOLDERS = "\ufffc\ufffd"  # where a file or an app stands in the text
_REACTIONS = {
    0: "loved",
    1: "liked",
    2: "disliked",
    3: "laughed",
    4: "emphasized",
    5: "questioned",
    6: "emoji",
    7: "sticker",
}
_GIVEN, _TAKEN_BACK, _STICKER = 2000, 3000, 1000
_NOTICES = {
    1: "members_changed",
    2: "name_changed",
    3: "left_or_photo_changed",
    4: "location_sharing",
    5: "audio_kept",
    6: "call",
}
_ARCHIVE = b"\x04\x0bstreamtyped"
_STRING = b"\x84\x01+"  # a string follows: its length, then its bytes
_STRING_END = b"\x86\x84"

CHATS = StreamForm(
    "chats",
    "Your conversations in Messages",
    "Name, kind and members of each conversation: phone numbers and mail addresses of people.",
    [
        key(),
        chat_name("Name of the group, or who is in it"),
        word("kind", "direct or group"),
        word("service", "iMessage, SMS or RCS"),
        person(
            sensitive(names("members", "Phone numbers and mail addresses of its members, but you")),
            PersonForm.WRITTEN,
        ),
    ],
    children={"messages": ("messages", "chat_id")},
)

MESSAGES = chat_messages(
    "Your messages in Messages",
    "Text, author and time of every message, also what others wrote to you in confidence.",
    [
        *in_chat(description="conversation", required=False),
        moment("sent_at", "When it was sent, in UTC", event=True),
        person(
            sensitive(message_author("author", "Phone number or mail address of its author; me")),
            PersonForm.WRITTEN,
        ),
        author_kind(),
        flag("is_from_me", "Whether you sent it"),
        sensitive(text("text", "What it says", title=True)),
        text("subject", "Its subject line"),
        word("kind", "message, link, app, unsent, or what happened: name_changed, call …"),
        flag("is_notice", "Whether it tells what happened instead of saying something"),
        reference("reply_to_id", "The message it answers"),
        word("service", "iMessage, SMS or RCS"),
        moment("read_at", "When it was read"),
        moment("edited_at", "When it was last changed or taken back"),
        flag("has_files", "Whether files came with it"),
    ],
    traffic=("Who wrote when", ["sent_at", "author", "is_from_me"]),
    children={"reactions": ("reactions", "message_id")},
)

REACTIONS = StreamForm(
    "reactions",
    "Reactions to messages",
    "Who loved, liked, laughed at or questioned which message, and when.",
    [
        key(),
        reference("message_id", "The message"),
        moment("reacted_at", "When, in UTC", event=True),
        person(
            sensitive(
                written_by(name_word("author", "Phone number or mail address of who reacted; me"))
            ),
            PersonForm.WRITTEN,
        ),
        word("reaction", "loved, liked, disliked, laughed, emphasized, questioned, an emoji"),
        flag("is_taken_back", "Whether an earlier reaction was removed"),
    ],
    time_field="reacted_at",
    parents={"message": ("messages", "message_id")},
)

DECLARATION = declaration(
    "imessage",
    "Messages (iMessage, SMS)",
    "Conversations of Apple's Messages on a Mac or in a backup of an iPhone.",
    [CHATS, MESSAGES, REACTIONS, FILES],
)


class MessagesSource:
    """Reads chat.db, and the files under Attachments beside it."""

    connector_key = "imessage"
    declaration: Data = DECLARATION
    how_to_export = (
        "On a Mac import the folder ~/Library/Messages, which holds chat.db and Attachments (first "
        "allow your terminal Full Disk Access in System Settings > Privacy & Security), also while "
        "Messages runs. Of an unencrypted backup of an iPhone import the file sms.db."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim databases by their tables, and what lies in Attachments beside them."""
        databases = [m for m in matching(export, is_database) if _is_messages(export, m)]
        logs = [log for member in databases for log in beside(export, member)]
        roots = {PurePosixPath(member.name).parent / _ATTACHMENTS for member in databases}
        files = [m for m in export.members if roots & set(PurePosixPath(m.name).parents)]
        return claim([*databases, *logs, *files] if databases else (), "it holds Apple's Messages")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield conversations, then messages and reactions, then files."""
        members = {member.name: member for member in export.members}
        databases = [m for m in export.members if _may_be_database(m)]
        texts = export.only(m for m in databases if _is_messages(export, m))
        items = each_member(texts, lambda member: _read_member(export, member, members))
        return beginning_at(start, without_repeats(items))


def _may_be_database(member: ExportMember) -> bool:
    return _ATTACHMENTS not in PurePosixPath(member.name).parts and is_database(member.head())


def _is_messages(export: Export, member: ExportMember) -> bool:
    try:
        BOOKMARK.looking_at(member)
        with opened(export, member) as database:
            return set(database.table_names()) >= _TABLES
    except (DatabaseUnreadable, BadRecord):
        return False


class _AppleChat(msgspec.Struct, frozen=True):
    """A chat as its messages name it."""

    id: str
    name: str | None


def _read_member(
    export: Export, member: ExportMember, files: Mapping[str, ExportMember]
) -> Iterator[SourceItem]:
    """All rows of a database; each counts as a byte of it, so positions rise."""
    position = member.offset
    try:
        with opened(export, member) as database:
            reader = _DatabaseReader(database, member, files)
            for position_text, build in reader.rows():
                if build is None:
                    yield Skipped(
                        position_text,
                        "too_large",
                        "the entry contains a value that is too long",
                        position,
                    )
                else:
                    yield from one_record(position_text, position, partial(build, position))
                position += 1
    except DatabaseUnreadable:
        yield Skipped(member.name, "damaged_file", "the rest of the file cannot be read", position)


Build = partial[Iterator[SourceItem]]
BuildRow = Callable[[Row, int], Iterator[SourceItem]]


class _DatabaseReader:
    """One database: its people and conversations at hand, its messages row by row."""

    def __init__(
        self,
        database: ForeignDatabase,
        member: ExportMember,
        files: Mapping[str, ExportMember],
    ) -> None:
        self._database = database
        self._member = member
        self._files = files
        self._handles: dict[Cell, str | None] = {
            row["number"]: _line(row["id"])
            for row in self._asked("handle", {"number": "t.ROWID", "id": "t.id"})
            if isinstance(row, dict)
        }
        self._chats: dict[Cell, _AppleChat] = {}

    def rows(self) -> Iterator[tuple[str, Build | None]]:
        """Each row of each table: how a report names it, and what it becomes."""
        members: dict[Cell, list[str]] = {}
        for row in self._asked("chat_handle_join", {"chat": "t.chat_id", "who": "t.handle_id"}):
            if isinstance(row, dict) and (name := self._handles.get(row["who"])):
                members.setdefault(row["chat"], []).append(name)
        yield from self._each("chat", _CHAT_COLUMNS, partial(self._chat, members))
        chat = "LEFT JOIN chat_message_join j ON j.message_id = t.ROWID"
        yield from self._each("message", _MESSAGE_COLUMNS, self._message, chat)
        message = (
            "LEFT JOIN message_attachment_join j ON j.attachment_id = t.ROWID"
            " LEFT JOIN message m ON m.ROWID = j.message_id"
        )
        if self._database.column_names("message_attachment_join"):
            yield from self._each("attachment", _FILE_COLUMNS, self._file, message)

    def _each(
        self, table: str, columns: Mapping[str, str], build: BuildRow, joins: str = ""
    ) -> Iterator[tuple[str, Build | None]]:
        last: Cell = None
        for number, row in enumerate(self._asked(table, columns, joins), 1):
            position_text = f"{self._member.name}, {table}, row {number}"
            if isinstance(row, RowTooLarge):
                yield position_text, None
            elif row["number"] != last:  # one in several chats comes once for each
                last = row["number"]
                yield position_text, partial(build, row)

    def _asked(
        self, table: str, columns: Mapping[str, str], joins: str = ""
    ) -> Iterator[Row | RowTooLarge]:
        """The rows of a table; a column that this version lacks is null."""
        own = {"ROWID", *self._database.column_names(table)}
        if len(own) == 1:
            return iter(())
        columns_read = {
            name: column if not column.startswith("t.") or column[2:] in own else "NULL"
            for name, column in columns.items()
        }
        return self._database.rows(table, columns_read, joins)

    def _chat(
        self, members: Mapping[Cell, list[str]], row: Row, position: int
    ) -> Iterator[SourceItem]:
        own_id = _line(row["guid"])
        if own_id is None:
            raise BadRecord("bad_record", "the entry has no id")
        people = list(dict.fromkeys(members.get(row["number"], ())))
        name = _line(row["name"]) or ", ".join(people) or _line(row["identifier"])
        self._chats[row["number"]] = _AppleChat(own_id, name)
        data: Data = {
            "id": own_id,
            "name": name,
            "kind": "group" if row["style"] == _GROUP_STYLE else "direct",
            "service": _line(row["service"]),
            "members": people,
        }
        yield SourceRecord("chats", data, position)

    def _message(self, row: Row, position: int) -> Iterator[SourceItem]:
        own_id = _line(row["guid"])
        if own_id is None:
            raise BadRecord("bad_record", "the entry has no id")
        sent_at = _instant(row["date"])
        author = "me" if row["from_me"] else self._handles.get(row["handle"])
        about = _line(row["about"])
        if about and (reaction := _reaction(row)):
            name, taken_back = reaction
            reacted: Data = {
                "id": own_id,
                "message_id": about.rpartition("/")[2].removeprefix("bp:"),
                "author": author,
                "reaction": name,
                "is_taken_back": taken_back,
            }
            yield SourceRecord("reactions", _timed(reacted, "reacted_at", sent_at), position)
            return
        words, is_whole = _words(row)
        chat = self._chats.get(row["chat"])
        notice = _NOTICES.get(row["item"]) if isinstance(row["item"], int) else None
        edited_at = _instant(row["edited"])
        kind = notice or _kind(row, unsent=bool(edited_at and not words and is_whole))
        data: Data = {
            "id": own_id,
            "chat_id": chat.id if chat else None,
            "chat_name": chat.name if chat else None,
            "author": author,
            "is_from_me": bool(row["from_me"]),
            "text": words or (_line(row["group_title"]) if notice else None),
            "subject": _line(row["subject"]),
            "kind": kind,
            # one that was taken back says nothing any more
            "author_kind": "person" if notice is None and kind != "unsent" else "notice",
            "is_notice": notice is not None,
            "reply_to_id": _line(row["reply_to"]),
            "service": _line(row["service"]),
            "read_at": _instant(row["read"]),
            "edited_at": edited_at,
            "has_files": bool(row["files"]),
        }
        yield SourceRecord("messages", _timed(data, "sent_at", sent_at), position)
        if not is_whole:
            reason = message(
                "the text of the message cannot be read; the message was imported without text"
            )
            yield Skipped("messages", "unreadable_text", reason, position)

    def _file(self, row: Row, position: int) -> Iterator[SourceItem]:
        own_id, message = _line(row["guid"]), _line(row["message"])
        if own_id is None or message is None:
            raise BadRecord("bad_record", "the file belongs to a message that is not in the export")
        path, size = _line(row["path"]), row["size"]
        name = _line(row["name"]) or (PurePosixPath(path).name if path else None)
        data: Data = {
            "id": own_id,
            "message_id": message,
            "filename": or_none(one_line(name or "", 255)),
            "mime_type": _line(row["kind"]) or kind_of(name),
            "size_bytes": size if isinstance(size, int) and size >= 0 else None,
        }
        below = (path or "").partition(f"/{_ATTACHMENTS}/")[2]
        root = PurePosixPath(self._member.name).parent
        member = self._files.get(str(root / _ATTACHMENTS / below)) if below else None
        record = _timed(data, "sent_at", _instant(row["date"]))
        yield from with_file(SourceRecord("files", record, position), member)


_CHAT_COLUMNS = {
    "number": "t.ROWID",
    "guid": "t.guid",
    "style": "t.style",
    "identifier": "t.chat_identifier",
    "name": "t.display_name",
    "service": "t.service_name",
}
_MESSAGE_COLUMNS = {
    "number": "t.ROWID",
    "guid": "t.guid",
    "text": "t.text",
    "body": "t.attributedBody",
    "handle": "t.handle_id",
    "from_me": "t.is_from_me",
    "date": "t.date",
    "read": "t.date_read",
    "edited": "t.date_edited",
    "subject": "t.subject",
    "service": "t.service",
    "item": "t.item_type",
    "group_title": "t.group_title",
    "about": "t.associated_message_guid",
    "about_type": "t.associated_message_type",
    "emoji": "t.associated_message_emoji",
    "balloon": "t.balloon_bundle_id",
    "reply_to": "t.thread_originator_guid",
    "files": "t.cache_has_attachments",
    "chat": "j.chat_id",
}
_FILE_COLUMNS = {
    "number": "t.ROWID",
    "guid": "t.guid",
    "path": "t.filename",
    "name": "t.transfer_name",
    "kind": "t.mime_type",
    "size": "t.total_bytes",
    "message": "m.guid",
    "date": "m.date",
}


def _timed(data: Data, name: str, at: str | None) -> Data:
    """The data with its instant, which may be missing but is never null."""
    return data | ({name: at} if at else {})


def _instant(value: Cell) -> str | None:
    """Nanoseconds since 2001; seconds before macOS 10.13. Raises: BadRecord."""
    if not isinstance(value, int) or value <= 0:
        return None
    return (APPLE if value < _SECONDS_UNTIL else APPLE_NANOSECONDS).instant(value)


def _reaction(row: Row) -> tuple[str, bool] | None:
    """What a reaction says, and whether it takes one back."""
    number = row["about_type"]
    if number == _STICKER:
        return "sticker", False
    if not isinstance(number, int) or not _GIVEN <= number < _TAKEN_BACK + 1000:
        return None
    taken_back = number >= _TAKEN_BACK
    name = _REACTIONS.get(number - (_TAKEN_BACK if taken_back else _GIVEN), "other")
    return _line(row["emoji"]) or name, taken_back


def _kind(row: Row, *, unsent: bool) -> str:
    balloon = row["balloon"]
    if isinstance(balloon, str) and balloon:
        return "link" if "URLBalloon" in balloon else "app"
    return "unsent" if unsent and not row["files"] else "message"


def _words(row: Row) -> tuple[str | None, bool]:
    """The words of a message, and whether they could be read."""
    plain, body = row["text"], row["body"]
    text = plain if isinstance(plain, str) and plain else None
    if text is None and isinstance(body, bytes) and body:
        text = archived_text(body)
        if text is None:
            return None, False
    return or_none(printable((text or "").strip(_HOLDERS)).strip()), True


def archived_text(body: bytes) -> str | None:
    """The string of an archived attributed string; None if there is none that can be read.

    Source: the form itself. After the head the first value of type `+` is the text: its length is a
    byte, or 0x81 and two bytes, or 0x82 and four, the lowest first.
    """
    if not body.startswith(_ARCHIVE):
        return None
    at = body.find(_STRING)
    if at < 0:
        return None
    at += len(_STRING)
    try:
        length, at = body[at], at + 1
        if length in (0x81, 0x82):
            form = "<H" if length == 0x81 else "<I"
            (length,) = struct.unpack_from(form, body, at)
            at += struct.calcsize(form)
        elif length > 0x7F:
            return None
    except (IndexError, struct.error):
        return None
    if at + length > len(body):  # it was changed without its length; the next mark ends it
        length = body.find(_STRING_END, at) - at
    return body[at : at + length].decode("utf-8", "replace") if length >= 0 else None


def _line(value: Cell) -> str | None:
    return or_none(one_line(printable(value))) if isinstance(value, str) else None
