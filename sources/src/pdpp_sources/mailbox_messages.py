"""What a process that fetches mail and the one that asked for it say to each other.

Each message is a length and MessagePack, as readers send them; a password travels here only, and
in no argument and no environment.
"""

from __future__ import annotations

import struct
from typing import IO

import msgspec

LARGEST_MAIL_BYTES = 32 * 1024 * 1024
_LARGEST_BYTES = LARGEST_MAIL_BYTES + 64 * 1024
_LENGTH = struct.Struct("<I")


class MailboxMessage(msgspec.Struct, array_like=True, tag=True):
    """One of the messages below."""


class FetchMail(MailboxMessage):
    """Sign in and fetch what is not known.

    Shapes: `known` has the UIDVALIDITY of each folder and the last UID that was taken.
    """

    user: str
    password: str
    known: dict[str, tuple[int, int]]


class FolderSeen(MailboxMessage):
    """A folder, before its mails; `last_uid` is what all up to it were taken before."""

    name: str
    uidvalidity: int
    last_uid: int
    mails: int


class MailSeen(MailboxMessage):
    """A mail of the folder that was seen last."""

    uid: int
    content: bytes


class MailRefused(MailboxMessage):
    """A mail that was not fetched, and why."""

    uid: int
    code: str


class MailboxEnd(MailboxMessage):
    """There is no more; `code` says why, where not all was fetched."""

    code: str | None
    commands: int


SeenInMailbox = FolderSeen | MailSeen | MailRefused | MailboxEnd
_requests = msgspec.msgpack.Decoder(FetchMail)
_replies = msgspec.msgpack.Decoder(SeenInMailbox)
_encoder = msgspec.msgpack.Encoder()


def send_mailbox(stream: IO[bytes], message: MailboxMessage) -> None:
    """Write one message."""
    body = _encoder.encode(message)
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def receive_fetch(stream: IO[bytes]) -> FetchMail | None:
    """The request, or None at the end."""
    body = _body(stream)
    return None if body is None else _requests.decode(body)


def receive_seen(stream: IO[bytes]) -> SeenInMailbox | None:
    """The next reply, or None if the other side has ended.  Raises: msgspec.DecodeError."""
    body = _body(stream)
    return None if body is None else _replies.decode(body)


def _body(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > _LARGEST_BYTES:
        return None
    body = stream.read(length)
    return body if len(body) == length else None
