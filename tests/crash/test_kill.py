"""What was acknowledged survives a kill -9; what was not is whole or absent."""

from __future__ import annotations

import secrets
import subprocess
import sys
import textwrap
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pdpp_kernel.criteria import Term, WordQuery
from personal_server.domain.stored import StoredDeclaration
from personal_server.enforcement.plans import ChangesPlan, RecordsPlan, SearchPlan
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redemption
from personal_server.granting.tokens import Refresh, Rotating
from personal_server.reading.tokens import TokenUses
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.granting.conftest import VERIFIER, entry, make_bench
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.sql.records.test_writes import (
    MARKER,
    traces,
)
from server.tests.storage.worlds import declaration, furnish, note, order, scope, write

ROOT = Path(__file__).resolve().parents[2]
BATCH = 20

INGESTS = """
import sys
from pathlib import Path
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import note, write
with sqlite_store(Path(sys.argv[1])) as store:
    for number in range(10_000):
        keys = [f"{number}-{i}" for i in range(20)]
        write(store, "cin_a", [note(key, body="rain " * 50) for key in keys])
        print(number, flush=True)
"""
REDECLARES = """
import sys
from pathlib import Path
import orjson
from personal_server.storage.sql.records import copy_slices, rebuilds
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import FILES, NOTES, declaration
rebuilds.AT_ONCE, rebuilds.SLICE_SECONDS, copy_slices.LINES_AT_ONCE = -1, 0, 10
query = {**NOTES["query"], "search": {"lexical_fields": ["body"]}}
changed = declaration("2", [{**NOTES, "query": query}, FILES])
with sqlite_store(Path(sys.argv[1])) as store:
    store.put_declaration(changed, orjson.dumps(changed.raw), 5)
    while store.rebuild_slice():
        print("slice", flush=True)
    sys.stdin.read()
"""
ERASES = """
import sys
from pathlib import Path
from server.tests.storage.conftest import sqlite_store
with sqlite_store(Path(sys.argv[1])) as store, store.snapshot() as seen:
    assert seen.horizon == 2
    assert store.delete_record("cin_a", "notes", "m", 9)
    print("erased", flush=True)
    sys.stdin.read()
"""
ROTATES = """
import secrets, sys
from pathlib import Path
from personal_server.granting.audit import Acting
from personal_server.granting.tokens import Refresh
from tests.crash.test_kill import rotation
with rotation(Path(sys.argv[1])) as rotating:
    token = Path(sys.argv[1], "token").read_text()
    Path(sys.argv[1], "token").unlink()
    rotating.rotate(Refresh("cli_1", token, "none"), Acting("client"))
    print("rotated", flush=True)
    sys.stdin.read()
"""
A = scope("cin_a")


def killed_after(script: str, directory: Path, lines: int) -> list[str]:
    """Run a script until it has said so many lines, then kill it; all that it said."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(directory)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    said = [process.stdout.readline() for _ in range(lines)]
    process.kill()
    said += process.stdout.readlines()
    process.stdin.close()
    process.stdout.close()
    process.wait()
    return said


def consistent(store: SqlRecordStore) -> int:
    """How many records there are, by every way to count them."""
    with store.snapshot(None) as snapshot:
        count = snapshot.count(RecordsPlan((A,)))
        page = snapshot.page(RecordsPlan((A,), order("at"), 10**6))
        found = snapshot.search(SearchPlan((A,), WordQuery((Term(("rain",)),)), window=10**6))
        fed = snapshot.changes(ChangesPlan((A,), None, snapshot.horizon, 0, 10**6))
        assert len(page.rows) == len(found.candidates) == len(fed.items) == count
        assert snapshot.horizon == count
        return count


@pytest.mark.parametrize("acknowledged", [1, 3, 8])
def test_a_killed_ingest_keeps_every_acknowledged_batch(tmp_path: Path, acknowledged: int) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
    said = killed_after(INGESTS, tmp_path, acknowledged)
    with sqlite_store(tmp_path) as store:
        count = consistent(store)
        assert count % BATCH == 0
        assert count >= BATCH * len([line for line in said if line.endswith("\n")])


@pytest.mark.parametrize("slices", [1, 4, 6])
def test_a_killed_rebuild_goes_on_where_it_was(tmp_path: Path, slices: int) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        write(store, "cin_a", [note(f"n{i}", body="rain") for i in range(50)])
    assert len(killed_after(REDECLARES, tmp_path, slices)) >= slices
    with sqlite_store(tmp_path) as store:
        assert consistent(store) == 50
        assert [d.version for d in _declarations(store)] == ["2"]
        while store.rebuild_slice():
            assert consistent(store) == 50
        store.put_declaration(declaration("3"), b"{}", 9)
        assert consistent(store) == 50


def test_what_was_erased_before_a_kill_is_gone_when_the_server_starts(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        write(store, "cin_a", [note("m", mood=MARKER), note("n")])
    # the snapshot keeps the journal from being emptied, as a kill before the answer does
    assert killed_after(ERASES, tmp_path, 1)[0] == "erased\n"
    assert traces(tmp_path) != []
    database = SqliteDatabase(tmp_path / "data" / "records.db", serving=True)
    found = traces(tmp_path)
    database.close()
    assert found == []


def _declarations(store: SqlRecordStore) -> tuple[StoredDeclaration, ...]:
    with store.snapshot() as snapshot:
        return snapshot.declarations()


@contextmanager
def rotation(directory: Path) -> Generator[Rotating]:
    """What answers refreshes, on the store of a directory."""
    database = SqliteDatabase(directory / "pdpp.db")
    store = SqlAuthorizationStore(database, "own_1")
    try:
        yield Rotating(store, time.time_ns, secrets.token_bytes, TokenUses(store).flush)
    finally:
        database.close()


def test_a_kill_between_rotation_and_answer_costs_no_consent(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "pdpp.db")
    bench = make_bench(SqlAuthorizationStore(database, "own_1"))
    bench.now_ns = time.time_ns()
    code = bench.allow(bench.ask([entry()]))
    redeemed = Redemption("cli_1", code, "none", verifier=VERIFIER)
    token = bench.redeeming.redeem_code(redeemed, Acting("client")).refresh_token or ""
    database.close()
    for _ in range(3):
        (tmp_path / "token").write_text(token)
        assert killed_after(ROTATES, tmp_path, 1) == ["rotated\n"]
        with rotation(tmp_path) as rotating:
            issued = rotating.rotate(Refresh("cli_1", token, "none"), Acting("client"))
        assert issued.refresh_token not in (None, token)
        token = issued.refresh_token or ""
