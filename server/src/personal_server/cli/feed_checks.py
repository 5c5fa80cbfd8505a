"""Whether the records hold everything that the place of a feed holds.

Rule: it writes nothing; every imported item is read again by the confined reader, and memory holds
one batch of it.
Source: docs/contract/feeds.md 7.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pdpp_kernel.record import canonical_key
from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.common.errors import BadRecord, ExportError
from pdpp_sources.reader_process import ReaderProcess, Wanted
from personal_server.app.feeding import feed_store
from personal_server.app.mailbox_runs import MailboxRuns
from personal_server.app.stores import Stores
from personal_server.cli.known_tables import known_table
from personal_server.feeds.feed_ledger import Difference, ItemState, differences
from personal_server.feeds.feed_runs import RunResult
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.feeds.watched_folders import WHOLE, FolderLayout, FolderTrouble, look_at
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.whole_store import RecordStore

COMPARED_AT_ONCE = 500
MISSING = "missing"


@dataclass(slots=True)
class FeedComparison:
    """What differs, and how much was compared."""

    items: int = 0
    records: int = 0
    differences: list[Difference] = field(default_factory=list[Difference])

    @property
    def is_short(self) -> bool:
        """Whether the records lack anything that the place holds."""
        return any(each.reason != ItemState.GONE for each in self.differences)


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
    found.items = len(seen)
    found.differences += differences(seen, known)
    for item in seen:
        line = known.get(item.name)
        if line is not None and line.state == ItemState.STORED and line.mark == item.mark:
            path = folder if item.name == WHOLE else folder / item.name
            wanted = Wanted(zone=zone, within=folder)
            records = records_of(stores.records, reader, path, wanted, item.name, found)
            compare_records(stores.records, feed.connection_ids, item.name, records, found)
    return found


def check_mailbox(
    feed: FeedRow, stores: Stores, reader: ReaderProcess, zone: str, runs: MailboxRuns
) -> FeedComparison:
    """Fetch the whole mailbox again, and compare it with the records."""
    found = FeedComparison()
    result = RunResult()
    try:
        with runs.fetched(feed, result) as batches:
            for batch in batches:
                found.items += batch.mails
                if batch.mails:
                    wanted = Wanted(zone=zone, within=batch.path)
                    records = records_of(
                        stores.records, reader, batch.path, wanted, batch.folder, found
                    )
                    compare_records(
                        stores.records, feed.connection_ids, batch.folder, records, found
                    )
    except FetchTrouble as trouble:
        result.code = trouble.code
    if result.rejected:
        found.differences.append(Difference(WHOLE, f"{ItemState.REJECTED} {result.rejected}"))
    if result.code is not None:
        found.differences.append(Difference(WHOLE, MISSING, result.code))
    return found


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


def compare_records(
    store: RecordStore,
    connection_ids: Sequence[str],
    name: str,
    records: Iterable[tuple[str, SourceRecord]],
    found: FeedComparison,
) -> None:
    """Say how many records of a source and its streams no account of the feed holds."""
    with store.snapshot() as snapshot:
        accounts = [c for c in snapshot.connections() if c.connection_id in connection_ids]
    by_source: dict[str, list[str]] = defaultdict(list)
    for each in accounts:
        by_source[each.connector_key].append(each.connection_id)
    waiting: dict[tuple[str, str], list[str]] = defaultdict(list)
    missing = 0
    for source, record in records:
        found.records += 1
        keys = waiting[source, record.stream]
        keys.append(canonical_key([record.data["id"]]))
        if len(keys) >= COMPARED_AT_ONCE:
            missing += _missing(store, by_source[source], record.stream, keys)
            keys.clear()
    for (source, stream), keys in waiting.items():
        missing += _missing(store, by_source[source], stream, keys)
    if missing:
        found.differences.append(Difference(name, f"{MISSING} {missing}"))


def _missing(
    store: RecordStore, connection_ids: Iterable[str], stream: str, keys: Sequence[str]
) -> int:
    """How many of these records no account of the feed holds."""
    held: set[str] = set()
    for each in connection_ids:
        held.update(record.key for record in store.records_named(each, stream, keys))
    return len(set(keys) - held)
