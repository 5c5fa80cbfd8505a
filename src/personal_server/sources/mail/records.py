"""One parsed message as records: the message, and each attachment with its bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message

from personal_server.domain.source_item import (
    LARGEST_BLOB_BYTES,
    Data,
    Skipped,
    SourceItem,
    SourceRecord,
    blob_of_bytes,
    stable_id,
)
from personal_server.sources.mail.headers import Address, Headers, shown
from personal_server.sources.mail.parts import Attachment, Body, body_of
from personal_server.sources.text import or_none, printable
from personal_server.sources.times import rendered

LONGEST_BODY_CHARS = 4_000_000
_IDENTIFYING = ("message-id", "date", "from", "to", "cc", "subject")
_BLANK_LINE = re.compile(rb"\n\r?\n")


def mail_records(
    message: Message, raw: bytes, envelope: bytes, mailbox: str, position: int
) -> Iterator[SourceItem]:
    """The records of one message.

    Two copies of a message are one record; two messages that wrongly share a Message-ID are two.
    """
    headers = Headers(message)
    body = body_of(message)
    record_id = _record_id(headers, raw)
    sent_at = headers.sent_at(envelope)
    when: Data = {"sent_at": rendered(sent_at)} if sent_at else {}
    data = _message_data(headers, body, record_id, mailbox)
    data |= when | {"size_bytes": len(raw)}
    yield SourceRecord("messages", data, position)
    for number, attachment in enumerate(body.attachments, 1):
        yield from _attachment_items(attachment, number, record_id, when, position)


def _message_data(headers: Headers, body: Body, record_id: str, mailbox: str) -> Data:
    sender = next(iter(headers.addresses("from")), Address("", ""))
    own_id = next(iter(headers.message_ids("message-id")), None)
    to, cc, bcc = (headers.addresses(name) for name in ("to", "cc", "bcc"))
    labels = headers.labels()
    answered = headers.message_ids("in-reply-to")
    references = headers.message_ids("references")
    return {
        "id": record_id,
        "thread_id": _thread_id(headers, [*references, *answered, *([own_id] if own_id else [])])
        or record_id,
        "subject": or_none(headers.text("subject")),
        "from_name": or_none(sender.name),
        "from_address": or_none(sender.email.lower()),
        "to": shown(to),
        "cc": shown(cc),
        "bcc": shown(bcc),
        "to_address": next((each.email.lower() for each in to if each.email), None),
        "recipients": or_none(", ".join(shown([*to, *cc, *bcc]))),
        "reply_to": or_none(", ".join(shown(headers.addresses("reply-to")))),
        "body": body.text[:LONGEST_BODY_CHARS],
        "labels": labels,
        "labelled": or_none(", ".join(labels)),
        "mailbox": or_none(printable(mailbox)),
        "list_id": or_none(headers.text("list-id")),
        "is_reply": bool(answered or references),
        "attachment_count": len(body.attachments),
        "internet_message_id": own_id,
        "in_reply_to": answered[0] if answered else None,
    }


def _thread_id(headers: Headers, roots: list[str]) -> str | None:
    """Gmail's own thread, else the message that began it: the first one referred to."""
    if gmail := headers.raw("x-gm-thrid").strip():
        return stable_id("thr", "gmail", gmail)
    return stable_id("thr", roots[0]) if roots else None


def _record_id(headers: Headers, raw: bytes) -> str:
    parts = _BLANK_LINE.split(raw, maxsplit=1)
    text = parts[1] if len(parts) > 1 else b""
    body = text.replace(b"\r\n", b"\n").strip(b"\n")
    return stable_id("msg", *(headers.raw(name) for name in _IDENTIFYING), body)


def _attachment_items(
    attachment: Attachment, number: int, message_id: str, when: Data, position: int
) -> Iterator[SourceItem]:
    content = attachment.content
    data: Data = {
        "id": f"{message_id}.{number}",
        "message_id": message_id,
        "filename": attachment.filename,
        "mime_type": attachment.mime_type,
        "size_bytes": len(content),
    } | when
    if len(content) > LARGEST_BLOB_BYTES:
        limit = LARGEST_BLOB_BYTES // 1024 // 1024
        reason = f"over {limit} MB: recorded without its content"
        yield SourceRecord("attachments", data, position)
        yield Skipped("attachments", "attachment_too_large", reason, position)
        return
    blob = blob_of_bytes(content, attachment.mime_type, attachment.filename)
    yield SourceRecord("attachments", data | {"blob_ref": blob.value}, position, (blob,))
