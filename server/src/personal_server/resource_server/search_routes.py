"""`/v1/search`: by words, by meaning, or both."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.enforcement.search_hits import SearchResult
from personal_server.reading.ports import ReadPorts
from personal_server.reading.search import search
from personal_server.resource_server.envelopes import ListOf
from personal_server.resource_server.read_queries import search_query, snapshot_of
from personal_server.resource_server.reads import list_reply
from personal_server.web.replies import Reply
from personal_server.web.requests import Request


class SearchResults(ListOf[SearchResult]):
    """A page of matching records."""

    component: ClassVar = "SearchResults"


class SearchRoutes:
    """The three modes."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def search(self, request: Request) -> Reply:
        """`GET /v1/search`."""
        return self._answer(request, search_query(request))

    def search_meaning(self, request: Request) -> Reply:
        """`GET /v1/search/semantic`."""
        return self._answer(request, replace(search_query(request), mode=SearchMode.MEANING))

    def search_both(self, request: Request) -> Reply:
        """`GET /v1/search/hybrid`."""
        return self._answer(request, replace(search_query(request), mode=SearchMode.HYBRID))

    def _answer(self, request: Request, query: SearchQuery) -> Reply:
        answer = search(self._ports, snapshot_of(request), request.authority, query)
        return list_reply(SearchResults, request, answer)
