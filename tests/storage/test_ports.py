"""What every store does beside records in order: feeds, search, aggregates, blobs, the catalog."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import orjson
import pytest

from personal_server.domain.authority import TimeConstraint
from personal_server.domain.connection import ConnectionStatus
from personal_server.domain.criteria import Granularity, Grouping, Metric, Term
from personal_server.domain.record import Row, TombstoneRow
from personal_server.domain.values import ValueKind, instant_ns
from personal_server.errors import (
    BodyTooLarge,
    ConnectionNotFound,
    ConnectionNotWritable,
    DeclarationConflict,
    InvalidState,
    NotFound,
)
from personal_server.planning.plans import (
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    CountPlan,
    Feed,
    PagePlan,
    RecordPlan,
    Scope,
    SearchPlan,
)
from personal_server.storage.ports import (
    Batch,
    RankedHit,
    RecordStore,
    Rejection,
    Run,
    RunStatus,
)
from tests.storage.plans_at_random import KEYS, TIMES
from tests.storage.worlds import (
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
    scope,
    write,
)

A = scope("cin_a")
BOTH = (A, scope("cin_b"))


def feed(
    store: RecordStore, since: int | None, *scopes: Scope, after: int = 0, limit: int = 100
) -> Feed:
    with store.snapshot() as snapshot:
        plan = ChangesPlan(scopes or BOTH, since, snapshot.horizon, after, limit)
        return snapshot.changes(plan)


def told(found: Feed) -> list[tuple[str, bool]]:
    return [(item.item.key, isinstance(item.item, TombstoneRow)) for item in found.items]


def horizon(store: RecordStore) -> int:
    with store.snapshot() as snapshot:
        return snapshot.horizon


# Feeds ----------------------------------------------------------------------------------------
def test_the_beginning_is_every_visible_record_and_no_tombstone(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), note("n2"), "n1"])
    write(store, "cin_b", [note("n1")])
    assert told(feed(store, None)) == [("n2", False), ("n1", False)]


def test_a_feed_tells_each_record_once_at_its_last_change(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), note("n2"), note("n3")])
    since = horizon(store)
    write(store, "cin_a", [note("n1", words=1), note("n2", words=1), note("n1", words=2), "n3"])
    found = feed(store, since)
    assert told(found) == [("n2", False), ("n1", False), ("n3", True)]
    row = found.items[1].item
    assert isinstance(row, Row)
    assert row.data["words"] == 2


def test_changes_of_hidden_fields_tell_nothing(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1")])
    since = horizon(store)
    write(store, "cin_a", [note("n1", mood="calm")])
    hidden = scope("cin_a", fields=("id", "at"))
    assert told(feed(store, since, hidden)) == []
    assert told(feed(store, since, A)) == [("n1", False)]
    assert told(feed(store, None, hidden)) == [("n1", False)]


def test_moving_out_of_the_window_looks_like_a_deletion(store: RecordStore) -> None:
    window = scope("cin_a", window=TimeConstraint("at", instant_ns("2026-01-01T00:00:00Z")))
    write(store, "cin_a", [note("n1", at="2026-06-01T00:00:00Z"), note("n2", at=TIMES[8])])
    since = horizon(store)
    write(store, "cin_a", [note("n1", at=TIMES[8]), note("n2", at="2026-06-01T00:00:00Z")])
    assert told(feed(store, since, window)) == [("n1", True), ("n2", False)]


def test_what_came_and_went_between_is_not_told(store: RecordStore) -> None:
    since = horizon(store)
    write(store, "cin_a", [note("n1"), "n1", note("n2")])
    assert told(feed(store, since)) == [("n2", False)]


def test_a_feed_goes_on_after_a_number(store: RecordStore) -> None:
    write(store, "cin_a", [note(f"n{i}") for i in range(5)])
    first = feed(store, None, limit=2)
    rest = feed(store, None, after=first.items[-1].sequence)
    assert (told(first), first.more) == ([("n0", False), ("n1", False)], True)
    assert (told(rest), rest.more) == ([(f"n{i}", False) for i in (2, 3, 4)], False)


def test_forgotten_history_leaves_the_beginning_complete(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), note("n2"), note("n3")], now=10)
    write(store, "cin_a", [note("n1", words=1), note("n1", words=2), "n3"], now=20)
    write(store, "cin_a", [note("n2", words=9)], now=30)
    store.prune_history(25)
    with store.snapshot() as snapshot:
        assert snapshot.retained_from == 6
    assert told(feed(store, None)) == [("n1", False), ("n2", False)]
    assert told(feed(store, 6)) == [("n2", False)]
    store.prune_history(5)
    with store.snapshot() as snapshot:
        assert snapshot.retained_from == 6


def test_history_may_be_forgotten_and_a_deleted_key_come_back(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1"), "n1"], now=10)
    store.prune_history(20)
    since = horizon(store)
    write(store, "cin_a", [note("n1"), "n1"], now=30)
    write(store, "cin_a", [note("n1")], now=40)
    assert told(feed(store, since)) == [("n1", False)]


@pytest.mark.parametrize("seed", range(12))
def test_a_follower_of_the_feed_has_what_the_owner_sees(store: RecordStore, seed: int) -> None:
    random = Random(seed)
    since, until = instant_ns("2026-01-01T00:00:00Z"), instant_ns("2027-01-01T00:00:00Z")
    window = TimeConstraint("at", since, until)
    mine = scope("cin_a", fields=("id", "at", "words"), window=window)
    held: dict[str, Any] = {}
    bookmark: int | None = None
    for _ in range(8):
        _write_some(store, random)
        bookmark = _follow(store, random, mine, bookmark, held)
    with store.snapshot() as snapshot:
        seen = snapshot.page(PagePlan((mine,), order(None), 100)).rows
    assert held == {placed.row.key: _shown(placed.row) for placed in seen}


def _write_some(store: RecordStore, random: Random) -> None:
    chosen = random.choices(KEYS, k=random.randint(0, 4))
    lines: list[Any] = [
        key
        if random.random() < 0.3
        else note(
            key, at=random.choice(TIMES), words=random.randint(0, 2), mood=str(random.random())
        )
        for key in chosen
    ]
    write(store, "cin_a", lines)


def _follow(
    store: RecordStore, random: Random, mine: Scope, since: int | None, held: dict[str, Any]
) -> int:
    """Read a feed to its end, page by page, while writes go on."""
    if since is None:
        held.clear()
    reached, after = horizon(store), 0
    while True:
        with store.snapshot() as snapshot:
            found = snapshot.changes(ChangesPlan((mine,), since, reached, after, 2))
        for change in found.items:
            after = change.sequence
            if isinstance(change.item, Row):
                held[change.item.key] = _shown(change.item)
            else:
                held.pop(change.item.key, None)
        if not found.more:
            break
        _write_some(store, random)
    if horizon(store) > reached:
        return _follow(store, random, mine, reached, held)
    return reached


def _shown(row: Row) -> dict[str, object]:
    return {name: row.data.get(name) for name in ("id", "at", "words")}


# Search ---------------------------------------------------------------------------------------
def search(store: RecordStore, *terms: str, scopes: tuple[Scope, ...] = BOTH, **more: Any) -> Any:
    parsed = tuple(Term(tuple(t.rstrip("*").split()), t.endswith("*")) for t in terms)
    with store.snapshot() as snapshot:
        return snapshot.search(SearchPlan(scopes, parsed, **more))


def test_all_terms_match_in_any_granted_field(store: RecordStore) -> None:
    write(
        store,
        "cin_a",
        [
            note("n1", title="Heavy rain", body="rain and more RAIN"),
            note("n2", title="Heavy", body="wind"),
            note("n3", title="Sun", body="the rain is heavy"),
        ],
    )
    found = search(store, "heavy", "rain")
    assert {c.key: (c.occurrences, c.length_tokens) for c in found.candidates} == {
        "n1": ((2, 4), 6),
        "n3": ((1, 1), 5),
    }
    assert found.document_frequencies == (3, 2)
    blind = (scope("cin_a", fields=("id", "at", "title")),)
    hidden = search(store, "heavy", "rain", scopes=blind)
    assert [(c.key, c.length_tokens) for c in hidden.candidates] == [("n1", 2)]
    assert hidden.document_frequencies == (2, 1)


def test_phrases_are_adjacent_and_prefixes_begin_a_word(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", body="heavy rain"), note("n2", body="rain, heavy raindrops")])
    assert [c.key for c in search(store, "heavy rain").candidates] == ["n1"]
    assert sorted(c.key for c in search(store, "heavy rain*").candidates) == ["n1", "n2"]


def test_only_the_newest_matches_are_candidates(store: RecordStore) -> None:
    write(
        store,
        "cin_a",
        [note(f"n{i}", at=f"2026-01-0{9 - i}T00:00:00Z", body="rain") for i in range(8)],
    )
    found = search(store, "rain", window=3)
    assert sorted(c.key for c in found.candidates) == ["n0", "n1", "n2"]
    assert found.truncated == {("cin_a", "notes")}
    assert found.document_frequencies == (8,)


def test_where_the_event_time_is_hidden_creation_decides(store: RecordStore) -> None:
    for number, day in enumerate(("09", "05", "07"), 1):
        at = f"2026-01-{day}T00:00:00Z"
        write(store, "cin_a", [note(f"n{number}", at=at, body="rain")], emitted=number)
    blind = (scope("cin_a", fields=("id", "body")),)
    found = search(store, "rain", scopes=blind, window=2)
    assert sorted((c.key, c.event_time_ns) for c in found.candidates) == [("n2", 2), ("n3", 3)]


def test_changed_and_deleted_words_are_found_no_more(store: RecordStore) -> None:
    write(
        store, "cin_a", [note("n1", body="rain"), note("n2", body="rain"), note("n3", body="rain")]
    )
    write(store, "cin_a", [note("n1", body="sun"), "n2"])
    assert [c.key for c in search(store, "rain").candidates] == ["n3"]
    assert [c.key for c in search(store, "sun").candidates] == ["n1"]
    store.delete_stream("cin_a", "notes", 9)
    assert search(store, "sun").candidates == ()


# Aggregates -----------------------------------------------------------------------------------
AT = Grouping("at", ValueKind.INSTANT)


def aggregate(store: RecordStore, metric: str, **more: Any) -> Any:
    field = more.pop("field", None)
    kind = NOTES_STREAM.properties[field].kind if field else None
    with store.snapshot() as snapshot:
        return snapshot.aggregate(AggregatePlan(BOTH, Metric(metric), field, kind, **more))


def test_sums_are_decimal(store: RecordStore) -> None:
    costs = [0.1, 0.2, 0.3, 1e-9, 12, -0.1, 1e15 + 0.5]
    write(store, "cin_a", [note(f"n{i}", cost=cost) for i, cost in enumerate(costs)])
    assert aggregate(store, "sum", field="cost").value == 1000000000000013.000000001
    assert aggregate(store, "sum", field="words").value == 0
    write(store, "cin_b", [note(f"n{i}", words=2**62) for i in range(3)])
    assert aggregate(store, "sum", field="words").value == float(3 * 2**62)


def test_extremes_are_the_stored_values(store: RecordStore) -> None:
    write(store, "cin_a", [note("n2", at="2026-01-01T01:00:00+01:00"), note("n3", at=TIMES[5])])
    write(store, "cin_b", [note("n1", at="2026-01-01T00:00:00.000Z")])
    assert aggregate(store, "min", field="at").value == "2026-01-01T00:00:00.000Z"
    assert aggregate(store, "max", field="at").value == TIMES[5]
    assert aggregate(store, "max", field="day").value is None


def test_groups_stand_by_count_then_key_the_null_group_last(store: RecordStore) -> None:
    moods = ["b", "b", "a", None, "c", None, "a"]
    write(store, "cin_a", [note(f"n{i}", mood=mood) for i, mood in enumerate(moods)])
    write(store, "cin_b", [note("n1", mood="c"), note("n2", mood="d")])
    found = aggregate(store, "count", grouping=Grouping("mood", ValueKind.STRING), limit=4)
    assert [(g.key, g.count) for g in found.groups] == [("a", 2), ("b", 2), ("c", 2), (None, 2)]
    assert (found.group_count, found.other_count, found.record_count) == (5, 1, 9)


def test_a_repeated_hour_is_two_buckets(store: RecordStore) -> None:
    instants = ["2026-10-25T00:10:00Z", "2026-10-25T00:50:00Z", "2026-10-25T01:10:00Z"]
    write(store, "cin_a", [note(f"n{i}", at=at) for i, at in enumerate(instants)])
    by_hour = replace(AT, granularity=Granularity.HOUR, time_zone="Europe/Rome")
    found = aggregate(store, "count", grouping=by_hour)
    assert [(g.key, g.count) for g in found.groups] == [
        (instant_ns("2026-10-25T00:00:00Z"), 2),
        (instant_ns("2026-10-25T01:00:00Z"), 1),
    ]
    by_day = replace(AT, granularity=Granularity.DAY, time_zone="Europe/Rome")
    found = aggregate(store, "count", grouping=by_day)
    assert [(g.key, g.count) for g in found.groups] == [(instant_ns("2026-10-24T22:00:00Z"), 3)]


def test_the_newest_buckets_are_kept(store: RecordStore) -> None:
    write(
        store, "cin_a", [note(f"n{i}", at=f"2026-0{i}-02T00:00:00Z", words=i) for i in range(1, 7)]
    )
    by_month = replace(AT, granularity=Granularity.MONTH)
    found = aggregate(store, "sum", field="words", grouping=by_month, limit=2)
    assert [(g.key, g.value) for g in found.groups] == [
        (instant_ns("2026-05-01T00:00:00Z"), 5),
        (instant_ns("2026-06-01T00:00:00Z"), 6),
    ]
    assert (found.other_count, found.other_value, found.group_count) == (4, 10, 6)


# Blobs ----------------------------------------------------------------------------------------
def receive(store: RecordStore, content: bytes, connection_id: str = "cin_a", now: int = 1) -> str:
    upload, _ = store.receive_blob(connection_id, [content[:2], content[2:]], "text/plain", now, 99)
    return upload.blob_id


def content_of(store: RecordStore, blob_id: str) -> bytes | None:
    file = store.open_blob(blob_id)
    if file is None:
        return None
    with file:
        return file.read()


def test_bytes_are_kept_by_their_content(store: RecordStore) -> None:
    first = receive(store, b"hello")
    upload, is_new = store.receive_blob("cin_a", [b"hello"], "text/html", 5, 99)
    assert (upload.blob_id, upload.size_bytes, is_new) == (first, 5, False)
    assert content_of(store, first) == b"hello"
    assert store.blob_upload("cin_b", first) is None
    assert content_of(store, "blob_sha256_" + "0" * 64) is None


def test_a_blob_too_large_leaves_nothing(store: RecordStore) -> None:
    with pytest.raises(BodyTooLarge):
        store.receive_blob("cin_a", [b"x" * 60, b"x" * 60], "text/plain", 1, 99)
    assert store.sweep_blobs(10) == 0


def test_a_blob_is_found_through_a_granted_field_of_a_visible_record(store: RecordStore) -> None:
    blob_id = receive(store, b"hello")
    reference = {"blob_id": blob_id, "mime_type": "text/plain", "filename": "a.txt"}
    write(store, "cin_a", [note("n1", blob_ref=reference)])
    write(store, "cin_b", [note("n1", blob_ref=reference)])

    def found(*scopes: Scope) -> list[tuple[str, str, dict[str, Any]]]:
        with store.snapshot() as snapshot:
            references = snapshot.blob(BlobPlan(scopes, blob_id))
        return [(r.connection_id, r.field, r.reference) for r in references]

    assert found(*BOTH) == [("cin_a", "blob_ref", reference)]
    assert found(scope("cin_a", fields=("id", "at"))) == []
    assert found(scope("cin_a", resources=frozenset({"n2"}))) == []


def test_bytes_go_with_their_last_reference(store: RecordStore) -> None:
    blob_id = receive(store, b"hello")
    receive(store, b"hello", "cin_b")
    reference = {"blob_id": blob_id}
    write(store, "cin_a", [note("n1", blob_ref=reference), note("n2", blob_ref=reference)])
    write(store, "cin_b", [note("n1", blob_ref=reference)])
    store.delete_record("cin_a", "notes", "n1", 9)
    assert store.blob_upload("cin_a", blob_id) is not None
    write(store, "cin_a", [note("n2")])
    assert store.blob_upload("cin_a", blob_id) is None
    assert content_of(store, blob_id) == b"hello"
    store.erase_connection("cin_b")
    assert content_of(store, blob_id) is None


def test_unreferenced_bytes_are_swept_after_a_while(store: RecordStore) -> None:
    old, young = receive(store, b"old", now=10), receive(store, b"young", now=30)
    kept = receive(store, b"kept", now=10)
    write(store, "cin_a", [note("n1", blob_ref={"blob_id": kept})])
    assert store.sweep_blobs(20) == 1
    found = [content_of(store, blob_id) for blob_id in (old, young, kept)]
    assert found == [None, b"young", b"kept"]


# Catalog, collectors, server ------------------------------------------------------------------
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
        store.erase_connection(each)
    assert [store.delete_declaration("notebook") for _ in range(2)] == [True, False]


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
    assert keys(store, PagePlan((renewed,), order("words", down=True), 9)) == ["n1", "n2"]
    assert keys(
        store, PagePlan((renewed,), order(None), 9, (condition("place", "eq", "Rom"),))
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
        assert snapshot.count(CountPlan((A,))) == 1
    with pytest.raises(ConnectionNotFound):
        write(store, "cin_x", [note("n2")])


def test_runs_remember_the_last_success(store: RecordStore) -> None:
    store.record_run("cin_a", Run("r1", RunStatus.SUCCEEDED, 10))
    store.record_run("cin_a", Run("r2", RunStatus.FAILED, 20))
    with store.snapshot() as snapshot:
        found = dict(snapshot.collections())
    assert list(found) == ["cin_a"]
    assert found["cin_a"].last_run == Run("r2", RunStatus.FAILED, 20)
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


def test_a_ranking_is_gone_after_its_time(store: RecordStore) -> None:
    hits = (RankedHit("cin_a", "notes", "n1", -1.5),)
    store.put_ranking("r1", hits, 100)
    assert store.ranking("r1", 99) == hits
    assert store.ranking("r1", 100) is None
    assert store.ranking("r2", 1) is None


def test_a_deleted_record_leaves_only_its_key_and_time(store: RecordStore) -> None:
    write(store, "cin_a", [note("n1", body="secret marker")])
    store.delete_record("cin_a", "notes", "n1", 9)
    with store.snapshot(None) as snapshot:
        assert snapshot.record(RecordPlan((A,), "n1")) == ()
        assert list(snapshot.export("cin_a", "notes")) == []
