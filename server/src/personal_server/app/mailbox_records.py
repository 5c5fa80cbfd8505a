"""Records of mails that were moved, marked or deleted in their account.

Rule: a record tells the folder and the labels of the first of its copies; it is deleted only where
the owner has deletions followed, no copy is left, and a whole round of looks found none.
Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

import msgspec

from pdpp_kernel.mail_labels import labels_data
from personal_server.app.fed_records import FedRecords
from personal_server.app.mail_batches import folder_file_name
from personal_server.app.mailbox_folders import order_of
from personal_server.feeds.feed_kinds import MAILBOX, SOURCES
from personal_server.storage.feed_rows import FeedMailRow
from personal_server.storage.ports.feed_stores import FeedMailStore

CHANGED_AT_ONCE = 200
NO_NAMES: Mapping[str, str] = MappingProxyType({})
SOURCE, MESSAGES, ATTACHMENTS = SOURCES[MAILBOX], "messages", "attachments"


class MailboxRecords(msgspec.Struct, frozen=True):
    """The records of the accounts that a mailbox filled."""

    mails: FeedMailStore
    records: FedRecords

    def tell(
        self,
        feed_id: str,
        keys: Collection[str],
        accounts: Collection[str],
        names: Mapping[str, str] = NO_NAMES,
    ) -> int:
        """Have records tell where their mails lie and how they are marked; how many changed.

        Shapes: `names` says what folders are called, where the rows call them otherwise.
        """

        def order(row: FeedMailRow) -> tuple[bool, str]:
            return order_of(names.get(row.folder, row.folder))

        count = 0
        for part in _parts(keys):
            rows: dict[str, FeedMailRow] = {}
            for row in self.mails.mails_by_key(feed_id, part):
                first = rows.get(row.record_key)
                is_first = first is None or order(row) < order(first)
                if row.gone_at is None and is_first:
                    rows[row.record_key] = row
            for account in accounts:
                count += self._write(account, rows, names)
        return count

    def delete(self, keys: Collection[str], accounts: Collection[str]) -> int:
        """Delete records with what was attached to them; how many."""
        count = 0
        for part in _parts(keys):
            for account in accounts:
                stored = self.records.store.records_named(account, MESSAGES, part)
                files = [
                    f"{record.key}.{number}"
                    for record in stored
                    for number in range(1, int(str(record.data.get("attachment_count") or 0)) + 1)
                ]
                for stream, gone in (
                    (ATTACHMENTS, files),
                    (MESSAGES, [record.key for record in stored]),
                ):
                    lines = [{"op": "delete", "key": key} for key in gone]
                    self.records.write(account, stream, lines)
                count += len(stored)
        return count

    def _write(
        self, account: str, rows: Mapping[str, FeedMailRow], names: Mapping[str, str]
    ) -> int:
        lines: list[Mapping[str, object]] = []
        for record in self.records.store.records_named(account, MESSAGES, list(rows)):
            row = rows[record.key]
            data = {
                **record.data,
                **labels_data(row.labels),
                "mailbox": folder_file_name(names.get(row.folder, row.folder)),
            }
            if data != record.data:
                lines.append({"data": data})
        self.records.write(account, MESSAGES, lines)
        return len(lines)


def lonely_keys(
    gone: Iterable[FeedMailRow], copies: Iterable[FeedMailRow]
) -> tuple[set[str], set[str]]:
    """Of the records of mails that are gone: those without a copy, and those with one."""
    there: dict[str, bool] = defaultdict(bool)
    for row in copies:
        there[row.record_key] |= row.gone_at is None
    keys = {row.record_key for row in gone if row.record_key}
    return {key for key in keys if not there[key]}, {key for key in keys if there[key]}


def _parts(keys: Collection[str]) -> Iterable[list[str]]:
    ordered = sorted(keys)
    for begin in range(0, len(ordered), CHANGED_AT_ONCE):
        yield ordered[begin : begin + CHANGED_AT_ONCE]
