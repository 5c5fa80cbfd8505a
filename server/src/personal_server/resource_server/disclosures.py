"""Who read what, when: the owner's view of the disclosure log.

Source: docs/contract/resource-server.md 14.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pdpp_kernel.errors import InvalidCursor
from pdpp_kernel.values import instant_ns
from personal_server.domain.cursor import Sealer
from personal_server.domain.disclosure import DENIED, SERVED
from personal_server.reading.shown_disclosures import ShownDisclosure, render_disclosure
from personal_server.resource_server.envelopes import ListOf, page_of
from personal_server.resource_server.owner_lists import cursor_after, page_start
from personal_server.storage.ports.disclosure_stores import (
    DisclosureQuery,
    DisclosureStore,
)
from personal_server.web.parameters import CURSOR, Kind, Parameter, page_limit
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import Route, owner

MEMBER_OF = {
    "client_id": "client_id",
    "grant_id": "grant_id",
    "grant_package_id": "package_id",
    "connection_id": "connection_id",
    "stream": "stream",
    "route": "route",
    "outcome": "outcome",
}
PARAMETERS = (
    Parameter("client_id", "Only reads by this client."),
    Parameter("grant_id", "Only reads under this grant."),
    Parameter("grant_package_id", "Only reads under this package."),
    Parameter("connection_id", "Only reads of this connection.", empty_is_absent=True),
    Parameter("stream", "Only reads of this stream."),
    Parameter("route", "Only this route.", example="GET /v1/search"),
    Parameter("outcome", "Only served or denied reads.", choices=(SERVED, DENIED)),
    Parameter("since", "From this instant on.", kind=Kind.INSTANT),
    Parameter("until", "Before this instant.", kind=Kind.INSTANT),
    page_limit(100, 500),
    CURSOR,
)


class DisclosureList(ListOf[ShownDisclosure]):
    """A page of the log."""

    component: ClassVar = "DisclosureList"


class Disclosures:
    """The route; `flush` makes what was just read visible."""

    def __init__(self, store: DisclosureStore, sealer: Sealer, flush: Callable[[], bool]) -> None:
        self._store = store
        self._sealer = sealer
        self._flush = flush

    def routes(self) -> tuple[Route, ...]:
        """`GET /v1/owner/disclosures`."""
        return (
            owner(
                Route(
                    "GET",
                    "/v1/owner/disclosures",
                    self.list,
                    "Who read what, when; newest first.",
                    "14.3",
                    answer=DisclosureList,
                    parameters=PARAMETERS,
                    errors=(InvalidCursor,),
                )
            ),
        )

    def list(self, request: Request) -> Reply:
        """One page of the log."""
        self._flush()
        limit = request.parameters.integers.get("limit") or 1
        found = self._store.disclosures(_query(request, page_start(request, self._sealer), limit))
        shown = found[:limit]
        following = (
            cursor_after(request, self._sealer, shown[-1][0]) if len(found) > limit else None
        )
        rows = [render_disclosure(entry) for _, entry in shown]
        return Reply(page_of(DisclosureList, request, rows, next_cursor=following))


def _query(request: Request, start: object, limit: int) -> DisclosureQuery:
    texts = {name: request.parameters.texts.get(name) for name in (*MEMBER_OF, "since", "until")}
    equal = tuple(
        (member, value) for name, member in MEMBER_OF.items() if (value := texts[name]) is not None
    )
    return DisclosureQuery(
        limit + 1,
        equal,
        since_ns=instant_ns(texts["since"] or ""),
        until_ns=instant_ns(texts["until"] or ""),
        below=start if isinstance(start, int) else None,
    )
