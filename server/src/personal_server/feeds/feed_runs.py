"""One run of a feed: what a look found, what was imported of it, and why it ended.

Source: docs/contract/feeds.md 5 and 6.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import msgspec
from msgspec.structs import replace

from pdpp_kernel.refused_writes import DISK_FULL, REASON_OF_ERRNO
from pdpp_kernel.system.open_files import is_being_written
from personal_server.feeds.feed_ledger import (
    Decision,
    ItemState,
    LookTerms,
    decide,
    line_after,
)
from personal_server.feeds.followed_folders import (
    EMPTIED,
    FollowedFolder,
    FollowedRecords,
    by_stream,
    followed,
    whole_names,
)
from personal_server.feeds.import_reports import TOO_SLOW, ImportedItems, imported_items
from personal_server.feeds.wanted_imports import WantedImport
from personal_server.feeds.watched_folders import (
    WHOLE,
    FolderLayout,
    FolderLook,
    FolderTrouble,
    SeenItem,
    look_at,
)
from personal_server.storage.feed_rows import FOLLOW, FeedItemRow, FeedRow
from personal_server.storage.ports.feed_stores import FeedStore

MOST_AT_ONCE = 20
OWNER_DECIDES = frozenset({"ambiguous_connection", "connection_not_writable"})
_FULL = frozenset(code for code, reason in REASON_OF_ERRNO.items() if reason == DISK_FULL)


class PutOff(Exception):
    """The run cannot go on now, for no fault of the feed: somebody imports, or the server stops."""


class FeedImporter(Protocol):
    """Imports paths for a feed, as `pdpp import --json` does."""

    def __call__(self, feed_id: str, wanted: WantedImport) -> Mapping[str, Any]:
        """The report.  Raises: PutOff."""
        ...


class RunResult(msgspec.Struct):
    """What a run did.

    Shapes: `code` is why it failed, `needs_owner` whether it does not pass by itself; `is_fetched`
        says that it waited for a server elsewhere, so that how long it took says nothing of the
        work that it was here; `pause_seconds` is how long a server asked not to be asked again.
    Units: `reached_ns` by the clock of the place.
    """

    seen: int = 0
    new: int = 0
    changed: int = 0
    gone: int = 0
    rejected: int = 0
    settling: int = 0
    records_new: int = 0
    records_updated: int = 0
    size_bytes: int = 0
    records_deleted: int = 0
    commands: int = 0
    is_fetched: bool = False
    pause_seconds: int = 0
    code: str | None = None
    needs_owner: bool = False
    reached_ns: int | None = None
    connection_ids: set[str] = msgspec.field(default_factory=set[str])


class FolderRuns(msgspec.Struct, frozen=True):
    """Runs feeds of folders.

    Shapes: `staging` is a folder of the server's own, for the new files of a maildir, each opened
        by `open_file` with the folder that it must lie in.
    """

    store: FeedStore
    importer: FeedImporter
    records: FollowedRecords
    staging: Path
    reader: str
    clock: Callable[[], int]
    open_file: Callable[[Path, Path], BinaryIO]

    def run(self, feed: FeedRow, *, retries: bool) -> RunResult:
        """Look, import, keep the ledger.  Raises: PutOff; what is stored by then is kept."""
        result = RunResult(reached_ns=feed.reached)
        folder, layout = Path(feed.place), FolderLayout(feed.layout)
        known = {line.item: line for line in self.store.feed_items(feed.feed_id)}
        try:
            had_items = any(line.state != ItemState.SETTLING for line in known.values())
            look = _looked(folder, layout, feed.reached, had_items=had_items)
        except FolderTrouble as trouble:
            result.code, result.needs_owner = trouble.code, trouble.needs_owner
            return result
        terms = LookTerms(feed.feed_id, layout, self.clock(), self.reader, retries)
        look.items = [self._with_writers(folder, layout, each, known) for each in look.items]
        decision = decide(look.items, known, terms)
        _tell(result, look, decision)
        self.store.keep_feed_items(feed.feed_id, decision.lines, decision.forgotten)
        at_once = 1 if feed.code == TOO_SLOW else MOST_AT_ONCE
        for begin in range(0, len(decision.taken), at_once):
            taken = decision.taken[begin : begin + at_once]
            self._import(feed, taken, look, replace(terms, now_ns=self.clock()), result, known)
            if result.code is not None:
                break
        return result

    def _with_writers(
        self,
        folder: Path,
        layout: FolderLayout,
        item: SeenItem,
        known: Mapping[str, FeedItemRow],
    ) -> SeenItem:
        """The item, unfinished where it is not known yet and somebody writes to it."""
        line = known.get(item.name)
        is_known = line is not None and line.mark == item.mark
        is_known = is_known and line is not None and line.state != ItemState.SETTLING
        if layout is not FolderLayout.EXPORTS or is_known or item.is_unfinished:
            return item
        return replace(item, is_unfinished=is_being_written(folder / item.name))

    def _import(
        self,
        feed: FeedRow,
        taken: Sequence[SeenItem],
        look: FolderLook,
        terms: LookTerms,
        result: RunResult,
        known: Mapping[str, FeedItemRow],
    ) -> None:
        """Import some items and write what became of them."""
        folder, follows = Path(feed.place), feed.deletions == FOLLOW
        journal = self.staging / f"{feed.feed_id}.names"
        report, found = self._imported(feed, taken, look, result, journal if follows else None)
        is_too_slow = TOO_SLOW in (found.trouble, *found.codes.values())
        is_again = feed.code == TOO_SLOW and terms.layout is FolderLayout.EXPORTS
        if found.trouble is not None or (is_too_slow and not is_again):
            result.code = found.trouble or TOO_SLOW
            return
        names: tuple[str, ...] = ()
        if follows or any(found.codes.values()):
            try:
                now = _looked(folder, terms.layout, None, had_items=True)
            except FolderTrouble as trouble:  # it vanished while it was read
                result.code, result.needs_owner = trouble.code, trouble.needs_owner
                return
            marks = {each.name: each.mark for each in now.items}
            if follows:
                before = *(known[WHOLE].record_keys if WHOLE in known else ()), *_written(journal)
                rests = marks.get(WHOLE) == taken[0].mark
                after = followed(before, report, asked=terms.retries, rests=rests)
                names = self._follow(after, result, found)
            # what was refused and is another now was refused as it was for a moment
            taken = [e for e in taken if not found.codes.get(e.name) or marks.get(e.name) == e.mark]
        lines = [
            dataclasses.replace(
                line_after(each, found.codes.get(each.name), terms), record_keys=names
            )
            for each in taken
        ]
        self.store.keep_feed_items(feed.feed_id, lines)
        if follows and lines:  # the ledger names them now
            journal.unlink(missing_ok=True)
        rejected = [line for line in lines if line.state == ItemState.REJECTED]
        result.rejected += len(rejected)
        result.size_bytes += sum(each.size_bytes for each in taken)
        if terms.layout is FolderLayout.EXPORTS:
            return
        if rejected:
            result.code, result.needs_owner = rejected[0].code, True
        elif taken and terms.layout is FolderLayout.MAILDIR:
            result.reached_ns = max(each.newest_ns for each in taken)

    def _imported(
        self,
        feed: FeedRow,
        taken: Sequence[SeenItem],
        look: FolderLook,
        result: RunResult,
        lists: Path | None,
    ) -> tuple[Mapping[str, Any], ImportedItems]:
        """What an import says, and what that means for each item; its records are counted."""
        folder, staged = Path(feed.place), None
        try:
            if result.reached_ns is not None and look.fresh and not look.has_more:
                staged = self.staging / feed.feed_id / folder.name
                staged = _stage(self.open_file, folder, look.fresh, staged)
            if staged is not None:
                paths, within = {WHOLE: staged}, self.staging.resolve()
            else:
                paths = {e.name: folder if e.name == WHOLE else folder / e.name for e in taken}
                within = folder
            wanted = WantedImport(list(paths.values()), within, _account_of(feed, result), lists)
            report = self.importer(feed.feed_id, wanted)
        finally:
            shutil.rmtree(self.staging / feed.feed_id, ignore_errors=True)
        found = imported_items(report, paths)
        result.commands += 1
        result.connection_ids |= found.connection_ids
        result.records_new += found.records_new
        result.records_updated += found.records_updated
        return report, found

    def _follow(
        self, after: FollowedFolder, result: RunResult, found: ImportedItems
    ) -> tuple[str, ...]:
        """Delete what went from the folder; what the ledger names from now on."""
        if after.is_emptied:
            found.codes[WHOLE] = EMPTIED
        for (account, stream), keys in by_stream(after.gone).items():
            result.records_deleted += self.records.delete(account, stream, keys)
        return after.kept


def _written(journal: Path) -> list[str]:
    """The names in the file of an import, also of those before it that came to no end."""
    try:
        return whole_names(journal.read_bytes())
    except FileNotFoundError:
        return []


def _looked(
    folder: Path, layout: FolderLayout, reached_ns: int | None, *, had_items: bool
) -> FolderLook:
    """Look at a folder; one that had items and is empty is gone.  Raises: FolderTrouble."""
    look = look_at(folder, layout, reached_ns)
    # its owner named a folder; a link that took its place leads to another
    if folder.resolve() != folder or (had_items and not look.items):
        raise FolderTrouble("folder_gone", needs_owner=False)
    return look


def _account_of(feed: FeedRow, result: RunResult) -> str | None:
    """The account that a run names to the import: the one filled before, whatever it is called.

    A single new mail tells too little of whose it is, and a maildir or a profile is of one account.
    """
    known = {*feed.connection_ids, *result.connection_ids}
    is_of_one = feed.layout in (FolderLayout.MAILDIR, FolderLayout.PROFILE)
    if len(known) == 1 and (is_of_one or feed.account is not None):
        return next(iter(known))
    return feed.account


def _tell(result: RunResult, look: FolderLook, decision: Decision) -> None:
    result.seen = len(look.items)
    result.new, result.changed = decision.new, decision.changed
    result.gone, result.settling = decision.gone, decision.settling


def _stage(
    open_file: Callable[[Path, Path], BinaryIO], folder: Path, fresh: Sequence[str], staged: Path
) -> Path | None:
    """Copies of the new files of a maildir, under the names they have there.

    None where one cannot be read, or is a link or pipe by now, or in a folder that is: then all of
    the maildir is read, which tells of it.  Raises: OSError, where the disk is full.
    """
    shutil.rmtree(staged, ignore_errors=True)
    for path in fresh:
        target = staged / path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with open_file(folder / path, folder) as mail, target.open("xb") as copy:
                shutil.copyfileobj(mail, copy)
                stated = os.fstat(mail.fileno())
            os.utime(target, ns=(stated.st_atime_ns, stated.st_mtime_ns))
        except FileNotFoundError:  # read meanwhile, so it has another name: the next run sees it
            continue
        except OSError as error:
            if error.errno in _FULL:
                raise
            return None
    return staged
