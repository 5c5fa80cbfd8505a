"""A source that is stored another way reads and writes as ever, whatever slice it is in."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.app.stores import Stores, open_stores
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.stored import Rebuild
from personal_server.enforcement.rows import Matches
from personal_server.settings import Settings
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.sql.records import copy_slices, rebuilds, word_index
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import BY_DATABASE, Opened, database_of, sqlite_store
from server.tests.storage.plans_at_random import CONNECTIONS
from server.tests.storage.ports.asking import feed, horizon, search, told
from server.tests.storage.ports.test_persons import cards, put
from server.tests.storage.released.directory import NOTEBOOK, unpack
from server.tests.storage.sql.records.test_writes import (
    MARKER,
    rows,
    traces,
)
from server.tests.storage.sql.test_store import AT_RANDOM, compare, write_at_random
from server.tests.storage.worlds import (
    DECLARED,
    FILES,
    NOTES,
    condition,
    connection,
    declaration,
    note,
    scope,
    write,
)
from tests.oracle.memory import MemoryStore

# A younger self of the notes: fewer fields are declared, none but the date is compared.  Words and
# bytes of fields that were none of them are found when the copy is done, and so not compared.
FEW: dict[str, Any] = {
    name: NOTES["schema"]["properties"][name] for name in ("id", "at", "title", "blob_ref")
}
EARLIER = declaration(
    "0",
    [
        {
            **NOTES,
            "schema": {**NOTES["schema"], "properties": {**FEW, "body": {"type": "string"}}},
            "query": {"search": NOTES["query"]["search"]},
            "relationships": [],
        },
        FILES,
    ],
)


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilds, "AT_ONCE", -1)
    monkeypatch.setattr(rebuilds, "SLICE_SECONDS", 0)
    monkeypatch.setattr(copy_slices, "LINES_AT_ONCE", 2)


def declare(store: RecordStore, found: SourceDeclaration) -> None:
    store.put_declaration(found, orjson.dumps(found.raw), 1)


def furnished(store: RecordStore, *connection_ids: str) -> None:
    declare(store, EARLIER)
    for each in connection_ids:
        store.add_connection(connection(each))


def finish(store: RecordStore) -> int:
    """Until nothing is left; how many slices it took."""
    return sum(1 for _ in iter(store.rebuild_slice, False))


@BY_DATABASE
@settings(AT_RANDOM, max_examples=12)
@given(seed=st.integers(0, 2**32))
def test_every_plan_has_the_same_answer_between_all_slices(seed: int, opened: Opened) -> None:
    random = Random(seed)
    with tempfile.TemporaryDirectory() as directory, opened(Path(directory)) as fast:
        stores: list[RecordStore] = [MemoryStore(), fast]
        for store in stores:
            furnished(store, *CONNECTIONS)
        clocks = iter(range(1_000, 100_000, 1_000))
        for _ in range(random.randint(1, 5)):
            write_at_random(random, stores, next(clocks))
            # history is not forgotten while a copy may need it
            finish(fast)
        for store in stores:
            declare(store, DECLARED)
        for _ in range(random.randint(1, 6)):
            compare(random, stores)
            for _ in range(random.randint(0, 4)):
                fast.rebuild_slice()
            # history is not forgotten while a copy may need it
            write_at_random(random, stores, next(clocks), prunes=False)
        finish(fast)
        compare(random, stores)
        assert fast.rebuilds() == ()


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[RecordStore]:
    """A store whose notes are about to be stored another way."""
    with sqlite_store(tmp_path) as store:
        furnished(store, "cin_a")
        kept = [note(f"n{i}", body="rain " * 40 + str(i), words=i) for i in range(20)]
        marked = [note(f"m{i}", title=MARKER, body=f"{MARKER} rain", mood=MARKER) for i in (1, 2)]
        write(store, "cin_a", [*kept, *marked])
        declare(store, DECLARED)
        yield store


def test_progress_is_told_until_it_is_done(changed: RecordStore) -> None:
    assert changed.rebuilds() == (Rebuild("cin_a", "notes", 0, 22),)
    assert changed.rebuild_slice()
    assert changed.rebuilds() == (Rebuild("cin_a", "notes", 2, 22),)
    assert finish(changed) > 10
    assert changed.rebuilds() == ()
    assert len(search(changed, "rain").candidates) == 22


@BY_DATABASE
def test_a_small_source_is_rebuilt_where_it_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    monkeypatch.setattr(rebuilds, "AT_ONCE", 2)
    with opened(tmp_path) as store:
        furnished(store, "cin_a", "cin_b")
        write(store, "cin_a", [note("a"), note("b")])
        write(store, "cin_b", [note("a"), note("b"), note("c")])
        declare(store, DECLARED)
        assert [each.connection_id for each in store.rebuilds()] == ["cin_b"]


def test_a_rebuild_goes_on_where_it_stopped_when_the_store_is_opened_again(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnished(store, "cin_a")
        write(store, "cin_a", [note(f"n{i}") for i in range(10)])
        declare(store, DECLARED)
        for _ in range(3):
            store.rebuild_slice()
    with sqlite_store(tmp_path) as store:
        assert store.rebuilds() == (Rebuild("cin_a", "notes", 6, 10),)
        finish(store)
        assert store.rebuilds() == ()


@pytest.mark.parametrize("slices", range(0, 40, 3))
def test_an_erased_record_leaves_no_trace_in_either_copy(
    changed: RecordStore, tmp_path: Path, slices: int
) -> None:
    for _ in range(slices):
        changed.rebuild_slice()
    for key in ("m1", "m2"):
        assert changed.delete_record("cin_a", "notes", key, 9)
    changed.finish_erasures()
    finish(changed)
    assert traces(tmp_path) == []
    assert len(search(changed, "rain").candidates) == 20


@pytest.mark.parametrize("slices", [0, 5, 14, 16])
def test_an_erased_stream_is_erased_from_both_copies(
    changed: RecordStore, tmp_path: Path, slices: int
) -> None:
    for _ in range(slices):
        changed.rebuild_slice()
    assert changed.delete_stream("cin_a", "notes", 9) == 22
    assert traces(tmp_path) == []
    assert finish(changed) == 0


def test_a_declaration_taken_back_stops_the_rebuild(changed: RecordStore, tmp_path: Path) -> None:
    changed.rebuild_slice()
    declare(changed, EARLIER)
    assert changed.rebuilds() == ()
    finish(changed)
    assert len(search(changed, "rain").candidates) == 22


@BY_DATABASE
@pytest.mark.parametrize("slices", [0, 1, 4, 99])
def test_what_leaves_a_limit_while_its_source_is_rebuilt_is_a_departure(
    tmp_path: Path, opened: Opened, slices: int
) -> None:
    calm = scope(only=(condition("mood", "eq", "calm", caseless=True),))
    many = scope(only=(condition("words", "eq", 7),))
    with opened(tmp_path) as store:
        furnished(store, "cin_a")
        write(store, "cin_a", [note(f"n{i}", mood="Calm", words=7) for i in range(6)])
        declare(store, DECLARED)
        since = horizon(store)
        for _ in range(slices):
            store.rebuild_slice()
        write(store, "cin_a", [note("n1", mood="glad", words=7), note("n4", mood="Calm"), "n5"])
        for _ in range(2):
            assert told(feed(store, since, calm)) == [("n1", True), ("n4", False), ("n5", True)]
            assert told(feed(store, since, many)) == [("n1", False), ("n4", True), ("n5", True)]
            finish(store)
        store.delete_stream("cin_a", "notes", 9)
        assert {each for each in told(feed(store, since, calm)) if each[1]} == {
            (f"n{i}", True) for i in range(6)
        }


@BY_DATABASE
def test_what_this_version_lays_out_another_way_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    with opened(tmp_path) as store:
        furnished(store, "cin_a")
        write(store, "cin_a", [note("a")])
        store.plan_rebuilds()
        assert store.rebuilds() == ()
        monkeypatch.setattr("personal_server.storage.sql.declared_layouts.MOST_MEASURED", 0)
        declare(store, DECLARED)
        finish(store)
        monkeypatch.setattr("personal_server.storage.sql.declared_layouts.MOST_MEASURED", 3)
        store.plan_rebuilds()
        assert store.rebuilds() == (Rebuild("cin_a", "notes", 0, 1),)


@BY_DATABASE
@pytest.mark.parametrize("before", [[], ["title"]])
def test_a_search_says_that_words_of_a_further_field_are_not_known_yet(
    tmp_path: Path, before: list[str], opened: Opened
) -> None:
    earlier = {**NOTES, "query": {**NOTES["query"], "search": {"lexical_fields": before}}}
    with opened(tmp_path) as store:
        declare(store, declaration("0", [earlier, FILES]))
        store.add_connection(connection("cin_a"))
        rows = [note("a", title="rain"), note("b", body="rain")]
        write(store, "cin_a", rows, stream=declaration("0", [earlier, FILES]).streams["notes"])
        declare(store, DECLARED)
        found = search(store, "rain")
        assert (keys(found), found.pending) == (["a"] if before else [], 2)
        titles = scope(fields=("id", "at", "title"))
        assert search(store, "rain", scopes=(titles,)).pending == (0 if before else 2)
        finish(store)
        found = search(store, "rain")
        assert (keys(found), found.pending) == (["a", "b"], 0)


def marks_of_before(place: int, _: str | None) -> tuple[str, str]:
    return f" {place}:", f" {place}~"


@BY_DATABASE
def test_an_index_whose_stems_have_no_language_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    with opened(tmp_path) as store:
        with monkeypatch.context() as before:
            before.setattr("personal_server.storage.sql.source_tables.FORM", 3)
            before.setattr(word_index, "_marks", marks_of_before)
            furnished(store, "cin_a")
            invoice = "Die Rechnungen für das Haus kommen im Oktober mit der Post, wie immer"
            write(store, "cin_a", [note("a", body=invoice), note("b", body="it rained all day")])
        store.plan_rebuilds()
        assert store.rebuilds() == (Rebuild("cin_a", "notes", 0, 2),)
        for asked, held in (("haus~", ["a"]), ("hauser~", []), ("rains~", ["b"])):
            found = search(store, asked)
            assert (keys(found), found.pending) == (held, 2)
        finish(store)
        for asked, held in (("hauser~", ["a"]), ("rains~", ["b"])):
            found = search(store, asked)
            assert (keys(found), found.pending) == (held, 0)


def english(_: str) -> str:
    return "english"


@BY_DATABASE
def test_an_index_whose_languages_were_told_otherwise_is_made_anew_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    with opened(tmp_path) as store:
        with monkeypatch.context() as before:
            before.setattr("personal_server.storage.sql.source_tables.FORM", 5)
            before.setattr(word_index, "language_of", english)
            furnished(store, "cin_a")
            invoice = "Die Rechnungen für das Haus kommen im Oktober mit der Post, wie immer"
            write(store, "cin_a", [note("a", body=invoice)])
        assert (keys(search(store, "hauser~")), search(store, "hauser~").pending) == ([], 1)
        store.plan_rebuilds()
        assert store.rebuilds() == (Rebuild("cin_a", "notes", 0, 1),)
        finish(store)
        found = search(store, "hauser~")
        assert (keys(found), found.pending) == (["a"], 0)
        store.plan_rebuilds()
        assert store.rebuilds() == ()


# Tables of the first release: word indexes that know no fields, texts without checksums.


@pytest.fixture
def released(tmp_path: Path) -> Iterator[Stores]:
    with open_stores(Settings(data_dir=unpack("2026-11-first", tmp_path)), serving=True) as stores:
        yield stores


def rain(stores: Stores, **more: Any) -> Matches:
    return search(stores.records, "rain", scopes=(scope(NOTEBOOK, **more),))


def keys(found: Matches) -> list[str]:
    return sorted(candidate.key for candidate in found.candidates)


def test_a_search_says_how_much_an_old_index_does_not_know(released: Stores) -> None:
    found = rain(released)
    assert (keys(found), found.pending) == ([], 9)
    write(released.records, NOTEBOOK, [note("n2", body="rain again"), note("n9", body="rain")])
    write(released.records, NOTEBOOK, ["n0"])
    found = rain(released)
    assert (keys(found), found.pending) == (["n2", "n9"], 7)
    found = rain(released, resources=frozenset({"n1", "n4"}))
    assert (keys(found), found.pending) == (["n1", "n4"], 0)


@pytest.mark.parametrize("slices", [0, 3, 6, 9])
def test_slice_by_slice_old_tables_get_words_and_checksums(released: Stores, slices: int) -> None:
    write(released.records, NOTEBOOK, [note("n2", body="sun"), note("n9", body="rain")])
    released.records.plan_rebuilds()
    for _ in range(slices):
        released.records.rebuild_slice()
    write(released.records, NOTEBOOK, ["n8", note("n7", body="snow")])
    finish(released.records)
    found = rain(released)
    assert (keys(found), found.pending) == (["n0", "n1", "n4", "n6", "n9"], 0)
    assert found.document_frequencies == (5,)
    assert keys(search(released.records, "rains~", scopes=(scope(NOTEBOOK),))) == keys(found)
    released.records.plan_rebuilds()
    assert released.records.rebuilds() == ()
    with released.database.read() as session:
        for (number,) in session.rows("SELECT tables FROM sources"):
            unchecked = "SELECT count(*) FROM h# WHERE sum IS NULL".replace("#", str(number))
            assert session.value(unchecked) == 0
        named = "SELECT count(*) FROM sqlite_schema WHERE name GLOB ? AND sql LIKE '%fts5%'"
        assert session.value(named, ("f[0-9]*",)) == 0


def test_a_text_without_a_checksum_is_damaged_where_it_is_no_text(released: Stores) -> None:
    with released.database.write() as session:
        number = session.value("SELECT tables FROM sources WHERE connection_id = ?", (NOTEBOOK,))
        hurt = "UPDATE h# SET data = '{' WHERE id = (SELECT max(id) FROM h#)"
        session.run(hurt.replace("#", str(number)))
    for _ in range(2):
        with released.records.snapshot() as snapshot:
            whole = list(snapshot.export(NOTEBOOK, "notes"))
            assert (len(whole), len(snapshot.damaged)) == (8, 1)
        released.records.plan_rebuilds()
        finish(released.records)


def test_what_a_record_mentioned_that_went_meanwhile_is_forgotten(tmp_path: Path) -> None:
    """By what the new layout tells of persons, of which the old one knew nothing."""
    with sqlite_store(tmp_path) as store:
        declare(store, cards("1", tells=False))
        store.add_connection(connection("cin_a"))
        put(store, "cin_a", {f"n{n}": [f"n{n}@x.org"] for n in range(4)})
        declare(store, cards("2"))
        assert store.rebuild_slice()
        assert len(rows(store, "SELECT key FROM mentions")) == 2
        put(store, "cin_a", {f"n{n}": None for n in range(3)})
        finish(store)
        assert rows(store, "SELECT key FROM mentions") == [("n3",)]


TABLES = "SELECT name FROM sqlite_schema WHERE name GLOB '[rhwfdg][0-9]*' ORDER BY name"


@pytest.mark.parametrize("slices", [0, 5, 14, 16])
def test_an_erased_account_takes_both_copies_along(
    changed: RecordStore, tmp_path: Path, slices: int
) -> None:
    store = cast("SqlRecordStore", changed)
    for _ in range(slices):
        store.rebuild_slice()
    assert rows(store, TABLES) != []
    assert store.erase_connection("cin_a", 9) == 22
    assert rows(store, TABLES) == rows(store, "SELECT source FROM rebuilds") == []
    assert (store.rebuilds(), store.rebuild_slice(), traces(tmp_path)) == ((), False, [])


def test_no_history_is_forgotten_that_a_copy_under_way_may_need(changed: RecordStore) -> None:
    store = cast("SqlRecordStore", changed)
    write(store, "cin_a", ["n1", note("n2", words=9)], now=5)
    number = "SELECT count(*) FROM changes"
    before = rows(store, number)
    store.rebuild_slice()
    store.prune_history(2**62)
    assert rows(store, number) == before
    with store.snapshot() as snapshot:
        assert snapshot.retained_from == 0
    finish(store)
    store.prune_history(2**62)
    assert rows(store, number) < before
    with store.snapshot() as snapshot:
        assert snapshot.retained_from == horizon(store)


HURT = (
    "UPDATE h# SET data = replace(data, 'rain', 'gold') WHERE id = (SELECT id FROM r# WHERE k = ?)"
)


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_a_damaged_record_is_carried_to_the_next_free_place(
    changed: RecordStore, taken: int
) -> None:
    store = cast("SqlRecordStore", changed)
    old, new = rows(
        store, "SELECT s.tables, b.tables FROM sources s JOIN rebuilds b USING (source)"
    )[0]
    with database_of(store).write() as session:
        session.run(HURT.replace("#", str(old)), ("n3",))
        place = session.value("SELECT id FROM r# WHERE k = 'n3'".replace("#", str(old)))
        for number in range(taken):
            beside = "INSERT INTO r# (id, k, cs, ce, e) VALUES (?, ?, 1, 1, 1)"
            session.run(beside.replace("#", str(new)), (place + number, f"beside{number}"))
    finish(store)
    kept = "SELECT r.id, r.wc, r.fc FROM r# r JOIN h# h USING (id) WHERE k = 'n3'"
    assert rows(store, kept.replace("#", str(new))) == [(place + taken, None, None)]
    text = "SELECT instr(data, 'gold') > 0 FROM r# r JOIN h# h USING (id) WHERE k = 'n3'"
    assert rows(store, text.replace("#", str(new))) == [(1,)]
    with store.snapshot(None) as snapshot:
        assert "n3" not in [row.key for row in snapshot.export("cin_a", "notes")]
        assert len(snapshot.damaged) >= 1


def without_bytes() -> SourceDeclaration:
    properties = {**NOTES["schema"]["properties"]}
    del properties["blob_ref"]
    raw = {**NOTES, "schema": {**NOTES["schema"], "properties": properties}}
    return declaration("2", [raw, FILES])


def test_what_is_no_reference_to_bytes_any_more_is_forgotten(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        declare(store, DECLARED)
        store.add_connection(connection("cin_a"))
        blob = {"blob_id": "blob_sha256_" + "0" * 64}
        write(store, "cin_a", [note(f"n{n}", blob_ref=blob) for n in range(3)])
        referring = "SELECT key FROM blob_references ORDER BY key"
        declare(store, without_bytes())
        assert store.rebuild_slice()
        assert rows(store, referring) == [("n0",), ("n1",), ("n2",)]
        finish(store)
        assert rows(store, referring) == []
        declare(store, declaration("3"))
        finish(store)
        assert rows(store, referring) == [("n0",), ("n1",), ("n2",)]


def test_what_a_field_mentions_stays_though_it_is_told_otherwise(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        declare(store, cards("1"))
        store.add_connection(connection("cin_a"))
        put(store, "cin_a", {f"n{n}": [f"n{n}@x.org"] for n in range(3)})
        raw: Any = copy.deepcopy(cards("2").raw)
        told = raw["streams"][0]["schema"]["properties"]["emails"]["x_pdpp_person"]
        del told["named_by"]
        declare(store, parse_declaration(raw))
        finish(store)
        assert rows(store, "SELECT key, name FROM mentions ORDER BY key") == [
            (f"n{n}", None) for n in range(3)
        ]
        declare(store, cards("3", tells=False))
        finish(store)
        assert rows(store, "SELECT key FROM mentions") == []
