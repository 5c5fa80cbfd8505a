"""Which sources a search is of, and what is looked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pdpp_kernel.criteria import HitOrder
from pdpp_kernel.errors import PersonalServerError
from personal_server.domain.authority import ReadableSource, TokenKind
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import SearchQuery, Times
from personal_server.enforcement.search import (
    checked_words,
    named_sources,
    search_parts,
    searchable_fields,
)
from server.tests.enforcement.mailbox import authority, mails, notes


def found(*sources: ReadableSource, **asked: Any) -> tuple[list[str], list[object]]:
    given: dict[str, Any] = {"text": "rain", **asked}
    parts, warnings = search_parts(authority(*sources), sources, SearchQuery(**given))
    return [source.connection_id for source, _ in parts], [each.detail for each in warnings]


def refusal(call: Callable[[], object]) -> PersonalServerError:
    with pytest.raises(PersonalServerError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    "text", ["", "  ", "?!", "x" * 1_025, " ".join(f"w{n}" for n in range(33))]
)
def test_a_query_has_a_word_and_not_too_many(text: str) -> None:
    error = refusal(lambda: checked_words(text))
    assert (error.code, error.param) == ("invalid_request", "q")


def test_a_query_of_1024_characters_and_32_terms_is_taken() -> None:
    assert checked_words("x" * 1_024).terms
    assert len(checked_words(" ".join(f"w{n}" for n in range(32))).terms) == 32


def test_alternatives_and_what_is_excluded_are_terms_as_well() -> None:
    many = " ".join(f"w{n}" for n in range(30))
    assert checked_words(f"{many} a OR b")
    assert refusal(lambda: checked_words(f"{many} a OR b -c")).param == "q"


def test_sources_without_searched_fields_take_no_part_and_are_named_with_their_stream() -> None:
    sources = (mails(), mails("id", connection_id="cin_b"))
    assert found(*sources) == (["cin_a"], [])
    left_out = {"stream": "mails", "reason": "mode_not_available"}
    assert found(*sources, streams=("mails",)) == (["cin_a"], [left_out])


def test_a_named_stream_that_no_selected_source_has_is_said() -> None:
    both = authority(mails(), notes(connection_id="cin_b"))
    query = SearchQuery("rain", streams=("notes",))
    parts, (warning,) = search_parts(both, (mails(),), query)
    assert (parts, warning.code) == ((), "source_skipped_not_applicable")
    assert warning.connection_id == "cin_a"
    assert msgspec.json.encode(warning)
    assert warning.detail == {"stream": "notes", "reason": "stream_not_selected"}
    selected = (mails(), mails(connection_id="cin_b"))
    _, (of_several,) = search_parts(authority(*selected, notes()), selected, query)
    assert (of_several.connection_id, of_several.detail) == (None, warning.detail)


def test_named_streams_alone_are_searched() -> None:
    sources = (mails(), notes())
    assert named_sources(authority(*sources), sources, ("notes",)) == (notes(),)
    assert named_sources(authority(*sources), sources, ()) == sources


def test_a_stream_that_cannot_be_read_is_refused_as_the_token_deserves() -> None:
    client, owner = authority(mails()), authority(mails(), kind=TokenKind.OWNER)
    hidden = refusal(lambda: named_sources(client, (mails(),), ("notes",)))
    unknown = refusal(lambda: named_sources(owner, (mails(),), ("nothing",)))
    assert (hidden.code, hidden.param) == ("grant_stream_not_allowed", "streams")
    assert (unknown.code, unknown.param) == ("not_found", "streams")


@pytest.mark.parametrize("streams", [(), ("mails", "notes")])
def test_filters_are_of_one_stream(streams: tuple[str, ...]) -> None:
    folder = (FilterText("folder", None, "in"),)
    error = refusal(lambda: found(mails(), notes(), streams=streams, filters=folder))
    assert (error.code, error.param) == ("invalid_request", "filter")


def test_a_source_that_cannot_be_filtered_is_left_out_until_none_can() -> None:
    folder = (FilterText("folder", None, "in"),)
    narrow = mails("id", "subject", connection_id="cin_b")
    taking_part, details = found(mails(), narrow, streams=("mails",), filters=folder)
    assert (taking_part, details) == (
        ["cin_a"],
        [{"stream": "mails", "reason": "field_not_granted"}],
    )
    error = refusal(lambda: found(narrow, streams=("mails",), filters=folder))
    assert error.code == "field_not_granted"
    unsearched = mails("id", connection_id="cin_b")
    error = refusal(lambda: found(unsearched, streams=("mails",), filters=folder))
    assert error.code == "field_not_granted"


def test_a_range_or_order_of_time_leaves_out_what_has_none() -> None:
    sources = (mails(), mails("id", "subject", connection_id="cin_b"))
    left_out = [{"streams": ["mails"], "reason": "no_event_time", "partly": ["mails"]}]
    assert found(*sources, times=Times(5)) == (["cin_a"], left_out)
    assert found(*sources, sort=HitOrder.NEWEST) == (["cin_a"], left_out)


def test_a_range_of_time_is_a_condition_of_each_source() -> None:
    query = SearchQuery("rain", times=Times(5))
    ((_, conditions),), _ = search_parts(authority(mails()), (mails(),), query)
    assert [(each.field, each.value) for each in conditions] == [("sent_at", 5)]
    assert searchable_fields(mails("id", "body", "sender")) == ("body", "sender")


def test_who_takes_part_is_decided_by_the_fields_that_are_searched() -> None:
    parts, _ = search_parts(
        authority(mails()), (mails(),), SearchQuery("rain"), lambda source: source.fields[:0]
    )
    assert parts == ()
