"""What every store does in search."""

from __future__ import annotations

import pytest

from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.search_words import parse_words
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.scopes import Scope
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.storage.ports.asking import BOTH, count_terms, search
from server.tests.storage.worlds import note, scope, write


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


def test_other_forms_of_a_word_match_in_the_language_of_each_text(store: RecordStore) -> None:
    write(
        store,
        "cin_a",
        [
            note("n1", title="Encrypt", body="it was encrypted, and encrypting goes on"),
            note("n2", body="The keys of an encryption that nobody knows any more"),
            note("n3", body="Die Rechnungen für das Haus kommen im Oktober mit der Post"),
            note("n4", body="a cryptic letter"),
        ],
    )
    found = search(store, "encrypting~")
    assert {c.key: c.occurrences for c in found.candidates} == {"n1": (5,), "n2": (1,)}
    assert found.document_frequencies == (2,)
    assert [c.key for c in search(store, "Rechnung~".lower()).candidates] == ["n3"]
    assert search(store, "rechnung").candidates == ()
    blind = (scope("cin_a", fields=("id", "at", "title")),)
    assert [c.key for c in search(store, "encryption~", scopes=blind).candidates] == ["n1"]
    few = (scope("cin_a", resources=frozenset({"n2", "n3"})),)
    assert {c.occurrences for c in search(store, "encrypted~", scopes=few).candidates} == {(1,)}


def test_a_merged_index_holds_what_it_held(store: RecordStore) -> None:
    for batch in range(6):
        write(
            store, "cin_a", [note(f"n{batch}", body=f"rain w{batch}"), note("again", body="hail")]
        )
    while store.merge_slice():
        pass
    assert not store.merge_slice()
    assert len(search(store, "rain").candidates) == 6
    assert [c.key for c in search(store, "hail").candidates] == ["again"]
    write(store, "cin_a", [note("n0", body="snow")])
    assert len(search(store, "rain").candidates) == 5
    while store.merge_slice():
        pass
    assert len(search(store, "rain").candidates) == 5


def test_either_word_is_enough_and_none_that_is_left_out_may_stand_anywhere(
    store: RecordStore,
) -> None:
    write(
        store,
        "cin_a",
        [
            note("n1", title="Rain", body="and wind"),
            note("n2", title="Snow", body="wind, wind"),
            note("n3", title="Snow", body="calm"),
            note("n4", title="Hail", body="and snow"),
        ],
    )
    few = (scope("cin_a", resources=frozenset({"n1", "n2", "n3", "n4"})),)
    for scopes in (BOTH, few):

        def keys(*terms: str, scopes: tuple[Scope, ...] = scopes) -> list[str]:
            return sorted(c.key for c in search(store, *terms, scopes=scopes).candidates)

        assert keys("rain|hail") == ["n1", "n4"]
        assert keys("snow|rain", "wind") == ["n1", "n2"]
        assert keys("snow", "-wind") == ["n3", "n4"]
        assert keys("snow", "-wind|hail") == ["n3"]
        assert keys("wind", "-snow", "-rain") == []
    hidden = (scope("cin_a", fields=("id", "at", "body")),)
    found = {c.key for c in search(store, "wind", "-snow", scopes=hidden).candidates}
    assert found == {"n1", "n2"}


def test_most_words_are_enough_where_so_many_are_asked_for(store: RecordStore) -> None:
    write(
        store,
        "cin_a",
        [
            note("n1", title="Rain, rain", body="and wind, and rain"),
            note("n2", body="snow, snow, wind"),
            note("n3", title="Snow", body="hail"),
            note("n4", title="Calm", body="sun"),
        ],
    )
    few = (scope("cin_a", resources=frozenset({"n1", "n2", "n3", "n4"})),)
    for scopes in (BOTH, few):
        found = search(store, "rain", "wind", "snow", "hail", least=2, scopes=scopes)
        assert {c.key: c.occurrences for c in found.candidates} == {
            "n1": (3, 1, 0, 0),
            "n2": (0, 1, 1, 0),
            "n3": (0, 0, 2, 1),
        }
        assert found.document_frequencies == (1, 2, 2, 1)

        def keys(*terms: str, least: int, scopes: tuple[Scope, ...] = scopes) -> list[str]:
            found = search(store, *terms, least=least, scopes=scopes)
            return sorted(c.key for c in found.candidates)

        assert keys("rain", "wind", "snow", "hail", "-sun", "-calm", least=1) == ["n1", "n2", "n3"]
        assert keys("rain", "wind", "snow", "hail", "-hail", least=2) == ["n1", "n2"]
        assert keys('"wind"', "rain", "snow", "hail", least=2) == ["n1", "n2"]
        assert keys('"wind"', '"hail"', "snow", least=1) == []
    hidden = (scope("cin_a", fields=("id", "at", "body")),)
    found = search(store, "rain", "wind", "snow", "hail", least=2, scopes=hidden)
    assert {c.key: c.occurrences for c in found.candidates} == {
        "n1": (1, 1, 0, 0),
        "n2": (0, 1, 1, 0),
    }


def test_terms_are_counted_in_visible_fields_of_visible_records(store: RecordStore) -> None:
    write(
        store,
        "cin_a",
        [
            note("n1", at="2026-01-01T00:00:00Z", title="Rain", body="and encrypted wind"),
            note("n2", at="2026-02-01T00:00:00Z", body="rain, heavy rain"),
            note("n3", at="2026-03-01T00:00:00Z", title="Rain", body="snow"),
        ],
    )
    asked = ("rain", "snow", "heavy rain", "encryption~", "hail", '""')

    def counts(shown: Scope, limit: int = 9) -> tuple[int, ...] | None:
        return count_terms(store, *asked, scopes=(shown,), limit=limit)

    assert counts(scope("cin_a")) == (3, 1, 1, 1, 0, 0)
    assert counts(scope("cin_a"), limit=2) == (2, 1, 1, 1, 0, 0)
    assert counts(scope("cin_a", fields=("id", "at", "title"))) == (2, 0, 0, 0, 0, 0)
    assert counts(scope("cin_a", resources=frozenset({"n2"}))) == (1, 0, 1, 0, 0, 0)
    since = instant_ns("2026-02-01T00:00:00Z")
    assert counts(scope("cin_a", window=TimeConstraint("at", since, None))) == (2, 1, 1, 0, 0, 0)


@pytest.mark.parametrize("keys", [None, frozenset({"n1", "n2", "n3", "n4"})])
def test_a_named_field_is_looked_at_alone_and_others_are_compared(
    store: RecordStore, keys: frozenset[str] | None
) -> None:
    write(
        store,
        "cin_a",
        [
            note("n1", title="Rain", body="and wind", mood="Calm"),
            note("n2", title="Wind", body="rain, rain", mood="wild"),
            note("n3", title="Raindrops", body="title rain", pinned=True),
            note("n4", title="Sun", body="mood calm and rain"),
        ],
    )

    def found(text: str, *fields: str) -> dict[str, tuple[int, ...]]:
        granted = fields or ("id", "at", "title", "body", "mood", "pinned")
        shown = scope("cin_a", fields=granted, resources=keys)
        with store.snapshot() as snapshot:
            candidates = snapshot.search(SearchPlan((shown,), parse_words(text))).candidates
        return {c.key: c.occurrences for c in candidates}

    assert found("title:rain") == {"n1": (2,)}
    assert found("title:rai* -body:title") == {"n1": (2,)}
    assert found("title:rain OR body:rain") == {"n1": (2,), "n2": (2,), "n3": (1,), "n4": (1,)}
    assert found("rain mood:calm") == {"n1": (2, 0)}
    assert found("rain mood:ca*") == {"n1": (2, 0)}
    assert found("rain pinned:true") == {"n3": (1, 0)}
    # a name that is not granted is a word like one that nobody declares
    assert found("rain mood:calm", "id", "at", "title", "body") == {"n4": (1, 1)}
    assert found("title:rain", "id", "at", "body") == {"n3": (1,)}
    assert found("nobody:rain") == {}


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
