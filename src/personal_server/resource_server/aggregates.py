"""The aggregate route.  Source: RS contract 10."""

from __future__ import annotations

from personal_server.enforcement.queries import AggregateQuery
from personal_server.reading.aggregates import read_aggregate
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.read_parameters import (
    filters_of,
    selectors_of,
    timeout_seconds,
)
from personal_server.resource_server.records import object_reply
from personal_server.web.requests import Request
from personal_server.web.responses import Reply


class AggregateRoute:
    """`GET /v1/streams/{stream}/aggregate`."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def read(self, request: Request) -> Reply:
        """One aggregate."""
        sent = request.parameters
        query = AggregateQuery(
            stream=request.path["stream"],
            metric=sent.text("metric") or "",
            selectors=selectors_of(sent),
            field=sent.text("field"),
            group_by=sent.text("group_by"),
            group_by_time=sent.text("group_by_time"),
            granularity=sent.text("granularity"),
            time_zone=sent.text("time_zone"),
            limit=sent.integer("limit") or 10,
            filters=filters_of(sent),
        )
        answer = read_aggregate(self._ports, request.authority, query, timeout_seconds(request))
        return object_reply(request, answer)
