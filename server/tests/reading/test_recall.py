"""What a search says of how much was searched, and where its hits came from."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from personal_server.domain.envelope import Counted
from personal_server.enforcement.authorize import authorize_search
from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.reading.recall import SearchCoverage, source_mix
from server.tests.resource_server.journal import (
    BANK,
    DIARY,
    LETTERS,
    client,
    grant,
    package,
    stream_grant,
)

WHOLE = SearchCoverage(7, 0, 2)
WORDS = ("complete", "ranking_scope", "truncated", "pending_index_count")


def recall(found: SearchCoverage) -> Any:
    return found.meta()["recall"]


def test_what_was_searched_whole_is_counted() -> None:
    assert WHOLE.meta()["count_accuracy"] == "exact"
    assert WHOLE.count() == Counted("exact", 7)
    assert recall(WHOLE) == {
        "complete": True,
        "ranking_scope": "all_matches",
        "truncated": False,
        "ranked_candidate_count": 7,
        "candidate_window_limit": 2_000,
        "sources_searched_count": 2,
        "truncated_source_count": 0,
        "pending_index_count": 0,
    }
    assert WHOLE.warnings() == ()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"truncated_sources": 1}, (False, "candidate_window", True, 0)),
        ({"lost": ((LETTERS, "entries"),)}, (False, "all_matches", False, 0)),
        ({"pending": 3}, (False, "all_matches", False, 3)),
        ({"mode": SearchMode.HYBRID}, (False, "nearest", False, 0)),
        ({"is_best_only": True}, (True, "all_matches", False, 0)),
    ],
)
def test_what_was_not_is_a_lower_bound(more: dict[str, Any], expected: tuple[object, ...]) -> None:
    found = replace(WHOLE, **more)
    assert tuple(recall(found)[name] for name in WORDS) == expected
    assert found.is_whole is expected[0]
    assert found.meta()["count_accuracy"] == "lower_bound"
    assert found.count() == Counted("estimated", 7)


def test_how_it_was_searched_is_said_where_that_was_not_by_words_alone() -> None:
    assert "mode" not in recall(WHOLE)
    meant = recall(SearchCoverage(7, 0, 2, mode=SearchMode.MEANING, unembedded=4))
    assert (meant["mode"], meant["unembedded_record_count"]) == ("meaning", 4)


def test_each_account_that_was_left_out_is_named_once() -> None:
    lost = ((LETTERS, "volumes"), (DIARY, "entries"), (LETTERS, "entries"))
    warned = SearchCoverage(0, 0, 2, lost).warnings()
    assert [(each.code, each.connection_id) for each in warned] == [
        ("source_unavailable", connection_id) for connection_id in sorted({LETTERS, DIARY})
    ]


def mix(authority: Any, *shown: int, lost: tuple[tuple[str, str], ...] = ()) -> Any:
    read = authorize_search(authority, SearchQuery("rain"))
    sources = [read.sources[number] for number in shown]
    return source_mix(read, sources, SearchCoverage(0, 0, 2, lost))


def test_of_one_account_nothing_is_said_and_of_two_how_many_hits_each_has() -> None:
    one = client(stream_grant())
    assert mix(one) == mix(one, 0) == mix(one, 0, 0) == {}
    rows = mix(one, 1, 0, 1)["source_mix"]
    assert [(row["connection_id"], row["count"]) for row in rows] == [(DIARY, 1), (LETTERS, 2)]
    assert {row["connector_key"] for row in rows} == {"journal"}


def test_a_package_says_which_of_its_grants_were_searched() -> None:
    banked = grant(stream_grant(instance_ids=(BANK,)), grant_id="grt_2", key="banking")
    both = package(grant(stream_grant()), banked)
    found = mix(both, 0)["package"]
    assert (found["member_count"], found["searched_count"], found["partial"]) == (2, 2, False)
    assert [row["count"] for row in found["source_mix"]] == [1]
    without = mix(both, 0, lost=((BANK, "entries"),))["package"]
    assert (without["member_count"], without["searched_count"], without["partial"]) == (2, 1, True)
    assert mix(both)["package"]["source_mix"] == []
