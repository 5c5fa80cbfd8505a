"""Receipts of the lines that ingest refused, for the owner and for the collector that sent them.

Rule: a receipt says which member was wrong and by which rule, never a value.
Source: docs/contract/resource-server.md 13.4 and 14.2.
"""

from __future__ import annotations

from typing import ClassVar

from pdpp_kernel.errors import ConnectionNotFound, InvalidCursor
from pdpp_kernel.values import render_instant
from pdpp_kernel.wire_objects import Instant, WireObject, Word
from personal_server.domain.stored import Rejection
from personal_server.enforcement.queries import DEFAULT_LIMIT, MAX_LIMIT
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.envelopes import ListOf, page_of
from personal_server.resource_server.owner_lists import cursor_after, page_start
from personal_server.resource_server.write_targets import TARGET, TARGET_ERRORS, target_of
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS
from personal_server.web.parameters import CURSOR, page_limit
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import Route, collector, owner

PAGE = (page_limit(DEFAULT_LIMIT, MAX_LIMIT), CURSOR)


class ShownRejection(WireObject, tag_field="object", tag="ingest_rejection"):
    """A line that was refused."""

    receipt_id: Word
    stream: Word
    code: Word
    path: str | None
    run_id: str | None
    at: Instant


class RejectionList(ListOf[ShownRejection]):
    """A page of refused lines."""

    component: ClassVar = "RejectionList"


class RefusedLines:
    """The routes of one store."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def routes(self) -> tuple[Route, ...]:
        """`GET /v1/owner/connections/{id}/rejections`, `GET /v1/rejections`."""
        return (
            owner(
                Route(
                    "GET",
                    "/v1/owner/connections/{id}/rejections",
                    self.of_account,
                    "Refused lines, newest first.",
                    "14.2",
                    answer=RejectionList,
                    parameters=PAGE,
                    errors=(ConnectionNotFound, InvalidCursor),
                )
            ),
            collector(
                Route(
                    "GET",
                    "/v1/rejections",
                    self.of_target,
                    "Refused lines of the collector's account, newest first.",
                    "13.4",
                    answer=RejectionList,
                    parameters=(*TARGET, *PAGE),
                    errors=(*TARGET_ERRORS, InvalidCursor),
                )
            ),
        )

    def of_account(self, request: Request) -> Reply:
        """`GET /v1/owner/connections/{id}/rejections`."""
        connection_id = request.path["id"]
        with self._ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            if all(each.connection_id != connection_id for each in snapshot.connections()):
                raise ConnectionNotFound("There is no account with this connection_id.", param="id")
        return self._page(request, connection_id)

    def of_target(self, request: Request) -> Reply:
        """`GET /v1/rejections`."""
        with self._ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            connection = target_of(request, snapshot)
        return self._page(request, connection.connection_id)

    def _page(self, request: Request, connection_id: str) -> Reply:
        limit = request.parameters.integers.get("limit") or 1
        start = page_start(request, self._ports.sealer)
        before = start if isinstance(start, int) else None
        found = self._ports.store.rejections(connection_id, limit + 1, before)
        shown = found[:limit]
        following = (
            cursor_after(request, self._ports.sealer, shown[-1][0]) if len(found) > limit else None
        )
        rows = [_shown(rejection) for _, rejection in shown]
        return Reply(page_of(RejectionList, request, rows, next_cursor=following))


def _shown(rejection: Rejection) -> ShownRejection:
    return ShownRejection(
        receipt_id=rejection.receipt_id,
        stream=rejection.stream,
        code=rejection.code,
        path=rejection.path,
        run_id=rejection.run_id,
        at=render_instant(rejection.at_ns),
    )
