"""Runs of mailboxes: mail is fetched over a connection of ours and read as an export is.

Rule: read only towards the account; a mail that was imported is not fetched again; a password is
tried once, and then the feed waits for its owner.
Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

import ipaddress
import shutil
import socket
import ssl
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pdpp_sources.mailbox_messages import (
    FetchMail,
    FolderSeen,
    MailboxEnd,
    MailRefused,
    MailSeen,
    SeenInMailbox,
)
from pdpp_sources.mailbox_process import WireCount, fetched_mail
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.feeds.feed_ledger import ItemState
from personal_server.feeds.feed_runs import FeedImporter, RunResult
from personal_server.feeds.fetched_batches import NEEDS_OWNER, FetchedBatches, FetchTrouble
from personal_server.storage.feed_rows import FeedItemRow, FeedRow
from personal_server.storage.ports.feed_stores import FeedStore

KIND = "mailbox"
BATCH_MAILS, BATCH_BYTES = 1_000, 32 * 1024 * 1024
CONNECT_SECONDS = 20.0
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class MailPlace:
    """Where a mailbox is: `imaps://USER@HOST:PORT`, or `imap://` on this very machine."""

    host: str
    port: int
    user: str
    is_plain: bool

    @classmethod
    def of(cls, place: str) -> MailPlace:
        """The place of a feed.  Raises: FetchTrouble."""
        parts = urlsplit(place)
        is_plain = parts.scheme == "imap"
        if parts.scheme not in ("imap", "imaps") or not parts.hostname or not parts.username:
            raise FetchTrouble("mailbox_place")
        if is_plain and not _is_loopback(parts.hostname):
            raise FetchTrouble("mailbox_place")
        port = parts.port or (143 if is_plain else 993)
        return cls(parts.hostname, port, unquote(parts.username), is_plain)

    def connected(self) -> socket.socket:
        """A connection whose certificate was checked.  Raises: FetchTrouble."""
        try:
            plain = socket.create_connection((self.host, self.port), CONNECT_SECONDS)
            if self.is_plain:
                return plain
            context = ssl.create_default_context()
            with closing(plain):  # detached, and so left open, where the certificate is good
                return context.wrap_socket(plain, server_hostname=self.host)
        except ssl.SSLCertVerificationError:
            raise FetchTrouble("certificate_refused") from None
        except OSError:
            raise FetchTrouble("mailbox_unreachable") from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(slots=True)
class MailBatch:
    """Mails of one folder that lie in files, to be read together."""

    folder: str
    uidvalidity: int
    last_uid: int
    path: Path
    mails: int = 0
    size_bytes: int = 0

    def add(self, mail: MailSeen) -> None:
        """Write one, as a maildir names it."""
        place = self.path / _file_name(self.folder) / "cur"
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        (place / f"{mail.uid:010}").write_bytes(mail.content)
        self.mails += 1
        self.size_bytes += len(mail.content)
        self.last_uid = mail.uid

    @property
    def is_full(self) -> bool:
        """Whether it is read before more is fetched."""
        return self.mails >= BATCH_MAILS or self.size_bytes >= BATCH_BYTES


def _file_name(folder: str) -> str:
    """A folder's name as one of a file."""
    name = "".join(c if c.isprintable() and c not in "/\\" else "." for c in folder)
    return name.strip(". ")[:LONGEST_NAME] or "Mail"


def mail_batches(
    seen: Iterable[SeenInMailbox], path: Path, result: RunResult
) -> Iterator[MailBatch]:
    """Mails in batches of a folder each; the files of one are gone when the next is asked for."""
    batch: MailBatch | None = None
    for each in seen:
        match each:
            case FolderSeen():
                if batch is not None:
                    yield batch
                shutil.rmtree(path, ignore_errors=True)
                result.seen += each.mails
                batch = MailBatch(each.name, each.uidvalidity, each.last_uid, path)
            case MailSeen() if batch is not None:
                batch.add(each)
                result.new += 1
                if batch.is_full:
                    yield batch
                    shutil.rmtree(path, ignore_errors=True)
                    batch = MailBatch(batch.folder, batch.uidvalidity, batch.last_uid, path)
            case MailRefused() if batch is not None:
                result.rejected += 1
                batch.last_uid = each.uid
            case MailboxEnd():
                result.code = each.code
                result.commands = each.commands
            case _:
                pass
    if batch is not None:
        yield batch
    shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class MailboxRuns:
    """Runs feeds of mailboxes."""

    store: FeedStore
    importer: FeedImporter
    staging: Path
    reader: str
    clock: Callable[[], int]
    secrets: FeedSecrets

    def run(self, feed: FeedRow, *, retries: bool) -> RunResult:
        """Fetch what is new, and import it batch by batch.  Raises: PutOff."""
        del retries
        result, known = RunResult(), dict[str, tuple[int, int]]()
        for line in self.store.feed_items(feed.feed_id):
            validity, _, last = line.mark.partition(".")
            known[line.item] = (int(validity), int(last))
        try:
            with self.fetched(feed, known, result) as batches:
                for batch in batches:
                    self._import(feed, batch, known, result)
        except FetchTrouble as trouble:
            result.code = trouble.code
        result.needs_owner |= result.code in NEEDS_OWNER
        return result

    @contextmanager
    def fetched(
        self, feed: FeedRow, known: Mapping[str, tuple[int, int]], result: RunResult
    ) -> Generator[Iterator[MailBatch]]:
        """Batches of what is not known yet.  Raises: FetchTrouble."""
        place, password = MailPlace.of(feed.place), self.secrets.password(feed.feed_id)
        if password is None:
            raise FetchTrouble("sign_in_missing")
        count = WireCount()
        staged = self.staging / feed.feed_id / "mail"
        request = FetchMail(place.user, password, dict(known))
        try:
            with fetched_mail(place.connected(), request, count) as seen:
                yield mail_batches(seen, staged, result)
        finally:
            result.size_bytes = count.received + count.sent
            shutil.rmtree(self.staging / feed.feed_id, ignore_errors=True)

    def _import(
        self,
        feed: FeedRow,
        batch: MailBatch,
        known: Mapping[str, tuple[int, int]],
        result: RunResult,
    ) -> None:
        """Import a batch, and note how far its folder was taken.  Raises: FetchTrouble."""
        if batch.mails:
            batches = FetchedBatches(self.importer, self.staging)
            batches.take(feed, batch.folder, batch.path, result)
        reached = (batch.uidvalidity, batch.last_uid)
        if known.get(batch.folder) == reached:
            return
        now_ns = self.clock()
        line = FeedItemRow(
            feed_id=feed.feed_id,
            item=batch.folder,
            mark=f"{batch.uidvalidity}.{batch.last_uid}",
            state=ItemState.STORED,
            reader=self.reader,
            at_ns=now_ns,
            since_ns=now_ns,
        )
        self.store.keep_feed_items(feed.feed_id, [line])
