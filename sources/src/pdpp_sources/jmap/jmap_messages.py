"""What a process that reads a JMAP account and the one that holds its connection say to each other.

A request is answered by what it asks for, then by `JmapAnswered`, or by `JmapEnd`, after which
there is nothing more; between them the process names requests to the server
(`account_requests.py`).
Source: RFC 8620, RFC 8621.
"""

from __future__ import annotations

from typing import IO

import msgspec

from pdpp_sources.account_requests import AskServer, NextWords, NoAnswer, ServerStatus, ServerWords
from pdpp_sources.message_frames import receive_message

MOST_AT_ONCE = 500
"""Mails that are asked for by one request, of a server that allows so many."""
MISBEHAVES, UNREACHABLE, NOT_FOUND = "mailbox_misbehaves", "mailbox_unreachable", "jmap_not_found"
_LARGEST_BYTES = 16 * 1024 * 1024


class JmapMessage(msgspec.Struct, array_like=True, tag=True):
    """One of the messages below."""


class JmapSession(JmapMessage):
    """Where an account is asked, and how much at once.

    Shapes: `download` is a template (RFC 8620, 2); `state` is another where one of these is.
    """

    api: str
    download: str
    account: str
    state: str
    most_objects: int
    most_calls: int


class BeginJmap(JmapMessage):
    """First of all; a session that is not known is found from the address."""

    url: str
    session: JmapSession | None


class AskStates(JmapMessage):
    """The states of now."""


class PollJmap(JmapMessage):
    """What changed since, in one request; of mailboxes where their state is named."""

    emails: str
    mailboxes: str | None


class AskMailboxes(JmapMessage):
    """Mailboxes; all, where none are named."""

    ids: list[str] | None


class AskIds(JmapMessage):
    """The mails of a mailbox, newest first, behind one of them."""

    mailbox: str
    behind: str | None


class AskEmails(JmapMessage):
    """What is known of mails before their bodies."""

    ids: list[str]


class TakeMail(JmapMessage):
    """A mail whole; its words are those of the requests that follow."""

    blob: str
    size: int


JmapRequest = BeginJmap | AskStates | PollJmap | AskMailboxes | AskIds | AskEmails | TakeMail


class StatesSeen(JmapMessage):
    """The states of mails and of mailboxes."""

    emails: str
    mailboxes: str


class ChangesSeen(JmapMessage):
    """What changed; `is_known` where the server could tell it.

    Shapes: `counts_only` where of mailboxes nothing changed but the numbers of their mails.
    """

    of_mails: bool
    is_known: bool
    state: str = ""
    has_more: bool = False
    changed: list[str] = []
    gone: list[str] = []
    counts_only: bool = False


class MailboxSeen(JmapMessage):
    """A mailbox as its server lists it."""

    mailbox: str
    name: str
    parent: str | None
    role: str | None
    mails: int


class IdsSeen(JmapMessage):
    """Mails of a mailbox; `is_found` unless the one that they lie behind is not there."""

    ids: list[str]
    is_last: bool
    is_found: bool


class EmailSeen(JmapMessage):
    """A mail before its body."""

    email: str
    blob: str
    size: int
    mailboxes: list[str]
    labels: list[str]


class MailTaken(JmapMessage):
    """The key of the record of a mail, or why it was not taken."""

    key: str
    code: str | None


class JmapAnswered(JmapMessage):
    """A request was answered whole."""


class JmapEnd(JmapMessage):
    """There is no more; `code` says why."""

    code: str


JmapReply = (
    JmapSession
    | StatesSeen
    | ChangesSeen
    | MailboxSeen
    | IdsSeen
    | EmailSeen
    | MailTaken
    | JmapAnswered
    | JmapEnd
)
FromJmap = JmapReply | AskServer | NextWords
ToJmap = JmapRequest | ServerStatus | ServerWords | NoAnswer
_from_reader = msgspec.msgpack.Decoder(FromJmap)
_to_reader = msgspec.msgpack.Decoder(ToJmap)


def from_jmap(stream: IO[bytes]) -> FromJmap | None:
    """The next message of the process, or None at the end.  Raises: msgspec.DecodeError."""
    return receive_message(stream, _from_reader, _LARGEST_BYTES)


def to_jmap(stream: IO[bytes]) -> ToJmap | None:
    """The next message to the process, or None at the end.  Raises: msgspec.DecodeError."""
    return receive_message(stream, _to_reader, _LARGEST_BYTES)
