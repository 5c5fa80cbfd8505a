"""What fails around a database, and what is said of it: a full disk, a pooler, a standby."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

import psycopg
import pytest

from pdpp_kernel.errors import StorageReadOnly, StorageUnavailable
from pdpp_kernel.refused_writes import DISK_FULL
from personal_server.enforcement.plans import RecordsPlan
from personal_server.settings import Settings
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.app.http_server.served import until
from server.tests.app.whole import reopened, whole
from server.tests.storage.worlds import furnish, keys, note, order, scope, write
from tests.postgresql import PostgresServer, new_cluster, run_as, schema, server
from tests.torture.failover import primary_and_standby

A = scope("cin_a")
ALL = RecordsPlan((A,), order(None), 10)


def say(statement: str, database: str = "postgres") -> None:
    with psycopg.connect(server().url(database=database), autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.fixture
def name() -> Iterator[str]:
    with schema() as found:
        yield found


# A full disk ----------------------------------------------------------------------------------
@pytest.fixture
def small_disk() -> Iterator[str]:
    """The address of a database whose disk holds little more than itself."""
    if os.geteuid() != 0:
        pytest.skip("a small disk needs root, who may mount one")
    disk = Path(tempfile.mkdtemp(prefix="pdpp-small-", dir="/tmp"))
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=24m,mode=0777", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        disk.rmdir()
        pytest.skip("a small disk cannot be mounted here")
    try:
        place = disk / "space"
        place.mkdir()
        os.chown(place, run_as()["user"], run_as()["group"])
        say(f"CREATE TABLESPACE small LOCATION '{place}'")
        say("CREATE DATABASE small TABLESPACE small TEMPLATE template0")
        yield server().url(database="small")
        say("DROP DATABASE small WITH (FORCE)")
        say("DROP TABLESPACE small")
    finally:
        subprocess.run(["/bin/umount", "-l", str(disk)], check=False)
        disk.rmdir()


def test_a_full_disk_refuses_writes_and_answers_reads_until_there_is_room(
    small_disk: str, tmp_path: Path
) -> None:
    with closing(PostgresDatabase(small_disk, tmp_path)) as database:
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        write(store, "cin_a", [note("n1")])
        fill = "CREATE TABLE filler AS SELECT repeat('x', 2000) FROM generate_series(1, {})"
        for lines in (4_000, 400, 40, 4):  # until not even that little has room
            try:
                for number in range(20):
                    say(fill.format(lines).replace("filler", f"filler_{lines}_{number}"), "small")
            except psycopg.errors.DiskFull:
                continue
        # what is said again and again is stored in so little that it finds room in pages there are
        random = Random(1)
        said = [" ".join(f"{random.getrandbits(64):x}" for _ in range(600)) for _ in range(40)]
        long = [note(f"long{number}", body=each) for number, each in enumerate(said)]
        with pytest.raises(StorageReadOnly) as refused:
            write(store, "cin_a", long)
        assert refused.value.members == {"reason": DISK_FULL, "retry_after_seconds": 30}
        assert database.writability.trouble is not None
        assert keys(store, ALL) == ["n1"]
        say(
            "DO $$ DECLARE t text; BEGIN FOR t IN SELECT relname FROM pg_class WHERE relname LIKE"
            " 'filler%' LOOP EXECUTE 'DROP TABLE ' || t; END LOOP; END $$",
            "small",
        )
        write(store, "cin_a", long[:5])
        assert database.writability.trouble is None
        assert len(keys(store, ALL)) == 6


# A pooler -------------------------------------------------------------------------------------
class Pooler:
    """pgbouncer in transaction mode."""

    def __init__(self, folder: Path) -> None:
        found = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
        if found is None:
            pytest.skip("pgbouncer is not installed (Debian's `pgbouncer`)")
        self._program = found
        self._folder = folder
        self.url = f"postgresql://owner@/postgres?host={folder}&port=6432"

    def start(self) -> None:
        """Until it answers."""
        told = self._folder / "pgbouncer.ini"
        told.write_text(
            f"[databases]\npostgres = host={server().folder} user=owner\n"
            f"[pgbouncer]\nlisten_addr =\nlisten_port = 6432\nunix_socket_dir = {self._folder}\n"
            "auth_type = any\npool_mode = transaction\ndefault_pool_size = 3\n"
        )
        said = (self._folder / "log").open("ab")
        with said:
            self._process = subprocess.Popen(
                [self._program, str(told)], stdout=said, stderr=said, **run_as()
            )
        while self._process.poll() is None:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                continue
            return
        raise AssertionError((self._folder / "log").read_text())

    def stop(self) -> None:
        """At once."""
        self._process.kill()
        self._process.wait(10)


@contextmanager
def pooler() -> Generator[Pooler, None, None]:
    folder = Path(tempfile.mkdtemp(prefix="pdpp-pool-", dir="/tmp"))
    if run_as():
        os.chown(folder, run_as()["user"], run_as()["group"])
    try:
        found = Pooler(folder)
        found.start()
        try:
            yield found
        finally:
            found.stop()
    finally:
        shutil.rmtree(folder)


def test_a_pooler_between_that_is_started_anew_is_told_and_survived(
    tmp_path: Path, name: str
) -> None:
    with pooler() as between, closing(PostgresDatabase(between.url, tmp_path, name)) as database:
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        # more at once than the pooler has sessions for
        for number in range(3):
            with database.read() as one, database.read() as other:
                write(store, "cin_a", [note(f"n{number}")])
                assert one.value("SELECT 1") == other.value("SELECT 1") == 1
        between.stop()
        with pytest.raises(StorageUnavailable) as refused:
            keys(store, ALL)
        assert refused.value.members["retry_after_seconds"] == 1
        between.start()
        write(store, "cin_a", [note("n3")])
        assert len(keys(store, ALL)) == 4


def test_a_database_that_is_away_is_told_by_the_health_page(tmp_path: Path) -> None:
    with new_cluster() as cluster:
        cluster.make()
        cluster.start()
        with whole(tmp_path, database_url=cluster.url()) as site:
            assert site.client.get("/healthz").status == 200
            cluster.kill()
            away = site.client.get("/healthz")
            assert (away.status, site.body(away)["status"]) == (503, "failing")
            told = {(fault["part"], fault["code"]) for fault in site.body(away)["faults"]}
            assert ("database", "storage_unavailable") in told
            cluster.start()
            until(lambda: site.client.get("/healthz").status == 200)


# A standby ------------------------------------------------------------------------------------
def test_a_standby_shows_its_owner_everything_and_says_what_it_cannot_do(tmp_path: Path) -> None:
    with primary_and_standby() as (primary, standby):
        with whole(tmp_path, database_url=primary.url()) as site:
            token = site.owner_token()["access_token"]
            cookies, place = site.owner.cookies, site.owner.place
        settings = Settings(data_dir=tmp_path / "data", database_url=standby.url())
        until(lambda: is_replayed(primary, standby))
        with reopened(settings) as site:
            site.owner.cookies, site.owner.place = cookies, place
            for path in ("/owner", "/owner/records", "/owner/search?q=thursday"):
                assert site.owner.get(path).status == 200
            assert (
                site.call("/v1/streams/messages/records?connection_id=cin_home", token).status
                == 200
            )
            written = site.call("/v1/owner/connections/cin_home/revoke", token, "POST")
            assert (written.status, site.body(written)["error"]["code"]) == (
                503,
                "storage_read_only",
            )
            assert "primary" in site.body(written)["error"]["message"]
            (fault,) = site.body(site.client.get("/healthz"))["faults"]
            assert (fault["code"], "primary" in fault["next_step"]) == ("read_only", True)


def is_replayed(primary: PostgresServer, standby: PostgresServer) -> bool:
    """Whether the standby shows what the primary wrote."""
    with psycopg.connect(primary.url()) as one, psycopg.connect(standby.url()) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        written = one.execute("SELECT pg_current_wal_flush_lsn()").fetchall()
        shown = other.execute("SELECT pg_last_wal_replay_lsn()").fetchall()
    return shown >= written
