"""The mail reader: members of an export in, messages and attachments out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import compat32
from pathlib import PurePosixPath

from personal_server.domain.source_item import Data, Skipped, SourceItem, SourceRecord
from personal_server.sources.export import Export, Member
from personal_server.sources.mail.declaration import DECLARATION, HOW_TO_EXPORT
from personal_server.sources.mail.records import mail_records
from personal_server.sources.mail.splitting import (
    LARGEST_MESSAGE_BYTES,
    SEPARATOR,
    RawMessage,
    split_mbox,
)
from personal_server.sources.port import (
    CERTAIN,
    MOST_REMEMBERED,
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
)

_HEADER = re.compile(
    rb"^(received|return-path|delivered-to|message-id|date|from|to|subject|mime-version|content-type"
    rb"|x-[a-z-]+):",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER_LINE = re.compile(rb"^[!-9;-~]+:")
_MAILDIR = frozenset({"cur", "new", "tmp"})


class MailSource:
    """Reads mbox files, Maildir folders and single messages."""

    connector_key = "mail"
    declaration: Data = DECLARATION
    how_to_export = HOW_TO_EXPORT

    def recognize(self, export: Export) -> Claim | None:
        """Claim what begins with an mbox separator or with the headers of a message."""
        mine = list(matching(export, _is_mail))
        return claim(CERTAIN, mine, "it begins like a mailbox or a message")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield each message, then its attachments."""
        if len(export.members) == 1:
            only = export.members[0]
            return each_member(export, lambda member: _read_member(member, start - only.offset))
        return beginning_at(start, _without_repeats(each_member(export, _read_member)))


def _is_mail(head: bytes) -> bool:
    if SEPARATOR.match(head):
        return True
    block = re.split(rb"\r?\n\r?\n", head, maxsplit=1)[0]
    if not _HEADER_LINE.match(block):
        return False
    names = {name.lower() for name in _HEADER.findall(block)}
    return len(names) >= 3 and bool(names & {b"from", b"received", b"message-id"})


def _without_repeats(items: Iterator[SourceItem]) -> Iterator[SourceItem]:
    """A message that lies in several mailboxes is read from the first, of so many as fit."""
    seen: set[int] = set()
    repeated = False
    for item in items:
        if isinstance(item, SourceRecord) and item.stream == "messages":
            mark = int(item.data["id"][-16:], 16)
            repeated = mark in seen
            if len(seen) < MOST_REMEMBERED:
                seen.add(mark)
            if repeated:
                reason = "the same message was read from another mailbox"
                yield Skipped(item.data["mailbox"], "duplicate", reason, item.position)
        if isinstance(item, Skipped) or not repeated:
            yield item


def _read_member(member: Member, begin: int = 0) -> Iterator[SourceItem]:
    begin = max(0, begin)
    if not SEPARATOR.match(member.head()):
        yield from _read_single(member)
        return
    with member.open(begin) as stream:
        for message in split_mbox(stream, member.offset + begin):
            yield from _read_message(message, member)


def _read_single(member: Member) -> Iterator[SourceItem]:
    if member.size_bytes > LARGEST_MESSAGE_BYTES:
        yield _too_large(member, member.offset)
        return
    with member.open() as stream:
        raw = stream.read()
    yield from _read_message(RawMessage(member.offset, b"", raw), member)


def _read_message(message: RawMessage, member: Member) -> Iterator[SourceItem]:
    if message.raw is None:
        yield _too_large(member, message.offset)
        return
    where = f"{member.name} at byte {message.offset - member.offset}"
    if not message.complete:
        yield Skipped(
            where, "truncated", "the mailbox ends in the middle of this message", message.offset
        )
        return
    raw, envelope = message.raw, message.envelope
    yield from one_record(
        where,
        message.offset,
        lambda: mail_records(
            BytesParser(policy=compat32).parsebytes(raw),
            raw,
            envelope,
            _mailbox(member.name),
            message.offset,
        ),
    )


def _too_large(member: Member, position: int) -> Skipped:
    where = f"{member.name} at byte {position - member.offset}"
    limit = LARGEST_MESSAGE_BYTES // 1024 // 1024
    return Skipped(where, "too_large", f"the message is over {limit} MB", position)


def _mailbox(name: str) -> str:
    path = PurePosixPath(name)
    if path.parent.name in _MAILDIR:
        return path.parent.parent.name or "Inbox"
    if path.suffix.lower() == ".eml":
        return path.parent.name or "Single messages"
    if path.name == "mbox" and path.parent.name:
        return path.parent.name.removesuffix(".mbox")
    return path.name.removesuffix(".mbox")
