"""A mailbox read whole, beside whatever is known of it.

Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pdpp_kernel.uid_ranges import LARGEST_UID, UidSet
from pdpp_sources.mailbox_messages import (
    LARGEST_MAIL_BYTES,
    AskHeads,
    FetchMails,
    ListUids,
    MailHead,
    MailPart,
    MailRefused,
    MailSeen,
    OpenFolder,
    SignIn,
    UidRanges,
)
from pdpp_sources.mailbox_process import MailboxProcess
from personal_server.app.mail_batches import MailBatch
from personal_server.app.mailbox_talk import MAILS_AT_ONCE, ask, folders_of, groups, sign_in_to
from personal_server.feeds.feed_runs import RunResult


class MailboxReading(msgspec.Struct, frozen=True):
    """Reads a whole mailbox once more, and knows no ledger."""

    process: MailboxProcess
    staged: Path
    result: RunResult

    def batches(self, sign_in: SignIn, chosen: Sequence[str]) -> Iterator[MailBatch]:
        """All mails; the files of a batch are gone when the next is asked for."""
        _, fetched = folders_of(self.process, chosen, sign_in_to(self.process, sign_in))
        for folder in fetched:
            for _ in ask(self.process, OpenFolder(folder.name)):
                pass
            packed = [e.packed for e in ask(self.process, ListUids(1)) if isinstance(e, UidRanges)]
            batch = MailBatch(folder.name, self.staged, 0)
            for first, last in UidSet(packed[0] if packed else b"").stretches(
                MAILS_AT_ONCE, LARGEST_UID
            ):
                self._read(batch, first, last)
                if batch.is_full:
                    yield batch
                    batch.clear()
            yield batch
            batch.clear()

    def _read(self, batch: MailBatch, first: int, last: int) -> None:
        heads = [e for e in ask(self.process, AskHeads(first, last)) if isinstance(e, MailHead)]
        large = [e for e in heads if e.size_bytes > LARGEST_MAIL_BYTES]
        self.result.rejected += len(large)
        for group in groups([e for e in heads if e not in large]):
            by_uid = {head.uid: head for head in group}
            content = bytearray()
            for each in ask(self.process, FetchMails(list(by_uid))):
                if isinstance(each, MailPart):
                    content += each.content
                elif isinstance(each, MailSeen) and each.uid in by_uid:
                    if not content and by_uid[each.uid].size_bytes:
                        continue  # it gives nothing
                    batch.add(each.uid, bytes(content), by_uid.pop(each.uid).labels)
                    content = bytearray()
                elif isinstance(each, MailRefused):
                    content = bytearray()
            self.result.rejected += len(by_uid)
