"""The query that the parameters of a read spell.

Rule: syntax only; whether a name is declared or granted is decided in `enforcement`.
"""

from __future__ import annotations

from typing import cast

from pdpp_kernel.criteria import HitOrder
from pdpp_kernel.errors import InvalidRequest
from pdpp_kernel.values import instant_or_day_ns
from personal_server.enforcement.filter_texts import FilterText, filters_of
from personal_server.enforcement.queries import (
    AggregateQuery,
    ChangesQuery,
    Expand,
    FieldSelection,
    FieldWindowQuery,
    PageSize,
    RecordQuery,
    RecordsQuery,
    SearchMode,
    SearchQuery,
    Selectors,
    TimelineQuery,
    Times,
)
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.web.parameters import Parameters
from personal_server.web.requests import Request

_NOT_WITH_CHANGES = (
    "since",
    "until",
    "sort",
    "order",
    "count",
    "window",
    "expand",
    "expand_limit",
)


def selectors_of(parameters: Parameters) -> Selectors:
    """Which connections are asked."""
    texts = parameters.texts
    return Selectors(texts.get("connection_id"), texts.get("connector_id"))


def records_query(request: Request) -> RecordsQuery:
    """A record list, as the query string spells it."""
    sent = request.parameters
    texts = sent.texts
    return RecordsQuery(
        stream=request.path["stream"],
        selectors=selectors_of(sent),
        limit=sent.integers["limit"],
        size=_size(sent),
        cursor=texts.get("cursor"),
        order=texts.get("order"),
        sort=texts.get("sort"),
        filters=_filters(sent),
        times=_times(sent),
        cut=_cut(sent),
        expand=_expand(sent),
        count=texts["count"] != "none",
        window=texts["window"] != "none",
    )


def changes_query(request: Request) -> ChangesQuery:
    """A change feed, which has its own order.  Raises: InvalidRequest."""
    sent = request.parameters
    for name in _NOT_WITH_CHANGES:
        # a default that is sent says no more than one that is not
        if name in sent.sent and sent.texts.get(name) != "none":
            raise InvalidRequest(f"'{name}' cannot be combined with 'changes_since'.", param=name)
    return ChangesQuery(
        stream=request.path["stream"],
        selectors=selectors_of(sent),
        limit=sent.integers["limit"],
        size=_size(sent),
        cursor=sent.texts.get("cursor"),
        changes_since=sent.texts.get("changes_since"),
        filters=_filters(sent),
        cut=_cut(sent),
    )


def timeline_query(request: Request) -> TimelineQuery:
    """A page of the time line.  Raises: InvalidRequest."""
    sent = request.parameters
    return TimelineQuery(
        selectors=selectors_of(sent),
        streams=sent.lists.get("streams", ()),
        times=_times(sent),
        descending=sent.texts["order"] == "desc",
        limit=sent.integers["limit"],
        size=_size(sent),
        cursor=sent.texts.get("cursor"),
    )


def record_query(request: Request) -> RecordQuery:
    """One record."""
    sent = request.parameters
    return RecordQuery(
        stream=request.path["stream"],
        key=request.path["record_key"],
        selectors=selectors_of(sent),
        cut=_cut(sent),
        expand=_expand(sent),
    )


def field_window_query(request: Request) -> FieldWindowQuery:
    """A stretch of one field."""
    sent = request.parameters
    texts, integers = sent.texts, sent.integers
    return FieldWindowQuery(
        stream=request.path["stream"],
        key=request.path["record_key"],
        field=texts.get("field") or "",
        selectors=selectors_of(sent),
        offset_chars=integers.get("offset_chars"),
        limit_chars=integers.get("limit_chars"),
        text=texts.get("q"),
        before_chars=integers.get("before_chars"),
        after_chars=integers.get("after_chars"),
    )


def aggregate_query(request: Request) -> AggregateQuery:
    """An aggregate."""
    sent = request.parameters
    texts = sent.texts
    return AggregateQuery(
        stream=request.path["stream"],
        metric=texts["metric"],
        selectors=selectors_of(sent),
        field=texts.get("field"),
        group_by=texts.get("group_by"),
        then_by=texts.get("then_by"),
        group_by_time=texts.get("group_by_time"),
        granularity=texts.get("granularity"),
        time_zone=texts.get("time_zone"),
        bin=texts.get("bin"),
        text=texts.get("q"),
        across=texts.get("across"),
        sort=texts.get("sort"),
        limit=sent.integers.get("limit"),
        filters=_filters(sent),
    )


def search_query(request: Request) -> SearchQuery:
    """A search; one that is exact goes by words, unless told."""
    sent = request.parameters
    exact = sent.texts["exact"] == "true"
    mode = sent.texts.get("mode", SearchMode.WORDS if exact else SearchMode.AUTO)
    return SearchQuery(
        text=sent.texts["q"],
        selectors=selectors_of(sent),
        streams=sent.lists.get("streams", ()),
        times=_times(sent),
        limit=sent.integers["limit"],
        size=_size(sent),
        cursor=sent.texts.get("cursor"),
        filters=_filters(sent),
        mode=SearchMode(mode),
        sort=HitOrder(sent.texts["sort"]),
        exact=exact,
    )


def _times(parameters: Parameters) -> Times:
    return Times(_instant(parameters, "since"), _instant(parameters, "until"))


def _instant(parameters: Parameters, name: str) -> int | None:
    text = parameters.texts.get(name)
    if text is None:
        return None
    at_ns = instant_or_day_ns(text)
    if at_ns is None:
        raise InvalidRequest(
            f"'{name}' must be an instant with its offset, or a day: {name}=2026-01-31T09:00:00Z.",
            param=name,
        )
    return at_ns


def _size(parameters: Parameters) -> PageSize:
    integers = parameters.integers
    return PageSize(integers.get("page_chars"), integers.get("member_chars"))


def _cut(parameters: Parameters) -> FieldSelection:
    return FieldSelection(parameters.lists.get("fields", ()), parameters.texts.get("view"))


def _expand(parameters: Parameters) -> Expand:
    sent = parameters.keyed.get("expand_limit", ())
    limits = tuple((each.path[0], int(each.value)) for each in sent)
    return Expand(parameters.lists.get("expand", ()), limits)


def _filters(parameters: Parameters) -> tuple[FilterText, ...]:
    return filters_of((each.path, each.value) for each in parameters.keyed.get("filter", ()))


def snapshot_of(request: Request) -> ReadSnapshot:
    """The one state that a read is answered from; the frame opened it."""
    return cast("ReadSnapshot", request.snapshot)
