"""What a query is where its caller said nothing, and that each has a text of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from pdpp_kernel.criteria import Condition, Order
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import DAY_NANOSECONDS as DAY
from pdpp_kernel.vectors import Passage
from personal_server.enforcement import queries
from personal_server.enforcement.queries import (
    ALWAYS,
    MAX_GROUPS,
    MAX_LIMIT,
    MAX_WINDOW_CHARS,
    AggregateQuery,
    ChangesQuery,
    RecordsQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    TimelineQuery,
    Times,
)


def test_a_page_holds_25_and_at_most_100() -> None:
    pages = (RecordsQuery("mails"), TimelineQuery(), ChangesQuery("mails"), SearchQuery("rain"))
    assert [each.limit for each in pages] == [25] * 4
    assert (MAX_LIMIT, MAX_GROUPS, MAX_WINDOW_CHARS) == (100, 100, 16_384)


def test_nothing_is_counted_windowed_exact_or_shown_whole_unasked() -> None:
    records, schema, search = RecordsQuery("mails"), SchemaQuery(), SearchQuery("rain")
    asked = (records.count, records.window, schema.compact, schema.full_detail, search.exact)
    assert asked == (False,) * 5


def test_a_time_line_shows_the_newest_first() -> None:
    assert TimelineQuery().descending


def test_pages_groups_and_windows_have_their_sizes() -> None:
    assert (queries.DEFAULT_LIMIT, queries.MAX_LIMIT) == (25, 100)
    assert (queries.DEFAULT_GROUPS, queries.MAX_GROUPS) == (10, 100)
    windows = (queries.DEFAULT_WINDOW_CHARS, queries.MAX_WINDOW_CHARS)
    assert windows == (4_096, 16_384)
    assert (queries.MAX_MATCH_CHARS, queries.MAX_CONTEXT_CHARS) == (256, 8_192)


def test_without_bounds_all_times_are_meant() -> None:
    assert RecordsQuery("mails").times == ALWAYS == Times(None, None)


def test_the_server_settles_what_a_search_goes_by_and_how_many_groups_there_are() -> None:
    assert SearchQuery("rain").mode is SearchMode.AUTO
    assert AggregateQuery("mails", "count").limit is None


@pytest.mark.parametrize(
    ("times", "days"),
    [
        (ALWAYS, (None, None)),
        (Times(since_ns=2 * DAY, until_ns=4 * DAY), (2, 4)),
        (Times(since_ns=2 * DAY + 1, until_ns=4 * DAY + 1), (2, 5)),
        (Times(since_ns=-1, until_ns=-1), (-1, 0)),
        (Times(since_ns=2 * DAY, until_ns=4 * DAY, since_day=7, until_day=9), (7, 9)),
    ],
)
def test_the_days_of_a_range_are_all_that_it_touches(
    times: Times, days: tuple[int | None, int | None]
) -> None:
    assert times.days == days


# Cursors are bound to the `repr` of what was asked (`request_digest`).
ASKED = (AggregateQuery, ChangesQuery, RecordsQuery, SearchQuery, TimelineQuery, Condition, Order)


class Holder(msgspec.Struct):
    """Holds what has no text of its own."""

    kept: tuple[Passage, ...] | None


def structs_in(hint: Any, met: frozenset[object] = frozenset()) -> Iterator[type[msgspec.Struct]]:
    """The structs that a type is made of, itself among them; a condition may hold conditions."""
    if hint in met:
        return
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
        for member in get_type_hints(hint).values():
            yield from structs_in(member, met | {hint})
    for part in get_args(hint):
        yield from structs_in(part, met)


@pytest.mark.parametrize("asked", ASKED)
def test_no_part_of_a_question_looks_like_another(asked: type[msgspec.Struct]) -> None:
    assert not [kind for kind in structs_in(asked) if issubclass(kind, Unprinted)]


def test_a_part_without_a_text_of_its_own_would_be_found() -> None:
    assert [kind for kind in structs_in(Holder) if issubclass(kind, Unprinted)] == [Passage]
