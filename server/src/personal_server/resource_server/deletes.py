"""Deletes of records by their owner.  Source: docs/contract/resource-server.md 13.3."""

from __future__ import annotations

from pdpp_kernel.errors import ConfirmationRequired, NotFound
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.envelopes import Deletion, KeptBackups
from personal_server.resource_server.write_targets import (
    TARGET,
    TARGET_ERRORS,
    declaration_of,
    declared_stream,
    target_of,
)
from personal_server.resource_server.writes import RECORDS
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS
from personal_server.web.parameters import Parameter
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import Route, owner

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
            raise NotFound("There is no such record here.", param="record_key")
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
                "This deletes every record of the stream. Repeat the stream's name in confirm.",
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
