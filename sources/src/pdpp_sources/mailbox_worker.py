"""The process that speaks IMAP: it has two pipes to a server, and nothing else of the network.

Rule: read only towards the account (`EXAMINE`, `BODY.PEEK`); what a server says is parsed in here,
confined as the readers are, and a mail is at most one at a time in memory, or a few small ones.
Source: docs/contract/feeds.md 10; RFC 3501.
"""

from __future__ import annotations

import imaplib
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NoReturn, cast

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError, LoginError

from pdpp_kernel.confinement import Limits, confine
from pdpp_kernel.landlock import read_only
from pdpp_sources.mailbox_messages import (
    LARGEST_MAIL_BYTES,
    FetchMail,
    FolderSeen,
    MailboxEnd,
    MailRefused,
    MailSeen,
    receive_fetch,
    send_mailbox,
)

REFUSED, MISBEHAVES, UNREACHABLE = "sign_in_refused", "mailbox_misbehaves", "mailbox_unreachable"
MOST_FOLDERS = 5_000
UIDS_AT_ONCE = 20_000
SIZES_AT_ONCE = 500
MAILS_AT_ONCE, BYTES_AT_ONCE = 100, 4 * 1024 * 1024
STEP_SECONDS = 30.0
_LONGEST_LINE = 1_000_000
_LARGEST_UID = 2**32 - 1
_BUFFER_BYTES = 64 * 1024


class _Wire(imaplib.IMAP4):
    """IMAP over two pipes, whose other ends are held by the process that connected."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        super().__init__("mailbox")

    def open(self, host: str = "", port: int = 0, timeout: float | None = None) -> None:
        """It is connected already."""
        del timeout
        self.host, self.port = host, port

    def read(self, size: int) -> bytes:
        """So many bytes.  Raises: IMAP4.abort."""
        content = self._incoming.read(size)
        if len(content) < size:
            raise self.abort("ended")
        return content

    def readline(self) -> bytes:
        """One line.  Raises: IMAP4.error for one that is too long."""
        line = self._incoming.readline(_LONGEST_LINE + 1)
        if len(line) > _LONGEST_LINE:
            raise self.error("too long")
        return line

    def send(self, data: Any) -> None:
        """Write bytes."""
        self._outgoing.write(data)
        self._outgoing.flush()

    def shutdown(self) -> None:
        """Close both pipes."""
        self._outgoing.close()
        self._incoming.close()


class _Client(IMAPClient):
    """A client on such a wire, which counts the commands it sends."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._pipes = (incoming, outgoing)
        super().__init__("mailbox", stream=True, ssl=False)

    def _create_IMAP4(self) -> _Wire:  # noqa: N802 (the library's name)
        self.wire = _Wire(*self._pipes)
        return self.wire

    def _set_read_timeout(self) -> None:
        """Who holds the other ends waits no longer than it wants."""

    @property
    def commands(self) -> int:
        """How many were sent."""
        return int(cast("Any", self.wire).tagnum)


def _folders(client: IMAPClient) -> Iterator[str]:
    """The folders that hold mail, the inbox first; of Gmail's the one that holds all."""
    listed = client.list_folders()
    names = [(flags, name) for flags, _, name in listed[:MOST_FOLDERS]]
    whole = [name for flags, name in names if b"\\All" in flags]
    if whole:
        yield from whole
        return
    usable = [name for flags, name in names if b"\\Noselect" not in flags]
    yield from sorted(usable, key=lambda name: (name.upper() != "INBOX", name))


def _number(status: Mapping[bytes, int], name: str) -> int:
    return int(status.get(name.encode(), 0))


def _new_uids(client: IMAPClient, after: int, uid_next: int) -> Iterator[list[int]]:
    """The UIDs above one, ascending, so many at a time."""
    last = min(uid_next - 1, _LARGEST_UID)
    for begin in range(after + 1, last + 1, UIDS_AT_ONCE):
        end = min(begin + UIDS_AT_ONCE - 1, last)
        found = client.search(["UID", f"{begin}:{end}"])
        uids = sorted({uid for uid in found if begin <= uid <= end})
        for at in range(0, len(uids), SIZES_AT_ONCE):
            yield uids[at : at + SIZES_AT_ONCE]


def _fetch(client: IMAPClient, uids: Sequence[int]) -> Iterator[MailSeen | MailRefused]:
    """These mails, in order; one that is gone meanwhile is passed over."""
    told = client.fetch(uids, ["RFC822.SIZE"])
    group: list[int] = []
    size = 0
    for uid in uids:
        own = int(told[uid][b"RFC822.SIZE"]) if uid in told else 0
        if own > LARGEST_MAIL_BYTES:
            yield from _bodies(client, group)
            group, size = [], 0
            yield MailRefused(uid, "too_large")
            continue
        if group and (size + own > BYTES_AT_ONCE or len(group) >= MAILS_AT_ONCE):
            yield from _bodies(client, group)
            group, size = [], 0
        group.append(uid)
        size += own
    yield from _bodies(client, group)


def _bodies(client: IMAPClient, uids: Sequence[int]) -> Iterator[MailSeen | MailRefused]:
    if not uids:
        return
    found = client.fetch(uids, ["BODY.PEEK[]"])
    for uid in uids:
        content = found.get(uid, {}).get(b"BODY[]")
        if isinstance(content, bytes) and len(content) <= LARGEST_MAIL_BYTES:
            yield MailSeen(uid, content)
        elif content is not None:
            yield MailRefused(uid, "too_large")


def _serve(client: _Client, request: FetchMail, replies: IO[bytes]) -> str | None:
    """Send all that is new; why it ended early, where it did."""
    try:
        client.login(request.user, request.password)
    except LoginError:
        return REFUSED
    for name in _folders(client):
        signal.setitimer(signal.ITIMER_PROF, STEP_SECONDS)
        try:
            status = client.folder_status(name, ["UIDVALIDITY", "UIDNEXT", "MESSAGES"])
        except IMAPClientError:  # deleted meanwhile, or not ours to read
            continue
        validity, uid_next = _number(status, "UIDVALIDITY"), _number(status, "UIDNEXT")
        known_validity, last = request.known.get(name, (validity, 0))
        last = last if known_validity == validity else 0
        send_mailbox(replies, FolderSeen(name, validity, last, _number(status, "MESSAGES")))
        if uid_next - 1 <= last:
            continue
        client.select_folder(name, readonly=True)
        for uids in _new_uids(client, last, uid_next):
            for mail in _fetch(client, uids):
                signal.setitimer(signal.ITIMER_PROF, STEP_SECONDS)
                send_mailbox(replies, mail)
    return None


def main() -> NoReturn:
    """Serve whoever started this process; the pipes to the mail server are its arguments."""
    incoming, outgoing, memory_bytes = map(int, sys.argv[1:])
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb", _BUFFER_BYTES)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    pipes = os.fdopen(incoming, "rb", _BUFFER_BYTES), os.fdopen(outgoing, "wb", _BUFFER_BYTES)
    confine(Limits(STEP_SECONDS, memory_bytes))
    read_only(())
    client = None
    code: str | None = MISBEHAVES
    try:
        request = receive_fetch(sys.stdin.buffer)
        if request is not None:
            client = _Client(*pipes)
            code = _serve(client, request, replies)
    except imaplib.IMAP4.abort:
        code = UNREACHABLE
    except MemoryError:
        os._exit(1)
    except Exception:  # noqa: BLE001 (whatever a server makes the library raise)
        code = MISBEHAVES
    send_mailbox(replies, MailboxEnd(code, client.commands if client else 0))
    os._exit(0)


if __name__ == "__main__":
    main()
