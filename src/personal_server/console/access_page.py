"""Who has access: the list, one grant or package with its history, and its end.

Source: AS contract 13.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import orjson
from starlette.responses import Response

from personal_server.consent.credentials import token_reference
from personal_server.console.access_view import TokenView, event_words, held_view
from personal_server.console.disclosure_view import DisclosureLine, disclosure_lines
from personal_server.console.frame import PageRoute
from personal_server.console.pages import Pages
from personal_server.console.visits import Visit, acting
from personal_server.console.words import laid_open
from personal_server.domain.disclosure import SERVED
from personal_server.errors import NotFound
from personal_server.granting.holdings import Held, list_held, show_held
from personal_server.granting.revocations import end_access
from personal_server.storage.authorization import (
    AuditRow,
    AuthorizationReader,
    AuthorizationStore,
    ReviewArtifactRow,
    TokenRow,
)
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports import DisclosureQuery, DisclosureStore

RECENT_READS = 15


@dataclass(frozen=True, slots=True)
class AccessPages:
    """`/owner/access`."""

    authorization: AuthorizationStore
    disclosures: DisclosureStore
    catalogs: Catalogs
    pages: Pages
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """Where they stand."""
        return (
            PageRoute("GET", "/owner/access", self.show_all),
            PageRoute("GET", "/owner/access/{id}", self.show_one),
            PageRoute("POST", "/owner/access/{id}/revoke", self.revoke),
        )

    def show_all(self, visit: Visit) -> Response:
        """Everybody who has, or had, access."""
        with self.authorization.read() as reader:
            held = list_held(reader, self.clock())
        catalog = self.catalogs()
        views = [held_view(one, catalog) for one in held]
        active = [view for view in views if view.held.status == "active"]
        ended = [view for view in views if view.held.status != "active"]
        reads = {view.held.id: self._last_read(view.held) for view in active}
        shown = {"active": active, "ended": ended, "last_reads": reads}
        return self.pages.show(visit, "access.html", shown)

    def _last_read(self, held: Held) -> DisclosureLine | None:
        """What it was given last."""
        query = DisclosureQuery(limit=1, equal=(_held_by(held), ("outcome", SERVED)))
        return next(iter(disclosure_lines(self.disclosures.disclosures(query), {})), None)

    def show_one(self, visit: Visit) -> Response:
        """One grant or package.  Raises: NotFound."""
        held_id = visit.path["id"]
        with self.authorization.read() as reader:
            held = _found(show_held(reader, held_id, self.clock()))
            tokens = _tokens(reader, held)
            events = _events(reader, held)
            artifact = _artifact(reader, held.revision)
        query = DisclosureQuery(limit=RECENT_READS, equal=(_held_by(held),))
        reads = disclosure_lines(self.disclosures.disclosures(query), {})
        return self.pages.show(
            visit,
            "access_one.html",
            {
                "one": held_view(held, self.catalogs()),
                "tokens": tokens,
                "events": events,
                "artifact": artifact,
                "reads": reads,
                "csrf": visit.owner().csrf,
            },
        )

    def revoke(self, visit: Visit) -> Response:
        """End it; the next request of the app finds it closed.  Raises: NotFound."""
        held_id = visit.path["id"]
        with self.authorization.write() as writer:
            ended = end_access(writer, held_id, "owner", acting(visit), self.clock())
        if ended is None:
            raise _unknown()
        return self.pages.go(visit, f"/owner/access/{held_id}")


def _held_by(held: Held) -> tuple[str, str]:
    """The condition on disclosures that were made under it."""
    return ("package_id" if held.kind == "mcp_package" else "grant_id", held.id)


def _found(held: Held | None) -> Held:
    if held is None:
        raise _unknown()
    return held


def _unknown() -> NotFound:
    return NotFound("There is no such access.", next_step="See the list of who has access.")


def _tokens(reader: AuthorizationReader, held: Held) -> list[TokenView]:
    if held.kind == "mcp_package":
        rows = reader.rows(TokenRow, package_id=held.id)
    else:
        rows = reader.rows(TokenRow, grant_id=held.id)
    views = [
        TokenView(
            token_reference(row.token_hash),
            row.issued_at_ns,
            row.expires_at_ns,
            row.last_used_at_ns,
            row.revoked_at_ns,
        )
        for row in rows
    ]
    return sorted(views, key=lambda view: view.issued_at_ns, reverse=True)


def _events(reader: AuthorizationReader, held: Held) -> list[tuple[int, str]]:
    rows = {row.event_id: row for row in reader.rows(AuditRow, package_id=held.id)}
    for grant in held.grants:
        rows |= {row.event_id: row for row in reader.rows(AuditRow, grant_id=grant.grant_id)}
    return [(row.at_ns, event_words(row)) for _, row in sorted(rows.items())]


def _artifact(reader: AuthorizationReader, revision: str) -> str | None:
    row = reader.get(ReviewArtifactRow, revision=revision)
    if row is None:
        return None
    return laid_open(orjson.dumps(orjson.loads(row.artifact), option=orjson.OPT_INDENT_2).decode())
