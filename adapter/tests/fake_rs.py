"""A recording resource server: small, in memory, answering as docs/contract/resource-server.md
says.

It is an ASGI application, so every door reads it the same way; `script` replaces single answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from adapter.tests.fake_aggregates import aggregate_answer
from adapter.tests.fake_lists import cut_row, envelope, expand_limits, offset_of, passes
from adapter.tests.fake_schema import Catalog
from adapter.tests.fake_search import search_answer
from adapter.tests.fake_sources import Source, record_row
from adapter.tests.fake_windows import window_answer
from adapter.tests.fake_wire import (
    Answer,
    Json,
    Request,
    Script,
    answer_lifespan,
    error_answer,
    refusal,
    request_of,
    write_answer,
)

__all__ = [
    "Answer",
    "FakeRs",
    "Request",
    "Source",
    "error_answer",
    "request_of",
    "write_answer",
]


@dataclass(slots=True)
class FakeRs:
    """The server; `kind` is the token's."""

    sources: list[Source]
    declarations: dict[str, Json]
    kind: str = "client"
    requests: list[Request] = field(default_factory=list[Request])
    script: Script | None = None
    unavailable: list[Json] = field(default_factory=list[Json])
    blobs: dict[str, tuple[str, bytes]] = field(default_factory=dict[str, tuple[str, bytes]])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await answer_lifespan(receive, send)
            return
        request = request_of(scope)
        self.requests.append(request)
        answer = self.script(request) if self.script else None
        if answer is None:
            answer = self.answer(request)
        await write_answer(answer, request, send)

    @property
    def paths(self) -> list[tuple[str, ...]]:
        return [request.path for request in self.requests]

    def answer(self, request: Request) -> Answer:
        match request.path:
            case ("v1", "schema"):
                return self._schema(request)
            case ("v1", "search", *_):
                return self._search(request)
            case ("v1", "streams", stream, "records"):
                return self._on(request, stream, self._list)
            case ("v1", "streams", stream, "aggregate"):
                return self._on(request, stream, self._aggregate)
            case ("v1", "streams", stream, "records", key):
                return self._on(request, stream, lambda s, r, n: self._record(s, r, n, key))
            case ("v1", "streams", stream, "records", key, "field-window"):
                return self._on(request, stream, lambda s, r, n: self._window(s, r, n, key))
            case ("v1", "blobs", blob_id):
                return self._blob(request, blob_id)
            case _:
                return refusal(404, "not_found_error", "not_found", "Unknown route.")

    def _on(
        self,
        request: Request,
        stream: str,
        then: Callable[[list[Source], Request, str], Answer],
    ) -> Answer:
        wanted = request.values("connection_id")
        chosen = [s for s in self.sources if not wanted or s.connection_id == wanted[0]]
        if not chosen:
            return self._unknown_connection(wanted[0])
        if self.kind == "mcp_package" and not wanted and len(self.sources) > 1:
            return self._ambiguous(stream)
        chosen = [source for source in chosen if stream in source.streams]
        if not chosen:
            code = "grant_stream_not_allowed"
            return refusal(403, "permission_error", code, "This stream is not part of this grant.")
        return then(chosen, request, stream)

    def _unknown_connection(self, wanted: str) -> Answer:
        entry = [row for row in self.unavailable if row["connection_id"] == wanted]
        members = {"unavailable_connections": entry} if entry else {}
        message = "No such connection in this access."
        return refusal(404, "not_found_error", "connection_not_found", message, **members)

    def _ambiguous(self, stream: str) -> Answer:
        entries = [
            {
                "connection_id": s.connection_id,
                "connector_key": s.connector_key,
                "grant_id": s.grant_id,
                **({"display_name": s.display_name} if s.display_name else {}),
                "has_stream": stream in s.streams,
            }
            for s in sorted(self.sources, key=lambda s: stream not in s.streams)
        ]
        omitted = max(0, len(entries) - 12)
        members: Json = {
            "param": "connection_id",
            "retry_with": "connection_id",
            "available_connections": entries[:12],
            "available_connection_count": len(entries),
            "available_connections_truncated": omitted > 0,
        }
        if omitted:
            members["available_connections_omitted"] = omitted
        if self.unavailable:
            members["unavailable_connections"] = self.unavailable
        holders = [row["connection_id"] for row in entries if row["has_stream"]]
        if len(holders) == 1:
            members["recovery"] = {"connection_id": holders[0]}
        message = f"This token covers {len(entries)} connections; pass connection_id."
        return refusal(409, "conflict_error", "ambiguous_connection", message, **members)

    # lists -----------------------------------------------------------------------------------
    def _rows(self, sources: list[Source], stream: str) -> list[Json]:
        rows = [
            self.row(source, stream, key) for source in sources for key in source.streams[stream]
        ]
        rows.sort(key=lambda row: str(row["data"].get("sent_at", "")), reverse=True)
        return rows

    def row(self, source: Source, stream: str, key: str) -> Json:
        """One record of a source as this token sees it."""
        return record_row(self.kind, source, stream, key)

    def _list(self, sources: list[Source], request: Request, stream: str) -> Answer:
        limit = int((request.values("limit") or ["25"])[0])
        offset = offset_of(request)
        if offset is None:
            return refusal(
                400, "invalid_request_error", "invalid_cursor", "Bad cursor.", param="cursor"
            )
        rows = [row for row in self._rows(sources, stream) if passes(row["data"], request)]
        page = [cut_row(row, request) for row in rows[offset : offset + limit]]
        for row in page:
            self._expand(row, request, sources)
        body = envelope(request, page, offset + limit if offset + limit < len(rows) else None)
        if request.values("count") not in ([], ["none"]):
            body["meta"]["count"] = {"kind": "exact", "value": len(rows)}
        if "changes_since" in request.names and not body["has_more"]:
            body["next_changes_since"] = "djE6OTk"
        if self.unavailable and "connection_id" not in request.names:
            body["meta"]["unavailable_connections"] = self.unavailable
        return Answer(200, body)

    def _expand(self, row: Json, request: Request, sources: list[Source]) -> None:
        asked = [*request.values("expand"), *expand_limits(request)]
        for name in dict.fromkeys(asked):
            source = next(s for s in sources if s.connection_id == row["connection_id"])
            children = [
                self.row(source, name, key)
                for key, data in source.streams.get(name, {}).items()
                if data.get("message_id") == row["id"]
            ]
            limit = expand_limits(request).get(name, 10)
            page = {"object": "list", "data": children[:limit], "has_more": len(children) > limit}
            row.setdefault("expanded", {})[name] = page

    def _record(self, sources: list[Source], request: Request, stream: str, key: str) -> Answer:
        held = [source for source in sources if key in source.streams[stream]]
        if len(held) > 1:
            return self._ambiguous(stream)
        if not held:
            return refusal(404, "not_found_error", "not_found", "No such record.")
        row = cut_row(self.row(held[0], stream, key), request)
        self._expand(row, request, held)
        row["links"] = {"self": "/" + "/".join(request.path)}
        row["meta"] = {"count": {"kind": "none"}, "warnings": []}
        return Answer(200, row)

    def _window(self, sources: list[Source], request: Request, stream: str, key: str) -> Answer:
        held = [source for source in sources if key in source.streams[stream]]
        if len(held) > 1:
            return self._ambiguous(stream)
        if not held:
            return refusal(404, "not_found_error", "not_found", "No such record.")
        name = request.values("field")[0]
        declared = self.declarations[stream]["properties"]
        if name not in declared:
            return refusal(
                400, "invalid_request_error", "unknown_field", "No such field.", param="field"
            )
        value = held[0].streams[stream][key].get(name)
        if value is None:
            return refusal(
                404, "not_found_error", "field_not_found", "No such field.", param="field"
            )
        if not isinstance(value, str):
            return refusal(
                422, "unprocessable_error", "field_not_text", "Not a text.", param="field"
            )
        return window_answer(held[0], stream, key, name, value, request)

    def _aggregate(self, sources: list[Source], request: Request, stream: str) -> Answer:
        rows = [r["data"] for r in self._rows(sources, stream) if passes(r["data"], request)]
        return aggregate_answer(stream, rows, request)

    # search ----------------------------------------------------------------------------------
    def _search(self, request: Request) -> Answer:
        if len(request.path) > 2:
            code = "unsupported_search_mode"
            return refusal(400, "invalid_request_error", code, "Only lexical.", param="mode")
        wanted = request.values("connection_id")
        sources = [s for s in self.sources if not wanted or s.connection_id == wanted[0]]
        if not sources:
            return self._unknown_connection(wanted[0])
        return search_answer(self.kind, sources, request)

    # schema ----------------------------------------------------------------------------------
    def _schema(self, request: Request) -> Answer:
        wanted, streams = request.values("connection_id"), request.values("stream")
        full = request.values("detail") == ["full"]
        sources = [s for s in self.sources if not wanted or s.connection_id == wanted[0]]
        if not sources:
            return self._unknown_connection(wanted[0])
        matching = [s for s in sources if not streams or streams[0] in s.streams]
        if full and len(matching) > 1 and not wanted:
            answer = self._ambiguous(streams[0])
            answer.body["error"]["code"] = "ambiguous_schema_detail"
            return answer
        return Catalog(self.kind, self.declarations, self.unavailable).answer(matching, request)

    def _blob(self, request: Request, blob_id: str) -> Answer:
        held = self.blobs.get(blob_id)
        if held is None:
            return refusal(404, "not_found_error", "blob_not_found", "No such blob.")
        kind, raw = held
        ranged = request.headers.get("range", "").removeprefix("bytes=0-")
        part = raw[: int(ranged) + 1] if ranged else raw
        headers = (("content-range", f"bytes 0-{len(part) - 1}/{len(raw)}"),) if ranged else ()
        return Answer(206 if ranged else 200, None, headers, part, kind)
