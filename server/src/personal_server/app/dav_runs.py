"""Runs of calendars and address books: what changed is fetched and read as an export is.

Rule: read only towards the account; nothing that is known is fetched again; what is gone from the
account stays in the records, unless its owner has deletions followed and two looks found it gone.
Source: docs/contract/feeds.md 12.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from pdpp_kernel.values import NANOSECONDS
from pdpp_sources.dav.dav_messages import (
    CollectionEnd,
    CollectionGone,
    CollectionSeen,
    DavEnd,
    DavHome,
    DavTask,
    DavTrouble,
    HomesSeen,
    ItemGone,
    ItemRefused,
    ItemSeen,
    KnownCollection,
    SeenInAccount,
)
from pdpp_sources.dav.dav_process import read_dav
from personal_server.app.dav_records import DavRecords, ItemRecords, lonely, read_items
from personal_server.app.dav_wire import AskedServer, DavPlace
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.feeds.feed_ledger import CHANGED, NEW, ItemState
from personal_server.feeds.feed_runs import FeedImporter, RunResult
from personal_server.feeds.fetched_batches import (
    ADDRESS_BOOKS,
    BATCH_BYTES,
    BATCH_ITEMS,
    CALENDARS,
    FOLLOW,
    NEEDS_OWNER,
    FetchedBatches,
    FetchTrouble,
    file_name,
)
from personal_server.storage.feed_rows import FeedItemRow, FeedRow
from personal_server.storage.ports.feed_stores import FeedStore

USUAL_EVERY_SECONDS = 300
LISTED_EVERY_NS = 24 * 3600 * NANOSECONDS
# repeating events are spelled out for 400 days: each is read again long before those end
READ_EVERY_NS = 30 * 24 * 3600 * NANOSECONDS
HOMES = "homes"
SOURCES = {CALENDARS: "calendar", ADDRESS_BOOKS: "contacts"}
"""Whose readers read what was fetched."""
FEW_GONE = 20
EMPTIED, UNREAD = "account_emptied", "item_unread"
_SUFFIXES = {CALENDARS: "ics", ADDRESS_BOOKS: "vcf"}


@dataclass(slots=True)
class KnownAccount:
    """What the ledger holds of an account: its homes, its collections, and its items by path."""

    homes: FeedItemRow | None = None
    collections: dict[str, FeedItemRow] = field(default_factory=dict[str, FeedItemRow])
    items: dict[str, FeedItemRow] = field(default_factory=dict[str, FeedItemRow])

    @classmethod
    def of(cls, lines: Iterable[FeedItemRow]) -> KnownAccount:
        """The lines of a ledger."""
        known = cls()
        for line in lines:
            if line.item == HOMES:
                known.homes = line
            elif line.item.endswith("/") and line.mark:
                known.collections[line.item] = line
            else:
                known.items[line.item] = line
        return known

    def alive(self) -> Iterator[FeedItemRow]:
        """The items that are there."""
        return (line for line in self.items.values() if line.state != ItemState.GONE)

    def gone(self) -> dict[str, FeedItemRow]:
        """Items that are gone whose records are here."""
        return {
            path: line
            for path, line in self.items.items()
            if line.state == ItemState.GONE and line.record_keys
        }

    def unsettled(self) -> Iterator[str]:
        """Items of a run that ended before it wrote what became of them."""
        lines = self.items.items()
        return (path for path, line in lines if line.state == ItemState.SETTLING)

    def is_new(self, path: str) -> bool:
        """Whether an item that is there was not there when a run last wrote what it found."""
        line = self.items.get(path)
        return line is None or line.state == ItemState.GONE or line.code == NEW

    def keys_of(self, path: str) -> tuple[str, ...]:
        """The records of an item as it was last read."""
        line = self.items.get(path)
        return () if line is None else line.record_keys

    def changed_in(self, batch: DavBatch) -> dict[str, FeedItemRow]:
        """The lines of items that were there and are in a batch otherwise."""
        marks = batch.items
        return {
            line.item: line
            for line in self.alive()
            if line.item in marks and line.mark != marks[line.item]
        }

    def task(
        self,
        place: DavPlace,
        now_ns: int,
        retried: Callable[[FeedItemRow], bool],
        *,
        follows: bool = False,
    ) -> DavTask:
        """What a run asks; lines that are `retried` are as if not known.

        A collection with unsettled items, and where deletions are followed one that lost items, is
        listed whatever its token says.
        """
        # a token from before an item came need not tell that it went
        listed = [*self.unsettled(), *(self.gone() if follows else ())]
        homes: list[tuple[str, bool]] = []
        if self.homes is not None:
            homes = orjson.loads(self.homes.mark)
        return DavTask(
            place.kind,
            place.url,
            [DavHome(url, is_one) for url, is_one in homes],
            {
                path: _known(
                    line, place.kind, now_ns, lists=any(e.startswith(path) for e in listed)
                )
                for path, line in self.collections.items()
            },
            {line.item: "" if retried(line) else line.mark for line in self.alive()},
        )


def _known(line: FeedItemRow, kind: str, now_ns: int, *, lists: bool) -> KnownCollection:
    name, ctag, token, is_honest = orjson.loads(line.mark)
    lists |= line.state == ItemState.REJECTED or not 0 <= now_ns - line.at_ns < LISTED_EVERY_NS
    reads = kind == CALENDARS and not 0 <= now_ns - line.since_ns < READ_EVERY_NS
    return KnownCollection(name, ctag, token, is_honest, lists, reads)


@dataclass(slots=True)
class DavBatch:
    """Items of one collection, those that were taken as files, and what the ledger says then.

    Shapes: `lost` are collections that are gone, `starts` where each file begins if all are laid
        end to end.
    """

    path: Path
    suffix: str
    name: str
    items: dict[str, str] = field(default_factory=dict[str, str])
    refused: list[ItemRefused] = field(default_factory=list[ItemRefused])
    gone: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    starts: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    homes: HomesSeen | None = None
    end: CollectionEnd | None = None
    size_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is read before more is fetched."""
        return len(self.items) >= BATCH_ITEMS or self.size_bytes >= BATCH_BYTES

    def add(self, item: ItemSeen) -> None:
        """Write one."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = self.path / f"{len(self.starts):05}.{self.suffix}"
        self.starts.append((self.size_bytes, item.path))
        file.write_bytes(item.content)
        self.items[item.path] = item.mark
        self.size_bytes += len(item.content)


def dav_batches(
    seen: Iterable[SeenInAccount], folder: Path, kind: str, result: RunResult
) -> Iterator[DavBatch]:
    """Items in batches of a collection each; the files of one are gone when more is asked for."""

    def begun(name: str) -> DavBatch:
        shutil.rmtree(folder, ignore_errors=True)
        return DavBatch(folder / (file_name(name) or "Collection"), _SUFFIXES[kind], name)

    batch = begun(kind)
    for each in seen:
        match each:
            case HomesSeen():
                batch.homes = each
            case CollectionSeen():
                yield batch
                batch = begun(each.name)
            case ItemSeen():
                batch.add(each)
                if batch.is_full:
                    yield batch
                    batch = begun(batch.name)
            case ItemRefused():
                batch.refused.append(each)
            case ItemGone():
                batch.gone.append(each.path)
            case CollectionGone():
                batch.lost.append(each.path)
            case CollectionEnd():
                batch.end = each
            case DavEnd():
                result.code = each.code
    yield batch
    shutil.rmtree(folder, ignore_errors=True)


def _read_before(batch: DavBatch, known: KnownAccount) -> Mapping[str, ItemRecords] | None:
    """Which records the items of a batch are, without those that could not be read, or None where
    all are as they were.
    """
    held = {line.item for line in known.alive() if line.record_keys}
    if held.issuperset(batch.items) and not known.changed_in(batch):
        return None
    return read_items(batch.path, batch.starts)


@dataclass(frozen=True, slots=True)
class DavRuns:
    """Runs feeds of calendars and of address books."""

    store: FeedStore
    records: Mapping[str, DavRecords]
    importer: FeedImporter
    staging: Path
    reader: str
    clock: Callable[[], int]
    secrets: FeedSecrets

    def run(self, feed: FeedRow, *, retries: bool) -> RunResult:
        """Fetch what changed, and import it batch by batch.  Raises: PutOff."""
        result, known = RunResult(), KnownAccount.of(self.store.feed_items(feed.feed_id))
        follows, missed = feed.deletions == FOLLOW, known.gone()

        def retried(line: FeedItemRow) -> bool:
            is_rejected = line.state == ItemState.REJECTED
            return is_rejected and (retries or line.reader != self.reader)

        try:
            place = DavPlace.of(feed.place)
            task = known.task(place, self.clock(), retried, follows=follows)
            with self.fetched(feed, task, result) as batches:
                for batch in batches:
                    self._take(feed, batch, known, result)
            if follows and result.code is None:
                self._settle(feed, known, missed.keys(), result, is_asked=retries)
        except (FetchTrouble, DavTrouble) as trouble:
            result.code = trouble.code
        result.seen = sum(1 for _ in known.alive())
        result.needs_owner |= result.code in NEEDS_OWNER
        return result

    @contextmanager
    def fetched(
        self, feed: FeedRow, task: DavTask, result: RunResult
    ) -> Generator[Iterator[DavBatch]]:
        """Batches of what is not known yet.  Raises: FetchTrouble, DavTrouble."""
        place, password = DavPlace.of(feed.place), self.secrets.password(feed.feed_id)
        if password is None:
            raise FetchTrouble("sign_in_missing")
        folder = self.staging / feed.feed_id
        with closing(AskedServer(place, password)) as server:
            try:
                with read_dav(server, task) as seen:
                    yield dav_batches(seen, folder, place.kind, result)
            finally:
                result.commands = server.requests
                result.size_bytes = server.received + server.sent
                shutil.rmtree(folder, ignore_errors=True)

    def _take(self, feed: FeedRow, batch: DavBatch, known: KnownAccount, result: RunResult) -> None:
        """Import a batch, and write what became of its items.  Raises: FetchTrouble, PutOff."""
        read = _read_before(batch, known)
        if read:
            self._announce(feed, read, known)
        if batch.items:
            FetchedBatches(self.importer, self.staging).take(feed, batch.name, batch.path, result)
        self._leave_outdated(feed, batch, known, read or {}, result)
        lines: dict[str, FeedItemRow] = {}
        for path, mark in batch.items.items():
            result.new += known.is_new(path)
            result.changed += not known.is_new(path)
            if read is None:  # all are as they were
                lines[path] = self._line(
                    feed, path, mark, ItemState.STORED, keys=known.keys_of(path)
                )
            elif path in read:
                keys = tuple(read[path].keys)
                lines[path] = self._line(feed, path, mark, ItemState.STORED, keys=keys)
            else:
                result.rejected += 1
                lines[path] = self._unread(feed, path, known)
        for refused in batch.refused:
            result.rejected += 1
            lines[refused.path] = self._refused(feed, refused, known)
        for path in batch.gone:
            if path in known.items:
                result.gone += 1
                mark, keys = known.items[path].mark, known.keys_of(path)
                lines[path] = self._line(feed, path, mark, ItemState.GONE, keys=keys)
        known.items |= lines
        if batch.homes is not None:
            homes = [[home.url, home.is_collection] for home in batch.homes.homes]
            lines[HOMES] = self._line(feed, HOMES, orjson.dumps(homes).decode(), ItemState.STORED)
        if batch.end is not None:
            lines[batch.end.path] = self._end(feed, batch.end, known)
        self.store.keep_feed_items(feed.feed_id, lines.values(), batch.lost)

    def _announce(
        self, feed: FeedRow, read: Mapping[str, ItemRecords], known: KnownAccount
    ) -> None:
        """Name the records of a batch before they are stored: whatever ends the run then, the next
        one fetches its items again, or finds them gone.
        """
        self.store.keep_feed_items(
            feed.feed_id,
            [
                self._line(
                    feed,
                    path,
                    "",
                    ItemState.SETTLING,
                    NEW if known.is_new(path) else CHANGED,
                    tuple(sorted({*known.keys_of(path), *records.keys})),
                )
                for path, records in read.items()
            ],
        )

    def _leave_outdated(
        self,
        feed: FeedRow,
        batch: DavBatch,
        known: KnownAccount,
        read: Mapping[str, ItemRecords],
        result: RunResult,
    ) -> None:
        """Leave what items that changed hold no more.

        In: `a.vcf` held card 1 and holds card 2 now, and the new `b.vcf` holds card 1.
        Out: nothing is deleted, since an item holds card 1.
        """
        changed = known.changed_in(batch)
        others = (line.record_keys for line in known.alive() if line.item not in changed)
        before = {path: line.record_keys for path, line in changed.items()}
        left = lonely(before, [*others, *(each.keys for each in read.values())])
        accounts = {*feed.connection_ids, *result.connection_ids}
        records = self.records[feed.kind]
        for path in changed.keys() & read.keys():
            keys = left.intersection(before[path])
            result.records_deleted += records.leave_outdated(keys, read[path], accounts)

    def _settle(
        self,
        feed: FeedRow,
        known: KnownAccount,
        missed: Collection[str],
        result: RunResult,
        *,
        is_asked: bool,
    ) -> None:
        """Delete the records of items that a look before missed and this one did not find.

        Raises: FetchTrouble where that would be most of the account.
        """
        gone = {path: line for path, line in known.gone().items() if path in missed}
        if not is_asked and len(gone) > max(FEW_GONE, sum(1 for _ in known.alive())):
            result.needs_owner = True
            raise FetchTrouble(EMPTIED)
        keys = {path: line.record_keys for path, line in gone.items()}
        left = lonely(keys, (line.record_keys for line in known.alive()))
        accounts = {*feed.connection_ids, *result.connection_ids}
        result.records_deleted += self.records[feed.kind].delete(sorted(left), accounts)
        settled = {path: replace(line, record_keys=()) for path, line in gone.items()}
        known.items |= settled
        self.store.keep_feed_items(feed.feed_id, settled.values())

    def _refused(self, feed: FeedRow, refused: ItemRefused, known: KnownAccount) -> FeedItemRow:
        """The line of what was not given; a collection that was known keeps its name by its mark,
        and is listed by the next run.
        """
        path, keys = refused.path, known.keys_of(refused.path)
        line = self._line(feed, path, refused.mark, ItemState.REJECTED, refused.code, keys)
        before = known.collections.get(path)
        return line if before is None else replace(line, mark=before.mark, since_ns=before.since_ns)

    def _unread(self, feed: FeedRow, path: str, known: KnownAccount) -> FeedItemRow:
        """The line of what was imported and could not be read again to know its records: without a
        mark, so that the next list of the collection has it fetched again.
        """
        keys = known.keys_of(path)
        return self._line(feed, path, "", ItemState.REJECTED, UNREAD, keys)

    def _end(self, feed: FeedRow, end: CollectionEnd, known: KnownAccount) -> FeedItemRow:
        """The line of a collection: `at_ns` is its last list, `since_ns` its last whole reading."""
        mark = orjson.dumps([end.name, end.ctag, end.token, end.is_honest]).decode()
        line = self._line(feed, end.path, mark, ItemState.STORED)
        before = known.collections.get(end.path)
        if before is None:
            return line
        return replace(
            line,
            at_ns=line.at_ns if end.listed else before.at_ns,
            since_ns=line.since_ns if end.was_read else before.since_ns,
        )

    def _line(
        self,
        feed: FeedRow,
        item: str,
        mark: str,
        state: ItemState,
        code: str | None = None,
        keys: tuple[str, ...] = (),
    ) -> FeedItemRow:
        now_ns = self.clock()
        return FeedItemRow(
            feed_id=feed.feed_id,
            item=item,
            mark=mark,
            state=state,
            code=code,
            reader=self.reader,
            at_ns=now_ns,
            since_ns=now_ns,
            record_keys=keys,
        )
