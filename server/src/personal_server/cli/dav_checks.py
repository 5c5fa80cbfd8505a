"""Whether the records hold everything that an account of calendars or contacts holds.

Rule: it writes nothing; the whole account is fetched again, compared with the ledger by its marks,
and read by the confined reader.
Source: docs/contract/feeds.md 7 and 12.
"""

from __future__ import annotations

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.dav.dav_messages import DavTask
from pdpp_sources.reader_process import ReaderProcess, Wanted
from personal_server.app.dav_batches import DavBatch
from personal_server.app.dav_ledger import KnownAccount
from personal_server.app.feed_imports import ImportCommand
from personal_server.app.feeding import dav_runs, feed_store
from personal_server.app.stores import Stores
from personal_server.app.web_places import WebPlace
from personal_server.cli.feed_checks import (
    MISSING,
    FeedComparison,
    records_of,
)
from personal_server.cli.record_comparison import RecordComparison
from personal_server.feeds.feed_kinds import SOURCES
from personal_server.feeds.feed_ledger import CHANGED, NEW, Difference, ItemState
from personal_server.feeds.feed_runs import RunResult
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.feeds.watched_folders import WHOLE
from personal_server.settings import Settings
from personal_server.storage.feed_rows import FeedRow


def check_account(
    feed: FeedRow, settings: Settings, stores: Stores, reader: ReaderProcess
) -> FeedComparison:
    """Compare account, ledger and records."""
    found, result = FeedComparison(), RunResult()
    known = KnownAccount.of(feed_store(stores).feed_items(feed.feed_id))
    runs = dav_runs(settings, stores, ImportCommand.of(settings))
    comparison = RecordComparison.of(stores.records, feed.connection_ids)
    wanted_zone, seen = settings.time_zone or "UTC", set[str]()
    try:
        place = WebPlace.of(feed.kind, feed.place)
        # the names of collections are those that their records have
        names = known.task(place, 0, lambda _: True).collections
        for each in names.values():
            each.reads = True
        with runs.fetched(feed, DavTask(place.kind, place.url, [], names, {}), result) as batches:
            for batch in batches:
                _note(batch, known, seen, found)
                if batch.items:
                    wanted = Wanted(SOURCES[feed.kind], zone=wanted_zone, within=batch.path)
                    records = records_of(
                        stores.records, reader, batch.path, wanted, batch.name, found
                    )
                    found.note(batch.name, comparison.compare(records))
    except (FetchTrouble, AccountTrouble) as trouble:
        result.code = trouble.code
    if result.code is not None:
        found.differences.append(Difference(WHOLE, MISSING, result.code))
        return found
    for path, line in known.items.items():
        if path not in seen and line.state in (ItemState.STORED, ItemState.SETTLING):
            found.differences.append(Difference(path, ItemState.GONE))
    return found


def _note(batch: DavBatch, known: KnownAccount, seen: set[str], found: FeedComparison) -> None:
    """What the ledger says otherwise of the items of a batch."""
    found.items += len(batch.items)
    seen.update(batch.items)
    for path, mark in batch.items.items():
        line = known.items.get(path)
        if line is None or line.state == ItemState.GONE:
            found.differences.append(Difference(path, NEW))
        elif line.mark != mark:
            found.differences.append(Difference(path, CHANGED))
    for refused in batch.refused:
        seen.add(refused.path)
        found.differences.append(Difference(refused.path, ItemState.REJECTED, refused.code))
