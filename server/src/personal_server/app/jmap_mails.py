"""Mails of a JMAP account, taken as they are now: rows of those that are known, the others whole.

Rule: a mail is fetched once, in whatever mailboxes it lies.
Source: docs/contract/feeds.md 13.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_messages import AskEmails, EmailSeen
from pdpp_sources.mailbox_messages import LARGEST_MAIL_BYTES
from personal_server.app.jmap_look import JmapLook
from personal_server.app.jmap_mailboxes import number_of
from personal_server.app.mail_batches import MailBatch
from personal_server.storage.feed_rows import UNSURE, FeedMailRow

TOO_LARGE = "too_large"


class JmapMails(msgspec.Struct, frozen=True):
    """The mails of an account, in one look at it."""

    look: JmapLook

    def take(self, ids: Sequence[str]) -> None:
        """Take mails as they are now: rows of those that are known, and the others whole."""
        mails, feed_id = self.look.ports.mails, self.look.feed.feed_id
        heads = self.look.ask(AskEmails(list(ids)), EmailSeen)
        unknown = {
            one for each in heads for one in each.mailboxes
        } - self.look.known.mailboxes.keys()
        if unknown:  # made since the mailboxes were listed
            self.look.take_mailboxes()
        rows: dict[str, list[FeedMailRow]] = {}
        for row in mails.rows_of_copies(feed_id, [each.email for each in heads]):
            rows.setdefault(row.copy_of, []).append(row)
        kept: list[FeedMailRow] = []
        gone: list[FeedMailRow] = []
        wanted: dict[str, list[EmailSeen]] = {}
        for head in heads:
            there = self.look.known.inside(head.mailboxes)
            own = [each for each in rows.get(head.email, []) if each.code != UNSURE]
            lost = [e for e in own if e.gone_at is None and e.folder not in there]
            gone += lost
            key = next((each.record_key for each in own if each.record_key), "")
            refused = next((each.code for each in own if each.code), None)
            if not there:
                continue
            if not key and (refused is None or self.look.is_asked):
                wanted.setdefault(there[0], []).append(head)
                continue
            before = {each.folder: each for each in own}
            now = self._rows(head, there, key, None if key else refused)
            self.look.result.new += sum(row.folder not in before for row in now)
            kept += [row for row in now if before.get(row.folder) != row]
        self.look.ledger.mark_gone(gone)
        self.look.ledger.keep(kept)
        for mailbox, heads in sorted(wanted.items(), key=lambda e: self.look.known.order(e[0])):
            self._fetch(mailbox, heads)

    def _rows(
        self, head: EmailSeen, mailboxes: Iterable[str], key: str, code: str | None
    ) -> list[FeedMailRow]:
        """The rows of a mail, one for each mailbox that it is in."""
        return [
            FeedMailRow(
                feed_id=self.look.feed.feed_id,
                folder=mailbox,
                uid=number_of(head.email),
                copy_of=head.email,
                record_key=key,
                labels=tuple(head.labels),
                code=code,
            )
            for mailbox in mailboxes
        ]

    def _fetch(self, mailbox: str, heads: Sequence[EmailSeen]) -> None:
        """Fetch mails whole, and import them; what came before a cut is imported."""
        path = self.look.known.mailboxes[mailbox].path
        batch = MailBatch(path, self.look.ports.staged, 0)
        batch.clear()
        try:
            for head in heads:
                self._fetch_one(batch, head)
                if batch.is_full or self.look.is_over:
                    self._import(batch)
                    self.look.require_time()
        except AccountTrouble:
            self._import(batch)
            raise
        self._import(batch)

    def _fetch_one(self, batch: MailBatch, head: EmailSeen) -> None:
        mailboxes = self.look.known.inside(head.mailboxes)
        if head.size > LARGEST_MAIL_BYTES:
            content, key, code = b"", "", TOO_LARGE
        else:
            content, taken = self.look.process.mail(head.blob, head.size)
            key, code = taken.key, taken.code
        if code is not None:
            self.look.result.rejected += 1
        else:
            batch.add(number_of(head.email), content, head.labels)
            self.look.result.new += 1
        batch.rows += self._rows(head, mailboxes, key, code)

    def _import(self, batch: MailBatch) -> None:
        """Import what was fetched, and have records tell that several mails are."""
        if not batch.rows:
            return
        rows = list(batch.rows)
        self.look.ledger.take(batch)
        batch.clear()
        keys = sorted({row.record_key for row in rows if row.record_key})
        mails: dict[str, set[str]] = {}
        for row in self.look.ports.mails.mails_by_key(self.look.feed.feed_id, keys):
            mails.setdefault(row.record_key, set()).add(row.copy_of)
        self.look.ledger.touch(row for row in rows if len(mails.get(row.record_key, ())) > 1)
