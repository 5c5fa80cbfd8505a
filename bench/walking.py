"""A walk through all pages of a stream while a writer inserts, updates and deletes.

Usage: python -m bench.walking [RECORDS]

Says whether every record that nobody touched was seen exactly once, and whether a follower of the
change feed ends with exactly what a fresh list shows.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from bench.archive import Collection, declarations, records
from bench.clients import RestCaller
from bench.filling import SEED, connect, ingest_lines
from bench.site import Site
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.app.stores import Stores, open_stores
from personal_server.collecting.declarations import declare
from personal_server.settings import Settings

RECORDS = "/v1/streams/messages/records"
BATCH = 2_000
TOUCHED_EVERY = 50
WALKED = Collection("Walked mail", "bench_mail", "messages", 1.0)


def main() -> int:
    """Walk and follow; 0 when nothing was missed, repeated or left over."""
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory(prefix="pdpp-walk-") as folder:
        site = Site(Path(folder))
        with open_stores(Settings(data_dir=site.data_dir), serving=False) as stores:
            declaration = declare(stores.records, declarations()[0], stores.clock()).declaration
            connection_id = connect(stores, declaration, WALKED.name)
            lines = (orjson.dumps(each) for each in records(WALKED, total, SEED))
            while batch := list(itertools.islice(lines, BATCH)):
                ingest_lines(stores, connection_id, declaration, WALKED.stream, batch)
            token, _ = site.grant("walk", "--source", "bench_mail", "--connection", connection_id)
            with site.serving():
                return _walk(site, token, Writer(stores, connection_id, declaration, total), total)


class Writer:
    """Changes every fiftieth record, in turn by update, deletion and insertion."""

    def __init__(
        self, stores: Stores, connection_id: str, declaration: SourceDeclaration, total: int
    ) -> None:
        self._stores, self._connection_id = stores, connection_id
        self._declaration, self._total = declaration, total
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.writes = 0

    def begin(self) -> None:
        """Write until told to end."""
        self._thread.start()

    def end(self) -> None:
        """Stop, and wait for what is under way."""
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        touched = range(0, self._total, TOUCHED_EVERY)
        for turn, number in enumerate(itertools.cycle(touched)):
            if self._ended.is_set():
                return
            lines = [orjson.dumps(line) for line in self._lines(turn, number)]
            ingest_lines(self._stores, self._connection_id, self._declaration, WALKED.stream, lines)
            self.writes += len(lines)

    def _lines(self, turn: int, number: int) -> list[dict[str, Any]]:
        at = {"emitted_at": "2026-11-02T00:00:00Z"}
        sent = f"20{16 + turn % 10}-06-01T00:00:00Z"
        moved = {"id": f"m{number:08d}", "sent_at": sent, "subject": f"moved {turn}"}
        new = {"id": f"new{turn:08d}", "sent_at": sent, "subject": "new"}
        if turn % 3 == 0:
            return [{"key": moved["id"], "op": "delete", **at}, {"data": new, **at}]
        return [{"data": moved, **at}, {"data": new, **at}]


def _walk(site: Site, token: str, writer: Writer, total: int) -> int:
    caller, copy = RestCaller(site.origin, token), dict[str, Any]()
    bookmark = _follow(caller, copy, "beginning")
    writer.begin()
    seen = [row["record_id"] for row in _pages(caller)]
    bookmark = _follow(caller, copy, bookmark)
    writer.end()
    _follow(caller, copy, bookmark)
    stable = {f"m{n:08d}" for n in range(total) if n % TOUCHED_EVERY}
    counted = [key for key in seen if key in stable]
    fresh = {row["record_id"]: row["data"] for row in _pages(caller)}
    missed, repeated = len(stable - set(counted)), len(counted) - len(set(counted))
    same = copy == fresh
    print(
        f"{len(seen):,} records walked while {writer.writes:,} lines were written: "
        f"{missed} untouched missed, {repeated} repeated; "
        f"the follower's copy of {len(copy):,} equals the list: {same}"
    )
    return 0 if same and not missed and not repeated else 1


def _pages(caller: RestCaller) -> Iterator[dict[str, Any]]:
    cursor: tuple[tuple[str, str], ...] = ()
    while True:
        page = caller.get(RECORDS, (("limit", "100"), *cursor))
        yield from page["data"]
        if not page["has_more"]:
            return
        cursor = (("cursor", page["next_cursor"]),)


def _follow(caller: RestCaller, copy: dict[str, Any], since: str) -> str:
    cursor: tuple[tuple[str, str], ...] = ()
    while True:
        query = (("limit", "100"), ("changes_since", since), *cursor)
        page = caller.get(RECORDS, query)
        for row in page["data"]:
            if row.get("deleted"):
                copy.pop(row["record_id"], None)
            else:
                copy[row["record_id"]] = row["data"]
        if not page["has_more"]:
            return page["next_changes_since"]
        cursor = (("cursor", page["next_cursor"]),)


if __name__ == "__main__":
    sys.exit(main())
