"""What is found by meaning, alone and beside words.  The model knows weather and letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest

from pdpp_kernel.vectors import Passage
from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.reading import found_hits
from personal_server.reading.search import search
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.reading.states import State
from server.tests.resource_server.door import Door, Reply
from server.tests.resource_server.journal import (
    DIARY,
    LETTERS,
    client,
    furnished,
    stream_grant,
    write,
)

MODEL = "two meanings"
WEATHER, LETTER = b"\x7f\x00\x10\x00\x00\x00\x00\x00", b"\x00\x7f\x00\x10\x00\x00\x00\x00"


class Embedder:
    """Whatever is asked for is about the weather."""

    model = MODEL

    def embed_query(self, text: str) -> bytes:
        del text
        return WEATHER


def embed(store: RecordStore, accounts: Sequence[str] = (DIARY, LETTERS)) -> None:
    for account in accounts:
        while work := store.unembedded(account, "entries", ("body",), 100):
            store.put_passages(
                work,
                {
                    (record.id, name): [Passage(0, len(text), meaning_of(text))]
                    for record in work.records
                    for name, text in record.texts.items()
                },
            )


def meaning_of(text: str) -> bytes:
    return LETTER if "@" in text or "Nothing" in text else WEATHER


@pytest.fixture
def door() -> Door:
    store = furnished()
    store.use_embedding_model(MODEL)
    embed(store)
    return Door(store, embedder=Embedder())


def ask(door: Door, q: str, mode: str, **more: str) -> Reply:
    further = "".join(f"&{name}={quote(value)}" for name, value in more.items())
    reply = door.get(f"/v1/search?q={quote(q)}&mode={mode}{further}", client())
    assert reply.status == 200, reply.text
    return reply


def keys(reply: Reply) -> list[tuple[str, str]]:
    return [(hit["connection_id"], hit["id"]) for hit in reply.data]


def recall(reply: Reply) -> dict[str, Any]:
    return reply.body["meta"]["recall"]


ABOUT_WEATHER = [(DIARY, "e2"), (DIARY, "e1")]


def test_by_meaning_what_is_near_is_found_whatever_its_words(door: Door) -> None:
    reply = ask(door, "climate", "meaning")
    assert keys(reply) == ABOUT_WEATHER
    assert {hit["retrieval_mode"] for hit in reply.data} == {"semantic"}
    assert recall(reply)["mode"] == "meaning"
    assert recall(reply)["ranked_candidate_count"] == 2
    assert recall(reply)["unembedded_record_count"] == 0


@pytest.mark.parametrize("mode", ["meaning", "hybrid"])
def test_what_is_excluded_or_quoted_is_meant_strictly(door: Door, mode: str) -> None:
    assert (DIARY, "e1") in keys(ask(door, "climate", mode))
    assert (DIARY, "e1") not in keys(ask(door, "climate -heavy", mode))
    assert keys(ask(door, 'climate "quiet rain"', mode)) == [(DIARY, "e2")]


def test_beside_words_what_is_near_is_found_too(door: Door) -> None:
    reply = ask(door, "snow", "hybrid")
    assert keys(reply) == ABOUT_WEATHER
    assert {hit["retrieval_mode"] for hit in reply.data} == {"hybrid"}
    assert reply.data[0]["snippet"]["text"] == "<mark>Snow</mark>"
    assert recall(reply)["mode"] == "hybrid"
    assert recall(reply)["ranked_candidate_count"] == 2


def test_nothing_is_compared_where_words_are_enough(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    storm = {"id": "n1", "body": "Storms.", "created_at": "2026-05-01T10:00:00Z"}
    write(door.store, LETTERS, "entries", [storm])
    embed(door.store)
    write(door.store, DIARY, "entries", [storm | {"id": "n2"}])
    for most, found in ((3, True), (2, False)):
        door = Door(door.store, embedder=Embedder())
        monkeypatch.setattr(found_hits, "JOINED_HITS", most)
        reply = ask(door, "rain", "hybrid")
        assert ((LETTERS, "n1") in keys(reply)) is found
        assert recall(reply)["unembedded_record_count"] == 1
        assert recall(reply)["ranked_candidate_count"] == 3 + found


def test_what_is_embedded_meanwhile_is_found_with_the_next_search(door: Door) -> None:
    record = {"id": "n1", "body": "Storms.", "created_at": "2026-05-01T10:00:00Z"}
    write(door.store, LETTERS, "entries", [record])
    assert (LETTERS, "n1") not in keys(ask(door, "climate", "meaning"))
    embed(door.store)
    assert (LETTERS, "n1") in keys(ask(door, "climate", "meaning"))


def test_pages_laid_end_to_end_are_the_hits_each_once(door: Door) -> None:
    for mode in ("meaning", "hybrid"):
        whole = keys(ask(door, "rain", mode))
        reply = ask(door, "rain", mode, limit="1")
        found = keys(reply)
        while reply.body["has_more"]:
            cursor = quote(reply.body["next_cursor"])
            reply = door.get(f"/v1/search?q=rain&mode={mode}&cursor={cursor}", client())
            assert recall(reply)["mode"] == mode
            found += keys(reply)
        assert sorted(found) == sorted(whole)


def test_a_field_that_is_not_granted_is_not_near(door: Door) -> None:
    granted = client(stream_grant(fields=("id", "title", "created_at")))
    assert door.get("/v1/search?q=climate&mode=meaning", granted).data == []


def test_a_cursor_ends_with_the_model_that_its_search_asked(door: Door) -> None:
    class Another(Embedder):
        model = "another model"

    first = ask(door, "climate", "meaning", limit="1")
    target = f"/v1/search?q=climate&mode=meaning&cursor={quote(first.body['next_cursor'])}"
    assert door.get(target, client()).status == 200
    door.store.use_embedding_model("another model")
    embed(door.store)
    reply = Door(door.store, embedder=Another()).get(target, client())
    assert (reply.status, reply.code, reply.error["param"]) == (410, "cursor_expired", "cursor")
    assert reply.error["recovery"] == {"cursor": None}


def test_a_search_by_words_needs_no_model_on_further_pages(door: Door) -> None:
    first = door.get("/v1/search?q=rain&mode=words&limit=1", client())
    cursor = quote(first.body["next_cursor"])
    without = Door(door.store).get(f"/v1/search?q=rain&mode=words&cursor={cursor}", client())
    assert without.status == 200


@pytest.mark.parametrize(("text", "count"), [("climate", 2), ("climate -heavy", 0)])
def test_what_is_gone_when_it_is_looked_at_strictly_is_no_hit(
    door: Door, text: str, count: int
) -> None:
    """Hits by meaning are read where something is excluded, and counted unread where nothing is."""

    def records(_: object) -> dict[object, object]:
        return {}

    query = SearchQuery(text, mode=SearchMode.MEANING)
    with door.store.snapshot() as snapshot:
        state: Any = State(snapshot, records=records)
        found = search(door.ports, state, client(), query)
    assert found.data == []
    assert found.count is not None
    assert found.count.value == count


@pytest.mark.parametrize("mode", ["meaning", "hybrid"])
def test_further_pages_say_of_the_whole_search_what_the_first_one_said(
    door: Door, mode: str
) -> None:
    storm = {"id": "n1", "body": "Storms.", "created_at": "2026-05-01T10:00:00Z"}
    write(door.store, LETTERS, "entries", [storm])
    first = ask(door, "rain", mode, limit="1")
    assert (recall(first)["unembedded_record_count"], first.body["has_more"]) == (1, True)
    for forgotten in (False, True):
        if forgotten:
            door.ports.rankings.forget()
        cursor = quote(first.body["next_cursor"])
        second = door.get(f"/v1/search?q=rain&mode={mode}&cursor={cursor}", client())
        assert recall(second) == recall(first)
        assert second.body["meta"]["count"] == first.body["meta"]["count"]
