"""`/v1/search`: by words, by meaning, or both."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from pdpp_kernel.criteria import HitOrder
from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.enforcement.search_hits import SearchResult
from personal_server.reading.ports import ReadPorts
from personal_server.reading.search import search
from personal_server.resource_server.envelopes import ListOf
from personal_server.resource_server.read_queries import (
    filters_asked,
    selectors_of,
    size_of,
    snapshot_of,
    times_of,
    zone_of,
)
from personal_server.resource_server.reads import list_reply
from personal_server.web.replies import Reply
from personal_server.web.requests import Request


class SearchResults(ListOf[SearchResult]):
    """A page of matching records."""

    component: ClassVar = "SearchResults"


class SearchRoutes:
    """Search by words, by meaning, and by both."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def search(self, request: Request) -> Reply:
        """`GET /v1/search`."""
        return self._answer(request, self._query(request))

    def search_meaning(self, request: Request) -> Reply:
        """`GET /v1/search/semantic`."""
        return self._answer(request, replace(self._query(request), mode=SearchMode.MEANING))

    def search_both(self, request: Request) -> Reply:
        """`GET /v1/search/hybrid`."""
        return self._answer(request, replace(self._query(request), mode=SearchMode.HYBRID))

    def _query(self, request: Request) -> SearchQuery:
        return search_query(request, zone_of(request, self._ports.time_zone))

    def _answer(self, request: Request, query: SearchQuery) -> Reply:
        answer = search(self._ports, snapshot_of(request), request.authority, query)
        return list_reply(SearchResults, request, answer)


def search_query(request: Request, zone: str | None = None) -> SearchQuery:
    """A search; one that is exact goes by words, unless told."""
    sent = request.parameters
    exact = sent.texts["exact"] == "true"
    mode = sent.texts.get("mode", SearchMode.WORDS if exact else SearchMode.AUTO)
    return SearchQuery(
        text=sent.texts["q"],
        selectors=selectors_of(sent),
        streams=sent.lists.get("streams", ()),
        times=times_of(sent, zone),
        limit=sent.integers["limit"],
        size=size_of(sent),
        cursor=sent.texts.get("cursor"),
        filters=filters_asked(sent),
        mode=SearchMode(mode),
        sort=HitOrder(sent.texts["sort"]),
        exact=exact,
        time_zone=zone,
    )
