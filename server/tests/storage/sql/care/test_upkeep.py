"""What a server does each minute and each hour costs the same whatever it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from personal_server.domain.disclosure import AskedDetail
from personal_server.domain.log_chain import LogHead
from personal_server.domain.stored import ClockNote
from personal_server.storage.sql.care.stored_logs import SqlLogs
from personal_server.storage.sql.care.upkeep import SqlUpkeepStore
from personal_server.storage.sql.logs.disclosures import SqlDisclosures
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.reading.test_shown_disclosures import entry
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.ports.test_disclosure_stores import FIRST
from server.tests.storage.sqlite.work import counted_store, counting
from server.tests.storage.worlds import FILES_STREAM, furnish, note, write

WRITTEN_AT = 1_000


def look_at_the_clock(store: SqlRecordStore) -> None:
    upkeep = SqlUpkeepStore(cast(Any, store)._database)
    assert upkeep.clock_note() == ClockNote(WRITTEN_AT)


def forget_nothing(store: SqlRecordStore) -> None:
    store.prune_history(WRITTEN_AT)


@pytest.mark.parametrize("work", [look_at_the_clock, forget_nothing])
def test_what_is_younger_is_not_walked(
    tmp_path: Path, work: Callable[[SqlRecordStore], None]
) -> None:
    steps: list[int] = []
    for records in (5, 500):
        with counted_store(tmp_path / str(records)) as (store, counters):
            write(store, "cin_a", [note(f"n{each}") for each in range(records)], now=WRITTEN_AT)
            work(store)
            with counting(counters):
                work(store)
            steps.append(sum(count for (count,) in counters.values()))
    assert steps[0] == steps[1] > 0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlRecordStore]:
    with sqlite_store(tmp_path) as opened:
        yield opened


def upkeep_of(store: SqlRecordStore) -> SqlUpkeepStore:
    return SqlUpkeepStore(cast(Any, store)._database)


def test_a_database_is_whose_it_was_claimed_for_first(store: SqlRecordStore) -> None:
    upkeep = upkeep_of(store)
    assert upkeep.claim("own_1") == "own_1"
    assert upkeep.claim("own_2") == "own_1"
    assert upkeep.owner() == "own_1"


def test_a_database_counts_what_it_holds(store: SqlRecordStore) -> None:
    upkeep = upkeep_of(store)
    assert not upkeep.holds_anything()
    assert upkeep.counted().streams == ()
    furnish(store, "cin_b", "cin_a")
    assert upkeep.holds_anything()
    write(store, "cin_b", [note("n1")])
    write(store, "cin_a", [note("n1"), note("n2")])
    write(store, "cin_a", [{"id": "f1"}], stream=FILES_STREAM)
    for content, account in ((b"one", "cin_a"), (b"one", "cin_b"), (b"three", "cin_a")):
        store.receive_blob(account, [content], "text/plain", 1, 99)
    found = upkeep.counted()
    assert found.streams == (("cin_a", "files", 1), ("cin_a", "notes", 2), ("cin_b", "notes", 1))
    assert (len(found.blob_ids), found.grants) == (2, 0)
    assert list(found.blob_ids) == sorted(found.blob_ids)
    with store.snapshot() as snapshot:
        assert found.sequence == snapshot.horizon
    assert upkeep.blob_sizes() == (2, 8)


def test_a_new_epoch_takes_the_place_of_the_old_one(store: SqlRecordStore) -> None:
    upkeep = upkeep_of(store)
    before = upkeep.counted().epoch
    upkeep.renew_epoch("another")
    assert (before != "another", upkeep.counted().epoch) == (True, "another")


def test_what_is_known_of_the_clock_is_kept_whole(store: SqlRecordStore) -> None:
    upkeep = upkeep_of(store)
    upkeep.keep_clock_note(ClockNote(5))
    upkeep.keep_clock_note(ClockNote(7))
    assert upkeep.clock_note() == ClockNote(7)


def test_a_log_is_a_chain_with_heads(store: SqlRecordStore) -> None:
    database = cast(Any, store)._database
    logs = SqlLogs(database, "own_1")
    assert logs.names == ("disclosures", "audit_events")
    assert logs.tail("disclosures")[0] == 0
    SqlDisclosures(database, "own_1").append_disclosures([entry(1), entry(2)])
    number, link = logs.tail("disclosures")
    with logs.lines("disclosures") as lines:
        assert [line.number for line in lines] == [number - 1, number]
    assert logs.heads("disclosures") == []
    unsigned = LogHead("disclosures", number, link, 9, is_cut=False, signature=None)
    logs.keep(unsigned)
    signed = LogHead("disclosures", number, link, 9, is_cut=False, signature=b"s" * 64)
    logs.keep(signed)
    assert logs.heads("disclosures") == [signed]
    assert logs.commitments("audit_events") == {}


def test_the_secret_of_signatures_is_made_once(store: SqlRecordStore) -> None:
    logs = SqlLogs(cast(Any, store)._database, "own_1")
    assert logs.signing_seed(lambda size: b"a" * size) == b"a" * 32
    assert logs.signing_seed(lambda size: b"b" * size) == b"a" * 32


def test_what_lies_beside_the_log_of_reads_tells_its_commitments(store: SqlRecordStore) -> None:
    database = cast(Any, store)._database
    detail = AskedDetail(b"salt", "/v1/search?q=rain", ("n1",))
    entries = [replace(FIRST, disclosure_id=f"dis_{n}", detail=detail) for n in (1, 2)]
    plain = replace(FIRST, disclosure_id="dis_3", detail=None)
    SqlDisclosures(database, "owner").append_disclosures([entries[0], plain, entries[1]])
    logs = SqlLogs(database, "owner")
    expected = {1: detail.commitment, 3: detail.commitment}
    assert {name: logs.commitments(name) for name in SqlLogs.names} == {
        name: (expected if name == "disclosures" else {}) for name in SqlLogs.names
    }
    assert SqlLogs(database, "own_2").commitments("disclosures") == {}
