"""What every store does with catalog, collectors and what the server keeps."""

from __future__ import annotations

import orjson
import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import (
    ConnectionNotFound,
    ConnectionNotWritable,
    DeclarationConflict,
    InvalidState,
    NotFound,
)
from personal_server.domain.connection import ConnectionStatus
from personal_server.domain.stored import (
    Batch,
    CollectionRun,
    Rejection,
    RunStatus,
)
from personal_server.enforcement.plans import RecordPlan, RecordsPlan
from personal_server.enforcement.scopes import Scope
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.storage.ports.asking import A, feed, receive, search, told
from server.tests.storage.worlds import (
    DECLARED,
    FILES,
    NOTES,
    NOTES_STREAM,
    condition,
    connection,
    declaration,
    keys,
    note,
    order,
    write,
)


def test_revisions_are_kept_and_the_last_is_current(store: RecordStore) -> None:
    second = declaration("2", [NOTES, FILES, {**FILES, "name": "more"}])
    assert store.put_declaration(second, b"{}", 5) is True
    assert store.put_declaration(second, b"{}", 6) is False
    with store.snapshot() as snapshot:
        (current,) = snapshot.declarations()
    assert (current.version, current.registered_at_ns, current.current) == ("2", 5, True)
    first = store.declaration("notebook", "1")
    assert first is not None
    assert (first.current, first.raw) == (False, orjson.dumps(DECLARED.raw))
    with pytest.raises(DeclarationConflict):
        store.put_declaration(declaration("2", [NOTES, FILES]), b"{}", 7)
    with pytest.raises(InvalidState):
        store.delete_declaration("notebook")
    for each in ("cin_a", "cin_b"):
        store.erase_connection(each, 9)
    assert [store.delete_declaration("notebook") for _ in range(2)] == [True, False]
    assert [store.declaration("notebook", version) for version in ("1", "2")] == [None, None]


def test_a_changed_declaration_keeps_records_and_finds_new_things(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", place="Ulm", words=3), note("n2", place="Rom")])
    changed = {**NOTES, "cursor_field": "words"}
    changed["query"] = {**NOTES["query"], "search": {"lexical_fields": ["place"]}}
    second = declaration("2", [changed, FILES])
    store.put_declaration(second, orjson.dumps(second.raw), 5)
    renewed = Scope("cin_a", second.streams["notes"], tuple(NOTES_STREAM.properties))
    found = search(store, "ulm", scopes=(renewed,))
    assert [c.key for c in found.candidates] == ["n1"]
    assert search(store, "rain", scopes=(renewed,)).candidates == ()
    assert keys(store, RecordsPlan((renewed,), order("words", down=True), 9)) == ["n1", "n2"]
    assert keys(
        store, RecordsPlan((renewed,), order(None), 9, (condition("place", "eq", "Rom"),))
    ) == ["n2"]
    assert told(feed(store, None, renewed)) == [("n1", False), ("n2", False)]


def test_connections_change_by_pure_functions(store: RecordStore) -> None:
    changed = store.update_connection("cin_a", lambda c: replace(c, display_name="Mine"))
    assert changed.display_name == "Mine"
    with store.snapshot() as snapshot:
        assert [c.display_name for c in snapshot.connections()] == ["Mine", None]
    with pytest.raises(ConnectionNotFound):
        store.update_connection("cin_x", lambda c: c)
    with pytest.raises(NotFound):
        store.add_connection(replace(connection("cin_c"), connector_key="unknown"))


def test_a_revoked_connection_takes_no_records_and_keeps_what_it_has(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1")])
    store.update_connection("cin_a", lambda c: replace(c, status=ConnectionStatus.REVOKED))
    with pytest.raises(ConnectionNotWritable):
        write(store, "cin_a", [note("n2")])
    with pytest.raises(ConnectionNotWritable):
        receive(store, b"hello")
    with store.snapshot() as snapshot:
        assert snapshot.count(RecordsPlan((A,))) == 1
    with pytest.raises(ConnectionNotFound):
        write(store, "cin_x", [note("n2")])


def test_runs_remember_the_last_success(store: RecordStore) -> None:
    store.record_run("cin_a", CollectionRun("r1", RunStatus.SUCCEEDED, 10))
    store.record_run("cin_a", CollectionRun("r2", RunStatus.FAILED, 20))
    with store.snapshot() as snapshot:
        found = dict(snapshot.collections())
    assert list(found) == ["cin_a"]
    assert found["cin_a"].last_run == CollectionRun("r2", RunStatus.FAILED, 20)
    assert found["cin_a"].last_succeeded_at_ns == 10


def test_state_is_replaced_per_stream(store: RecordStore) -> None:
    assert (store.state("cin_a").state, store.state("cin_a").updated_at_ns) == ({}, None)
    store.put_state("cin_a", {"notes": {"since": 1}, "files": [2]}, 5)
    store.put_state("cin_a", {"notes": None, "more": "x"}, 6)
    found = store.state("cin_a")
    assert (dict(found.state), found.updated_at_ns) == ({"files": [2], "more": "x"}, 6)
    assert store.state("cin_b").state == {}


def test_the_last_thousand_receipts_are_kept(store: RecordStore) -> None:
    made = [Rejection(f"rr_{i}", "notes", "invalid_record", None, None, i) for i in range(1_005)]
    store.commit(Batch("cin_a", NOTES_STREAM, [], 1, lambda _: made))
    first = store.rejections("cin_a", 2, None)
    assert [r.receipt_id for _, r in first] == ["rr_1004", "rr_1003"]
    rest = store.rejections("cin_a", 2_000, first[-1][0])
    assert (len(rest), rest[-1][1].receipt_id) == (998, "rr_5")


def test_sealing_keys_are_newest_first(store: RecordStore) -> None:
    first = store.add_sealing_key(b"a" * 32, 1)
    second = store.add_sealing_key(b"b" * 32, 2)
    assert store.sealing_keys() == (second, first)
    assert second.key_id > first.key_id


def test_a_deleted_record_leaves_only_its_key_and_time(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", body="secret marker")])
    store.delete_record("cin_a", "notes", "n1", 9)
    with store.snapshot(None) as snapshot:
        assert snapshot.record(RecordPlan((A,), "n1")) == ()
        assert list(snapshot.export("cin_a", "notes")) == []


def test_a_connector_key_is_of_one_source(store: RecordStore) -> None:
    other = {"kind": "connector", "id": "https://connectors.example/other"}
    for version in ("1", "2"):
        with pytest.raises(DeclarationConflict):
            store.put_declaration(declaration(version, source=other), b"{}", 5)
    with store.snapshot() as snapshot:
        assert [each.version for each in snapshot.declarations()] == ["1"]
    assert store.put_declaration(declaration("1", source=other, connector_key="other"), b"{}", 5)
