"""Who has access: the list, one grant or package with its history, and its end.

Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import msgspec
import orjson
from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest, NotFound
from pdpp_kernel.result_size import MOST_RESULT_CHARS, RESULT_CHARS
from personal_server.consent.credentials import token_reference
from personal_server.console.access_views import (
    EventView,
    TokenView,
    TokenViews,
    alarm_view,
    event_words,
    held_view,
)
from personal_server.console.disclosure_lines import DisclosureLine, disclosure_lines, searches
from personal_server.console.pages import Templates
from personal_server.console.places import (
    PAGE_LINES,
    list_page,
    parse_number,
    parse_place,
    render_place,
)
from personal_server.console.reading_limits import limit_words, parse_limits
from personal_server.console.session import PageRequest, PageRoute, acting
from personal_server.console.subscription_views import subscription_view, subscriptions_of
from personal_server.console.words import laid_open
from personal_server.delivery.subscription_states import (
    forget,
    go_on,
    pause,
    pause_all,
)
from personal_server.domain.disclosure import SERVED
from personal_server.granting.grant_changes import MOST_NAME_CHARS, GrantChanges
from personal_server.granting.grant_successors import rename_access
from personal_server.granting.holdings import (
    Holding,
    current_id,
    lineage_of,
    list_held,
    show_held,
    token_binding,
)
from personal_server.granting.pauses import pause_access, resume_access
from personal_server.granting.reading_alarms import (
    dismiss_alarms,
    limit_reading,
    open_alarms,
    reading_figures,
)
from personal_server.granting.revocations import end_access
from personal_server.storage.authorization_rows import AuditRow, ReviewArtifactRow, TokenRow
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
    AuthorizationWriter,
    HeldQuery,
)
from personal_server.storage.ports.disclosure_stores import DisclosureQuery, DisclosureStore

RECENT_READS, RECENT_TOKENS = 15, 20


class AccessPages(msgspec.Struct, frozen=True):
    """`/owner/access`."""

    authorization: AuthorizationStore
    disclosures: DisclosureStore
    catalogs: Catalogs
    changes: GrantChanges
    pages: Templates
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (
            PageRoute("GET", "/owner/access", self.show_lasting, frozenset({"before"})),
            PageRoute("GET", "/owner/access/ended", self.show_ended, frozenset({"before"})),
            PageRoute("GET", "/owner/access/{id}", self.show_one, frozenset({"before"})),
            PageRoute("POST", "/owner/access/{id}/revoke", self.revoke),
            PageRoute("POST", "/owner/access/{id}/pause", self.pause),
            PageRoute("POST", "/owner/access/{id}/resume", self.resume),
            PageRoute("POST", "/owner/access/{id}/change", self.change),
            PageRoute("POST", "/owner/access/{id}/name", self.rename),
            PageRoute("POST", "/owner/access/{id}/dismiss", self.dismiss),
            PageRoute("POST", "/owner/access/{id}/limits", self.limit),
            PageRoute("POST", "/owner/access/{id}/subscriptions/{subscription}", self.told),
        )

    def show_lasting(self, visit: PageRequest) -> Response:
        """Everybody who has access.  Raises: InvalidRequest."""
        return self._show(visit, lasts=True)

    def show_ended(self, visit: PageRequest) -> Response:
        """Everybody who had it.  Raises: InvalidRequest."""
        return self._show(visit, lasts=False)

    def _show(self, visit: PageRequest, *, lasts: bool) -> Response:
        before = parse_place(visit.query.get("before"))
        now_ns = self.clock()
        with self.authorization.read() as reader:
            holdings = list_held(reader, HeldQuery(now_ns, lasts=lasts), PAGE_LINES + 1, before)
            alarms = {row.held_id for row in open_alarms(reader)}
            counts = [
                reader.count_held(HeldQuery(now_ns, lasts=is_lasting))
                for is_lasting in (True, False)
            ]
        catalog = self.catalogs()
        views = [held_view(holding, catalog) for holding in holdings]
        page = list_page(views, lambda view: render_place(view.held.place))
        reads = {view.held.id: self._last_read(view.held) for view in page.lines if lasts}
        context = {"page": page, "lasts": lasts, "counts": counts, "newest": before is None}
        context |= {"last_reads": reads, "alarms": alarms}
        return self.pages.show(visit, "access.html", context)

    def _last_read(self, holding: Holding) -> DisclosureLine | None:
        """What it was given last."""
        query = DisclosureQuery(limit=1, equal=(_held_by(holding), ("outcome", SERVED)))
        return next(iter(disclosure_lines(self.disclosures.disclosures(query), {})), None)

    def show_one(self, visit: PageRequest) -> Response:
        """One grant or package, its history by pages.  Raises: NotFound, InvalidRequest."""
        held_id, before = visit.path["id"], parse_number(visit.query.get("before"))
        with self.authorization.read() as reader:
            holding = _found(show_held(reader, held_id, self.clock()))
            tokens, binding = _tokens(reader, holding), token_binding(reader, holding)
            events = _events(reader, holding, before)
            artifact = _artifact(reader, holding.revision)
            figures = reading_figures(reader, holding.id, self.clock())
            subscriptions = [
                subscription_view(reader, row) for row in subscriptions_of(reader, holding)
            ]
            line = lineage_of(reader, holding.id, self.clock())
        query = DisclosureQuery(limit=RECENT_READS, equal=(_held_by(holding),))
        found = self.disclosures.disclosures(query)
        details = self.disclosures.asked_details(searches(found))
        reads = disclosure_lines(found, {}, details=details)
        return self.pages.show(
            visit,
            "access_one.html",
            {
                "one": held_view(holding, self.catalogs()),
                "line": _line_view(line, holding),
                "most_name_chars": MOST_NAME_CHARS,
                "tokens": tokens,
                "binding": binding,
                "events": list_page(events, lambda event: str(event.number)),
                "newest": before is None,
                "artifact": artifact,
                "reads": reads,
                "told": subscriptions,
                "figures": figures,
                "limits": limit_words(figures.limits),
                "result_chars": (RESULT_CHARS, MOST_RESULT_CHARS),
                "alarms": [alarm_view(row, {}) for row in figures.alarms],
                "csrf": visit.owner().csrf,
            },
        )

    @contextmanager
    def _write(self, visit: PageRequest) -> Generator[tuple[AuthorizationWriter, str]]:
        """The store, and the id that the access of this page goes on by if it was changed since."""
        with self.authorization.write() as writer:
            yield writer, current_id(writer, visit.path["id"], self.clock())

    def revoke(self, visit: PageRequest) -> Response:
        """End it; the next request of the app finds it closed.  Raises: NotFound."""
        with self._write(visit) as (writer, held_id):
            ended = end_access(writer, held_id, "owner", acting(visit), self.clock())
        if ended is None:
            raise _unknown()
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def change(self, visit: PageRequest) -> Response:
        """Begin to change it.  Raises: NotFound, RequestClosed."""
        handle = self.changes.begin(visit.path["id"], acting(visit))
        return self.pages.go(visit, f"/consent/{handle}")

    def rename(self, visit: PageRequest) -> Response:
        """Call it by a name of one's own; an empty one is the app's.

        Raises: NotFound, InvalidRequest.
        """
        name = visit.value("name") or ""
        with self._write(visit) as (writer, held_id):
            if not rename_access(writer, held_id, name, acting(visit), self.clock()):
                raise _unknown()
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def pause(self, visit: PageRequest) -> Response:
        """Let it wait.  Raises: NotFound."""
        with self._write(visit) as (writer, held_id):
            paused = pause_access(writer, held_id, acting(visit), self.clock())
        if paused is None:
            raise _unknown()
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def resume(self, visit: PageRequest) -> Response:
        """Let what waits go on.  Raises: NotFound."""
        with self._write(visit) as (writer, held_id):
            resumed = resume_access(writer, held_id, acting(visit), self.clock())
        if resumed is None:
            raise _unknown()
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def dismiss(self, visit: PageRequest) -> Response:
        """Dismiss what was unusual.  Raises: NotFound."""
        with self._write(visit) as (writer, held_id):
            _found(show_held(writer, held_id, self.clock()))
            dismiss_alarms(writer, held_id, acting(visit), self.clock())
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def told(self, visit: PageRequest) -> Response:
        """Pause a subscription of it, let it go on, or delete it.

        Raises: NotFound, InvalidRequest.
        """
        now_ns = self.clock()
        with self._write(visit) as (writer, held_id):
            holding = _found(show_held(writer, held_id, now_ns))
            subscription_id = visit.path["subscription"]
            rows = [
                r for r in subscriptions_of(writer, holding) if r.subscription_id == subscription_id
            ]
            if not rows:
                raise _unknown()
            match visit.value("action"):
                case "pause":
                    pause(writer, rows[0], "owner", acting(visit), now_ns)
                case "resume":
                    go_on(writer, rows[0], "owner", acting(visit), now_ns)
                case "delete":
                    forget(writer, rows[0], acting(visit), now_ns)
                case _:
                    raise InvalidRequest("Choose one of the actions on this page.", param="action")
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def limit(self, visit: PageRequest) -> Response:
        """Set how much may be read on a day.  Raises: NotFound, InvalidRequest."""
        with self._write(visit) as (writer, held_id):
            limits = parse_limits(visit, held_id)
            holding = _found(show_held(writer, held_id, self.clock()))
            limit_reading(writer, limits, acting(visit), self.clock())
            if not limits.events:
                grant_ids = {grant.grant_id for grant in holding.grants}
                pause_all(writer, grant_ids, acting(visit), self.clock())
        return self.pages.go(visit, f"/owner/access/{held_id}")


class LineView(msgspec.Struct, frozen=True):
    """What an access was before, the newest first, and what it is now if it was changed since."""

    before: tuple[Holding, ...]
    now: Holding | None


def _line_view(line: Sequence[Holding], holding: Holding) -> LineView:
    at = [holding_of_line.id for holding_of_line in line].index(holding.id)
    return LineView(tuple(reversed(line[:at])), line[-1] if at < len(line) - 1 else None)


def _held_by(holding: Holding) -> tuple[str, str]:
    """The condition on disclosures that were made under it."""
    return ("package_id" if holding.kind == "mcp_package" else "grant_id", holding.id)


def _found(holding: Holding | None) -> Holding:
    if holding is None:
        raise _unknown()
    return holding


def _unknown() -> NotFound:
    return NotFound("There is no such access.", next_step="The page Access lists who has access.")


def _tokens(reader: AuthorizationReader, holding: Holding) -> TokenViews:
    column = TokenRow.package_id if holding.kind == "mcp_package" else TokenRow.grant_id
    of_it = column.equals(holding.id)
    newest = reader.rows(
        TokenRow, of_it, order=TokenRow.issued_at_ns, descending=True, limit=RECENT_TOKENS
    )
    views = [
        TokenView(
            token_reference(row.token_hash),
            row.issued_at_ns,
            row.expires_at_ns,
            row.last_used_at_ns,
            row.revoked_at_ns,
        )
        for row in newest
    ]
    return TokenViews(tuple(views), reader.count(TokenRow, of_it))


def _events(reader: AuthorizationReader, holding: Holding, before: int | None) -> list[EventView]:
    """The newest events below a number, one more than a page shows."""
    older = () if before is None else (AuditRow.event_id.below(before),)
    of_it = [AuditRow.package_id.equals(holding.id)]
    of_it += [AuditRow.grant_id.equals(grant.grant_id) for grant in holding.grants]
    rows = {
        row.event_id: row
        for event in of_it
        for row in reader.rows(
            AuditRow,
            event,
            *older,
            order=AuditRow.event_id,
            descending=True,
            limit=PAGE_LINES + 1,
        )
    }
    newest = sorted(rows.items(), reverse=True)[: PAGE_LINES + 1]
    return [
        EventView(number, row.at_ns, event_words(row), row.event, row.actor)
        for number, row in newest
    ]


def _artifact(reader: AuthorizationReader, revision: str) -> str | None:
    row = reader.get(ReviewArtifactRow, ReviewArtifactRow.revision.equals(revision))
    if row is None:
        return None
    return laid_open(orjson.dumps(orjson.loads(row.artifact), option=orjson.OPT_INDENT_2).decode())
