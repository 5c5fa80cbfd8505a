"""What is asked of a process that speaks IMAP, and what it answers.

Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pdpp_sources.mailbox_messages import (
    FolderSeen,
    ListFolders,
    MailboxReply,
    MailboxRequest,
    MailboxSignedIn,
    MailHead,
    SignIn,
)
from pdpp_sources.mailbox_process import MISBEHAVES, MailboxProcess
from personal_server.app.mailbox_folders import INBOX, choose_folders
from personal_server.feeds.fetched_batches import FetchTrouble

MAILS_AT_ONCE, BYTES_AT_ONCE = 100, 4 * 1024 * 1024


def ask(process: MailboxProcess, request: MailboxRequest) -> Iterator[MailboxReply]:
    """What is answered.  Raises: FetchTrouble once the conversation ended badly."""
    yield from process.ask(request)
    if process.end is not None and process.end.code is not None:
        raise FetchTrouble(process.end.code)


def sign_in_to(process: MailboxProcess, sign_in: SignIn) -> frozenset[str]:
    """Sign in; what the server can do.  Raises: FetchTrouble."""
    found = [e.capabilities for e in ask(process, sign_in) if isinstance(e, MailboxSignedIn)]
    return frozenset(found[0] if found else ())


def folders_of(
    process: MailboxProcess, chosen: Sequence[str], can: frozenset[str]
) -> tuple[list[FolderSeen], list[FolderSeen]]:
    """All folders, and those that are fetched.  Raises: FetchTrouble.

    An account without an inbox is none: what is missing there is not gone.
    """
    listed = [each for each in ask(process, ListFolders()) if isinstance(each, FolderSeen)]
    if not any(each.name.upper() == INBOX for each in listed):
        raise FetchTrouble(MISBEHAVES)
    return listed, choose_folders(listed, chosen, can)


def groups(heads: Sequence[MailHead]) -> Iterator[list[MailHead]]:
    """Mails that are fetched by one command."""
    group: list[MailHead] = []
    size = 0
    for head in heads:
        if group and (size + head.size_bytes > BYTES_AT_ONCE or len(group) >= MAILS_AT_ONCE):
            yield group
            group, size = [], 0
        group.append(head)
        size += head.size_bytes
    if group:
        yield group
