"""Search routes.  Source: RS contract 11."""

from __future__ import annotations

from personal_server.enforcement.queries import SearchQuery
from personal_server.errors import UnsupportedSearchMode
from personal_server.reading.ports import ReadPorts
from personal_server.reading.search import search
from personal_server.resource_server.read_parameters import (
    filters_of,
    selectors_of,
    timeout_seconds,
)
from personal_server.resource_server.records import list_reply
from personal_server.web.requests import Request
from personal_server.web.responses import Reply


class SearchRoutes:
    """The three modes; one is installed."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def search(self, request: Request) -> Reply:
        """`GET /v1/search`."""
        sent = request.parameters
        query = SearchQuery(
            text=sent.text("q") or "",
            selectors=selectors_of(sent),
            streams=sent.names("streams"),
            limit=sent.integer("limit") or 25,
            cursor=sent.text("cursor"),
            filters=filters_of(sent),
        )
        answer = search(self._ports, request.authority, query, timeout_seconds(request))
        return list_reply(request, answer)

    def refuse(self, request: Request) -> Reply:
        """`GET /v1/search/semantic` and `/v1/search/hybrid`."""
        del request
        raise UnsupportedSearchMode(
            "This server searches words; use /v1/search.",
            param="mode",
            allowed_values=["lexical"],
        )
