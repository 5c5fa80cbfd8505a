"""Many owners in one PostgreSQL, each in a schema of their own: what one of them notices.

Usage: python -m bench.owners [OWNERS] [RECORDS_EACH]

The first owner's schema is made and filled as a server does it; the others are copies of it, table
by table.  For one owner among few and among all: how long opening a new schema takes (the steps),
how long opening one that is there, what reads take, and how much memory a session needs.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import orjson
import psycopg
from rich.console import Console
from rich.table import Table

from bench.archive import COLLECTIONS, declarations, records
from bench.filling import SEED, connect, ingest_lines
from personal_server.app.stores import open_stores
from personal_server.collecting.declarations import declare
from personal_server.settings import Settings
from personal_server.storage.postgres.database import PostgresDatabase
from tests.postgresql import new_cluster

READS = 200
STATIONS = 4
# Of a table: columns, defaults, keys and indexes; identities count on from where they were.
CLONE = """
DO $$ DECLARE t text; BEGIN
  CREATE SCHEMA {name};
  FOR t IN SELECT relname FROM pg_class
      WHERE relkind = 'r' AND relnamespace = to_regnamespace('owner_0') LOOP
    EXECUTE format('CREATE TABLE {name}.%I (LIKE owner_0.%I INCLUDING ALL)', t, t);
    EXECUTE format('INSERT INTO {name}.%I SELECT * FROM owner_0.%I', t, t);
  END LOOP;
END $$"""
CATALOG = """
SELECT CAST(sum(pg_total_relation_size(oid)) AS bigint), (SELECT count(*) FROM pg_class),
  pg_database_size(current_database())
FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'"""


def fill(settings: Settings, count: int) -> None:
    """One owner's mails."""
    collection = COLLECTIONS[0]
    with open_stores(settings, serving=False) as stores:
        known = [declare(stores.records, raw, stores.clock()).declaration for raw in declarations()]
        declared = next(d for d in known if d.connector_key == collection.connector_key)
        connection_id = connect(stores, declared, collection.name)
        made = records(collection, int(count / collection.share), SEED)
        lines = [orjson.dumps(record) for record in itertools.islice(made, count)]
        ingest_lines(stores, connection_id, declared, collection.stream, lines)


def seconds_of(work: Callable[[], object]) -> float:
    """How long it takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def page(database: PostgresDatabase) -> object:
    """The newest records with their texts, as a page reads them."""
    with database.read() as session:
        number = session.value("SELECT max(tables) FROM sources")
        return session.rows(
            f"SELECT r.id, r.k, h.data FROM r{number} r JOIN h{number} h USING (id)"  # noqa: S608
            " ORDER BY r.id DESC LIMIT 25"
        )


def record(database: PostgresDatabase) -> object:
    """One record by its key."""
    with database.read() as session:
        number = session.value("SELECT max(tables) FROM sources")
        key = session.value(f"SELECT min(k) FROM r{number}")  # noqa: S608
        return session.rows(
            f"SELECT data FROM h{number} WHERE id ="  # noqa: S608
            f" (SELECT id FROM r{number} WHERE k = ?)",
            (key,),
        )


def station(url: str, folder: Path, owners: int) -> list[str]:
    """What one owner notices among so many."""

    def opened(schema: str) -> PostgresDatabase:
        return PostgresDatabase(url, folder, schema, readers=1)

    new = f"new_{owners}"
    migration = seconds_of(lambda: opened(new).close())
    with psycopg.connect(url, autocommit=True) as administrator:
        administrator.execute(f"DROP SCHEMA {new} CASCADE".encode())
        catalog, relations, size = administrator.execute(CATALOG.encode()).fetchall()[0]
    opening = statistics.median(seconds_of(lambda: opened("owner_0").close()) for _ in range(5))
    with closing(opened(f"owner_{owners // 2}")) as database:
        reads = [
            statistics.median(seconds_of(partial(read, database)) for _ in range(READS))
            for read in (page, record)
        ]
        with database.read() as session:
            process = Path(f"/proc/{session.value('SELECT pg_backend_pid()')}/smaps_rollup")
            told = dict(line.split(":") for line in process.read_text().splitlines()[1:])
    return [
        f"{owners:,}",
        f"{migration:.2f}",
        f"{opening * 1e3:.0f}",
        f"{reads[0] * 1e3:.2f}",
        f"{reads[1] * 1e3:.2f}",
        f"{int(told['Private_Dirty'].split()[0]) / 1024:.1f}",
        f"{relations:,}",
        f"{catalog / 1e6:,.0f}",
        f"{size / 1e6:,.0f}",
    ]


def main() -> None:
    """Make them, and tell at some stations."""
    owners = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    each = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    table = Table(box=None)
    for name in ("owners", "new schema s", "open ms", "page ms", "record ms"):
        table.add_column(name, justify="right")
    for name in ("session MB", "relations", "catalog MB", "database MB"):
        table.add_column(name, justify="right")
    # a schema is made in one transaction, whose every table is locked
    with new_cluster(max_locks_per_transaction="512") as cluster:
        cluster.make()
        cluster.start()
        url = cluster.url()
        with tempfile.TemporaryDirectory(prefix="pdpp-owners-") as made:
            folder = Path(made)
            first = Settings(data_dir=folder, database_url=url, database_schema="owner_0")
            fill(first, each)
            table.add_row(*station(url, folder, 1))
            done = 1
            stations = [max(2, owners * place // STATIONS) for place in range(1, STATIONS + 1)]
            with psycopg.connect(url, autocommit=True) as administrator:
                for target in dict.fromkeys(stations):
                    for number in range(done, target):
                        administrator.execute(CLONE.format(name=f"owner_{number}").encode())
                    done = target
                    table.add_row(*station(url, folder, done))
        Console(width=120).print(f"{owners:,} owners, {each:,} records each", table)


if __name__ == "__main__":
    main()
