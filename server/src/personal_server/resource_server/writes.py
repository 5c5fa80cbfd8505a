"""Records in: NDJSON lines of one stream of one connection.

Source: docs/contract/resource-server.md 13.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, BinaryIO, ClassVar

import msgspec
import orjson

from pdpp_kernel.declaration import SourceDeclaration, Stream
from pdpp_kernel.errors import (
    AmbiguousConnection,
    BodyTooLarge,
    ConfirmationRequired,
    ConnectionBusy,
    ConnectionNotFound,
    ConnectionNotWritable,
    NotFound,
)
from pdpp_kernel.values import render_instant
from pdpp_kernel.wire_objects import (
    ConnectionId,
    Count,
    Instant,
    RawObject,
    WireObject,
    Word,
    raw_json,
)
from personal_server.collecting.connections import write_target
from personal_server.collecting.ingest import LineCode, LineRejection, ingest
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.envelopes import Deletion, KeptBackups
from personal_server.storage.catalog import KnownDeclarations
from personal_server.storage.ports import READ_DEADLINE_SECONDS, ReadSnapshot, StreamState
from personal_server.web.bodies import json_body, parse_body
from personal_server.web.parameters import Parameter
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import BodyRule, Route, collector, owner

# The target of a write: which connection, which declared stream.
# Source: docs/contract/resource-server.md 13.


CONNECTION_TARGET = (
    Parameter("connection_id", "The connection.", empty_is_absent=True),
    Parameter(
        "connector_instance_id",
        "Deprecated spelling of `connection_id`.",
        empty_is_absent=True,
        alias_of="connection_id",
    ),
)
TARGET = (
    *CONNECTION_TARGET,
    Parameter(
        "connector_id",
        "Instead: a connector with exactly one connection that is not revoked.",
        empty_is_absent=True,
    ),
)
TARGET_ERRORS = (ConnectionNotFound, AmbiguousConnection)


def target_of(request: Request, snapshot: ReadSnapshot, connector: str | None = None) -> Connection:
    """The connection a request names in its query; `connector` if the path names one.

    For a collector it is its own, which it need not name; others do not exist for it.
    Raises: InvalidRequest, ConnectionNotFound, AmbiguousConnection.
    """
    named = request.parameters.texts.get("connector_id") if connector is None else connector
    own = request.authority.collects_for
    connection_id = request.parameters.texts.get("connection_id") or own
    if own is not None and connection_id != own:
        raise ConnectionNotFound("This token writes to another connection.", param="connection_id")
    return write_target(snapshot, connection_id, named)


def declaration_of(
    snapshot: ReadSnapshot, known: KnownDeclarations, connection: Connection
) -> SourceDeclaration | None:
    """The current declaration of a connection's source."""
    for stored in snapshot.declarations():
        if stored.connector_key == connection.connector_key:
            return known.one(stored)
    return None


def declared_stream(declaration: SourceDeclaration | None, stream: str, param: str) -> Stream:
    """A stream that the source declares now.  Raises: NotFound."""
    found = None if declaration is None else declaration.streams.get(stream)
    if found is None:
        raise NotFound("The source declares no such stream.", param=param)
    return found


def check_writable(connection: Connection) -> None:
    """Raise: ConnectionNotWritable."""
    if connection.status is ConnectionStatus.REVOKED:
        raise ConnectionNotWritable(
            "This connection is revoked; reactivate it before writing.", param="connection_id"
        )


MAX_BODY_BYTES = 50 * 1024 * 1024
RUN_ID = Parameter("run_id", "The collection run these lines belong to.", max_chars=128)
LINES = BodyRule(
    media_types=("application/x-ndjson",),
    limit_bytes=MAX_BODY_BYTES,
    schema={
        "type": "string",
        "description": "One object per line: {key?, data, emitted_at, op?, stream?}.",
    },
    spooled=True,
    example='{"key":"ent_41","data":{"id":"ent_41"},"emitted_at":"2026-03-14T06:30:00Z"}\n',
)


class ShownRefusal(WireObject):
    """A line that was refused, and why."""

    input_index: Count
    receipt_id: Word
    code: LineCode
    message: str
    path: str | None = None


class ShownIngest(WireObject, tag_field="object", tag="ingest_result"):
    """What became of the lines of a call."""

    component: ClassVar = "IngestResult"
    example: ClassVar = {
        "object": "ingest_result",
        "stream": "entries",
        "connection_id": "cin_diary",
        "records_attempted": 3,
        "records_accepted": 2,
        "records_changed": 1,
        "records_rejected": 1,
        "errors": [],
        "rejections": [
            {
                "input_index": 2,
                "receipt_id": "rr_5Kd7",
                "code": "record_schema_violation",
                "path": "/title",
                "message": "expected string",
            }
        ],
    }

    stream: Word
    connection_id: ConnectionId
    records_attempted: Count
    records_accepted: Count
    records_changed: Count
    records_rejected: Count
    errors: Annotated[tuple[Any, ...], msgspec.Meta(max_length=0)]
    rejections: Annotated[Sequence[ShownRefusal], msgspec.Meta(max_length=1_000)]


class Ingest:
    """The route of one store."""

    def __init__(self, ports: ReadPorts, declarations: KnownDeclarations) -> None:
        self._ports = ports
        self._declarations = declarations

    def routes(self) -> tuple[Route, ...]:
        """`POST /v1/ingest/{stream}`."""
        return (
            collector(
                Route(
                    "POST",
                    "/v1/ingest/{stream}",
                    self.ingest,
                    "Writes records, line by line; good lines commit together.",
                    "13.1",
                    answer=ShownIngest,
                    parameters=(*TARGET, RUN_ID),
                    body=LINES,
                    errors=(*TARGET_ERRORS, NotFound, ConnectionNotWritable, ConnectionBusy),
                    has_deadline=False,
                )
            ),
        )

    def ingest(self, request: Request) -> Reply:
        """Check and commit the lines of the body."""
        with self._ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            connection = target_of(request, snapshot)
            declaration = declaration_of(snapshot, self._declarations, connection)
        stream = declared_stream(declaration, request.path["stream"], "stream")
        check_writable(connection)
        result = ingest(
            self._ports.store,
            connection.connection_id,
            stream,
            _lines(request.spool),
            now_ns=request.now_ns,
            new_receipt_id=lambda: f"rr_{self._ports.random_bytes(9).hex()}",
            run_id=request.parameters.texts.get("run_id"),
        )
        return Reply(
            ShownIngest(
                stream=stream.name,
                connection_id=connection.connection_id,
                records_attempted=result.records_attempted,
                records_accepted=result.records_accepted,
                records_changed=result.records_changed,
                records_rejected=result.records_rejected,
                errors=(),
                rejections=[_refusal(each) for each in result.rejections],
            )
        )


def _lines(spool: BinaryIO | None) -> Iterator[bytes]:
    lines: Iterable[bytes] = spool or ()
    for line in lines:
        yield line.rstrip(b"\r\n")


def _refusal(rejection: LineRejection) -> ShownRefusal:
    return ShownRefusal(
        input_index=rejection.input_index,
        receipt_id=rejection.receipt_id,
        code=rejection.code,
        message=rejection.message,
        path=rejection.path,
    )


# Deletes of records by their owner.  Source: docs/contract/resource-server.md 13.3.


RECORDS = "/v1/streams/{stream}/records"
CONFIRM = Parameter(
    "confirm", "The stream's name again, as confirmation.", error=ConfirmationRequired
)


class Deletes:
    """The routes of one store."""

    def __init__(
        self, ports: ReadPorts, declarations: KnownDeclarations, kept_backups: KeptBackups
    ) -> None:
        self._ports = ports
        self._declarations = declarations
        self._kept_backups = kept_backups

    def routes(self) -> tuple[Route, ...]:
        """One record, or all of a stream."""
        return (
            owner(
                Route(
                    "DELETE",
                    f"{RECORDS}/{{record_key}}",
                    self.one,
                    "Deletes a record.",
                    "13.3",
                    success=204,
                    also={200: Deletion},
                    parameters=TARGET,
                    errors=(*TARGET_ERRORS, NotFound),
                )
            ),
            owner(
                Route(
                    "DELETE",
                    RECORDS,
                    self.all,
                    "Deletes all records of a stream.",
                    "13.3",
                    answer=Deletion,
                    parameters=(*TARGET, CONFIRM),
                    errors=(*TARGET_ERRORS, NotFound),
                )
            ),
        )

    def one(self, request: Request) -> Reply:
        """`DELETE /v1/streams/{stream}/records/{record_key}`."""
        connection_id, stream = self._place(request)
        key = request.path["record_key"]
        if not self._ports.store.delete_record(connection_id, stream, key, request.now_ns):
            raise NotFound("No such record here.", param="record_key")
        kept = list(self._kept_backups())
        if not kept:
            return Reply(status=204)
        return Reply(
            Deletion(stream=stream, connection_id=connection_id, deleted_count=1, kept_backups=kept)
        )

    def all(self, request: Request) -> Reply:
        """`DELETE /v1/streams/{stream}/records?confirm=<stream>`."""
        if request.parameters.texts.get("confirm") != request.path["stream"]:
            raise ConfirmationRequired(
                "This deletes every record of the stream; repeat its name in confirm.",
                param="confirm",
            )
        connection_id, stream = self._place(request)
        count = self._ports.store.delete_stream(connection_id, stream, request.now_ns)
        kept = list(self._kept_backups())
        return Reply(
            Deletion(
                stream=stream, connection_id=connection_id, deleted_count=count, kept_backups=kept
            )
        )

    def _place(self, request: Request) -> tuple[str, str]:
        with self._ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            connection = target_of(request, snapshot)
            declaration = declaration_of(snapshot, self._declarations, connection)
        stream = declared_stream(declaration, request.path["stream"], "stream")
        return connection.connection_id, stream.name


# Collector bookmarks of one connection.  Source: docs/contract/resource-server.md 13.2.


PATTERN = "/v1/state/{connector_key}"
MAX_STATE_BYTES = 256 * 1024


class StateChange(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a change: bookmarks by stream; `null` removes one."""

    state: dict[str, Any]


class ShownState(WireObject, tag_field="object", tag="stream_state"):
    """The bookmarks of a connection."""

    component: ClassVar = "StreamState"

    connector_id: Word
    connection_id: ConnectionId
    grant_id: None
    state: RawObject
    updated_at: Instant | None


class CollectorState:
    """The routes of one store."""

    def __init__(self, ports: ReadPorts, declarations: KnownDeclarations) -> None:
        self._ports = ports
        self._declarations = declarations

    def routes(self) -> tuple[Route, ...]:
        """Read and replace."""
        return (
            collector(
                Route(
                    "GET",
                    PATTERN,
                    self.get,
                    "A collector's bookmarks.",
                    "13.2",
                    answer=ShownState,
                    parameters=CONNECTION_TARGET,
                    errors=TARGET_ERRORS,
                )
            ),
            collector(
                Route(
                    "PUT",
                    PATTERN,
                    self.put,
                    "Replaces bookmarks per stream.",
                    "13.2",
                    answer=ShownState,
                    parameters=CONNECTION_TARGET,
                    body=json_body(
                        StateChange,
                        {"state": {"entries": {"since": "2026-03-14"}}},
                        limit_bytes=MAX_STATE_BYTES,
                    ),
                    errors=(*TARGET_ERRORS, NotFound),
                )
            ),
        )

    def get(self, request: Request) -> Reply:
        """`GET /v1/state/{connector_key}`."""
        with self._ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            connection = target_of(request, snapshot, request.path["connector_key"])
        return _reply(connection, self._ports.store.state(connection.connection_id))

    def put(self, request: Request) -> Reply:
        """`PUT /v1/state/{connector_key}`."""
        changes = parse_body(request.body, StateChange).state
        with self._ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            connection = target_of(request, snapshot, request.path["connector_key"])
            declaration = declaration_of(snapshot, self._declarations, connection)
        for stream, value in changes.items():
            if value is not None:
                declared_stream(declaration, stream, f"state.{stream}")
        present = self._ports.store.state(connection.connection_id).state
        if len(orjson.dumps({**present, **changes})) > MAX_STATE_BYTES:
            raise BodyTooLarge(
                f"The bookmarks of a connection may have {MAX_STATE_BYTES} bytes.", param="state"
            )
        changed = self._ports.store.put_state(connection.connection_id, changes, request.now_ns)
        return _reply(connection, changed)


def _reply(connection: Connection, state: StreamState) -> Reply:
    updated_ns = state.updated_at_ns
    return Reply(
        ShownState(
            connector_id=connection.connector_key,
            connection_id=connection.connection_id,
            grant_id=None,
            state=raw_json(state.state),
            updated_at=None if updated_ns is None else render_instant(updated_ns),
        )
    )
