"""What the ledger holds of an account of calendars or address books, and what a run asks then.

Source: docs/contract/feeds.md 12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
import orjson

from pdpp_kernel.values import NANOSECONDS
from pdpp_sources.dav.dav_messages import DavHome, DavTask, KnownCollection
from personal_server.app.web_places import WebPlace
from personal_server.feeds.feed_kinds import CALENDARS
from personal_server.feeds.feed_ledger import NEW, ItemState
from personal_server.storage.feed_rows import FeedItemRow

LISTED_EVERY_NS = 24 * 3600 * NANOSECONDS
# repeating events are spelled out for 400 days: each is read again long before those end
READ_EVERY_NS = 30 * 24 * 3600 * NANOSECONDS
HOMES = "homes"


class KnownAccount(msgspec.Struct):
    """What the ledger holds of an account: its homes, its collections, and its items by path."""

    homes: FeedItemRow | None = None
    collections: dict[str, FeedItemRow] = msgspec.field(default_factory=dict[str, FeedItemRow])
    items: dict[str, FeedItemRow] = msgspec.field(default_factory=dict[str, FeedItemRow])

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

    def items_with(self, paths: Iterable[str]) -> int:
        """How many items are there once these are, too; each counts once."""
        return len({line.item for line in self.alive()}.union(paths))

    def collections_with(self, path: str) -> int:
        """How many collections are known once this one is, too."""
        return len(self.collections) + (path not in self.collections)

    def forget(self, paths: Iterable[str]) -> None:
        """Drop items or collections of which nothing is left."""
        for path in paths:
            self.items.pop(path, None)
            self.collections.pop(path, None)

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

    def changed_in(self, marks: Mapping[str, str]) -> dict[str, FeedItemRow]:
        """The lines of items that were there and have other marks now."""
        return {
            line.item: line
            for line in self.alive()
            if line.item in marks and line.mark != marks[line.item]
        }

    def tells_records_of(self, paths: Iterable[str]) -> bool:
        """Whether all these items are there, and their records known."""
        return {line.item for line in self.alive() if line.record_keys}.issuperset(paths)

    def task(
        self,
        place: WebPlace,
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
