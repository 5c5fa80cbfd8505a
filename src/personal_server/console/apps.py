"""Apps: who has asked here, and refusing them.

Source: docs/contract/authorization-server.md 3, 13.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

from starlette.responses import Response

from personal_server.consent.client_registration import PRE_REGISTERED
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute, acting
from personal_server.console.words import trust_mark
from personal_server.errors import NotFound
from personal_server.granting.audit import METADATA_CHANGED
from personal_server.granting.holdings import list_held
from personal_server.granting.revocations import block_client, end_client_access, unblock_client
from personal_server.storage.authorization import (
    AuditRow,
    AuthorizationReader,
    AuthorizationStore,
    ClientRow,
    FamilyRow,
)

_CHANGED = {
    "name": "its name",
    "redirect_uris": "where it is sent back to",
    "auth_method": "how it proves itself",
    "grant_types": "how it may connect",
    "keys": "its keys",
}
_CHANGES_READ = 500


@dataclass(frozen=True, slots=True)
class ClientView:
    """One app."""

    row: ClientRow
    name: str
    trust_kind: str
    trust: str
    active: int
    devices: int
    changed: str | None = None
    changed_at_ns: int = 0

    @property
    def matters(self) -> bool:
        """Whether it was ever given something, acts as the owner, or is refused."""
        given = self.row.first_approved_at_ns is not None or self.devices > 0
        return given or self.row.blocked_at_ns is not None


@dataclass(frozen=True, slots=True)
class ClientPages:
    """`/owner/clients`."""

    authorization: AuthorizationStore
    pages: Templates
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """Where they stand."""
        return (
            PageRoute("GET", "/owner/clients", self.show),
            PageRoute("POST", "/owner/clients/{ref}/end-access", self.end_access),
            PageRoute("POST", "/owner/clients/{ref}/block", self.block),
            PageRoute("POST", "/owner/clients/{ref}/unblock", self.unblock),
        )

    def show(self, visit: PageRequest) -> Response:
        """Every app that asked or holds something, the latest first."""
        with self.authorization.read() as reader:
            rows = reader.rows(ClientRow, order=ClientRow.registered_at_ns, descending=True)
            held = list_held(reader, self.clock())
            owners = _acting_as_owner(reader, self.clock())
            changes = _changes(reader)
        ever = {one.client_id for one in held} | owners.keys()
        active = Counter(one.client_id for one in held if one.status == "active")
        asked = [row for row in rows if row.registration != PRE_REGISTERED or row.client_id in ever]
        views = [
            _told(
                _view(row, active[row.client_id], owners[row.client_id]),
                changes.get(row.client_id),
            )
            for row in asked
        ]
        views.sort(key=lambda view: view.active + view.devices == 0)
        values = {
            "known": [view for view in views if view.matters],
            "others": [view for view in views if not view.matters],
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
            found = block_client(writer, visit.path["ref"], acting(visit), self.clock())
        return self._done(visit, found)

    def unblock(self, visit: PageRequest) -> Response:
        """Let an app ask again.  Raises: NotFound."""
        with self.authorization.write() as writer:
            found = unblock_client(writer, visit.path["ref"], acting(visit), self.clock())
        return self._done(visit, found)

    def _done(self, visit: PageRequest, found: bool) -> Response:
        if not found:
            raise _unknown()
        return self.pages.go(visit, "/owner/clients")


def _acting_as_owner(reader: AuthorizationReader, now_ns: int) -> Counter[str]:
    """How many devices act as the owner, by client."""
    families = reader.rows(
        FamilyRow, FamilyRow.kind.equals("owner"), FamilyRow.revoked_at_ns.equals(None)
    )
    return Counter(
        family.client_id
        for family in families
        if now_ns < min(family.idle_end_ns, family.absolute_end_ns or family.idle_end_ns)
    )


def _view(row: ClientRow, active: int, devices: int) -> ClientView:
    kind, trust = trust_mark(row.registration, row.client_id)
    return ClientView(row, row.name or row.client_id, kind, trust, active, devices)


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
    said = ", ".join(_CHANGED.get(part, "its description") for part in parts)
    return replace(view, changed=said or "its description", changed_at_ns=change.at_ns)


def _unknown() -> NotFound:
    return NotFound("There is no such app.")
