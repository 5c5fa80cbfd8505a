import hashlib
import struct
from typing import Any

import pytest
from msgspec.structs import astuple, replace

from personal_server.domain.disclosure import DENIED, SERVED, AskedDetail, DisclosureEntry
from personal_server.domain.reading_history import (
    SKETCH_BYTES,
    ReadingCount,
    WordSketch,
    by_request,
    count_request,
    searched_words,
)

SEARCH = DisclosureEntry(
    "dis_1", "own_1", 0, "req_1", SERVED, "client", "rest", "GET /v1/search", grant_id="grt_1"
)
FOUND = replace(SEARCH, stream="notes", fields=("title",), record_count=3, size_bytes=40)
RECORD = "GET /v1/streams/{stream}/records/{record_key}"
MISSED = replace(SEARCH, route=RECORD, outcome=DENIED, error_code="not_found")


def test_an_empty_search_is_told_from_one_that_found() -> None:
    assert count_request([SEARCH], 2) == ReadingCount(1, searches=1, empty_searches=1, new_words=2)
    both = [FOUND, replace(FOUND, stream="rest")]
    assert count_request(both, 0) == ReadingCount(1, 6, 80, searches=1)


def test_what_was_not_counted_is_none_and_counts_add_up() -> None:
    assert astuple(ReadingCount()) == (0,) * 7
    assert astuple(ReadingCount(*range(7)) + ReadingCount(*range(7))) == (0, 2, 4, 6, 8, 10, 12)


def test_only_records_and_blobs_that_are_not_there_are_unknown_keys() -> None:
    assert count_request([MISSED], 0).unknown_keys == 1
    assert count_request([replace(MISSED, error_code="field_not_granted")], 0).unknown_keys == 0
    assert count_request([replace(MISSED, route="GET /v1/streams")], 0).unknown_keys == 0


@pytest.mark.parametrize(
    ("change", "unknown"),
    [
        ({"error_code": "blob_not_found"}, 1),
        ({"error_code": "field_not_found"}, 0),
        ({"outcome": SERVED}, 0),
        ({"route": "GET /v1/blobs/{blob_id}"}, 1),
        ({"route": "GET /v1/search"}, 0),
    ],
)
def test_one_key_that_is_not_there_makes_a_request_one_of_an_unknown_key(
    change: dict[str, Any], unknown: int
) -> None:
    found = replace(MISSED, error_code="field_not_granted")
    assert count_request([found, replace(MISSED, **change)], 0).unknown_keys == unknown


@pytest.mark.parametrize(
    ("entries", "empty"),
    [
        ([SEARCH], 1),
        ([FOUND], 0),
        ([FOUND, SEARCH], 1),
        ([replace(SEARCH, outcome=DENIED)], 0),
        ([replace(SEARCH, route=RECORD)], 0),
        ([], 0),
    ],
)
def test_a_search_is_empty_where_a_source_gave_nothing(
    entries: list[DisclosureEntry], empty: int
) -> None:
    assert count_request(entries, 0).empty_searches == empty


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("q=rain+OR+snow", {"rain", "snow"}),
        ("query=rain+-wind", {"rain", "wind"}),
        ("q=rain&query=snow&streams=notes", {"rain", "snow"}),
        ("streams=notes", set[str]()),
    ],
)
def test_each_word_that_was_asked_for_is_known(asked: str, words: set[str]) -> None:
    detail = AskedDetail(b"", f"/v1/search?{asked}")
    assert searched_words(replace(SEARCH, detail=detail)) == words


def test_a_word_sets_seven_bits_of_a_sketch_and_is_new_once() -> None:
    assert SKETCH_BYTES == 12_000
    sketch, new = WordSketch(b"salt").learn(["rain", "rain"])
    assert (new, sketch.salt, len(sketch.seen)) == (1, b"salt", SKETCH_BYTES)
    # stored sketches are read again: a word keeps its bits
    parts = struct.unpack(">7I", hashlib.blake2b(b"rain", key=b"salt", digest_size=28).digest())
    bits = {
        at * 8 + bit for at, byte in enumerate(sketch.seen) for bit in range(8) if byte >> bit & 1
    }
    assert bits == {part % (8 * SKETCH_BYTES) for part in parts}
    more, new = sketch.learn(["snow", "rain"])
    assert (new, int.from_bytes(more.seen).bit_count()) == (1, 14)


def test_the_words_of_a_search_are_those_that_are_matched() -> None:
    asked = "/v1/search?q=R%C3%84IN+%22two+words%22+pre*&streams=notes"
    entry = replace(SEARCH, detail=AskedDetail(b"", asked))
    assert searched_words(entry) == {"rain", "two", "words", "pre"}
    assert searched_words(SEARCH) == searched_words(replace(entry, route="GET /v1")) == frozenset()


def test_a_sketch_knows_words_again_holds_none_and_grows_with_nothing() -> None:
    words = [f"word{number}" for number in range(3_000)]
    known, new = WordSketch(b"s" * 32).learn(words)
    assert 2_970 <= new <= 3_000
    again, none = known.learn(words)
    assert (again, none) == (known, 0)
    assert b"word" not in known.seen
    assert len(known.seen) == len(WordSketch(b"").seen)
    assert WordSketch(b"t" * 32).learn(words)[0].seen != known.seen


def test_entries_come_together_by_whoever_reads_and_request() -> None:
    package = replace(FOUND, package_id="gpkg_1")
    owner = replace(FOUND, grant_id=None)
    parts = by_request([FOUND, package, owner, replace(FOUND, request_id="req_2"), FOUND])
    assert {place: len(found) for place, found in parts.items()} == {
        ("grt_1", "req_1"): 2,
        ("gpkg_1", "req_1"): 1,
        ("grt_1", "req_2"): 1,
    }
