"""Batches of items as they come from an account of calendars or address books, in files."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from pdpp_sources.dav.dav_messages import (
    CollectionEnd,
    CollectionGone,
    CollectionSeen,
    DavEnd,
    HomesSeen,
    ItemGone,
    ItemRefused,
    ItemSeen,
    SeenInAccount,
)
from personal_server.feeds.feed_kinds import ADDRESS_BOOKS, CALENDARS
from personal_server.feeds.feed_runs import RunResult
from personal_server.feeds.fetched_batches import (
    BATCH_BYTES,
    BATCH_ITEMS,
    file_name,
)

_SUFFIXES = {CALENDARS: "ics", ADDRESS_BOOKS: "vcf"}


class DavBatch(msgspec.Struct):
    """Items of one collection, those that were taken as files, and what the ledger says then.

    Shapes: `lost` are collections that are gone, `starts` where each file begins if all are laid
        end to end.
    """

    path: Path
    suffix: str
    name: str
    items: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    refused: list[ItemRefused] = msgspec.field(default_factory=list[ItemRefused])
    gone: list[str] = msgspec.field(default_factory=list[str])
    lost: list[str] = msgspec.field(default_factory=list[str])
    starts: list[tuple[int, str]] = msgspec.field(default_factory=list[tuple[int, str]])
    homes: HomesSeen | None = None
    end: CollectionEnd | None = None
    size_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is read before more is fetched."""
        count = len(self.items) + len(self.refused) + len(self.gone) + len(self.lost)
        return count >= BATCH_ITEMS or self.size_bytes >= BATCH_BYTES

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
        if batch.is_full:
            yield batch
            batch = begun(batch.name)
    yield batch
    shutil.rmtree(folder, ignore_errors=True)
