"""Rankings kept in memory: one for each request, few for each holder."""

from __future__ import annotations

from personal_server.reading.rankings import (
    KEPT_IN_ALL,
    KEPT_PER_HOLDER,
    RECENT_NS,
    Kept,
    RankedHit,
    Ranking,
    Rankings,
    RecentSearches,
    ranking_digest,
)

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


def test_a_digest_tells_records_and_their_order() -> None:
    assert ranking_digest(HITS) != ranking_digest(HITS[::-1])
    assert ranking_digest(HITS) != ranking_digest(HITS[:1])


def test_what_was_found_is_known_for_a_minute_by_its_holder() -> None:
    recent = RecentSearches[str]()
    recent.keep("grant:a", "rain", Kept("found", 7, 1_000))
    assert recent.find("grant:a", "rain", 1_000 + RECENT_NS) == Kept("found", 7, 1_000)
    assert recent.find("grant:a", "rain", 1_001 + RECENT_NS) is None
    assert recent.find("grant:a", "rain", 999) is None
    assert recent.find("grant:b", "rain", 1_000) is None
    for number in range(KEPT_PER_HOLDER):
        recent.keep("grant:a", str(number), Kept("other", 7, 1_000))
    assert recent.find("grant:a", "rain", 1_000) is None
