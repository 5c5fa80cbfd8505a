"""Records in: NDJSON lines of one stream of one connection.

Source: docs/contract/resource-server.md 13.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, BinaryIO, ClassVar

import msgspec

from pdpp_kernel.errors import (
    ConnectionBusy,
    ConnectionNotWritable,
    NotFound,
)
from pdpp_kernel.wire_objects import (
    ConnectionId,
    Count,
    WireObject,
    Word,
)
from personal_server.collecting.ingest import LineCode, LineRejection, ingest
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.write_targets import (
    TARGET,
    TARGET_ERRORS,
    check_writable,
    declaration_of,
    declared_stream,
    target_of,
)
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS
from personal_server.web.parameters import Parameter
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import BodyRule, Route, collector

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


RECORDS = "/v1/streams/{stream}/records"
