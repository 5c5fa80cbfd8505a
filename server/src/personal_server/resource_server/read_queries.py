"""The query that the parameters of a read spell.

Rule: syntax only; whether a name is declared or granted is decided in `enforcement`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from pdpp_kernel.errors import InvalidRequest
from personal_server.domain.local_days import UTC_NAMES
from personal_server.enforcement.asked_times import check_zone, times_in
from personal_server.enforcement.filter_texts import FilterText, filters_of
from personal_server.enforcement.queries import (
    ALWAYS,
    ChangesQuery,
    Expand,
    FieldSelection,
    FieldWindowQuery,
    PageSize,
    RecordQuery,
    RecordsQuery,
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


def records_query(request: Request, zone: str | None = None) -> RecordsQuery:
    """A record list, as the query string spells it."""
    sent = request.parameters
    texts = sent.texts
    return RecordsQuery(
        stream=request.path["stream"],
        selectors=selectors_of(sent),
        limit=sent.integers["limit"],
        size=size_of(sent),
        cursor=texts.get("cursor"),
        order=texts.get("order"),
        sort=texts.get("sort"),
        filters=filters_asked(sent),
        times=times_of(sent, zone),
        cut=_cut(sent),
        expand=_expand(sent),
        count=texts["count"] != "none",
        window=texts["window"] != "none",
        time_zone=zone,
    )


def changes_query(request: Request, zone: str | None = None) -> ChangesQuery:
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
        size=size_of(sent),
        cursor=sent.texts.get("cursor"),
        changes_since=sent.texts.get("changes_since"),
        filters=filters_asked(sent),
        cut=_cut(sent),
        time_zone=zone,
    )


def timeline_query(request: Request, zone: str | None = None) -> TimelineQuery:
    """A page of the time line.  Raises: InvalidRequest."""
    sent = request.parameters
    return TimelineQuery(
        selectors=selectors_of(sent),
        streams=sent.lists.get("streams", ()),
        times=times_of(sent, zone),
        descending=sent.texts["order"] == "desc",
        limit=sent.integers["limit"],
        size=size_of(sent),
        cursor=sent.texts.get("cursor"),
        time_zone=zone,
    )


def record_query(request: Request, zone: str | None = None) -> RecordQuery:
    """The query for one record by its key."""
    sent = request.parameters
    return RecordQuery(
        stream=request.path["stream"],
        key=request.path["record_key"],
        selectors=selectors_of(sent),
        cut=_cut(sent),
        expand=_expand(sent),
        time_zone=zone,
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


def times_of(parameters: Parameters, zone: str | None) -> Times:
    """The range of time that is asked for.  Raises: InvalidRequest."""
    texts = parameters.texts
    return times_in(texts, zone) if "since" in texts or "until" in texts else ALWAYS


def zone_of(request: Request, owner_zone: Callable[[], str]) -> str | None:
    """The zone that a request names.  Raises: InvalidRequest."""
    named = request.parameters.texts.get("time_zone")
    if named == "owner":
        zone = owner_zone()
        return zone.removeprefix("Etc/") if zone in UTC_NAMES else zone
    if named is not None:
        check_zone(named)
    return named


def size_of(parameters: Parameters) -> PageSize:
    """What the caller has room for."""
    integers = parameters.integers
    return PageSize(integers.get("page_chars"), integers.get("member_chars"))


def _cut(parameters: Parameters) -> FieldSelection:
    return FieldSelection(parameters.lists.get("fields", ()), parameters.texts.get("view"))


def _expand(parameters: Parameters) -> Expand:
    sent = parameters.keyed.get("expand_limit", ())
    limits = tuple((each.path[0], int(each.value)) for each in sent)
    return Expand(parameters.lists.get("expand", ()), limits)


def filters_asked(parameters: Parameters) -> tuple[FilterText, ...]:
    """The conditions as written."""
    return filters_of((each.path, each.value) for each in parameters.keyed.get("filter", ()))


def snapshot_of(request: Request) -> ReadSnapshot:
    """The one state that a read is answered from; the frame opened it."""
    return cast("ReadSnapshot", request.snapshot)
