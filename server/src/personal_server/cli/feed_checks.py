"""Whether the records hold everything that the place of a feed holds, and nothing beside it.

Rule: it writes nothing; every imported item is read again by the confined reader, and memory holds
one batch of it and a number for each record.
Source: docs/contract/feeds.md 7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.common.errors import BadRecord, ExportError
from pdpp_sources.reader_process import ReaderProcess, Wanted
from personal_server.app.feeding import feed_store
from personal_server.app.mail_runs import MailRuns
from personal_server.app.mailbox_records import ATTACHMENTS, MESSAGES, SOURCE
from personal_server.app.stores import Stores
from personal_server.cli.known_tables import known_table
from personal_server.cli.record_comparison import ComparedItem, RecordComparison
from personal_server.feeds.feed_ledger import Difference, ItemState, differences
from personal_server.feeds.feed_runs import RunResult
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.feeds.watched_folders import WHOLE, FolderLayout, FolderTrouble, look_at
from personal_server.storage.feed_rows import FOLLOW, FeedRow
from personal_server.storage.ports.whole_store import RecordStore

MISSING, DIFFERING, EXTRA = "missing", "differing", "extra"
NOT_LACKING = frozenset({ItemState.GONE, EXTRA})
"""The first words of reasons of what the records hold and the place does not."""


class FeedComparison(msgspec.Struct):
    """What differs, and how much was compared."""

    items: int = 0
    records: int = 0
    differences: list[Difference] = msgspec.field(default_factory=list[Difference])

    @property
    def is_short(self) -> bool:
        """Whether the records lack anything that the place holds."""
        return any(each.reason.partition(" ")[0] not in NOT_LACKING for each in self.differences)

    def note(self, name: str, compared: ComparedItem) -> None:
        """Say what of an item the records do not hold, or otherwise."""
        for reason, count in ((MISSING, compared.missing), (DIFFERING, compared.differing)):
            if count:
                self.differences.append(Difference(name, f"{reason} {count}"))
        self.records += compared.records


def check_feed(feed: FeedRow, stores: Stores, reader: ReaderProcess, zone: str) -> FeedComparison:
    """Compare folder, ledger and records."""
    found = FeedComparison()
    known = {line.item: line for line in feed_store(stores).feed_items(feed.feed_id)}
    folder = Path(feed.place)
    try:
        seen = look_at(folder, FolderLayout(feed.layout), None).items
    except FolderTrouble as trouble:
        found.differences.append(Difference(WHOLE, MISSING, trouble.code))
        return found
    comparison = RecordComparison.of(stores.records, feed.connection_ids)
    found.items = len(seen)
    found.differences += differences(seen, known)
    for item in seen:
        line = known.get(item.name)
        if line is not None and line.state == ItemState.STORED and line.mark == item.mark:
            path = folder if item.name == WHOLE else folder / item.name
            wanted = Wanted(zone=zone, within=folder)
            records = records_of(stores.records, reader, path, wanted, item.name, found)
            if feed.deletions != FOLLOW:
                found.note(item.name, comparison.look_for(records))
                continue
            found.note(item.name, comparison.compare(records))
            found.differences += _beside_folder(comparison, line.record_keys)
    return found


def _beside_folder(comparison: RecordComparison, named: Collection[str]) -> Iterator[Difference]:
    """Records of the accounts that the folder does not hold, by kind."""
    brought, known = set(named), comparison.streams()
    for source, stream in known:
        gone = extra = 0
        for account, keys in comparison.beside_in(source, stream):
            count = sum(f"{account}/{stream}/{key}" in brought for key in keys)
            gone, extra = gone + count, extra + len(keys) - count
        for reason, count in ((ItemState.GONE, gone), (EXTRA, extra)):
            if count:
                yield Difference(stream, f"{reason} {count}")


def check_mailbox(
    feed: FeedRow, stores: Stores, reader: ReaderProcess, zone: str, runs: MailRuns
) -> FeedComparison:
    """Fetch the whole mailbox again, and compare it with the records and these with it."""
    found = FeedComparison()
    result = RunResult()
    comparison = RecordComparison.of(stores.records, feed.connection_ids)
    try:
        with runs.fetched(feed, result) as batches:
            for batch in batches:
                found.items += batch.mails
                if batch.mails:
                    wanted = Wanted(SOURCE, zone=zone, within=batch.path)
                    records = records_of(
                        stores.records, reader, batch.path, wanted, batch.folder, found
                    )
                    found.note(batch.folder, comparison.compare(records))
    except FetchTrouble as trouble:
        result.code = trouble.code
    if result.rejected:
        found.differences.append(Difference(WHOLE, f"{ItemState.REJECTED} {result.rejected}"))
    if result.code is not None:
        found.differences.append(Difference(WHOLE, MISSING, result.code))
    elif feed.deletions == FOLLOW:
        found.differences += _beside(feed, comparison, runs)
    return found


def _beside(feed: FeedRow, comparison: RecordComparison, runs: MailRuns) -> Iterator[Difference]:
    """Records of the account that the mailbox does not hold: those that the ledger knows as gone,
    and those of which it knows nothing.
    """
    for stream in (MESSAGES, ATTACHMENTS):
        gone = extra = 0
        for keys in comparison.beside(SOURCE, stream):
            # the key of an attachment is that of its message, a point and a number
            of_mails = [key.rpartition(".")[0] if stream == ATTACHMENTS else key for key in keys]
            known = {row.record_key for row in runs.mails.mails_by_key(feed.feed_id, of_mails)}
            gone += sum(key in known for key in of_mails)
            extra += sum(key not in known for key in of_mails)
        for reason, count in ((ItemState.GONE, gone), (EXTRA, extra)):
            if count:
                yield Difference(stream, f"{reason} {count}")


def records_of(
    store: RecordStore,
    reader: ReaderProcess,
    path: Path,
    wanted: Wanted,
    name: str,
    found: FeedComparison,
) -> Iterator[tuple[str, SourceRecord]]:
    """Every record of a path, with the key of its source; a table as the import reads it.

    What cannot be read to its end is a difference: nothing is known of what lies behind.
    """
    try:
        for number, seen in enumerate(reader.look(path, wanted).readings):
            known = known_table(store, seen.seen, seen.facts()) if seen.seen.full_name else None
            reading = reader.look(path, replace(wanted, known=known)).readings[number]
            for item in reading.items():
                if isinstance(item, SourceRecord):
                    yield reading.connector_key, item
    except (ExportError, BadRecord) as error:
        found.differences.append(Difference(name, MISSING, error.code))
