"""`/v1/streams/{stream}/aggregate`.

Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from typing import ClassVar

from personal_server.enforcement.queries import AggregateQuery
from personal_server.reading.aggregates import ShownAggregation, read_aggregate
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.envelopes import Meta, SelfLink
from personal_server.resource_server.read_queries import (
    filters_asked,
    selectors_of,
    snapshot_of,
    zone_of,
)
from personal_server.resource_server.reads import object_reply
from personal_server.web.replies import Reply
from personal_server.web.requests import Request


class SingleAggregation(ShownAggregation, kw_only=True):
    """One aggregate."""

    component: ClassVar = "Aggregation"
    example: ClassVar = {
        "object": "aggregation",
        "stream": "entries",
        "metric": "sum",
        "field": "word_count",
        "group_by": None,
        "group_by_time": "created_at",
        "granularity": "month",
        "time_zone": "Europe/Rome",
        "approximate": False,
        "filtered_record_count": 45,
        "group_count": 2,
        "groups": [
            {
                "key": "2026-03-01",
                "start": "2026-03-01T00:00:00+01:00",
                "count": 45,
                "value": 1_200,
            }
        ],
        "limit": 1,
        "other_count": 0,
        "other_value": 0,
        "links": {"self": "/v1/streams/entries/aggregate?metric=sum&field=word_count"},
        "meta": {"count": {"kind": "none"}, "warnings": ()},
    }

    links: SelfLink
    meta: Meta


class AggregateRoute:
    """`GET /v1/streams/{stream}/aggregate`."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def read(self, request: Request) -> Reply:
        """Answer one aggregate: what may be read, computed, and logged."""
        query = aggregate_query(request, zone_of(request, self._ports.time_zone))
        answer = read_aggregate(self._ports, snapshot_of(request), request.authority, query)
        return object_reply(SingleAggregation, request, answer)


def aggregate_query(request: Request, zone: str | None = None) -> AggregateQuery:
    """The aggregate query that these parameters ask for."""
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
        time_zone=zone,
        bin=texts.get("bin"),
        text=texts.get("q"),
        across=texts.get("across"),
        sort=texts.get("sort"),
        limit=sent.integers.get("limit"),
        filters=filters_asked(sent),
    )
