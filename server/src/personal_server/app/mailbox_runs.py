"""Runs of mailboxes over IMAP: mail is fetched over a connection of ours and read as an export is.

Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

import msgspec

from pdpp_kernel.system.timed_connections import cut_after
from pdpp_sources.mailbox_messages import SignIn
from pdpp_sources.mailbox_process import MailboxProcess, WireCount, mailbox_process
from personal_server.app.feed_secrets import TOKENS_BEGIN, FeedSecrets
from personal_server.app.mail_batches import MailBatch
from personal_server.app.mail_ledger import SyncPorts
from personal_server.app.mail_runs import MailRuns
from personal_server.app.mailbox_reading import MailboxReading
from personal_server.app.mailbox_sync import MailboxSync
from personal_server.feeds.feed_runs import PutOff, RunResult
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.storage.feed_rows import FeedRow
from personal_server.web.public_addresses import is_loopback

CONNECT_SECONDS = 20.0
TLS_SECONDS = 60.0
"""In which TLS has begun, whatever the server sends meanwhile."""
TLS_PORT, PLAIN_PORT = 993, 143
STARTTLS = "imap+starttls"
NO_PLACE = "mailbox_place"


class MailPlace(msgspec.Struct, frozen=True):
    """Where a mailbox is: `imaps://USER@HOST:PORT`, `imap+starttls://` where TLS begins after the
    greeting, or `imap://` on this very machine.
    """

    host: str
    port: int
    user: str
    is_plain: bool
    begins_tls: bool = False

    @classmethod
    def of(cls, address: str) -> MailPlace:
        """The place of a feed.  Raises: FetchTrouble."""
        try:
            parts = urlsplit(address)
            host, port, user = parts.hostname, parts.port, parts.username
        except ValueError:
            raise FetchTrouble(NO_PLACE) from None
        is_plain = parts.scheme == "imap"
        begins_tls = parts.scheme == STARTTLS
        if parts.scheme not in ("imap", "imaps", STARTTLS) or not host or not user or parts.path:
            raise FetchTrouble(NO_PLACE)
        if is_plain and not is_loopback(host):
            raise FetchTrouble(NO_PLACE)
        usual = TLS_PORT if parts.scheme == "imaps" else PLAIN_PORT
        return cls(host, port or usual, unquote(user), is_plain, begins_tls)

    @classmethod
    def spelled(cls, host: str, user: str, port: int | None, *, starttls: bool = False) -> str:
        """What an owner typed, as the place of a feed: of a mailbox always the same.

        Raises: FetchTrouble.
        """
        if starttls:
            scheme, usual = STARTTLS, PLAIN_PORT
        else:
            scheme, usual = ("imap", PLAIN_PORT) if is_loopback(host) else ("imaps", TLS_PORT)
        at = f"[{host}]" if ":" in host else host.lower()
        shown = "" if port in (None, usual) else f":{port}"
        address = f"{scheme}://{quote(user, safe='')}@{at}{shown}"
        cls.of(address)
        return address

    @property
    def text(self) -> str:
        """As a feed keeps it: what `of` reads."""
        return self.spelled(self.host, self.user, self.port, starttls=self.begins_tls)

    def sign_in(self, password: str, *, is_token: bool = False) -> SignIn:
        """What a conversation over its connection begins with."""
        return SignIn(self.user, password, is_greeted=self.begins_tls, is_token=is_token)

    def sign_in_of(self, feed: FeedRow, secrets: FeedSecrets) -> SignIn:
        """That of a feed, by its password, or a token that is renewed where it is about to end.

        Raises: FetchTrouble.
        """
        kept = secrets.password(feed)
        if kept is None:  # as after a restore
            raise FetchTrouble("sign_in_missing" if feed.provider is None else "sign_in_ended")
        if not kept.startswith(TOKENS_BEGIN):
            return self.sign_in(kept)
        from personal_server.app.oauth_access import access_token  # noqa: PLC0415 (few do)

        return self.sign_in(access_token(secrets, feed), is_token=True)

    def connected(self) -> socket.socket:
        """A connection whose certificate was checked.  Raises: FetchTrouble."""
        try:
            plain = socket.create_connection((self.host, self.port), CONNECT_SECONDS)
            if self.is_plain:
                return plain
            context = ssl.create_default_context()
            if self.begins_tls:
                from personal_server.app.mail_starttls import with_tls  # noqa: PLC0415 (few do)

                with closing(plain), cut_after(plain, TLS_SECONDS):
                    return with_tls(plain, self.host, context)
            # detached, and so left open, where the certificate is good
            with closing(plain), cut_after(plain, TLS_SECONDS):
                return context.wrap_socket(plain, server_hostname=self.host)
        except ssl.SSLCertVerificationError:
            raise FetchTrouble("certificate_refused") from None
        except OSError:
            raise FetchTrouble("mailbox_unreachable") from None


@dataclass(frozen=True, slots=True)
class MailboxRuns(MailRuns):
    """Runs feeds of mailboxes over IMAP."""

    def look(
        self, feed: FeedRow, ports: SyncPorts, result: RunResult, turn: int, *, is_asked: bool
    ) -> None:
        """Look once; the result counts it.  Raises: FetchTrouble, PutOff."""
        with self._process(feed, result) as (process, sign_in):
            MailboxSync(feed, process, ports, result, is_asked, turn).run(sign_in)

    @contextmanager
    def fetched(self, feed: FeedRow, result: RunResult) -> Generator[Iterator[MailBatch]]:
        """The whole mailbox in batches.  Raises: FetchTrouble."""
        with self._process(feed, result) as (process, sign_in):
            reading = MailboxReading(process, self.staged(feed), result)
            yield reading.batches(sign_in, feed.chosen)

    @contextmanager
    def _process(
        self, feed: FeedRow, result: RunResult
    ) -> Generator[tuple[MailboxProcess, SignIn]]:
        """What speaks with the server; the result counts it.  Raises: FetchTrouble, PutOff."""
        place = MailPlace.of(feed.place)
        sign_in = place.sign_in_of(feed, self.secrets)
        count = WireCount()
        try:
            with (
                mailbox_process(place.connected(), count) as process,
                self.waits.under_way(feed.feed_id, process),
            ):
                try:
                    yield process, sign_in
                except FetchTrouble:
                    if process.is_left:
                        raise PutOff from None
                    raise
                finally:
                    result.commands = process.commands
        finally:
            result.size_bytes = count.received + count.sent
            shutil.rmtree(self.staging / feed.feed_id, ignore_errors=True)
