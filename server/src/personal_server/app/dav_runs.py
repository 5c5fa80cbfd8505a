"""Runs of calendars and address books: what changed is fetched and read as an export is.

Rule: read only towards the account; nothing that is known is fetched again; what is gone from the
account stays in the records, unless its owner has deletions followed and two looks found it gone.
Source: docs/contract/feeds.md 12.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import orjson

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.dav.dav_messages import (
    MISBEHAVES,
    MOST_COLLECTIONS,
    CollectionEnd,
    DavTask,
    ItemRefused,
)
from pdpp_sources.dav.dav_process import read_dav
from personal_server.app.dav_batches import DavBatch, dav_batches
from personal_server.app.dav_ledger import HOMES, KnownAccount
from personal_server.app.dav_records import DavRecords, ItemRecords, lonely, read_items
from personal_server.app.dav_wire import DavServer
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.web_places import WebPlace
from personal_server.feeds.feed_kinds import SOURCES
from personal_server.feeds.feed_ledger import CHANGED, NEW, ItemState
from personal_server.feeds.feed_runs import FeedImporter, RunResult
from personal_server.feeds.fetched_batches import (
    NEEDS_OWNER,
    FetchedBatches,
    FetchTrouble,
)
from personal_server.storage.feed_rows import FOLLOW, FeedItemRow, FeedRow
from personal_server.storage.ports.feed_stores import FeedStore

USUAL_EVERY_SECONDS = 300
FEW_GONE = 20
MOST_ITEMS = 200_000
"""Of an account, that are there: the ledger has a line for each, all of which a run holds."""
EMPTIED, UNREAD = "account_emptied", "item_unread"


class DavRuns(msgspec.Struct, frozen=True):
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
            place = WebPlace.of(feed.kind, feed.place)
            task = known.task(place, self.clock(), retried, follows=follows)
            with self.fetched(feed, task, result) as batches:
                for batch in batches:
                    self._take(feed, batch, known, result)
            if follows and result.code is None:
                self._settle(feed, known, missed.keys(), result, is_asked=retries)
        except (FetchTrouble, AccountTrouble) as trouble:
            result.code = trouble.code
        result.seen = sum(1 for _ in known.alive())
        result.needs_owner |= result.code in NEEDS_OWNER
        return result

    @contextmanager
    def fetched(
        self, feed: FeedRow, task: DavTask, result: RunResult
    ) -> Generator[Iterator[DavBatch]]:
        """Batches of what is not known yet.  Raises: FetchTrouble, AccountTrouble."""
        place, password = WebPlace.of(feed.kind, feed.place), self.secrets.password(feed)
        if password is None:
            raise FetchTrouble("sign_in_missing")
        folder = self.staging / feed.feed_id
        with closing(DavServer(place, password)) as server:
            try:
                with read_dav(server, task) as seen:
                    yield dav_batches(seen, folder, place.kind, result)
            finally:
                result.commands = server.requests
                result.size_bytes = server.received + server.sent
                shutil.rmtree(folder, ignore_errors=True)

    def _take(self, feed: FeedRow, batch: DavBatch, known: KnownAccount, result: RunResult) -> None:
        """Import a batch, and write what became of its items.  Raises: FetchTrouble, PutOff."""
        _require_bounds(batch, known)
        read = self._import(feed, batch, known, result)
        lines: dict[str, FeedItemRow] = {}
        for path, mark in batch.items.items():
            is_new = known.is_new(path)
            result.new += is_new
            result.changed += not is_new
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
        forgotten = {*batch.lost}
        for path in batch.gone:
            line = lines.get(path, known.items.get(path))
            if line is None:
                continue
            result.gone += 1
            if line.record_keys:
                keys = line.record_keys
                lines[path] = self._line(feed, path, line.mark, ItemState.GONE, keys=keys)
            else:  # nothing is here that could go with it
                forgotten.add(path)
        known.items |= lines
        if batch.homes is not None:
            homes = [[home.url, home.is_collection] for home in batch.homes.homes]
            lines[HOMES] = self._line(feed, HOMES, orjson.dumps(homes).decode(), ItemState.STORED)
        if batch.end is not None:
            path = batch.end.path
            lines[path] = known.collections[path] = self._end(feed, batch.end, known)
        known.forget(forgotten)
        kept = [line for path, line in lines.items() if path not in forgotten]
        self.store.keep_feed_items(feed.feed_id, kept, forgotten)

    def _import(
        self, feed: FeedRow, batch: DavBatch, known: KnownAccount, result: RunResult
    ) -> Mapping[str, ItemRecords] | None:
        """Which records the items are, without items that cannot be read again; None where all are
        as they were.
        """
        changed, read, source = known.changed_in(batch.items), None, SOURCES[feed.kind]
        if changed or not known.tells_records_of(batch.items):
            read = read_items(batch.path, batch.starts, source)
        if read:
            self._announce(feed, read, known)
        if batch.items:
            batches = FetchedBatches(self.importer, self.staging, source, self.store)
            batches.take(feed, batch.name, batch.path, result)
        if read:
            self._leave_outdated(feed, changed, known, read, result)
        return read

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
        changed: Mapping[str, FeedItemRow],
        known: KnownAccount,
        read: Mapping[str, ItemRecords],
        result: RunResult,
    ) -> None:
        """Leave what items that changed hold no more.

        In: `a.vcf` held card 1 and holds card 2 now, and the new `b.vcf` holds card 1.
        Out: nothing is deleted, since an item holds card 1.
        """
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
        known.forget(gone)
        self.store.keep_feed_items(feed.feed_id, (), gone)

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


def _require_bounds(batch: DavBatch, known: KnownAccount) -> None:
    """Raises: FetchTrouble, where an account with this batch would be larger than any is."""
    refused_paths = (each.path for each in batch.refused)
    items = known.items_with((*batch.items, *refused_paths))
    collections = known.collections_with(batch.end.path) if batch.end is not None else 0
    if items > MOST_ITEMS or collections > MOST_COLLECTIONS:
        raise FetchTrouble(MISBEHAVES)
