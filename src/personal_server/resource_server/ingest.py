"""Records in: NDJSON lines of one stream of one connection.  Source: RS contract 13.1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from personal_server.collecting.ingest import LineRejection, ingest
from personal_server.errors import ConnectionBusy, ConnectionNotWritable, NotFound
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.targets import (
    TARGET,
    TARGET_ERRORS,
    check_writable,
    declaration_of,
    declared_stream,
    target_of,
)
from personal_server.storage.catalog import KnownDeclarations
from personal_server.storage.ports import READ_DEADLINE_SECONDS
from personal_server.web.parameters import Parameter
from personal_server.web.requests import Request
from personal_server.web.responses import Reply
from personal_server.web.routing import BodyRule, Route, owner

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


class Ingest:
    """The route of one store."""

    def __init__(self, ports: ReadPorts, declarations: KnownDeclarations) -> None:
        self._ports = ports
        self._declarations = declarations

    def routes(self) -> tuple[Route, ...]:
        """`POST /v1/ingest/{stream}`."""
        return (
            owner(
                Route(
                    "POST",
                    "/v1/ingest/{stream}",
                    self.ingest,
                    "Writes records, line by line; good lines commit together.",
                    "13.1",
                    answer="IngestResult",
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
            run_id=request.parameters.text("run_id"),
        )
        return Reply(
            {
                "object": "ingest_result",
                "stream": stream.name,
                "connection_id": connection.connection_id,
                "records_attempted": result.records_attempted,
                "records_accepted": result.records_accepted,
                "records_changed": result.records_changed,
                "records_rejected": result.records_rejected,
                "errors": [],
                "rejections": [_rejection(each) for each in result.rejections],
            }
        )


def _lines(spool: BinaryIO | None) -> Iterator[bytes]:
    lines: Iterable[bytes] = spool or ()
    for line in lines:
        yield line.rstrip(b"\r\n")


def _rejection(rejection: LineRejection) -> dict[str, object]:
    members: dict[str, object] = {
        "input_index": rejection.input_index,
        "receipt_id": rejection.receipt_id,
        "code": rejection.code,
        "message": rejection.message,
    }
    if rejection.path is not None:
        members["path"] = rejection.path
    return members
