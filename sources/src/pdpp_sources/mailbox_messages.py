"""What a process that speaks IMAP and the one that asked for it say to each other.

Each message is a length and MessagePack, as readers send them; a password travels here only, and
in no argument and no environment.  A request is answered by what it asks for, then by `Answered`,
or by `MailboxEnd`, after which there is nothing more.
"""

from __future__ import annotations

from typing import IO

import msgspec

from pdpp_sources.message_frames import receive_message

LARGEST_MAIL_BYTES = 32 * 1024 * 1024
MOST_FOLDERS = 5_000
"""Of a server that lists more, the others are not known."""
_LARGEST_BYTES = LARGEST_MAIL_BYTES + 64 * 1024


class MailboxMessage(msgspec.Struct, array_like=True, tag=True):
    """One of the messages below."""


class SignIn(MailboxMessage):
    """Sign in, first of all; `is_greeted` where the server greeted before TLS began.

    Shapes: `is_token` says that the password is an access token (RFC 7628).
    """

    user: str
    password: str
    is_greeted: bool = False
    is_token: bool = False


class ListFolders(MailboxMessage):
    """List the folders, with their marks where one command tells them all."""


class AskMark(MailboxMessage):
    """The mark of a folder that is not open."""

    name: str


class OpenFolder(MailboxMessage):
    """Open a folder to read only; what follows is of it."""

    name: str


class AskChanges(MailboxMessage):
    """What changed since a mark of the open folder; of servers that remember it, also what went."""

    modseq: int


class ListUids(MailboxMessage):
    """All UIDs from one on."""

    begin: int


class AskHeads(MailboxMessage):
    """What is known of mails before their bodies."""

    first: int
    last: int


class AskLabels(MailboxMessage):
    """The labels of the mails from one UID to another."""

    first: int
    last: int


class FetchMails(MailboxMessage):
    """Mails whole, in the order of their UIDs; of the first one `begun` is here already."""

    uids: list[int]
    begun: bytes = b""


class WaitForChange(MailboxMessage):
    """Wait so long for changes of the open folder; each is told as it comes."""

    seconds: int


class LeaveMailbox(MailboxMessage):
    """Sign out, and end."""


MailboxRequest = (
    SignIn
    | ListFolders
    | AskMark
    | OpenFolder
    | AskChanges
    | ListUids
    | AskHeads
    | AskLabels
    | FetchMails
    | WaitForChange
    | LeaveMailbox
)


class FolderMark(msgspec.Struct, array_like=True, frozen=True):
    """What tells a state of a folder from another; 0 for what a server does not say."""

    uidvalidity: int = 0
    uid_next: int = 0
    mails: int = 0
    modseq: int = 0
    unseen: int = 0


class MailboxSignedIn(MailboxMessage):
    """What the server can do, of what is used."""

    capabilities: list[str]


class FolderSeen(MailboxMessage):
    """A folder; `uses` are its special uses, without the backslash and in lower case."""

    name: str
    uses: list[str]
    mark: FolderMark | None


class MailHead(MailboxMessage):
    """A mail before its body; equal `copy` says that it is a copy of another, empty that it says
    nothing.
    """

    uid: int
    size_bytes: int
    copy: str
    labels: list[str]


class MailLabels(MailboxMessage):
    """What the mail program marked a mail with."""

    uid: int
    labels: list[str]


class UidRanges(MailboxMessage):
    """UIDs that are there, or among changes those that went: pairs of first and last, ascending."""

    packed: bytes


class FolderChanged(MailboxMessage):
    """Mails of the open folder came, went or were marked."""


class MailPart(MailboxMessage):
    """The next bytes of a mail."""

    uid: int
    content: bytes


class MailSeen(MailboxMessage):
    """A mail has come whole; `key` is that of its record."""

    uid: int
    key: str


class MailRefused(MailboxMessage):
    """A mail that was not fetched, and why."""

    uid: int
    code: str


class Answered(MailboxMessage):
    """A request was answered whole; `commands` counts those of the whole connection."""

    commands: int


class MailboxEnd(MailboxMessage):
    """There is no more; `code` says why, where it did not end well."""

    code: str | None
    commands: int


MailboxReply = (
    MailboxSignedIn
    | FolderSeen
    | MailHead
    | MailLabels
    | UidRanges
    | FolderChanged
    | MailPart
    | MailSeen
    | MailRefused
    | Answered
    | MailboxEnd
)
_requests = msgspec.msgpack.Decoder(MailboxRequest)
_replies = msgspec.msgpack.Decoder(MailboxReply)


def receive_request(stream: IO[bytes]) -> MailboxRequest | None:
    """The next request, or None at the end."""
    return receive_message(stream, _requests, _LARGEST_BYTES)


def receive_reply(stream: IO[bytes]) -> MailboxReply | None:
    """The next reply, or None if the other side has ended.  Raises: msgspec.DecodeError."""
    return receive_message(stream, _replies, _LARGEST_BYTES)
