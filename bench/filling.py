"""Fill a data directory with the archive, through the same operations as every import."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.archive import COLLECTIONS, Collection, declarations, records
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.app.stores import Stores, open_stores
from personal_server.collecting.connections import create_connection
from personal_server.collecting.declarations import declare
from personal_server.collecting.ingest import ingest
from personal_server.settings import Settings

BATCH = 2_000
SEED = 7


@dataclass(frozen=True, slots=True)
class Filled:
    """What lies in the directory: connection ids by source, records, seconds of ingest.

    `processor_seconds` are those of this process, without a database beside it.
    """

    mail: tuple[str, ...]
    chats: tuple[str, ...]
    records: int
    seconds: float
    processor_seconds: float


def fill(data_dir: Path, total: int, console: Console, database_url: str | None = None) -> Filled:
    """Ingest an archive of `total` records; making the lines is not counted as ingest."""
    settings = Settings(data_dir=data_dir, database_url=database_url)
    with open_stores(settings, serving=False) as stores, _progress(console) as progress:
        known = {
            d.connector_key: d
            for d in (
                declare(stores.records, raw, stores.clock()).declaration for raw in declarations()
            )
        }
        ids: list[str] = []
        count, seconds, spent = 0, 0.0, 0.0
        for collection in COLLECTIONS:
            declaration = known[collection.connector_key]
            connection_id = connect(stores, declaration, collection.name)
            ids.append(connection_id)
            task = progress.add_task(collection.name, total=int(total * collection.share))
            for batch in _batches(collection, total):
                begin, begun = perf_counter(), process_time()
                ingest_lines(stores, connection_id, declaration, collection.stream, batch)
                seconds, spent = seconds + perf_counter() - begin, spent + process_time() - begun
                count += len(batch)
                progress.advance(task, len(batch))
    return Filled(tuple(ids[:2]), tuple(ids[2:6]), count, seconds, spent)


def connect(stores: Stores, declaration: SourceDeclaration, name: str) -> str:
    """A new connection; its id."""
    stored = stores.records.declaration(declaration.connector_key, None)
    connection = create_connection(
        stores.records, stored, name, stores.clock(), stores.random_bytes
    )
    return connection.connection_id


def ingest_lines(
    stores: Stores,
    connection_id: str,
    declaration: SourceDeclaration,
    stream: str,
    lines: list[bytes],
) -> None:
    """Ingest lines that must all be accepted."""
    result = ingest(
        stores.records,
        connection_id,
        declaration.streams[stream],
        lines,
        now_ns=stores.clock(),
        new_receipt_id=lambda: f"rr_{stores.random_bytes(9).hex()}",
    )
    if result.records_accepted != len(lines):
        raise ValueError(f"{result.records_rejected} lines of {stream} were refused")


def _batches(collection: Collection, total: int) -> Iterator[list[bytes]]:
    lines = (orjson.dumps(record) for record in records(collection, total, SEED))
    while batch := list(itertools.islice(lines, BATCH)):
        yield batch


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console)
