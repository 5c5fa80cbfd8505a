"""Collector states of one connection.  Source: docs/contract/resource-server.md 13.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
import orjson

from pdpp_kernel.errors import BodyTooLarge, InvalidRequest, NotFound
from pdpp_kernel.values import render_instant
from pdpp_kernel.wire_objects import ConnectionId, Instant, RawObject, WireObject, Word, raw_json
from personal_server.collecting.receipts import MEMBER, is_own, own_places
from personal_server.domain.connection import Connection
from personal_server.domain.stored import StreamState
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.write_targets import (
    CONNECTION_TARGET,
    TARGET_ERRORS,
    declaration_of,
    declared_stream,
    target_of,
)
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS
from personal_server.web.bodies import json_body, parse_body
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import Route, collector

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
            if is_own(stream, value):
                raise InvalidRequest(
                    f"A bookmark cannot be an object with the one member '{MEMBER}'.",
                    param=f"state.{stream}",
                )
        present = self._ports.store.state(connection.connection_id).state
        if len(orjson.dumps({**_bookmarks(present), **changes})) > MAX_STATE_BYTES:
            raise BodyTooLarge(
                (f"The bookmarks of an account can have at most {MAX_STATE_BYTES} bytes."),
                param="state",
            )
        # What imports kept in a bookmark moves out of it; the rest an import may write meanwhile.
        moved = {name: own for name, own in own_places(present).items() if name not in present}
        changed = self._ports.store.put_state(
            connection.connection_id, {**moved, **changes}, request.now_ns
        )
        return _reply(connection, changed)


def _bookmarks(state: Mapping[str, object]) -> dict[str, object]:
    """What collectors left."""
    return {name: value for name, value in state.items() if not is_own(name, value)}


def _reply(connection: Connection, state: StreamState) -> Reply:
    updated_ns = state.updated_at_ns
    return Reply(
        ShownState(
            connector_id=connection.connector_key,
            connection_id=connection.connection_id,
            grant_id=None,
            state=raw_json(_bookmarks(state.state)),
            updated_at=None if updated_ns is None else render_instant(updated_ns),
        )
    )
