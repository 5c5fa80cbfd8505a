"""Rankings kept in memory: one for each request, few for each holder."""

from __future__ import annotations

import msgspec

from personal_server.domain.own_values import OwnSpace, OwnValues
from personal_server.reading.rankings import (
    KEPT_IN_ALL,
    KEPT_PER_HOLDER,
    RANKING_BYTES,
    RECENT_IN_ALL,
    Kept,
    KeptRanking,
    RankedHit,
    Ranking,
    Rankings,
    RecentSearches,
    ranking_digest,
    shared_rankings,
)

MINUTE_NS = 60_000_000_000
HITS = (RankedHit("cin_a", "notes", "n1"), RankedHit("cin_a", "notes", "n2"))


def test_a_request_has_one_ranking_the_newest() -> None:
    rankings = Rankings()
    rankings.keep("grant:a", "rain", "old", Ranking(HITS))
    rankings.keep("grant:a", "rain", "new", Ranking(HITS[:1]))
    assert rankings.find("grant:a", "rain", "old") is None
    assert rankings.find("grant:a", "rain", "new") == Ranking(HITS[:1])
    assert rankings.find("grant:b", "rain", "new") is None


def test_a_holder_who_searches_much_keeps_few_and_costs_others_none() -> None:
    rankings = Rankings()
    rankings.keep("grant:b", "snow", "d", Ranking(HITS))
    for number in range(100):
        rankings.keep("grant:a", str(number), "d", Ranking(HITS))
    kept = [n for n in range(100) if rankings.find("grant:a", str(n), "d")]
    assert kept == list(range(100 - KEPT_PER_HOLDER, 100))
    assert rankings.find("grant:b", "snow", "d") == Ranking(HITS)


def test_those_used_last_stay_when_many_holders_search() -> None:
    rankings = Rankings()
    rankings.keep("grant:first", "rain", "d", Ranking(HITS))
    for number in range(KEPT_IN_ALL):
        assert rankings.find("grant:first", "rain", "d") == Ranking(HITS)
        rankings.keep(f"grant:{number}", "rain", "d", Ranking(HITS))
    assert rankings.find("grant:first", "rain", "d") == Ranking(HITS)
    assert rankings.find("grant:0", "rain", "d") is None


def test_as_many_are_kept_as_the_bound_in_all() -> None:
    rankings = Rankings()
    for number in range(KEPT_IN_ALL + 1):
        rankings.keep(f"grant:{number}", "rain", "d", Ranking(HITS))
    kept = [n for n in range(KEPT_IN_ALL + 1) if rankings.find(f"grant:{n}", "rain", "d")]
    assert kept == list(range(1, KEPT_IN_ALL + 1))


def test_a_digest_tells_records_and_their_order() -> None:
    assert ranking_digest(HITS) != ranking_digest(HITS[::-1])
    assert ranking_digest(HITS) != ranking_digest(HITS[:1])


def test_what_was_found_is_known_for_a_minute_by_its_holder() -> None:
    recent = RecentSearches[str]()
    recent.keep("grant:a", "rain", Kept("found", 7, 1_000))
    assert recent.find("grant:a", "rain", 1_000 + MINUTE_NS) == Kept("found", 7, 1_000)
    assert recent.find("grant:a", "rain", 1_001 + MINUTE_NS) is None
    assert recent.find("grant:a", "rain", 999) is None
    assert recent.find("grant:b", "rain", 1_000) is None
    for number in range(KEPT_PER_HOLDER):
        recent.keep("grant:a", str(number), Kept("other", 7, 1_000))
    assert recent.find("grant:a", "rain", 1_000) is None


def test_another_process_finds_what_was_ranked_here() -> None:
    shared = OwnValues[KeptRanking](4)
    here, there = Rankings(shared), Rankings(shared)
    here.keep("grant:a", "rain", "d", Ranking(HITS))
    assert there.find("grant:a", "rain", "d") == Ranking(HITS)
    assert there.find("grant:a", "rain", "other") is None
    assert there.find("grant:b", "rain", "d") is None
    here.forget()
    assert here.find("grant:a", "rain", "d") == Ranking(HITS)


def test_what_is_let_go_of_is_gone() -> None:
    rankings, recent = Rankings(), RecentSearches[str]()
    rankings.keep("grant:a", "rain", "d", Ranking(HITS))
    recent.keep("grant:a", "rain", Kept("found", 7, 1_000))
    rankings.forget()
    recent.forget()
    assert rankings.find("grant:a", "rain", "d") is None
    assert recent.find("grant:a", "rain", 1_000) is None


def test_no_more_is_remembered_than_the_bound_in_all() -> None:
    recent = RecentSearches[str]()
    for number in range(RECENT_IN_ALL + 1):
        recent.keep(f"grant:{number}", "rain", Kept("found", 7, 1_000))
    kept = [n for n in range(RECENT_IN_ALL + 1) if recent.find(f"grant:{n}", "rain", 1_000)]
    assert kept == list(range(1, RECENT_IN_ALL + 1))


def test_a_ranking_has_room_for_a_thousand_hits_among_what_is_shared() -> None:
    hits = tuple(RankedHit("cin_" + "a" * 22, "messages", "k" * 100) for _ in range(1_000))
    assert len(msgspec.msgpack.encode(("d" * 32, Ranking(hits)))) < RANKING_BYTES


def test_what_is_kept_again_is_the_newest() -> None:
    rankings, recent = Rankings(), RecentSearches[str]()
    for number in (*range(KEPT_PER_HOLDER), 0, KEPT_PER_HOLDER):
        rankings.keep("grant:a", str(number), "d", Ranking(HITS))
        recent.keep("grant:a", str(number), Kept("found", 7, 1_000))
    numbers = range(KEPT_PER_HOLDER + 1)
    assert [n for n in numbers if rankings.find("grant:a", str(n), "d") is None] == [1]
    assert [n for n in numbers if recent.find("grant:a", str(n), 1_000) is None] == [1]


def test_what_processes_share_holds_as_many_as_one_keeps() -> None:
    shared = shared_rankings(OwnSpace())
    here, there = Rankings(shared), Rankings(shared)
    for number in range(KEPT_IN_ALL + 1):
        here.keep(f"grant:{number}", "rain", "d", Ranking(HITS))
    assert there.find("grant:0", "rain", "d") is None
    assert there.find("grant:1", "rain", "d") == Ranking(HITS)


def test_a_holder_keeps_four_all_together_64_and_what_was_found_lately_32() -> None:
    assert (KEPT_PER_HOLDER, KEPT_IN_ALL, RECENT_IN_ALL) == (4, 64, 32)
