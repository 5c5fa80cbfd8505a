"""Mails of one folder that lie in files, to be read together as a maildir is.

Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from pdpp_kernel.mail_labels import labels_line
from personal_server.feeds.fetched_batches import BATCH_BYTES, BATCH_ITEMS, file_name
from personal_server.storage.feed_rows import UNSURE, FeedMailRow


class MailBatch(msgspec.Struct):
    """Mails of a folder, and what the ledger will say of them once they are imported."""

    folder: str
    path: Path
    uidvalidity: int
    rows: list[FeedMailRow] = msgspec.field(default_factory=list[FeedMailRow])
    mails: int = 0
    size_bytes: int = 0

    def add(self, uid: int, content: bytes, labels: Sequence[str]) -> None:
        """Write one, as a maildir names it, behind the line of its labels."""
        folder = self.path / folder_file_name(self.folder) / "cur"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / f"{uid:010}").write_bytes(labels_line(labels) + content)
        self.mails += 1
        self.size_bytes += len(content)

    @property
    def is_full(self) -> bool:
        """Whether it is to be imported before more is fetched."""
        return self.mails >= BATCH_ITEMS or self.size_bytes >= BATCH_BYTES

    def unsure(self, turn: int) -> list[FeedMailRow]:
        """What the ledger says while the batch is imported: as of mails that the look after this
        one found gone, so that a record whose mail nobody finds any more is followed.
        """
        aside = folder_aside(self.folder, self.uidvalidity)
        mails = [row for row in self.rows if row.record_key]
        return [replace(row, folder=aside, code=UNSURE, gone_at=turn + 1) for row in mails]

    def clear(self) -> None:
        """Forget what was imported."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.rows, self.mails, self.size_bytes = [], 0, 0


def folder_file_name(folder: str) -> str:
    """A folder's name as one of a file; the reader calls the mailbox so."""
    return file_name(folder) or "Mail"


def folder_aside(folder: str, uidvalidity: int) -> str:
    """What the ledger calls a folder whose UIDs are to stand in nobody's way."""
    return f"{folder}\n{uidvalidity}"
