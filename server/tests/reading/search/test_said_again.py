"""What somebody said is one hit, however often it was sent; what nobody said stays apart."""

from __future__ import annotations

from typing import Any

import pytest

from personal_server.domain.authority import ReadAuthority
from personal_server.reading import found_hits
from server.tests.reading.search.test_named_authors import (
    WRITTEN_BY,
    Recording,
    door,
    letter,
    stream_grant,
)
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import DIARY, client, furnished, write
from tests.oracle.memory import MemoryStore

SAID = "zinc and copper are found in these hills where miners worked for many long years " * 3
OTHER = "zinc beside copper was sold at the harbour to whoever came by with coins or grain " * 3
SENT = {"s1": SAID, "s2": SAID, "s3": SAID, "o1": OTHER}


def written(*, by_somebody: bool) -> tuple[Door, ReadAuthority]:
    """The same texts as letters, whose titles say who wrote them, or as entries of a diary."""
    made = [letter(key, "Zoe", text, month) for month, (key, text) in enumerate(SENT.items(), 1)]
    if not by_somebody:
        store = furnished()
        write(store, DIARY, "entries", made)
        return Door(store), client(stream_grant(instance_ids=(DIARY,)))
    store = MemoryStore()
    at = door(store, Recording(99))
    write(store, DIARY, "entries", made, declared=WRITTEN_BY)
    return at, client(stream_grant(instance_ids=(DIARY,)), declared=WRITTEN_BY)


def hits(query: str, *, by_somebody: bool = True, mode: str = "words") -> tuple[list[Any], Any]:
    at, reader = written(by_somebody=by_somebody)
    body = at.get(f"/v1/search?q={query}&mode={mode}", reader).body
    found = sorted((each["record_id"][0], each.get("duplicates")) for each in body["data"])
    return found, body["meta"]["count"].get("value")


@pytest.mark.parametrize("query", ["zinc", "zinc%20copper"])
def test_what_was_sent_three_times_is_one_hit_that_counts_the_others(query: str) -> None:
    assert hits(query) == ([("o", None), ("s", 2)], 4)


@pytest.mark.parametrize("query", ["zinc", "zinc%20copper"])
def test_what_nobody_said_is_shown_as_often_as_it_is_there(query: str) -> None:
    every = ([("o", None), ("s", None), ("s", None), ("s", None)], 4)
    assert hits(query, by_somebody=False) == every


@pytest.mark.parametrize(("query", "is_looked_at"), [("zinc", False), ("zinc%20copper", True)])
def test_texts_of_what_nobody_said_are_looked_at_for_words_side_by_side_alone(
    monkeypatch: pytest.MonkeyPatch, query: str, *, is_looked_at: bool
) -> None:
    def look_at(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr(found_hits, "look_at", look_at)
    if is_looked_at:
        with pytest.raises(LookupError):
            hits(query, by_somebody=False)
    else:
        assert len(hits(query, by_somebody=False)[0]) == 4


def test_what_was_folded_is_not_found_by_its_meaning_again() -> None:
    found, _ = hits("zinc", mode="hybrid")
    assert [key for key, _ in found].count("s") == 1
