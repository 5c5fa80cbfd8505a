"""The owner's export of everything.  Source: docs/contract/resource-server.md 14.4."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from threading import BoundedSemaphore

from pdpp_kernel.errors import ConnectionNotFound, NotFound, StorageUnavailable
from personal_server.domain.disclosure import Disclosed
from personal_server.reading.export import (
    Enclosures,
    ExportArchive,
    Extent,
    OwnerExport,
    export_lines,
    extent_of,
)
from personal_server.reading.ports import ReadPorts
from personal_server.web.parameters import Kind, Parameter
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import Route, owner

PARAMETERS = (
    Parameter(
        "format", "Lines, or an archive with blobs.", choices=("ndjson", "tar"), default="ndjson"
    ),
    Parameter("connection_id", "Only this connection.", empty_is_absent=True),
    Parameter("stream", "Only this stream."),
    Parameter("include_blobs", "Archives only.", kind=Kind.BOOLEAN, default=True),
)
MADE_AT_ONCE = 2  # each holds a snapshot open, for as long as the store takes to read it
MEDIA_TYPES = {"ndjson": "application/x-ndjson", "tar": "application/x-tar"}


class ExportRoutes:
    """The route of one store."""

    def __init__(self, ports: ReadPorts, enclosures: Enclosures) -> None:
        self._places = BoundedSemaphore(MADE_AT_ONCE)
        self._ports = ports
        self._enclosures = enclosures

    def routes(self) -> tuple[Route, ...]:
        """`GET /v1/owner/export`."""
        return (
            owner(
                Route(
                    "GET",
                    "/v1/owner/export",
                    self.export,
                    "Everything you have, as NDJSON lines or a tar archive.",
                    "14.4",
                    parameters=PARAMETERS,
                    media_types=tuple(MEDIA_TYPES.values()),
                    errors=(ConnectionNotFound, NotFound),
                    has_deadline=False,
                )
            ),
        )

    def export(self, request: Request) -> Reply:
        """Take one state of the store; what is sent of it waits for its caller, not the store."""
        with ExitStack() as opening:
            if not self._places.acquire(blocking=False):
                raise StorageUnavailable(
                    "Other exports are still being made. Try again when one of them is finished.",
                    retry_after_seconds=10,
                )
            opening.callback(self._places.release)
            snapshot = opening.enter_context(self._ports.snapshot(None))
            connection_id = request.parameters.texts.get("connection_id")
            stream = request.parameters.texts.get("stream")
            extent = extent_of(snapshot, connection_id, stream, self._ports.planted())
            _check(extent, connection_id, stream)
            form = str(request.parameters.texts.get("format"))
            included = request.parameters.flags.get("include_blobs", False)
            open_blob = self._ports.store.open_blob if included else _no_blob
            if form == "ndjson":
                made = export_lines(snapshot, extent, request.now_ns, self._ports.sign_export)
                rest: Iterator[bytes] = iter(())
            else:
                archive = ExportArchive(request.now_ns, sign=self._ports.sign_export)
                made = archive.records(snapshot, extent)
                rest = archive.rest(self._enclosures, open_blob)
            chunks = OwnerExport(made, rest, opening.pop_all().close)
        name = f"personal-data.{'ndjson' if form == 'ndjson' else 'tar'}"
        return Reply(
            chunks=chunks,
            content_type=MEDIA_TYPES[form],
            headers=(("Content-Disposition", f'attachment; filename="{name}"'),),
            disclosed=_disclosed(request, extent),
        )


def _no_blob(blob_id: str) -> None:
    """Archives without blobs."""
    del blob_id


def _check(extent: Extent, connection_id: str | None, stream: str | None) -> None:
    if connection_id is not None and not extent.connections:
        raise ConnectionNotFound(
            "There is no account with this connection_id.", param="connection_id"
        )
    if stream is not None and not extent.streams:
        raise NotFound("No account has records of this stream.", param="stream")


def _disclosed(request: Request, extent: Extent) -> list[Disclosed]:
    counts = {(s.connection_id, s.stream): s.record_count for s in extent.streams}
    return [
        Disclosed(source, source.fields, counts[source.order])
        for source in request.authority.sources
        if counts.get(source.order)
    ]
