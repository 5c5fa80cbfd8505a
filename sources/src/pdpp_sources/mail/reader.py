"""The mail reader: members of an export in, messages and attachments out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import PurePosixPath

from pdpp_kernel.mail_labels import is_of_account, labels_data, of_account
from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import (
    LARGEST_BLOB_BYTES,
    Data,
    Skipped,
    SourceItem,
    SourceRecord,
    blob_of_bytes,
    stable_id,
)
from pdpp_kernel.texts import message
from pdpp_sources.common.declaration import (
    StreamForm,
    blob,
    caseless,
    declaration,
    file_text,
    flag,
    integer,
    key,
    labelled,
    moment,
    name_word,
    names,
    person,
    plain,
    reference,
    sent_to,
    text,
    word,
    written_by,
)
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.html_text import MOST_LINKS
from pdpp_sources.common.source import (
    MOST_REMEMBERED,
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
)
from pdpp_sources.common.text import or_none, printable
from pdpp_sources.common.times import rendered
from pdpp_sources.mail.addresses import Address, reads_as_nobody, shown
from pdpp_sources.mail.mbox import (
    LARGEST_MESSAGE_BYTES,
    SEPARATOR,
    RawMessage,
    split_mbox,
)
from pdpp_sources.mail.message import (
    Attachment,
    Body,
    Headers,
    MailText,
    body_of,
    ends_early,
)
from pdpp_sources.mail.message_tree import message_of
from pdpp_sources.mail.raw_headers import without_stray_lines
from pdpp_sources.mail.threads import thread_of

LONGEST_BODY_CHARS = 4_000_000
_HEADER = re.compile(
    rb"^(received|return-path|delivered-to|message-id|date|from|to|subject|mime-version|content-type"
    rb"|x-[a-z-]+):",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER_LINE = re.compile(rb"^[!-9;-~]+:")
_QUOTED_FROM = re.compile(rb"^>(>*From)", re.MULTILINE)
_NEWLINE = ord("\n")
_LONGEST_SEPARATOR_BYTES = 2048
_BLANK_LINE = re.compile(rb"\n\r?\n")
_LENGTH = re.compile(rb"(\d{1,12})[ \t]*\r?\n(?=[!-9;-~]+:)")
_OF_ADDRESSES = ("from", "to", "cc", "bcc", "reply-to")
_IDENTIFYING = ("message-id", "date", "from", "to", "cc", "subject")
_MAILDIR = frozenset({"cur", "new", "tmp"})
MESSAGES = StreamForm(
    "messages",
    "Your e-mails",
    "Sender, recipients, date, subject, text and labels of every message.",
    [
        key(),
        labelled(
            reference(
                "thread_id", "Messages of one conversation share it, also from several imports"
            ),
            "subject",
        ),
        moment("sent_at", "When it was sent, in UTC", event=True),
        text("subject", "Subject line", title=True),
        written_by(caseless(text("from_name", "Name of the sender"))),
        person(
            written_by(name_word("from_address", "E-mail address of the sender, lower case")),
            PersonForm.ADDRESS,
            named_by="from_name",
        ),
        person(names("to", "Recipients, as name and address"), PersonForm.WRITTEN),
        person(names("cc", "Recipients of a copy"), PersonForm.WRITTEN),
        person(names("bcc", "Recipients of a blind copy"), PersonForm.WRITTEN),
        caseless(word("to_address", "E-mail address of the first recipient, lower case")),
        sent_to(text("recipients", "Names and addresses of all recipients, to search in")),
        caseless(plain("reply_to", "Where answers are asked to go")),
        text("body", "The text; of HTML mails what a reader sees, without markup"),
        names("links", "Where its page leads: each link as its words and its address in <>"),
        names("labels", "Labels or folders the mail program gave it"),
        text("labelled", "All labels, to search in"),
        word("mailbox", "Name of the mailbox file or folder it was found in"),
        word("list_id", "Mailing list it came through"),
        flag("is_reply", "Whether it answers another message"),
        integer("attachment_count", "Number of attached files", summed=True),
        integer("size_bytes", "Size of the whole message in bytes", summed=True),
        plain("internet_message_id", "The Message-ID of the mail standard, without brackets"),
        plain("in_reply_to", "Message-ID of the message it answers"),
    ],
    time_field="sent_at",
    views={
        "headers": (
            "Who, when and subject, without the text",
            ["id", "thread_id", "sent_at", "subject", "from_name", "from_address", "to", "cc"],
        ),
        "traffic": ("Only who and when", ["id", "sent_at", "from_address", "to"]),
    },
    children={"attachments": ("attachments", "message_id")},
    threads={"thread": "thread_id"},
    semantic=["subject", "body"],
)
ATTACHMENTS = StreamForm(
    "attachments",
    "Files attached to your e-mails",
    "Name, type, size and content of every attached file.",
    [
        key(),
        reference("message_id", "The message it came with", required=True),
        moment("sent_at", "When the message was sent, in UTC", event=True),
        plain("subject", "Subject line of the message"),
        text("filename", "Name of the file", title=True),
        word("mime_type", "Kind of file"),
        integer("size_bytes", "Size in bytes", summed=True),
        blob(),
        *file_text(),
    ],
    time_field="sent_at",
    views={"names": ("Names only", ["id", "message_id", "sent_at", "filename", "mime_type"])},
    parents={"message": ("messages", "message_id")},
)
DECLARATION = declaration(
    "mail", "E-mail", "Messages and attachments of a mailbox.", [MESSAGES, ATTACHMENTS]
)


class MailSource:
    """Reads mbox files, Maildir folders and single messages."""

    connector_key = "mail"
    declaration: Data = DECLARATION
    how_to_export = (
        "Gmail: takeout.google.com, choose Mail, download the zip. Thunderbird: copy the folder's "
        "file without extension from the profile. Apple Mail: Mailbox > Export Mailbox. Others: "
        "any .mbox, Maildir folder, .eml or .emlx files."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim what begins with an mbox separator or with the headers of a message."""
        return claim(matching(export, _is_mail), "it begins like a mailbox or a message")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each message, then its attachments."""
        if len(export.members) == 1:
            only = export.members[0]
            return each_member(export, lambda member: _read_member(member, start - only.offset))
        return beginning_at(start, _without_repeats(each_member(export, _read_member)))


def _is_mail(head: bytes) -> bool:
    if is_of_account(head) or SEPARATOR.match(head):
        return True
    head = head[_length_line(head) :]
    block = re.split(rb"\r?\n\r?\n", head, maxsplit=1)[0]
    if not _HEADER_LINE.match(block):
        return False
    names = {name.lower() for name in _HEADER.findall(block)}
    return len(names) >= 3 and bool(names & {b"from", b"received", b"message-id"})


def _without_repeats(items: Iterator[SourceItem]) -> Iterator[SourceItem]:
    """A message that lies in several mailboxes is read from the first, of so many as fit."""
    digests: set[int] = set()
    repeated = False
    for item in items:
        if isinstance(item, SourceRecord) and item.stream == "messages":
            mark = int(item.data["id"][-16:], 16)
            repeated = mark in digests
            if len(digests) < MOST_REMEMBERED:
                digests.add(mark)
            if repeated:
                reason = message("the same message was read from another mailbox")
                yield Skipped(item.data["mailbox"], "duplicate", reason, item.position)
        if isinstance(item, Skipped) or not repeated:
            yield item


def _read_member(member: ExportMember, begin: int = 0) -> Iterator[SourceItem]:
    begin = max(0, begin)
    if SEPARATOR.match(member.head()):
        with member.open(begin) as stream:
            for message in split_mbox(stream, member.offset + begin):
                yield from _read_message(message, member)
        return
    raw, complete, labels = None, True, None
    if member.size_bytes <= LARGEST_MESSAGE_BYTES:
        with member.open() as stream:
            raw, complete = _of_apple(stream.read())
            raw, labels = of_account(raw)
    yield from _read_message(RawMessage(member.offset, b"", raw, complete), member, labels)


def _length_line(head: bytes) -> int:
    """How long the line is with which Apple Mail begins a message (`.emlx`): its length."""
    match = _LENGTH.match(head)
    return match.end() if match else 0


def _of_apple(content: bytes) -> tuple[bytes, bool]:
    """A message without Apple's length before it and its property list behind it.

    Returns: also whether all of it is there.
    """
    match = _LENGTH.match(content)
    if match is None:
        return content, True
    end = match.end() + int(match[1])
    return content[match.end() : end], end <= len(content)


def _read_message(
    raw_message: RawMessage, member: ExportMember, labels: list[str] | None = None
) -> Iterator[SourceItem]:
    raw, position = raw_message.raw, raw_message.offset
    position_text = member.where(position - member.offset)
    if raw is None:
        limit = LARGEST_MESSAGE_BYTES // 1024 // 1024
        yield Skipped(
            position_text,
            "too_large",
            message("the message is over %(most)s MB", most=limit),
            position,
        )
    elif not raw_message.complete and ends_early(raw):
        reason = message("the mailbox ends in the middle of this message")
        yield Skipped(position_text, "truncated", reason, position)
    else:
        mailbox, envelope = _mailbox_name(member.name), raw_message.envelope
        build = partial(mail_records, raw, envelope, mailbox, position, labels)
        yield from one_record(position_text, position, build)


def _mailbox_name(name: str) -> str:
    path = PurePosixPath(name)
    if path.suffix.lower() == ".emlx":
        boxes = (folder.name for folder in path.parents if folder.suffix.lower() == ".mbox")
        return next(boxes, path.parent.name or "Single messages").removesuffix(".mbox")
    if path.parent.name in _MAILDIR:
        return path.parent.parent.name or "Inbox"
    if path.suffix.lower() == ".eml":
        return path.parent.name or "Single messages"
    if path.name == "mbox" and path.parent.name:
        return path.parent.name.removesuffix(".mbox")
    return path.name.removesuffix(".mbox")


def mail_records(
    raw: bytes, envelope: bytes, mailbox: str, position: int, labels: list[str] | None = None
) -> Iterator[SourceItem]:
    """The records of one message; `labels` are those that its account has for it.

    Two copies of a message are one record; two messages that wrongly share a Message-ID are two.
    """
    text = MailText(raw)
    headers = Headers(text.message)
    record_id = _record_id(headers, raw)
    if headers.quotes_from:
        text = MailText(_QUOTED_FROM.sub(rb"\1", raw))
    body = body_of(text, text.message)
    sent_at = headers.sent_at(envelope)
    sent_data: Data = {"sent_at": rendered(sent_at)} if sent_at else {}
    thread_id, links = thread_of(headers, mailbox, sent_at)
    data = _message_data(headers, body, record_id, mailbox) | sent_data | {"size_bytes": len(raw)}
    data["thread_id"] = thread_id or record_id
    data |= {} if labels is None else labels_data(list(map(printable, labels)))
    yield SourceRecord("messages", data, position, thread=links)
    if len(body.text) > LONGEST_BODY_CHARS:
        reason = message("only the first four million characters of the text were imported")
        yield Skipped("messages", "beyond_bounds", reason, position)
    if body.links_are_cut:
        reason = message("only the first %(most)s links of a page were imported", most=MOST_LINKS)
        yield Skipped("messages", "beyond_bounds", reason, position)
    yield from _bad_addresses(headers, position)
    came_with = sent_data | {"message_id": record_id, "subject": data["subject"]}
    for number, attachment in enumerate(body.attachments, 1):
        yield from _attachment_items(attachment, number, came_with, position)


def _bad_addresses(headers: Headers, position: int) -> Iterator[Skipped]:
    """Which address headers hold entries that are no addresses; these are kept as names."""
    for name in _OF_ADDRESSES:
        if any(map(reads_as_nobody, headers.addresses(name))):
            reason = message("an entry of %(name)s names no address", name=name.title())
            yield Skipped("messages", "bad_address", reason, position)


def _message_data(headers: Headers, body: Body, record_id: str, mailbox: str) -> Data:
    senders = sorted(headers.addresses("from"), key=reads_as_nobody)
    sender = next(iter(senders), Address("", ""))
    to, cc, bcc = (headers.addresses(name) for name in ("to", "cc", "bcc"))
    labels = headers.labels()
    names = ("references", "in-reply-to", "message-id")
    references, answered, own_ids = (headers.message_ids(name) for name in names)
    own_id = own_ids[0] if own_ids else None
    return {
        "id": record_id,
        "subject": or_none(headers.text("subject")),
        "from_name": or_none(sender.name),
        "from_address": or_none(sender.email.lower()),
        "to": shown(to),
        "cc": shown(cc),
        "bcc": shown(bcc),
        "to_address": next((address.email.lower() for address in to if address.email), None),
        "recipients": or_none(", ".join(shown([*to, *cc, *bcc]))),
        "reply_to": or_none(", ".join(shown(headers.addresses("reply-to")))),
        "body": body.text[:LONGEST_BODY_CHARS],
        "links": [printable(link) for link in body.links],
        **labels_data(labels),
        "mailbox": or_none(printable(mailbox)),
        "list_id": or_none(headers.text("list-id")),
        "is_reply": bool(answered or references or headers.text("in-reply-to")),
        "attachment_count": len(body.attachments),
        "internet_message_id": own_id,
        "in_reply_to": answered[0] if answered else None,
    }


def mail_record_id(raw: bytes) -> str:
    """The key of a message that an account holds, without reading its parts.

    It is that of `mail_records`, as a message that comes one at a time is known by it.
    """
    blank = _BLANK_LINE.search(raw)
    head = without_stray_lines(raw[: blank.end()] if blank else raw)
    return _record_id(Headers(message_of(head)), raw)


def _record_id(headers: Headers, raw: bytes) -> str:
    """The digest of what identifies a message and of its text, which may be too large to copy.

    Shapes: without an empty line all is headers, or text where it begins with none.
    """
    blank = _BLANK_LINE.search(raw)
    has_headers = _HEADER_LINE.match(raw) or SEPARATOR.match(raw[:_LONGEST_SEPARATOR_BYTES])
    begin = blank.end() if blank else len(raw) if has_headers else 0
    if b"\r\n" in raw:
        raw = raw[begin:].replace(b"\r\n", b"\n")
        begin = 0
    end = len(raw)
    while begin < end and raw[begin] == _NEWLINE:
        begin += 1
    while end > begin and raw[end - 1] == _NEWLINE:
        end -= 1
    with memoryview(raw) as view, view[begin:end] as body:
        return stable_id("msg", *(headers.identity(name) for name in _IDENTIFYING), body)


def _attachment_items(
    attachment: Attachment, number: int, came_with: Data, position: int
) -> Iterator[SourceItem]:
    content = attachment.content
    data: Data = came_with | {
        "id": f"{came_with['message_id']}.{number}",
        "filename": attachment.filename,
        "mime_type": attachment.mime_type,
        "size_bytes": len(content),
    }
    if len(content) > LARGEST_BLOB_BYTES:
        limit = LARGEST_BLOB_BYTES // 1024 // 1024
        reason = message(
            "the attachment is over %(most)s MB; it was recorded without its content", most=limit
        )
        yield SourceRecord("attachments", data, position)
        yield Skipped("attachments", "attachment_too_large", reason, position)
        return
    blob = blob_of_bytes(content, attachment.mime_type, attachment.filename)
    yield SourceRecord("attachments", data | {"blob_ref": blob.value}, position, (blob,))
