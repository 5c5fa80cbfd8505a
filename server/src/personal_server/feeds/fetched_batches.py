"""What was fetched of an account and lies in files, imported as an export of the account is.

Rule: a batch is imported whole before more is fetched; a run goes on into the account that it, or
one before it, filled.
Source: docs/contract/feeds.md 10 and 12.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from personal_server.feeds.feed_runs import OWNER_DECIDES, FeedImporter, RunResult
from personal_server.feeds.import_reports import TOO_SLOW, imported_items
from personal_server.feeds.wanted_imports import WantedImport
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.feed_stores import FeedStore

BATCH_ITEMS, BATCH_BYTES = 500, 32 * 1024 * 1024
"""A batch is imported once it has so many."""
LONGEST_NAME = 100
NEEDS_OWNER = frozenset(
    {
        "sign_in_refused",
        "sign_in_missing",
        "sign_in_ended",
        "sign_in_unsupported",
        "certificate_refused",
        "encryption_refused",
        "redirect_refused",
        "dav_not_found",
        "jmap_not_found",
    }
)


def file_name(name: str) -> str:
    """What an account calls a folder or collection, as the name of a file; empty where no sign of
    it can be in one.
    """
    plain = "".join(c if c.isprintable() and c not in "/\\" else "." for c in name)
    return plain.strip(". ")[:LONGEST_NAME]


class FetchTrouble(Exception):
    """Why an account cannot be fetched from, or what was fetched not be imported."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class FetchedBatches(msgspec.Struct, frozen=True):
    """Imports batches of files.

    Shapes: `staging` is the folder of the server's own that all of them lie in; the reader of
        `source` reads them, whatever a stranger has them look like.
    """

    importer: FeedImporter
    staging: Path
    source: str
    store: FeedStore

    def take(self, feed: FeedRow, name: str, path: Path, result: RunResult) -> None:
        """Import one, and count it in the result; the feed keeps which account it filled.

        Raises: FetchTrouble, PutOff; NotFound where the feed was removed.
        """
        ids = {*feed.connection_ids, *result.connection_ids}
        account = next(iter(ids)) if len(ids) == 1 else feed.account
        wanted = WantedImport([path], self.staging.resolve(), account, source=self.source)
        report = self.importer(feed.feed_id, wanted)
        found = imported_items(report, {name: path})
        result.connection_ids |= found.connection_ids
        if not ids.issuperset(result.connection_ids):  # a run may end before its result is kept
            self.store.change_feed(feed.feed_id, lambda each: _filling(each, found.connection_ids))
        result.records_new += found.records_new
        result.records_updated += found.records_updated
        code = found.codes.get(name)
        if found.trouble is not None or code in OWNER_DECIDES or code == TOO_SLOW:
            result.needs_owner = code in OWNER_DECIDES
            raise FetchTrouble(found.trouble or str(code))


def _filling(feed: FeedRow, ids: Iterable[str]) -> FeedRow:
    return replace(feed, connection_ids=tuple(sorted({*feed.connection_ids, *ids})))
