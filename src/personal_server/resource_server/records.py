"""Record routes: lists, single records, field windows.

Source: RS contract 7, 8, 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from personal_server.domain.envelope import Answer
from personal_server.enforcement.queries import (
    ChangesQuery,
    FieldWindowQuery,
    RecordQuery,
    RecordsQuery,
)
from personal_server.reading.changes import follow, is_feed_cursor
from personal_server.reading.field_windows import read_field_window
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import read_record, read_records
from personal_server.resource_server.envelopes import NO_COUNT, list_body, object_body
from personal_server.resource_server.read_parameters import (
    cut_of,
    expand_of,
    filters_of,
    refuse_beside_changes,
    selectors_of,
    timeout_seconds,
)
from personal_server.web.requests import Request
from personal_server.web.responses import Reply


class RecordRoutes:
    """The routes that read records."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def list_records(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}/records`."""
        sent = request.parameters
        feed = is_feed_cursor(self._ports.sealer, sent.text("cursor"))
        if feed or "changes_since" in sent.sent:
            return self._follow(request)
        query = RecordsQuery(
            stream=request.path["stream"],
            selectors=selectors_of(sent),
            limit=sent.integer("limit") or 25,
            cursor=sent.text("cursor"),
            order=sent.text("order"),
            sort=sent.text("sort"),
            filters=filters_of(sent),
            cut=cut_of(sent),
            expand=expand_of(sent),
            count=sent.text("count") != "none",
            window=sent.text("window") != "none",
        )
        answer = read_records(self._ports, request.authority, query, timeout_seconds(request))
        return list_reply(request, answer)

    def _follow(self, request: Request) -> Reply:
        sent = request.parameters
        refuse_beside_changes(sent)
        query = ChangesQuery(
            stream=request.path["stream"],
            selectors=selectors_of(sent),
            limit=sent.integer("limit") or 25,
            cursor=sent.text("cursor"),
            changes_since=sent.text("changes_since"),
            cut=cut_of(sent),
        )
        answer = follow(self._ports, request.authority, query, timeout_seconds(request))
        return list_reply(request, answer)

    def read_record(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}/records/{record_key}`."""
        sent = request.parameters
        query = RecordQuery(
            stream=request.path["stream"],
            key=request.path["record_key"],
            selectors=selectors_of(sent),
            cut=cut_of(sent),
            expand=expand_of(sent),
        )
        answer = read_record(self._ports, request.authority, query, timeout_seconds(request))
        return object_reply(request, answer)

    def read_field_window(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}/records/{record_key}/field-window`."""
        sent = request.parameters
        query = FieldWindowQuery(
            stream=request.path["stream"],
            key=request.path["record_key"],
            field=sent.text("field") or "",
            selectors=selectors_of(sent),
            offset_chars=sent.integer("offset_chars"),
            limit_chars=sent.integer("limit_chars"),
            text=sent.text("q"),
            before_chars=sent.integer("before_chars"),
            after_chars=sent.integer("after_chars"),
        )
        answer = read_field_window(
            self._ports, request.authority, query, request.raw_path, timeout_seconds(request)
        )
        return object_reply(request, answer)


def list_reply(request: Request, answer: Answer) -> Reply:
    """An answer in the list envelope."""
    body = list_body(
        request,
        cast("list[object]", answer.data),
        next_cursor=answer.next_cursor,
        next_changes_since=answer.next_changes_since,
        count=answer.count or NO_COUNT,
        warnings=[warning.render() for warning in answer.warnings],
        meta=answer.meta,
    )
    return Reply(body, disclosed=answer.disclosed)


def object_reply(request: Request, answer: Answer) -> Reply:
    """An answer as a flat object."""
    body = object_body(
        request,
        cast("Mapping[str, object]", answer.data),
        warnings=[warning.render() for warning in answer.warnings],
        meta=answer.meta,
    )
    return Reply(body, disclosed=answer.disclosed)
