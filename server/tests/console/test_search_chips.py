"""Chips count all hits of a search, or are of the shown page."""

from __future__ import annotations

import pytest

from personal_server.console.search_chips import found_places
from personal_server.reading.owner import OwnerReads
from personal_server.storage.known_declarations import KnownDeclarations
from server.tests.console.household import HOME, WORK, Household

AT_HOME, AT_WORK = (HOME, "messages"), (WORK, "messages")


@pytest.mark.parametrize(
    ("words", "is_least", "is_all", "at_home"),
    [
        ("secret", False, True, 2),  # those that are shown are all
        ("secret", True, True, 40),  # a search that stopped early; an aggregate finds all
        ("secret stays zeppelin", True, False, 2),  # what only means something like it
    ],
)
def test_a_search_that_may_have_more_hits_does_not_count_its_page_as_all(
    house: Household, words: str, at_home: int, *, is_least: bool, is_all: bool
) -> None:
    found = found_places(
        OwnerReads(house.reads, KnownDeclarations()),
        {"q": words},
        [AT_HOME, AT_HOME, AT_WORK],
        frozenset((AT_HOME, AT_WORK)),
        3,
        is_least=is_least,
    )
    assert found.is_all is is_all
    assert found.counts[AT_HOME] == at_home
