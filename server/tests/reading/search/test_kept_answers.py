"""What was found lately is shown again while nothing that its reader may see has changed."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import QueryTimeout
from personal_server.domain.authority import ReadAuthority
from personal_server.enforcement.authorize import authorize_search
from personal_server.enforcement.queries import SearchQuery
from personal_server.reading import found_hits
from personal_server.reading.found_hits import FoundHits, found_lately, hit_records
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS
from server.tests.reading.states import State
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    DIARY,
    ENTRIES,
    LETTERS,
    client,
    stream_grant,
    write,
)

LATER = "2026-06-01T00:00:00Z"
ONE = client(stream_grant(instance_ids=(DIARY,)))


def found(
    door: Door, authority: ReadAuthority = ONE, text: str = "rain", **answers: Any
) -> FoundHits:
    query = SearchQuery(text)
    read = authorize_search(authority, query, None)
    with door.store.snapshot() as snapshot:
        state: Any = State(snapshot, **answers)
        return found_lately(door.ports, state, read, query)


def test_it_is_the_same_while_nothing_changed_and_a_minute_has_not_gone_by(door: Door) -> None:
    first = found(door)
    assert found(door) is first
    assert found(door, text="snow") is not first
    assert found(door, client()) is not first
    door.now_ns += 120 * 1_000_000_000
    assert found(door) is not first


def test_what_may_be_seen_and_changed_is_found_anew(door: Door) -> None:
    first = found(door)
    write(door.store, LETTERS, "entries", [ENTRIES[0] | {"id": "other"}], LATER)
    assert found(door) is first
    write(door.store, DIARY, "entries", [ENTRIES[0] | {"id": "mine"}], LATER)
    assert found(door) is not first


def test_after_many_changes_or_where_they_are_forgotten_none_is_looked_at(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(_: object) -> None:
        raise LookupError

    monkeypatch.setattr(found_hits, "MOST_CHANGES", 2)
    first = found(door)
    for number in range(2):
        write(door.store, LETTERS, "entries", [ENTRIES[0] | {"id": f"o{number}"}], LATER)
        with pytest.raises(LookupError):
            found(door, changes=looked)
    write(door.store, LETTERS, "entries", [ENTRIES[0] | {"id": "o3"}], LATER)
    again = found(door, changes=looked)
    assert again is not first
    write(door.store, LETTERS, "entries", [ENTRIES[0] | {"id": "o4"}], LATER)
    door.store.prune_history(2**62)
    assert found(door, changes=looked) is not again


@pytest.mark.parametrize("missing", [{"pending": 1}, {"lost": frozenset({(LETTERS, "entries")})}])
def test_what_was_not_found_whole_is_looked_for_again(door: Door, missing: dict[str, Any]) -> None:
    def search(plan: Any) -> Any:
        with door.store.snapshot() as snapshot:
            return replace(snapshot.search(plan), **missing)

    first = found(door, client(), search=search)
    assert first.findings.is_whole is False
    assert found(door, client()) is not first


def test_an_index_that_is_being_made_says_of_no_word_that_nothing_holds_it(door: Door) -> None:
    def search(plan: Any) -> Any:
        with door.store.snapshot() as snapshot:
            return replace(snapshot.search(plan), pending=1)

    pending = found(door, client(), "quokka llama zebra", search=search)
    whole = found(door, client(), "quokka llama zebra")
    assert whole.relaxed is not None
    assert pending.relaxed is not None
    assert whole.relaxed.absent == ("quokka", "llama", "zebra")
    assert not pending.relaxed.absent


def test_words_that_nothing_could_count_in_time_are_not_relaxed(door: Door) -> None:
    def nothing(plan: object) -> None:
        del plan

    slow = found(door, client(), "quokka llama zebra", count_terms=nothing)
    assert slow.hits == []
    assert slow.near == ()
    assert slow.relaxed is None or not slow.relaxed.absent


def test_hits_that_hold_the_words_side_by_side_are_looked_for_behind_the_best(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = "2025-01-01T00:00:00Z"
    apart = [
        {"id": f"n{n}", "body": "wind and rain, rain and wind", "created_at": LATER}
        for n in range(4)
    ]
    beside = {"id": "beside", "body": "a long text in which wind rain is once", "created_at": at}
    write(door.store, DIARY, "entries", [*apart, beside])
    # with so few all are looked at
    assert found(door, text="wind rain").hits[0].key == "beside"
    for looked_at in (1, 4, 5):
        monkeypatch.setattr(found_hits, "LOOKED_AT_HITS", looked_at)
        another = Door(door.store)
        ranked = [each.key for each in found(another, text="wind rain").hits]
        assert ranked[0] == "beside"
        assert sorted(ranked) == ["beside", "e1", "n0", "n1", "n2", "n3"]


def test_only_so_much_text_is_looked_at_as_is_allowed(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = [
        {"id": f"n{n}", "body": "wind and rain, rain and wind", "created_at": LATER}
        for n in range(4)
    ]
    beside = {"id": "beside", "body": "long text, wind rain", "created_at": "2025-01-01T00:00:00Z"}
    write(door.store, DIARY, "entries", [*apart, beside])
    monkeypatch.setattr(found_hits, "LOOKED_AT_CHARS", 10)
    few = [each.key for each in found(door, text="wind rain").hits]
    assert few[0] != "beside"
    assert sorted(few) == ["beside", "e1", "n0", "n1", "n2", "n3"]


def test_a_source_that_was_left_out_of_all_is_no_answer(door: Door) -> None:
    def search(plan: Any) -> Any:
        with door.store.snapshot() as snapshot:
            found = snapshot.search(plan)
        return replace(found, candidates=(), lost=frozenset({(DIARY, "entries")}))

    with pytest.raises(QueryTimeout) as caught:
        found(door, search=search)
    assert caught.value.members["retry_after_seconds"] == 1
    assert found(door, client(), search=search).findings.searched_sources == 1


def test_a_thousand_changes_are_looked_at_and_no_more(door: Door) -> None:
    def looked(_: object) -> None:
        raise LookupError

    first = found(door)
    with door.store.snapshot() as snapshot:
        then = snapshot.horizon
    with pytest.raises(LookupError):
        found(door, changes=looked, horizon=then + 1_000)
    assert found(door, changes=looked, horizon=then + 1_001) is not first
    door.ports.recent.forget()
    first = found(door)
    for retained, is_looked_at in ((then, True), (then + 1, False)):
        if is_looked_at:
            with pytest.raises(LookupError):
                found(door, changes=looked, horizon=then + 2, retained_from=retained)
        else:
            assert (
                found(door, changes=looked, horizon=then + 2, retained_from=retained) is not first
            )


@pytest.mark.parametrize("count", [0, 1, 25, 26, 51])
def test_records_of_hits_are_read_some_together_as_they_are_needed(door: Door, count: int) -> None:
    sources = {source.order: source for source in ONE.sources}
    (order,) = sources
    asked: list[int] = []

    def records(plans: Any) -> dict[Any, Any]:
        asked.append(sum(len(plan.keys) for plan in plans))
        return {}

    places = [(*order, f"k{number}") for number in range(count)]
    with door.store.snapshot() as snapshot:
        state: Any = State(snapshot, records=records)
        read = hit_records(state, sources, places)
        assert list(islice(read, 1)) == [(place, None) for place in places[:1]]
        assert asked == ([min(count, 25)] if count else [])
        assert [place for place, _ in read] == places[1:]
    assert sum(asked) == count
    assert max(asked, default=0) <= 25
    assert len(asked) == -(-count // 25)


def test_a_place_of_a_source_that_is_not_read_has_no_record(door: Door) -> None:
    sources = {source.order: source for source in ONE.sources}
    places = [(LETTERS, "entries", "l1"), (DIARY, "entries", "e1"), (DIARY, "entries", "none")]
    with door.store.snapshot() as snapshot:
        found_rows = list(hit_records(snapshot, sources, places))
    assert [place for place, _ in found_rows] == places
    assert [row.key if row else None for _, row in found_rows] == [None, "e1", None]


def test_behind_the_best_the_first_of_each_account_is_kept(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    for account, count in ((DIARY, 4), (LETTERS, 3)):
        held = [
            {"id": f"n{n}", "body": "zinc " * (1 + n), "created_at": LATER} for n in range(count)
        ]
        write(door.store, account, "entries", held)

    def ranked(kept: int) -> list[tuple[str, str]]:
        monkeypatch.setattr(found_hits, "KEPT_HITS", kept)
        hits = found(Door(door.store), client(), "zinc").hits
        return [(each.connection_id, each.key) for each in hits]

    whole = ranked(1_000)
    assert len(whole) == 7
    for kept in range(1, 8):
        rest = whole[kept:]
        firsts = {account: next((e for e in rest if e[0] == account), None) for account, _ in rest}
        assert ranked(kept) == whole[:kept] + [each for each in rest if each in firsts.values()]


@pytest.mark.parametrize(("authority", "share"), [(ONE, 2 / 3), (client(), 1 / 3)])
def test_sources_share_two_thirds_of_the_time_of_a_read(
    door: Door, authority: ReadAuthority, share: float
) -> None:
    seconds: list[float] = []

    def search(plan: Any) -> Any:
        seconds.append(plan.seconds_each)
        with door.store.snapshot() as snapshot:
            return snapshot.search(plan)

    found(door, authority, search=search)
    assert seconds[0] == pytest.approx(READ_DEADLINE_SECONDS * share)


@pytest.mark.parametrize("looked_at", [1, 4])
def test_what_is_older_than_the_newest_matches_is_found_by_the_phrase(
    door: Door, monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    apart = [{"id": f"n{n}", "body": "wind and rain", "created_at": LATER} for n in range(5)]
    beside = {"id": "beside", "body": "wind rain", "created_at": "2025-01-01T00:00:00Z"}
    write(door.store, DIARY, "entries", [*apart, beside])
    monkeypatch.setattr(found_hits, "LOOKED_AT_HITS", looked_at)

    def search(plan: Any) -> Any:
        with door.store.snapshot() as snapshot:
            whole = snapshot.search(plan)
        newest = [each for each in whole.candidates if each.key != "beside"]
        return whole if len(plan.words.terms) == 1 else replace(whole, candidates=newest)

    hits = found(Door(door.store), text="wind rain", search=search).hits
    # how often each of the two words is elsewhere was not counted
    assert (hits[0].key, hits[0].weight) == ("beside", 0)
    assert sorted(each.key for each in hits[1:]) == ["e1", *(f"n{n}" for n in range(5))]
