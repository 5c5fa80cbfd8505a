"""Requests that wait for the owner: on the first page, and in the tab that is signed in.

On a loopback origin a session lives at a place that only its own tab knows (13.2), so what an app
opens is not signed in there.  That page then names its request to the tabs of this origin, by a
channel of the browser that carries no secret; the one that is signed in asks its owner here.
Source: docs/contract/authorization-server.md 13.2, 13.5.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import NotFound
from pdpp_kernel.oauth_errors import DecisionRefusal
from pdpp_kernel.texts import Joined, Text, message
from personal_server.consent.selections import parse_stored
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute, acting, safe_next
from personal_server.console.words import declared_name
from personal_server.granting.decisions import Granting
from personal_server.granting.grant_changes import CHANGE
from personal_server.granting.pending_requests import MAX_PENDING
from personal_server.granting.waiting_requests import waiting_requests
from personal_server.storage.authorization_rows import ClientRow, RequestRow
from personal_server.storage.catalog import Catalog, Catalogs
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
)

_CONSENT = re.compile(r"/consent/([A-Za-z0-9_-]{1,100})\Z")


class WaitingRequest(msgspec.Struct, frozen=True):
    """A request that waits for the owner.

    Shapes: `code` is told by the page that the app opened, too; `times` counts the requests of this
        app that wait, the newest of which is this.
    """

    request: RequestRow
    name: str
    wants: Text
    code: str
    times: int = 1


def comparison_code(destination: str) -> str:
    """Four digits that name a page for its owner, in two tabs alike; they open nothing."""
    digest = hashlib.sha256(f"compare {destination}".encode()).digest()
    number = int.from_bytes(digest[:8]) % 10_000
    return f"{number // 100:02} {number % 100:02}"


def is_asked(destination: str) -> bool:
    """Whether a signed-in tab can ask about this page; one of a device may hold its code."""
    return _CONSENT.match(destination) is not None


def requests_by_app(
    reader: AuthorizationReader, catalog: Catalog, now_ns: int
) -> list[WaitingRequest]:
    """The newest request of each app."""
    newest: dict[str, WaitingRequest] = {}
    for row, client in waiting_requests(reader, now_ns, MAX_PENDING):
        known = newest.get(row.client_id)
        if known is None:
            newest[row.client_id] = _waiting(row, client, catalog)
        else:
            newest[row.client_id] = replace(known, times=known.times + 1)
    return list(newest.values())


def _waiting(row: RequestRow, client: ClientRow, catalog: Catalog) -> WaitingRequest:
    code = comparison_code(f"/consent/{row.request_id}")
    return WaitingRequest(row, client.name or client.client_id, _wants(row, catalog), code)


def _wants(row: RequestRow, catalog: Catalog) -> Text:
    """The sources that a request names."""
    if row.picker or not row.details:
        return message("This app lets you choose what to share")
    asked = [selection.source_id for selection in parse_stored(row.details)]
    known = catalog.declarations
    names = tuple(declared_name(known[one].display_name) if one in known else one for one in asked)
    return message("The app wants to read: %(sources)s", sources=Joined(names))


class WaitingPages(msgspec.Struct, frozen=True):
    """What the signed-in tab asks, and how its owner lets go of requests that nobody waits for."""

    authorization: AuthorizationStore
    catalogs: Catalogs
    granting: Granting
    pages: Templates
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (
            PageRoute("GET", "/owner/asked", self.show, frozenset({"next"})),
            PageRoute("POST", "/owner/requests/{handle}/dismiss", self.dismiss),
        )

    def show(self, visit: PageRequest) -> Response:
        """The question about a page that another tab could not open.  Raises: NotFound."""
        destination = safe_next(visit.query.get("next"))
        consent = _CONSENT.match(destination)
        with self.authorization.read() as reader:
            found = waiting_requests(reader, self.clock(), MAX_PENDING)
        for row, client in found:
            if consent is not None and row.request_id == consent[1]:
                waiting = _waiting(row, client, self.catalogs())
                values = {"waiting": waiting, "destination": destination, "code": waiting.code}
                return self.pages.show(visit, "asked.html", values)
        raise NotFound("There is no such request. Start again from the app.")

    def dismiss(self, visit: PageRequest) -> Response:
        """Deny every request of an app that waits; nobody is sent anywhere.  Raises: NotFound."""
        with self.authorization.read() as reader:
            named = reader.get(RequestRow, RequestRow.request_id.equals(visit.path["handle"]))
            if named is None:
                raise NotFound("There is no such request.")
            rows = reader.rows(
                RequestRow,
                RequestRow.status.equals("pending"),
                RequestRow.client_id.equals(named.client_id),
                order=RequestRow.created_at_ns,
            )
            handles = [row.request_id for row in rows if row.flow != CHANGE and self._waits(row)]
        for handle in handles:
            try:
                self.granting.deny(handle, acting(visit))
            except DecisionRefusal:
                continue  # decided, or too old, since it was read
        return self.pages.go(visit, "/owner/")

    def _waits(self, row: RequestRow) -> bool:
        return row.status == "pending" and self.clock() < row.expires_at_ns
