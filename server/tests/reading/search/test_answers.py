"""What stands beside hits, and that pages in the order of time lose nothing and end."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from msgspec.structs import replace

from personal_server.enforcement.queries import HitOrder, PageSize, SearchQuery
from personal_server.reading import shown_hits
from personal_server.reading.search_in_time import search_in_time
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

ZONE = "Europe/Berlin"


def entry(number: int, **over: Any) -> dict[str, Any]:
    at = f"2026-05-{number:02}T22:30:00Z"
    text = {"title": f"Stroll {number}", "body": "a stroll"}
    return {"id": f"n{number}", "created_at": at, **text, **over}


@pytest.fixture
def walked() -> Door:
    door = Door(furnished())
    write(door.store, DIARY, "entries", [entry(number) for number in range(1, 8)])
    write(door.store, LETTERS, "entries", [entry(number) for number in range(8, 10)])
    return door


def get(door: Door, query: str) -> Reply:
    reply = door.get(f"/v1/search?{query}", client())
    assert reply.status == 200, reply.body
    return reply


def keys_of(reply: Reply) -> list[str]:
    """By the name that every hit has: one for a caller that counts characters has no other."""
    return [hit["record_id"] for hit in reply.data]


def all_pages(door: Door, query: str) -> tuple[list[str], int]:
    """The keys of every page, and how many pages there were."""
    reply = get(door, query)
    keys, pages = keys_of(reply), 1
    while reply.body["has_more"]:
        reply = door.get(reply.body["links"]["next"], client())
        keys += keys_of(reply)
        pages += 1
        assert pages < 20
    return keys, pages


@pytest.mark.parametrize(
    "path", ["search?q=stroll", "search?q=stroll&sort=newest", "timeline?limit=9"]
)
def test_the_zone_that_was_asked_for_is_said_and_its_days_are_meant(
    walked: Door, path: str
) -> None:
    plain = walked.get(f"/v1/{path}", client())
    there = walked.get(f"/v1/{path}&time_zone={ZONE}", client())
    assert "time_zone" not in plain.body["meta"]
    assert there.body["meta"]["time_zone"] == ZONE
    # half past ten in the evening is half past midnight of the next day there
    shown = [hit if "when" in hit else hit["data"] for hit in there.data]
    assert {hit["when"][-5:] for hit in shown} == {"00:30"}
    assert len(shown) == 9


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize(("limit", "pages"), [(1, 9), (4, 3), (9, 1), (50, 1)])
def test_pages_in_the_order_of_time_are_the_list(
    walked: Door, order: str, limit: int, pages: int
) -> None:
    keys, count = all_pages(walked, f"q=stroll&sort={order}&limit={limit}")
    numbers = [int(key[1:]) for key in keys]
    assert sorted(numbers) == [*range(1, 10)]
    assert numbers == sorted(numbers, reverse=order == "newest")
    assert count == pages


@pytest.mark.parametrize("order", ["", "&sort=newest"])
def test_a_page_that_many_characters_fill_goes_on_with_the_next_hit(
    walked: Door, order: str
) -> None:
    whole, _ = all_pages(walked, f"q=stroll{order}&limit=50")
    cut, pages = all_pages(walked, f"q=stroll{order}&limit=50&page_chars=1500")
    assert sorted(cut) == sorted(whole)
    assert pages > 1


@pytest.mark.parametrize("order", ["", "&sort=newest"])
def test_what_is_not_there_is_explained_on_the_first_page(walked: Door, order: str) -> None:
    reply = get(walked, f"q=quokka{order}")
    assert reply.data == []
    assert not reply.body["has_more"]
    assert reply.body["meta"]["freshness"]["status"]
    assert {part.record_count for part in reply.disclosed} == {0}


def test_a_search_asked_again_is_answered_alike_and_knows_its_mode(walked: Door) -> None:
    first, again = get(walked, "q=stroll"), get(walked, "q=stroll")
    assert again.keys == first.keys
    assert {hit["retrieval_mode"] for hit in first.data if "retrieval_mode" in hit} <= {"lexical"}
    write(walked.store, DIARY, "entries", ["n1"], "2026-06-01T00:00:00Z")
    assert "n1" not in get(walked, "q=stroll").keys


def test_a_change_that_may_not_be_seen_leaves_the_answer(walked: Door) -> None:
    titles = client(stream_grant(fields=("id", "title", "created_at"), instance_ids=(DIARY,)))
    before = walked.get("/v1/search?q=stroll", titles)
    write(walked.store, DIARY, "entries", [entry(1, body="another")], "2026-06-01T00:00:00Z")
    after = walked.get("/v1/search?q=stroll", titles)
    assert after.data == before.data


@pytest.mark.parametrize("order", ["", "&sort=newest"])
def test_one_account_alone_explains_its_emptiness(walked: Door, order: str) -> None:
    one = client(stream_grant(instance_ids=(DIARY,)))
    reply = walked.get(f"/v1/search?q=quokka{order}&streams=entries&filter[pinned]=true", one)
    assert (reply.status, reply.data) == (200, [])


@pytest.mark.parametrize("order", ["", "&sort=oldest"])
def test_words_that_cannot_be_looked_for_are_named(walked: Door, order: str) -> None:
    meta = get(walked, f"q=stroll%20%E2%98%82{order}").body["meta"]
    assert meta["ignored_words"] == ["☂"]
    assert "ignored_words" not in get(walked, f"q=stroll{order}").body["meta"]


def test_a_search_whose_words_nothing_holds_together_is_entered_as_one_that_found_nothing(
    walked: Door,
) -> None:
    first = get(walked, "q=stroll%20quokka%20llama&limit=2")
    assert first.body["meta"]["relaxed"]["exact_count"] == 0
    assert 0 in [part.record_count for part in first.disclosed]
    second = walked.get(first.body["links"]["next"], client())
    assert second.data
    assert 0 not in [part.record_count for part in second.disclosed]
    write(walked.store, DIARY, "entries", [entry(20, body="stroll, quokka, llama")])
    whole = get(walked, "q=stroll%20quokka%20llama&limit=2")
    assert whole.body["meta"]["relaxed"]["exact_count"] == 1
    assert 0 not in [part.record_count for part in whole.disclosed]


@pytest.mark.parametrize("order", ["relevance", "newest"])
def test_a_page_ends_where_much_text_was_looked_at_and_the_next_goes_on(
    walked: Door, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = all_pages(walked, f"q=stroll&sort={order}&limit=50")
    monkeypatch.setattr(shown_hits, "PAGE_TEXT_CHARS", 30)
    cut, pages = all_pages(walked, f"q=stroll&sort={order}&limit=50")
    assert sorted(cut) == sorted(whole)
    assert 3 < pages < len(whole)


def test_a_page_that_damaged_rows_end_goes_on_behind_them(walked: Door) -> None:
    whole, _ = all_pages(walked, "q=stroll&sort=newest&limit=50")
    query = SearchQuery("stroll", limit=2, sort=HitOrder.NEWEST)

    def found(**size: int) -> tuple[int, list[str]]:
        with walked.store.snapshot() as snapshot:

            def timeline(plan: Any) -> Any:
                three = snapshot.timeline(replace(plan, limit=3))
                return replace(three, rows=three.rows[:2], more=True, end=three.rows[2].position)

            state: Any = State(snapshot, timeline=timeline)
            asked = replace(query, size=PageSize(**size))
            page = search_in_time(walked.ports, state, client(), asked)
            hits: Any = page.data
        cursor = quote(page.next_cursor or "")
        following = get(walked, f"q=stroll&sort=newest&limit=50&cursor={cursor}")
        return len(hits), keys_of(following)

    assert found() == (2, whole[3:])
    assert found(chars=1) == (1, whole[1:])


def test_a_page_of_nothing_but_damaged_rows_goes_on_too(walked: Door) -> None:
    query = SearchQuery("stroll", limit=2, sort=HitOrder.NEWEST)
    with walked.store.snapshot() as snapshot:

        def timeline(plan: Any) -> Any:
            found = snapshot.timeline(plan)
            return replace(found, rows=(), more=True, end=found.rows[-1].position)

        state: Any = State(snapshot, timeline=timeline)
        page = search_in_time(walked.ports, state, client(), query)
    whole, _ = all_pages(walked, "q=stroll&sort=newest&limit=50")
    cursor = quote(page.next_cursor or "")
    assert page.data == []
    assert keys_of(get(walked, f"q=stroll&sort=newest&limit=50&cursor={cursor}")) == whole[2:]
