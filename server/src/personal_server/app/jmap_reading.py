"""A JMAP account read whole, beside whatever is known of it.

Source: docs/contract/feeds.md 13.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_messages import (
    MISBEHAVES,
    AskEmails,
    AskIds,
    AskMailboxes,
    BeginJmap,
    EmailSeen,
    IdsSeen,
    MailboxSeen,
)
from pdpp_sources.jmap.jmap_process import JmapProcess
from pdpp_sources.mailbox_messages import LARGEST_MAIL_BYTES
from personal_server.app.jmap_mailboxes import (
    MOST_BESIDE,
    KnownJmap,
    KnownMailbox,
    fetched_of,
    number_of,
    pages_of,
    paths_of,
)
from personal_server.app.mail_batches import MailBatch
from personal_server.feeds.feed_runs import RunResult


class JmapReading(msgspec.Struct, frozen=True):
    """Reads a whole account once more, and knows no ledger."""

    process: JmapProcess
    staged: Path
    result: RunResult

    def batches(self, url: str, chosen: Sequence[str]) -> Iterator[MailBatch]:
        """All mails, each in the first of its mailboxes; the files of a batch are gone when the
        next is asked for.  Raises: AccountTrouble.
        """
        for _ in self.process.ask(BeginJmap(url, None)):
            pass
        asked = self.process.ask(AskMailboxes(None))
        listed = [each for each in asked if isinstance(each, MailboxSeen)]
        paths = paths_of(listed)
        fetched = fetched_of(listed, paths, chosen)
        known = KnownJmap(
            mailboxes={each: KnownMailbox(path, each in fetched) for each, path in paths.items()}
        )
        counts = {each.mailbox: each.mails for each in listed}
        for number, mailbox in enumerate(known.fetched()):
            batch = MailBatch(paths[mailbox], self.staged, 0)
            for head in self._heads(mailbox, counts[mailbox]):
                if known.inside(head.mailboxes)[:1] != [mailbox]:
                    continue
                self._read(batch, head)
                if batch.is_full:
                    yield batch
                    batch.clear()
            if batch.mails or not number:
                yield batch
            batch.clear()

    def _heads(self, mailbox: str, mails: int) -> Iterator[EmailSeen]:
        """What is known of the mails of a mailbox, each once."""

        def page(behind: str | None) -> IdsSeen:
            asked = self.process.ask(AskIds(mailbox, behind))
            return [each for each in asked if isinstance(each, IdsSeen)][-1]

        met = set[int]()
        listed = 0
        for ids in pages_of(page, None):
            listed += len(ids)
            if listed > mails + MOST_BESIDE:  # it lists them again and again
                raise AccountTrouble(MISBEHAVES)
            new = [each for each in ids if number_of(each) not in met]
            met.update(map(number_of, new))
            heads = list(self.process.ask(AskEmails(new)))
            yield from (each for each in heads if isinstance(each, EmailSeen))

    def _read(self, batch: MailBatch, head: EmailSeen) -> None:
        if head.size > LARGEST_MAIL_BYTES:
            self.result.rejected += 1
            return
        content, taken = self.process.mail(head.blob, head.size)
        if taken.code is not None:
            self.result.rejected += 1
        else:
            batch.add(batch.mails, content, head.labels)
