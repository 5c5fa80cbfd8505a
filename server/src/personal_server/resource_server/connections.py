"""The owner's connections.  Source: docs/contract/resource-server.md 14.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import msgspec

from pdpp_kernel.errors import (
    ConfirmationRequired,
    ConnectionBusy,
    ConnectionNotFound,
    InvalidCursor,
    InvalidRequest,
    InvalidState,
    NotFound,
)
from pdpp_kernel.values import instant_ns, render_instant
from pdpp_kernel.wire_objects import ConnectionId, Count, Instant, WireObject, Word
from personal_server.collecting.connection_status import (
    OWNER_ACTIONS,
    move_connection,
    possible_actions,
)
from personal_server.collecting.connections import create_connection, rename_connection
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.stored import (
    Collection,
    CollectionRun,
    RunStatus,
)
from personal_server.enforcement.queries import DEFAULT_LIMIT, MAX_LIMIT
from personal_server.reading.freshness import Freshness, ShownFreshness, connection_freshness
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.envelopes import (
    Deletion,
    KeptBackups,
    ListOf,
    Meta,
    SelfLink,
    ShownSource,
    completed,
    page_of,
    shown_source,
)
from personal_server.resource_server.owner_lists import named_page
from personal_server.storage.ports.snapshots import (
    READ_DEADLINE_SECONDS,
    ReadSnapshot,
)
from personal_server.web.bodies import json_body, parse_body
from personal_server.web.parameters import CURSOR, Parameter, page_limit
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import Route, owner

ROOT = "/v1/owner/connections"
ONE = f"{ROOT}/{{id}}"
PAGE = (page_limit(DEFAULT_LIMIT, MAX_LIMIT), CURSOR)
CONNECTOR = Parameter(
    "connector_id", "Only connections of this connector: key or URI.", empty_is_absent=True
)
STATUS = Parameter("status", "Only this status.", choices=tuple(s.value for s in ConnectionStatus))
RUN_EXAMPLE = {"run_id": "run_1", "status": "succeeded", "at": "2026-03-14T06:30:00Z"}
CONFIRM = Parameter(
    "confirm", "The connection's id again, as confirmation.", error=ConfirmationRequired
)


class NewConnection(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a connection."""

    connector_key: str
    display_name: str | None = None


class Naming(msgspec.Struct, forbid_unknown_fields=True):
    """The body that names a connection."""

    display_name: str | None


class RunReport(msgspec.Struct, forbid_unknown_fields=True):
    """The body that reports a collection run."""

    run_id: str
    status: RunStatus
    at: str


class ShownRun(WireObject):
    """The last collection run of a connection."""

    run_id: Word
    status: RunStatus
    at: Instant


class ShownConnection(WireObject, kw_only=True, tag_field="object", tag="owner_connection"):
    """A connection as its owner sees it."""

    connection_id: ConnectionId
    connector_key: Word
    connector_id: Word
    source: ShownSource
    display_name: str | None
    label_status: Literal["owner_set", "fallback"]
    status: ConnectionStatus
    record_count: Count
    last_run: ShownRun | None
    freshness: ShownFreshness
    created_at: Instant
    updated_at: Instant
    revoked_at: Instant | None
    supported_actions: Sequence[Word]


class SingleConnection(ShownConnection, kw_only=True):
    """One connection."""

    component: ClassVar = "Connection"

    links: SelfLink
    meta: Meta


class ConnectionList(ListOf[ShownConnection]):
    """A page of connections."""

    component: ClassVar = "ConnectionList"


class _ConnectionContext(msgspec.Struct, frozen=True):
    """What connection rows are drawn from, in one snapshot."""

    connections: Sequence[Connection]
    source_kinds: dict[str, str]
    counts: dict[str, int]
    collections: dict[str, Collection]
    freshness: Callable[[Connection], Freshness]


class OwnerConnections:
    """The routes of one store."""

    def __init__(self, ports: ReadPorts, kept_backups: KeptBackups) -> None:
        self._ports = ports
        self._kept_backups = kept_backups

    def routes(self) -> tuple[Route, ...]:
        """The owner's routes for connections (contract 14.2)."""
        return (
            owner(
                Route(
                    "GET",
                    ROOT,
                    self.list,
                    "Your connections.",
                    "14.2",
                    answer=ConnectionList,
                    parameters=(CONNECTOR, STATUS, *PAGE),
                    errors=(InvalidCursor,),
                )
            ),
            owner(
                Route(
                    "POST",
                    ROOT,
                    self.create,
                    "Adds a connection (draft).",
                    "14.2",
                    answer=SingleConnection,
                    success=201,
                    body=json_body(NewConnection, {"connector_key": "journal"}),
                    errors=(NotFound,),
                )
            ),
            owner(_one("GET", ONE, self.get, "One connection.")),
            owner(
                replace(
                    _one("PATCH", ONE, self.rename, "Names a connection."),
                    body=json_body(Naming, {"display_name": "Paper diary"}),
                )
            ),
            *(
                owner(
                    replace(
                        _one("POST", f"{ONE}/{action}", self.move, _WORDS[action]),
                        errors=(ConnectionNotFound, InvalidState),
                    )
                )
                for action in OWNER_ACTIONS
            ),
            owner(
                replace(
                    _one("POST", f"{ONE}/runs", self.report_run, "Reports a collection run."),
                    success=202,
                    body=json_body(RunReport, RUN_EXAMPLE),
                )
            ),
            owner(
                replace(
                    _one("DELETE", ONE, self.erase, "Erases a connection and all that it holds."),
                    answer=Deletion,
                    parameters=(CONFIRM,),
                    errors=(ConnectionNotFound, ConnectionBusy),
                )
            ),
        )

    def list(self, request: Request) -> Reply:
        """`GET /v1/owner/connections`."""
        connector = request.parameters.texts.get("connector_id")
        status = request.parameters.texts.get("status")
        with self._ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            shown = self._shown(snapshot, request.authority)
            items = [
                (connection.connection_id, connection)
                for connection in shown.connections
                if connector in (None, connection.connector_key, connection.source_id)
                and status in (None, connection.status.value)
            ]
            page, cursor = named_page(request, self._ports.sealer, items)
            rows = [_connection_row(shown, found) for found in page]
        return Reply(page_of(ConnectionList, request, rows, next_cursor=cursor))

    def create(self, request: Request) -> Reply:
        """`POST /v1/owner/connections`."""
        asked = parse_body(request.body, NewConnection)
        declaration = self._ports.store.declaration(asked.connector_key, None)
        made = create_connection(
            self._ports.store,
            declaration,
            asked.display_name,
            request.now_ns,
            self._ports.random_bytes,
        )
        return self._row(request, made.connection_id, 201)

    def get(self, request: Request) -> Reply:
        """`GET /v1/owner/connections/{id}`."""
        return self._row(request, request.path["id"])

    def rename(self, request: Request) -> Reply:
        """`PATCH /v1/owner/connections/{id}`."""
        name = parse_body(request.body, Naming).display_name
        rename_connection(self._ports.store, request.path["id"], name, request.now_ns)
        return self._row(request, request.path["id"])

    def move(self, request: Request) -> Reply:
        """`POST …/{id}/pause`, `/resume`, `/revoke`, `/reactivate`."""
        action = request.route_name.rpartition("/")[2]
        move_connection(self._ports.store, request.path["id"], action, request.now_ns)
        return self._row(request, request.path["id"])

    def report_run(self, request: Request) -> Reply:
        """`POST …/{id}/runs`."""
        report = parse_body(request.body, RunReport)
        at_ns = instant_ns(report.at)
        if at_ns is None:
            raise InvalidRequest("'at' must be an RFC 3339 time with offset.", param="at")
        if not 1 <= len(report.run_id) <= 128:
            raise InvalidRequest("'run_id' has 1 to 128 characters.", param="run_id")
        run = CollectionRun(report.run_id, report.status, at_ns)
        self._ports.store.record_run(request.path["id"], run)
        return self._row(request, request.path["id"], 202)

    def erase(self, request: Request) -> Reply:
        """`DELETE /v1/owner/connections/{id}`."""
        connection_id = request.path["id"]
        if request.parameters.texts.get("confirm") != connection_id:
            raise ConfirmationRequired(
                "This erases everything in the account. Repeat the account's id in confirm.",
                param="confirm",
            )
        count = self._ports.store.erase_connection(connection_id, request.now_ns)
        kept = list(self._kept_backups())
        return Reply(Deletion(connection_id=connection_id, deleted_count=count, kept_backups=kept))

    def _row(self, request: Request, connection_id: str, status: int = 200) -> Reply:
        with self._ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            connection = _known(snapshot, connection_id)
            row = _connection_row(self._shown(snapshot, request.authority), connection)
        return Reply(completed(SingleConnection, request, row), status=status)

    def _shown(self, snapshot: ReadSnapshot, authority: ReadAuthority) -> _ConnectionContext:
        counts: dict[str, int] = {}
        for stored in snapshot.stored_streams():
            counts[stored.connection_id] = counts.get(stored.connection_id, 0) + stored.record_count
        collections = dict(snapshot.collections())
        times, now_ns = self._ports.capture_times, self._ports.clock()

        def freshness(connection: Connection) -> Freshness:
            cid = connection.connection_id
            sources = [s for s in authority.sources if s.connection_id == cid]
            return connection_freshness(snapshot, times, sources, collections.get(cid), now_ns)

        kinds = {d.connector_key: d.source_kind for d in snapshot.declarations()}
        return _ConnectionContext(snapshot.connections(), kinds, counts, collections, freshness)


_WORDS = {
    "pause": "Pauses collection.",
    "resume": "Resumes collection.",
    "revoke": "Ends collection and every disclosure; keeps the data.",
    "reactivate": "Takes a revocation back.",
}


def _known(snapshot: ReadSnapshot, connection_id: str) -> Connection:
    for connection in snapshot.connections():
        if connection.connection_id == connection_id:
            return connection
    raise ConnectionNotFound("There is no account with this connection_id.", param="id")


def _connection_row(shown: _ConnectionContext, connection: Connection) -> ShownConnection:
    collection = shown.collections.get(connection.connection_id)
    revoked_ns = connection.revoked_at_ns
    kind = shown.source_kinds.get(connection.connector_key, "connector")
    return ShownConnection(
        connection_id=connection.connection_id,
        connector_key=connection.connector_key,
        connector_id=connection.connector_key,
        source=shown_source(kind, connection.source_id),
        display_name=connection.display_name,
        label_status="fallback" if connection.display_name is None else "owner_set",
        status=connection.status,
        record_count=shown.counts.get(connection.connection_id, 0),
        last_run=_run(collection.last_run if collection is not None else None),
        freshness=shown.freshness(connection).render(),
        created_at=render_instant(connection.created_at_ns),
        updated_at=render_instant(connection.updated_at_ns),
        revoked_at=None if revoked_ns is None else render_instant(revoked_ns),
        supported_actions=[*possible_actions(connection.status), "rename", "delete"],
    )


def _run(run: CollectionRun | None) -> ShownRun | None:
    if run is None:
        return None
    return ShownRun(run_id=run.run_id, status=run.status, at=render_instant(run.at_ns))


def _one(method: str, pattern: str, answer: Callable[[Request], Reply], summary: str) -> Route:
    return Route(
        method,
        pattern,
        answer,
        summary,
        "14.2",
        answer=SingleConnection,
        errors=(ConnectionNotFound,),
    )
