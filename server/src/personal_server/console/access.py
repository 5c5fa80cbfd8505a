"""Who has access: the list, one grant or package with its history, and its end.

Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import orjson
from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest, NotFound
from pdpp_kernel.result_size import MOST_RESULT_CHARS, RESULT_CHARS
from pdpp_kernel.texts import Day, Joined, Text, message
from personal_server.consent.credentials import token_reference
from personal_server.console.content_limits import limits_said
from personal_server.console.disclosures import DisclosureLine, alarm_words, disclosure_lines
from personal_server.console.pages import Templates
from personal_server.console.places import (
    PAGE_LINES,
    list_page,
    parse_number,
    parse_place,
    render_place,
)
from personal_server.console.session import PageRequest, PageRoute, acting
from personal_server.console.words import HELD_STATUSES, field_words, laid_open, trust_mark
from personal_server.delivery.event_subscriptions import (
    forget,
    go_on,
    pause,
    pause_all,
    subscription_list,
)
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.disclosure import SERVED
from personal_server.domain.grant import Grant
from personal_server.granting.grant_changes import MOST_NAME_CHARS, GrantChanges
from personal_server.granting.grant_successors import rename_access
from personal_server.granting.holdings import (
    HeldGrant,
    Holding,
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
from personal_server.storage.authorization import (
    AuditRow,
    AuthorizationReader,
    AuthorizationStore,
    EventRow,
    HeldQuery,
    ReadingAlarmRow,
    ReadingLimitsRow,
    ReviewArtifactRow,
    SubscriptionRow,
    TokenRow,
)
from personal_server.storage.catalog import Catalog, Catalogs
from personal_server.storage.ports import DisclosureQuery, DisclosureStore

# Grants and packages as the owner's pages show them.  Pure.


REASONS: Mapping[str, Text] = {
    "owner": message("you ended it"),
    "replaced": message("replaced by a newer one"),
    "client_blocked": message("the app was blocked"),
    "client_disconnected": message("the app gave it back"),
    "code_replay": message("its code was used twice"),
    "refresh_reuse": message("an old refresh token was used again"),
    "not_collected": message("the app never collected it"),
    "idle": message("not used for too long"),
    "restored": message("your records were restored from a backup"),
}
EVENTS: Mapping[str, Text] = {
    "request.approved": message("You allowed it"),
    "grant.created": message("Access was granted"),
    "grant.consumed": message("Its one token was collected"),
    "grant.revoked": message("Access ended"),
    "grant.expired": message("Access reached its end"),
    "grant.paused": message("Access was paused"),
    "grant.resumed": message("Access goes on"),
    "grant.changed": message("Access was changed"),
    "grant.renamed": message("It was given a name"),
    "reading.unusual": message("Its reading was unusual"),
    "package.created": message("Access to several sources was granted"),
    "package.changed": message("Access to several sources was changed"),
    "package.revoked": message("Access ended"),
    "subscription.created": message("It asked to be told when something changes"),
    "subscription.changed": message("How it is told was changed"),
    "subscription.tested": message("A test message was asked for"),
    "subscription.failed": message("It could not be told"),
    "subscription.ended": message("It is told nothing any more"),
    "subscription.deleted": message("It is no longer told of changes"),
    "code.redeemed": message("The app collected its access"),
    "code.replayed": message("Its code was presented a second time"),
    "code.burned": message("Its code was presented wrongly"),
    "device.collected": message("The device collected its access"),
    "token.issued": message("A token was issued"),
    "token.revoked": message("A token was given back"),
    "refresh.rotated": message("The token was renewed"),
    "refresh.repeated": message("The answer to a renewal was given again"),
    "refresh.reused": message("An old refresh token was presented"),
    "refresh.wrong_client": message("Another app presented its refresh token"),
    "refresh.wrong_key": message("Its refresh token was presented without its key"),
}
ACTORS: Mapping[str, Text] = {
    "owner": message("you"),
    "client": message("the app"),
    "server": message("this server"),
    "local_cli": message("this computer"),
}


@dataclass(frozen=True, slots=True)
class TokenView:
    """A token by its reference; the reference opens nothing."""

    reference: str
    issued_at_ns: int
    expires_at_ns: int
    last_used_at_ns: int | None
    revoked_at_ns: int | None


@dataclass(frozen=True, slots=True)
class TokenViews:
    """The newest tokens, and how many there are."""

    newest: tuple[TokenView, ...]
    count: int


@dataclass(frozen=True, slots=True)
class EventView:
    """A line of the history."""

    number: int
    at_ns: int
    said: Text
    event: str
    actor: str


@dataclass(frozen=True, slots=True)
class GivenStream:
    """One stream of a grant, in words."""

    name: str
    label: str
    accounts: tuple[Text, ...]
    fields: tuple[str, ...]
    window: Text
    named_records: int
    limited: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class GivenSource:
    """One grant of a holding."""

    held: HeldGrant
    name: str
    purpose: str | None
    streams: tuple[GivenStream, ...]

    @property
    def status(self) -> Text:
        """What has become of it."""
        return HELD_STATUSES.get(self.held.status, self.held.status)


@dataclass(frozen=True, slots=True)
class HeldView:
    """A grant or package with everything named."""

    held: Holding
    trust_kind: str
    trust: Text
    ended_because: Text | None
    sources: tuple[GivenSource, ...]

    @property
    def status(self) -> Text:
        """What has become of it."""
        return HELD_STATUSES.get(self.held.status, self.held.status)

    @property
    def source_names(self) -> str:
        """The sources in one line."""
        return ", ".join(dict.fromkeys(source.name for source in self.sources))


def held_view(held: Holding, catalog: Catalog) -> HeldView:
    """The view of a holding."""
    kind, trust = trust_mark(held.registration, held.client_id)
    return HeldView(
        held=held,
        trust_kind=kind,
        trust=trust,
        ended_because=REASONS.get(held.reason or "") if held.status == "revoked" else None,
        sources=tuple(_source(grant, catalog) for grant in held.grants),
    )


def event_words(row: AuditRow) -> Text:
    """One line of the timeline."""
    said = EVENTS.get(row.event, row.event.replace(".", " ").replace("_", " "))
    if row.event == "request.approved":
        return said
    because = REASONS.get(str(row.detail.get("reason", "")))
    if because is not None:
        return Joined((said, " (", because, ")"), "")
    return message("%(what)s (by %(who)s)", what=said, who=ACTORS.get(row.actor, row.actor))


def window_of(bound: TimeConstraint | None) -> Text:
    """A granted time window in words; its ends are instants, so they are told to the minute."""
    if bound is None:
        return message("any age")
    name, (since_ns, until_ns) = field_words(bound.field), (bound.since_ns, bound.until_ns)
    if since_ns is None and until_ns is None:
        return name
    if until_ns is None:
        return message("%(field)s from %(since)s", field=name, since=Day(since_ns or 0))
    if since_ns is None:
        return message("%(field)s before %(until)s", field=name, until=Day(until_ns))
    return message(
        "%(field)s from %(since)s before %(until)s",
        field=name,
        since=Day(since_ns),
        until=Day(until_ns),
    )


def _source(held: HeldGrant, catalog: Catalog) -> GivenSource:
    grant = held.grant
    if grant is None:
        return GivenSource(held, held.connector_key, None, ())
    declaration = catalog.declarations.get(grant.source.id)
    name = declaration.display_name if declaration else held.connector_key
    return GivenSource(held, name, grant.purpose_description, _streams(grant, catalog))


_DELETED = message("deleted account")


def _streams(grant: Grant, catalog: Catalog) -> tuple[GivenStream, ...]:
    declaration = catalog.declarations.get(grant.source.id)
    accounts: dict[str, Text] = {
        c.connection_id: c.display_name or c.connection_id for c in catalog.connections
    }
    given: list[GivenStream] = []
    for stream in grant.streams:
        declared = declaration.streams.get(stream.name) if declaration else None
        given.append(
            GivenStream(
                name=stream.name,
                label=declared.label if declared else stream.name,
                accounts=tuple(
                    accounts.get(c, message("deleted account")) for c in stream.instance_ids
                ),
                fields=tuple(field_words(name) for name in stream.fields),
                window=window_of(stream.time_constraint),
                named_records=len(stream.resources or ()),
                limited=limits_said(stream.only),
            )
        )
    return tuple(given)


RECENT_READS, RECENT_TOKENS = 15, 20


@dataclass(frozen=True, slots=True)
class AccessPages:
    """`/owner/access`."""

    authorization: AuthorizationStore
    disclosures: DisclosureStore
    catalogs: Catalogs
    changes: GrantChanges
    pages: Templates
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """Where they stand."""
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
            held = list_held(reader, HeldQuery(now_ns, lasts=lasts), PAGE_LINES + 1, before)
            alarms = {row.held_id for row in open_alarms(reader)}
            counts = [reader.count_held(HeldQuery(now_ns, lasts=each)) for each in (True, False)]
        catalog = self.catalogs()
        views = [held_view(one, catalog) for one in held]
        page = list_page(views, lambda view: render_place(view.held.place))
        reads = {view.held.id: self._last_read(view.held) for view in page.lines if lasts}
        shown = {"page": page, "lasts": lasts, "counts": counts, "newest": before is None}
        shown |= {"last_reads": reads, "alarms": alarms}
        return self.pages.show(visit, "access.html", shown)

    def _last_read(self, held: Holding) -> DisclosureLine | None:
        """What it was given last."""
        query = DisclosureQuery(limit=1, equal=(_held_by(held), ("outcome", SERVED)))
        return next(iter(disclosure_lines(self.disclosures.disclosures(query), {})), None)

    def show_one(self, visit: PageRequest) -> Response:
        """One grant or package, its history by pages.  Raises: NotFound, InvalidRequest."""
        held_id, before = visit.path["id"], parse_number(visit.query.get("before"))
        with self.authorization.read() as reader:
            held = _found(show_held(reader, held_id, self.clock()))
            tokens, binding = _tokens(reader, held), token_binding(reader, held)
            events = _events(reader, held, before)
            artifact = _artifact(reader, held.revision)
            figures = reading_figures(reader, held.id, self.clock())
            told = [_told(reader, row) for row in _subscriptions(reader, held)]
            line = lineage_of(reader, held.id, self.clock())
        query = DisclosureQuery(limit=RECENT_READS, equal=(_held_by(held),))
        reads = disclosure_lines(self.disclosures.disclosures(query), {})
        return self.pages.show(
            visit,
            "access_one.html",
            {
                "one": held_view(held, self.catalogs()),
                "line": _line_view(line, held),
                "most_name_chars": MOST_NAME_CHARS,
                "tokens": tokens,
                "binding": binding,
                "events": list_page(events, lambda event: str(event.number)),
                "newest": before is None,
                "artifact": artifact,
                "reads": reads,
                "told": told,
                "figures": figures,
                "limits": _limits_said(figures.limits),
                "result_chars": (RESULT_CHARS, MOST_RESULT_CHARS),
                "alarms": [alarm_view(row, {}) for row in figures.alarms],
                "csrf": visit.owner().csrf,
            },
        )

    def revoke(self, visit: PageRequest) -> Response:
        """End it; the next request of the app finds it closed.  Raises: NotFound."""
        held_id = visit.path["id"]
        with self.authorization.write() as writer:
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
        held_id, name = visit.path["id"], visit.value("name") or ""
        with self.authorization.write() as writer:
            if not rename_access(writer, held_id, name, acting(visit), self.clock()):
                raise _unknown()
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def pause(self, visit: PageRequest) -> Response:
        """Let it wait.  Raises: NotFound."""
        held_id = visit.path["id"]
        with self.authorization.write() as writer:
            paused = pause_access(writer, held_id, acting(visit), self.clock())
        if paused is None:
            raise _unknown()
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def resume(self, visit: PageRequest) -> Response:
        """Let what waits go on.  Raises: NotFound."""
        held_id = visit.path["id"]
        with self.authorization.write() as writer:
            resumed = resume_access(writer, held_id, acting(visit), self.clock())
        if resumed is None:
            raise _unknown()
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def dismiss(self, visit: PageRequest) -> Response:
        """Dismiss what was unusual.  Raises: NotFound."""
        held_id = visit.path["id"]
        with self.authorization.write() as writer:
            _found(show_held(writer, held_id, self.clock()))
            dismiss_alarms(writer, held_id, acting(visit), self.clock())
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def told(self, visit: PageRequest) -> Response:
        """Pause a subscription of it, let it go on, or delete it.

        Raises: NotFound, InvalidRequest.
        """
        held_id, now_ns = visit.path["id"], self.clock()
        with self.authorization.write() as writer:
            held = _found(show_held(writer, held_id, now_ns))
            wanted = visit.path["subscription"]
            rows = [r for r in _subscriptions(writer, held) if r.subscription_id == wanted]
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
                    raise InvalidRequest("Choose what to do with it.", param="action")
        return self.pages.go(visit, f"/owner/access/{held_id}")

    def limit(self, visit: PageRequest) -> Response:
        """Set how much may be read on a day.  Raises: NotFound, InvalidRequest."""
        held_id = visit.path["id"]
        limits = parse_limits(visit, held_id)
        with self.authorization.write() as writer:
            held = _found(show_held(writer, held_id, self.clock()))
            limit_reading(writer, limits, acting(visit), self.clock())
            if not limits.events:
                grant_ids = {grant.grant_id for grant in held.grants}
                pause_all(writer, grant_ids, acting(visit), self.clock())
        return self.pages.go(visit, f"/owner/access/{held_id}")


@dataclass(frozen=True, slots=True)
class AlarmView:
    """Something unusual, in words."""

    at_ns: int
    held_id: str
    who: str
    rule: str
    said: Text
    paused: bool


def alarm_view(row: ReadingAlarmRow, names: Mapping[str, str]) -> AlarmView:
    """The view of an alarm; `names` of clients by id."""
    who = names.get(row.client_id or "", row.client_id or row.held_id)
    return AlarmView(row.at_ns, row.held_id, who, row.rule, alarm_words(row), row.paused)


STATUSES: Mapping[str, Text] = {
    "pending_verification": message("waits until its address answers"),
    "active": message("is told"),
    "disabled": message("paused"),
    "disabled_failure": message("given up: its address did not answer"),
    "disabled_revoked": message("over"),
}
RECENT_EVENTS = 10


@dataclass(frozen=True, slots=True)
class ToldEvent:
    """A message on its way, or what became of it."""

    at_ns: int
    said: Text


@dataclass(frozen=True, slots=True)
class ToldView:
    """A subscription in words, and its newest messages."""

    row: SubscriptionRow
    status: Text
    events: tuple[ToldEvent, ...]


def _subscriptions(reader: AuthorizationReader, held: Holding) -> list[SubscriptionRow]:
    grants = {grant.grant_id for grant in held.grants}
    return [row for row in subscription_list(reader) if row.grant_id in grants]


def _told(reader: AuthorizationReader, row: SubscriptionRow) -> ToldView:
    of_it = EventRow.subscription_id.equals(row.subscription_id)
    newest = reader.rows(
        EventRow, of_it, order=EventRow.created_at_ns, descending=True, limit=RECENT_EVENTS
    )
    return ToldView(row, STATUSES[row.status], tuple(_event(each) for each in newest))


def _event(row: EventRow) -> ToldEvent:
    what = row.stream or row.type.removeprefix("pdpp.").replace(".", " ")
    how = (row.outcome or "waits").replace("_", " ")
    said: Text = Joined((what, how), ": ")
    if row.attempts > 1:
        said = message("%(said)s, attempt %(number)s", said=said, number=row.attempts)
    return ToldEvent(row.done_at_ns or row.created_at_ns, said)


def _limits_said(limits: ReadingLimitsRow) -> Text:
    """What may be read on a day, how long results may be, and whether an alarm pauses it."""
    given = (
        (limits.records_per_day, message("records")),
        (limits.requests_per_day, message("requests")),
        (limits.bytes_per_day, message("bytes")),
    )
    parts: list[Text] = [
        message("at most %(most)s %(what)s", most=most, what=what)
        for most, what in given
        if most is not None
    ] or [message("no limit of its own")]
    if limits.result_chars is not None:
        parts.append(message("results of up to %(most)s characters", most=limits.result_chars))
    if limits.pauses is not None:
        paused, never = message("paused after an alarm"), message("never paused by an alarm")
        parts.append(paused if limits.pauses else never)
    if limits.events:
        parts.append(message("told when something changes"))
    return Joined(tuple(parts))


_PAUSES = {"": None, "yes": True, "no": False}
_MOST = 10**15


def parse_limits(visit: PageRequest, held_id: str) -> ReadingLimitsRow:
    """The limits of a form; an empty field is no limit.  Raises: InvalidRequest."""
    pauses = visit.value("pauses") or ""
    if pauses not in _PAUSES:
        raise InvalidRequest("Choose whether an alarm pauses it.", param="pauses")
    return ReadingLimitsRow(
        held_id=held_id,
        records_per_day=_most(visit, "records_per_day"),
        bytes_per_day=_most(visit, "bytes_per_day"),
        requests_per_day=_most(visit, "requests_per_day"),
        pauses=_PAUSES[pauses],
        result_chars=_result_chars(visit),
        events=visit.value("events") == "yes" or None,
    )


def _result_chars(visit: PageRequest) -> int | None:
    chars = _most(visit, "result_chars")
    if chars is not None and not RESULT_CHARS <= chars <= MOST_RESULT_CHARS:
        raise InvalidRequest(
            message(
                "A result has %(least)s to %(most)s characters.",
                least=RESULT_CHARS,
                most=MOST_RESULT_CHARS,
            ),
            param="result_chars",
        )
    return chars


def _most(visit: PageRequest, name: str) -> int | None:
    text = (visit.value(name) or "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:16]) < _MOST:
        raise InvalidRequest("Give a whole number above 0, or nothing.", param=name)
    return int(text)


@dataclass(frozen=True, slots=True)
class LineView:
    """What an access was before, the newest first, and what it is now if it was changed since."""

    before: tuple[Holding, ...]
    now: Holding | None


def _line_view(line: Sequence[Holding], held: Holding) -> LineView:
    at = [one.id for one in line].index(held.id)
    return LineView(tuple(reversed(line[:at])), line[-1] if at < len(line) - 1 else None)


def _held_by(held: Holding) -> tuple[str, str]:
    """The condition on disclosures that were made under it."""
    return ("package_id" if held.kind == "mcp_package" else "grant_id", held.id)


def _found(held: Holding | None) -> Holding:
    if held is None:
        raise _unknown()
    return held


def _unknown() -> NotFound:
    return NotFound("There is no such access.", next_step="See the list of who has access.")


def _tokens(reader: AuthorizationReader, held: Holding) -> TokenViews:
    column = TokenRow.package_id if held.kind == "mcp_package" else TokenRow.grant_id
    of_it = column.equals(held.id)
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


def _events(reader: AuthorizationReader, held: Holding, before: int | None) -> list[EventView]:
    """The newest events below a number, one more than a page shows."""
    older = () if before is None else (AuditRow.event_id.below(before),)
    of_it = [AuditRow.package_id.equals(held.id)]
    of_it += [AuditRow.grant_id.equals(grant.grant_id) for grant in held.grants]
    rows = {
        row.event_id: row
        for each in of_it
        for row in reader.rows(
            AuditRow,
            each,
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
