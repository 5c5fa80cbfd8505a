"""Apps: who has asked here, and refusing them.

Source: docs/contract/authorization-server.md 3, 13.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import NotFound
from pdpp_kernel.texts import Joined, Text, message
from personal_server.console.pages import Templates
from personal_server.console.places import PAGE_LINES, list_page, parse_place, render_place
from personal_server.console.session import PageRequest, PageRoute, acting
from personal_server.console.words import trust_mark
from personal_server.domain.hosts import host_connections
from personal_server.granting.audit import METADATA_CHANGED
from personal_server.granting.revocations import block_client, end_client_access, unblock_client
from personal_server.storage.authorization_rows import AuditRow, ClientRow, FamilyRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
    ClientQuery,
    HeldQuery,
    ListPlace,
)

CHANGED: Mapping[str, Text] = {
    "name": message("the app's name"),
    "redirect_uris": message("the addresses to which answers go"),
    "auth_method": message("how the app proves who it is"),
    "grant_types": message("how the app may connect"),
    "keys": message("the app's keys"),
}
_CHANGES_READ = 500


class ClientView(msgspec.Struct, frozen=True):
    """One app as the list of apps shows it."""

    row: ClientRow
    name: str
    trust_kind: str
    trust: Text
    active: int
    devices: int
    changed: Text | None = None
    changed_at_ns: int = 0


class ClientPages(msgspec.Struct, frozen=True):
    """`/owner/clients`."""

    authorization: AuthorizationStore
    pages: Templates
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (
            PageRoute("GET", "/owner/clients", self.show_known, frozenset({"before"})),
            PageRoute("GET", "/owner/clients/others", self.show_others, frozenset({"before"})),
            PageRoute("POST", "/owner/clients/{ref}/end-access", self.end_access),
            PageRoute("POST", "/owner/clients/{ref}/block", self.block),
            PageRoute("POST", "/owner/clients/{ref}/unblock", self.unblock),
        )

    def show_known(self, visit: PageRequest) -> Response:
        """Every app that was given something, acts as the owner or is refused."""
        return self._show(visit, is_known=True)

    def show_others(self, visit: PageRequest) -> Response:
        """Every app that asked and was given nothing."""
        return self._show(visit, is_known=False)

    def _show(self, visit: PageRequest, *, is_known: bool) -> Response:
        """The latest first; on a page those that hold something stand first."""
        before = parse_place(visit.query.get("before"))
        now_ns = self.clock()
        with self.authorization.read() as reader:
            rows = reader.clients(ClientQuery(now_ns, is_known), PAGE_LINES + 1, before)
            others_count = reader.count_clients(ClientQuery(now_ns, known=False))
            page = list_page(rows, _place)
            views = [_view(reader, row, now_ns) for row in page.lines]
            changes = _changes(reader)
        views = [_told(view, changes.get(view.row.client_id)) for view in views]
        views.sort(key=lambda view: view.active + view.devices == 0)
        values = {
            "clients": views,
            "older": page.older,
            "newest": before is None,
            "is_known": is_known,
            "others": others_count,
            "hosts": host_connections(visit.origin),
            "csrf": visit.owner().csrf,
        }
        return self.pages.show(visit, "clients.html", values)

    def end_access(self, visit: PageRequest) -> Response:
        """End everything an app holds.  Raises: NotFound."""
        with self.authorization.write() as writer:
            row = writer.get(ClientRow, ClientRow.client_ref.equals(visit.path["ref"]))
            if row is None:
                raise _unknown()
            end_client_access(writer, row.client_id, "owner", acting(visit), self.clock())
        return self.pages.go(visit, "/owner/clients")

    def block(self, visit: PageRequest) -> Response:
        """Refuse an app from now on.  Raises: NotFound."""
        with self.authorization.write() as writer:
            is_found = block_client(writer, visit.path["ref"], acting(visit), self.clock())
        return self._done(visit, is_found)

    def unblock(self, visit: PageRequest) -> Response:
        """Let an app ask again.  Raises: NotFound."""
        with self.authorization.write() as writer:
            is_found = unblock_client(writer, visit.path["ref"], acting(visit), self.clock())
        return self._done(visit, is_found)

    def _done(self, visit: PageRequest, is_found: bool) -> Response:
        if not is_found:
            raise _unknown()
        return self.pages.go(visit, "/owner/clients")


def _place(row: ClientRow) -> str:
    return render_place(ListPlace(row.registered_at_ns, row.client_ref))


def _view(reader: AuthorizationReader, row: ClientRow, now_ns: int) -> ClientView:
    kind, trust = trust_mark(row.registration, row.client_id, row.published_on)
    active = reader.count_held(HeldQuery(now_ns, lasts=True, client_id=row.client_id))
    devices = _acting_as_owner(reader, row.client_id, now_ns)
    return ClientView(row, row.name or row.client_id, kind, trust, active, devices)


def _acting_as_owner(reader: AuthorizationReader, client_id: str, now_ns: int) -> int:
    """How many devices of a client act as the owner."""
    families = reader.rows(
        FamilyRow,
        FamilyRow.client_id.equals(client_id),
        FamilyRow.kind.equals("owner"),
        FamilyRow.revoked_at_ns.equals(None),
    )
    ends = (
        min(family.idle_end_ns, family.absolute_end_ns or family.idle_end_ns) for family in families
    )
    return sum(now_ns < end for end in ends)


def _changes(reader: AuthorizationReader) -> dict[str | None, AuditRow]:
    """The last time each app said something else of itself."""
    noted = reader.rows(
        AuditRow,
        AuditRow.event.equals(METADATA_CHANGED),
        order=AuditRow.event_id,
        descending=True,
        limit=_CHANGES_READ,
    )
    return {change.client_id: change for change in reversed(noted)}


def _told(view: ClientView, change: AuditRow | None) -> ClientView:
    if change is None:
        return view
    named = change.detail.get("changed")
    parts = cast("list[str]", named) if isinstance(named, list) else []
    other = message("the app's description")
    words = Joined(tuple(CHANGED.get(part, other) for part in parts) or (other,))
    return replace(view, changed=words, changed_at_ns=change.at_ns)


def _unknown() -> NotFound:
    return NotFound("There is no such app.")
