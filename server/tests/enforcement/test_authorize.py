"""A request is narrowed to what the authority allows, and becomes a plan."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import GroupOrder, HitOrder, Order
from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.values import ValueKind
from personal_server.domain.authority import ReadableSource, TimeConstraint, TokenKind
from personal_server.enforcement.authorize import (
    authorize_aggregate,
    authorize_blob,
    authorize_changes,
    authorize_field_window,
    authorize_record,
    authorize_records,
    authorize_schema,
    authorize_search,
    authorize_search_in_time,
    authorize_stream,
    authorize_timeline,
)
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import (
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    Expand,
    FieldSelection,
    FieldWindowQuery,
    RecordQuery,
    RecordsQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    Selectors,
    StreamQuery,
    TimelineQuery,
    Times,
)
from personal_server.enforcement.scopes import scopes_of
from personal_server.enforcement.semantic_queries import AskedMeaning
from server.tests.enforcement.mailbox import authority, mails, notes

INBOX, LARGE = FilterText("folder", None, "in"), FilterText("size", "gte", "5")
BOTH = (mails(), mails("id", "subject", "sent_at", connection_id="cin_b"))
WINDOW = TimeConstraint("sent_at", 10, None, "since-text")
MEANING = AskedMeaning(b"vector", "model", SearchMode.MEANING)
HYBRID = AskedMeaning(b"vector", "model", SearchMode.HYBRID)


def records(*sources: ReadableSource, **asked: Any) -> Any:
    return authorize_records(authority(*sources), RecordsQuery("mails", **asked))


def search(*sources: ReadableSource, meant: AskedMeaning | None = None, **asked: Any) -> Any:
    given: dict[str, Any] = {"text": "rain", **asked}
    query = SearchQuery(**given)
    return authorize_search(authority(*sources), query, meant)


def code_of(call: Any, *arguments: Any) -> str:
    with pytest.raises(PersonalServerError) as caught:
        call(*arguments)
    return caught.value.code


def test_a_list_has_a_scope_for_each_source_and_shows_what_each_grants() -> None:
    read = records(*BOTH, limit=7)
    assert read.sources == BOTH
    assert read.plan.scopes == scopes_of(BOTH)
    assert (read.plan.limit, read.plan.order) == (7, Order("sent_at", ValueKind.INSTANT, True))
    assert read.plan.span_field == "sent_at"
    assert read.shown == {"cin_a": BOTH[0].fields, "cin_b": BOTH[1].fields}
    assert (read.warnings, read.expansions) == ((), ())


def test_a_span_is_of_a_time_that_every_source_grants() -> None:
    assert records(mails(), mails("id", connection_id="cin_b")).plan.span_field is None


def test_a_list_has_conditions_on_fields_and_on_times() -> None:
    plan = records(filters=(INBOX,), times=Times(5)).plan
    assert [(each.field, each.operator.value) for each in plan.conditions] == [
        ("folder", "eq"),
        ("sent_at", "gte"),
    ]


def test_a_list_shows_the_fields_or_the_view_that_was_asked_for_and_not_both() -> None:
    assert records(cut=FieldSelection(("size",))).shown == {"cin_a": ("id", "size")}
    assert records(cut=FieldSelection(view="bodies")).shown == {"cin_a": ("id", "body")}
    both = FieldSelection(("size",), "bodies")
    assert code_of(lambda: records(cut=both)) == "invalid_request"
    record = RecordQuery("mails", "m1", cut=both)
    assert code_of(authorize_record, authority(), record) == "invalid_request"
    changes = ChangesQuery("mails", cut=both)
    assert code_of(authorize_changes, authority(), changes) == "invalid_request"


def test_a_list_follows_relations_and_says_who_cannot() -> None:
    sources = (mails(), mails(connection_id="cin_b"), notes())
    read = records(*sources, expand=Expand(("notes",)))
    assert [each.name for each in read.expansions] == ["notes"]
    assert [warning.connection_id for warning in read.warnings] == ["cin_b"]


def test_reaching_out_of_the_window_is_told() -> None:
    read = records(mails(time_constraint=WINDOW), times=Times(5))
    assert [warning.code for warning in read.warnings] == ["outside_time_constraint"]


def test_a_cursor_is_bound_to_what_was_asked_however_it_was_written() -> None:
    asked = [
        records(filters=(INBOX, LARGE)),
        records(filters=(LARGE, INBOX), limit=3),
        records(filters=(INBOX,)),
        records(),
        records(sort="size"),
        records(selectors=Selectors("cin_a")),
        records(selectors=Selectors(connector_id="mail")),
    ]
    distinct = {read.asked for read in asked}
    assert asked[0].asked == asked[1].asked
    assert len(distinct) == 6


def timeline(*sources: ReadableSource, **asked: Any) -> Any:
    return authorize_timeline(authority(*sources), TimelineQuery(**asked))


def test_a_time_line_is_of_the_sources_that_have_a_time() -> None:
    read = timeline(*BOTH, notes(), limit=7, descending=False, times=Times(5))
    assert read.sources == BOTH
    assert [each.order for each in read.plan.scopes] == [
        Order("sent_at", ValueKind.INSTANT, False)
    ] * 2
    assert [len(each.conditions) for each in read.plan.scopes] == [1, 1]
    assert (read.plan.limit, read.plan.descending) == (7, False)
    (warning,) = read.warnings
    assert warning.detail == {"streams": ["notes"], "reason": "no_event_time"}


def test_a_time_line_of_named_streams_says_of_each_that_has_none() -> None:
    read = timeline(*BOTH, notes(), streams=("notes", "mails"))
    assert [warning.connection_id for warning in read.warnings] == ["cin_a"]
    only = timeline(*BOTH, notes(), streams=("mails",))
    assert (only.sources, only.warnings) == (BOTH, ())
    assert code_of(lambda: timeline(streams=("nothing",))) == "grant_stream_not_allowed"


def test_a_cursor_of_a_time_line_is_bound_to_streams_times_and_direction() -> None:
    asked = [
        timeline(mails(), notes(), streams=("mails", "notes")),
        timeline(mails(), notes(), streams=("notes", "mails"), limit=3),
        timeline(mails(), notes(), streams=("mails",)),
        timeline(mails(), notes(), times=Times(5)),
        timeline(mails(), notes(), descending=False),
        timeline(mails(), notes(), selectors=Selectors("cin_a")),
        timeline(mails(), notes()),
    ]
    assert asked[0].asked == asked[1].asked
    assert len({read.asked for read in asked}) == 6


def test_a_time_line_reaching_out_of_a_window_is_told() -> None:
    read = timeline(mails(time_constraint=WINDOW), times=Times(5))
    assert [warning.code for warning in read.warnings] == ["outside_time_constraint"]


def changes(*sources: ReadableSource, **asked: Any) -> Any:
    return authorize_changes(authority(*sources), ChangesQuery("mails", **asked))


def test_a_feed_covers_no_change_yet() -> None:
    read = changes(*BOTH, limit=7, cut=FieldSelection(("subject",)))
    assert (read.plan.scopes, read.plan.limit, read.plan.horizon) == (scopes_of(BOTH), 7, 0)
    assert read.shown == {"cin_a": ("id", "subject"), "cin_b": ("id", "subject")}


def test_a_feed_is_bound_to_its_conditions() -> None:
    asked = [changes(filters=(INBOX, LARGE)), changes(filters=(LARGE, INBOX)), changes()]
    assert asked[0].asked == asked[1].asked != asked[2].asked
    assert len(asked[0].plan.conditions) == 2
    assert changes(selectors=Selectors("cin_a")).asked != changes().asked


def test_persons_have_no_feed() -> None:
    assert code_of(lambda: changes(mails(), mails(connection_id="cin_b", made_of=()))) == (
        "invalid_request"
    )


def test_one_record_is_looked_for_through_every_source() -> None:
    query = RecordQuery("mails", "m1", cut=FieldSelection(("subject",)), expand=Expand(("parent",)))
    read = authorize_record(authority(mails()), query)
    assert (read.plan.scopes, read.plan.key) == (scopes_of((mails(),)), "m1")
    assert read.shown == {"cin_a": ("id", "subject")}
    assert [each.name for each in read.expansions] == ["parent"]


def test_a_window_is_of_one_granted_field() -> None:
    query = FieldWindowQuery("mails", "m1", "body", text="rain", before_chars=2)
    plan = authorize_field_window(authority(), query).plan
    assert (plan.key, plan.field, plan.match) == ("m1", "body", "rain")
    assert (plan.limit_chars, plan.offset_chars, plan.before_chars) == (6, 0, 2)
    stretch = FieldWindowQuery("mails", "m1", "body", offset_chars=9, limit_chars=4)
    found = authorize_field_window(authority(), stretch).plan
    assert (found.limit_chars, found.offset_chars, found.match) == (4, 9, None)


@pytest.mark.parametrize(
    ("field", "code"),
    [("a.b", "invalid_field_path"), ("body", "field_not_granted"), ("no", "unknown_field")],
)
def test_a_window_of_another_field_is_refused(field: str, code: str) -> None:
    query = FieldWindowQuery("mails", "m1", field)
    assert code_of(authorize_field_window, authority(mails("id")), query) == code


def aggregate(*sources: ReadableSource, **asked: Any) -> Any:
    given: dict[str, Any] = {"stream": "mails", "metric": "count", **asked}
    query = AggregateQuery(**given)
    return authorize_aggregate(authority(*sources), query)


def test_an_aggregate_has_its_figure_words_and_order() -> None:
    read = aggregate(
        metric="sum", field="size", group_by="folder", sort="-value", text="rain", filters=(INBOX,)
    )
    plan = read.plan
    assert (plan.metric, plan.field, plan.field_kind) == (Metric.SUM, "size", ValueKind.INTEGER)
    assert [each.field for each in plan.groupings] == ["folder"]
    assert (plan.sort, plan.limit) == (GroupOrder.VALUE_DOWN, 10)
    assert plan.words is not None
    assert len(plan.conditions) == 1
    assert aggregate().plan.sort is None


def test_an_aggregate_of_several_connections_of_a_package_may_go_across_them() -> None:
    several = authority(mails(), mails(connection_id="cin_b"), kind=TokenKind.PACKAGE)
    with pytest.raises(PersonalServerError) as caught:
        authorize_aggregate(several, AggregateQuery("mails", "count"))
    assert caught.value.code == "ambiguous_connection"
    assert caught.value.members["recovery"] == {"across": "connections"}


def test_an_aggregate_across_connections_leaves_out_who_cannot_take_part() -> None:
    hidden = mails("id", connection_id="cin_b")
    read = aggregate(mails(), hidden, metric="sum", field="size", across="connections")
    assert [source.connection_id for source in read.sources] == ["cin_a"]
    assert [warning.connection_id for warning in read.warnings] == ["cin_b"]
    query: dict[str, Any] = {"metric": "sum", "field": "size"}
    assert code_of(lambda: aggregate(mails(), hidden, **query)) == "field_not_granted"


def test_an_aggregate_out_of_its_window_says_so_and_its_parameters_go_together() -> None:
    read = aggregate(
        mails(time_constraint=WINDOW), filters=(FilterText("sent_at", "lt", "2026-01-01"),)
    )
    assert [warning.code for warning in read.warnings] == ["outside_time_constraint"]
    assert code_of(lambda: aggregate(sort="key")) == "invalid_request"


def test_a_search_by_words_is_of_the_sources_with_searched_fields() -> None:
    read = search(mails(), mails("id", connection_id="cin_b"), notes())
    assert [(s.connection_id, s.stream) for s in read.sources] == [
        ("cin_a", "mails"),
        ("cin_a", "notes"),
    ]
    assert len(read.plan.scopes) == 2
    assert read.plan.meaning is None
    assert (read.warnings, set(read.plan.conditions)) == (
        (),
        {("cin_a", "mails"), ("cin_a", "notes")},
    )


def test_a_search_by_meaning_asks_for_no_words() -> None:
    read = search(mails(), notes(), meant=MEANING)
    assert read.plan.scopes == ()
    assert [s.stream for s in read.sources] == ["mails"]
    meant = read.plan.meaning
    assert (meant.vector, meant.model, len(meant.scopes)) == (b"vector", "model", 1)


def test_a_search_by_both_has_two_plans_over_sources_that_stand_in_order() -> None:
    read = search(mails(), notes(), meant=HYBRID, text="rain folder:in")
    assert (len(read.plan.scopes), len(read.plan.meaning.scopes)) == (2, 1)
    assert [s.stream for s in read.sources] == ["mails", "notes"]
    (named,) = read.plan.meaning.conditions["cin_a", "mails"]
    assert (named.field, named.value) == ("folder", "in")


def test_a_cursor_of_a_search_is_bound_to_all_that_was_asked() -> None:
    one: dict[str, Any] = {"streams": ("mails",), "filters": (INBOX,)}
    asked = [
        search(),
        search(text="snow"),
        search(streams=("mails",)),
        search(**one),
        search(times=Times(5)),
        search(times=Times(6)),
        search(mode=SearchMode.WORDS),
        search(mode=SearchMode.HYBRID),
        search(exact=True),
        search(time_zone="Europe/Berlin"),
        search(time_zone="Asia/Tokyo"),
        search(selectors=Selectors("cin_a")),
    ]
    assert len({read.asked for read in asked}) == len(asked)
    assert search(limit=3).asked == search().asked
    assert "exact" in search(exact=True).asked
    assert "words" not in search(mode=SearchMode.WORDS).asked


def test_a_search_out_of_its_window_says_so() -> None:
    read = search(mails(time_constraint=WINDOW), times=Times(5))
    assert [warning.code for warning in read.warnings] == ["outside_time_constraint"]


@pytest.mark.parametrize(("order", "descending"), [("newest", True), ("oldest", False)])
def test_a_search_in_the_order_of_time_is_a_time_line_of_words(
    order: str, descending: bool
) -> None:
    query = SearchQuery("rain", sort=HitOrder(order), limit=7, times=Times(5))
    read = authorize_search_in_time(authority(mails(), notes()), query)
    (timed,) = read.plan.scopes
    assert timed.order == Order("sent_at", ValueKind.INSTANT, descending)
    assert (read.plan.descending, read.plan.limit) == (descending, 7)
    assert read.plan.words is not None
    assert len(timed.conditions) == 1
    assert query.sort in read.asked
    assert [warning.code for warning in read.warnings] == ["source_skipped_not_applicable"]


@pytest.mark.parametrize("mode", [SearchMode.MEANING, SearchMode.HYBRID])
def test_nearness_has_no_order_of_time(mode: SearchMode) -> None:
    query = SearchQuery("rain", sort=HitOrder.NEWEST, mode=mode)
    assert code_of(authorize_search_in_time, authority(), query) == "invalid_request"


def test_a_schema_shows_all_streams_or_one() -> None:
    held = authority(*BOTH, notes())
    assert authorize_schema(held, SchemaQuery()) == (*BOTH, notes())
    assert authorize_schema(held, SchemaQuery(stream="notes")) == (notes(),)
    assert authorize_schema(held, SchemaQuery(full_detail=True)) == (*BOTH, notes())
    assert authorize_schema(held, SchemaQuery(full_detail=True, stream="notes")) == (notes(),)
    full = SchemaQuery(full_detail=True, stream="mails")
    assert code_of(authorize_schema, held, full) == "ambiguous_schema_detail"


def test_one_stream_is_told_by_its_sources() -> None:
    assert authorize_stream(authority(*BOTH, notes()), StreamQuery("mails")) == BOTH


def test_a_blob_is_handed_out_where_its_field_is_granted() -> None:
    read = authorize_blob(authority(mails(), mails("id", connection_id="cin_b")), BlobQuery("blob"))
    assert [source.connection_id for source in read.sources] == ["cin_a"]
    assert (read.plan.scopes, read.plan.blob_id) == (scopes_of((mails(),)), "blob")
