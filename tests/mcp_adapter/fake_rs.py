"""A recording resource server: small, in memory, answering as the resource-server contract says.

It is an ASGI application, so every door reads it the same way; `script` replaces single answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

Json = dict[str, Any]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Request:
    """One recorded read."""

    method: str
    path: tuple[str, ...]
    query: tuple[tuple[str, str], ...]
    headers: dict[str, str]

    @property
    def bearer(self) -> str:
        return self.headers.get("authorization", "")

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.query if key == name]

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.query}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None
    content_type: str = "application/json; charset=utf-8"


Script = Callable[[Request], "Answer | None"]


@dataclass(slots=True)
class Source:
    """One connection and what it holds."""

    connection_id: str
    connector_key: str
    grant_id: str
    display_name: str | None
    streams: dict[str, dict[str, Json]]


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
            await _lifespan(receive, send)
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
                return _error(404, "not_found_error", "not_found", "Unknown route.")

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
            return _error(403, "permission_error", code, "This stream is not part of this grant.")
        return then(chosen, request, stream)

    def _unknown_connection(self, wanted: str) -> Answer:
        entry = [row for row in self.unavailable if row["connection_id"] == wanted]
        members = {"unavailable_connections": entry} if entry else {}
        message = "No such connection in this access."
        return _error(404, "not_found_error", "connection_not_found", message, **members)

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
        message = f"This token covers {len(entries)} connections; pass connection_id."
        return _error(409, "conflict_error", "ambiguous_connection", message, **members)

    # lists -----------------------------------------------------------------------------------
    def _rows(self, sources: list[Source], stream: str) -> list[Json]:
        rows = [
            self.row(source, stream, key) for source in sources for key in source.streams[stream]
        ]
        rows.sort(key=lambda row: str(row["data"].get("sent_at", "")), reverse=True)
        return rows

    def row(self, source: Source, stream: str, key: str) -> Json:
        row: Json = {
            "object": "record",
            "id": key,
            "record_id": key,
            "stream": stream,
            "data": source.streams[stream][key],
            "emitted_at": "2026-07-01T08:00:00.000Z",
            "connection_id": source.connection_id,
            "connector_key": source.connector_key,
        }
        if source.display_name:
            row["display_name"] = source.display_name
        if self.kind == "mcp_package":
            row["grant_id"] = source.grant_id
        return row

    def _list(self, sources: list[Source], request: Request, stream: str) -> Answer:
        limit = int((request.values("limit") or ["25"])[0])
        offset = _offset(request)
        if offset is None:
            return _error(
                400, "invalid_request_error", "invalid_cursor", "Bad cursor.", param="cursor"
            )
        rows = [row for row in self._rows(sources, stream) if _passes(row["data"], request)]
        page = [_cut(row, request) for row in rows[offset : offset + limit]]
        for row in page:
            self._expand(row, request, sources)
        body = _envelope(request, page, offset + limit if offset + limit < len(rows) else None)
        if request.values("count") not in ([], ["none"]):
            body["meta"]["count"] = {"kind": "exact", "value": len(rows)}
        if "changes_since" in request.names and not body["has_more"]:
            body["next_changes_since"] = "djE6OTk"
        if self.unavailable and "connection_id" not in request.names:
            body["meta"]["unavailable_connections"] = self.unavailable
        return Answer(200, body)

    def _expand(self, row: Json, request: Request, sources: list[Source]) -> None:
        asked = [*request.values("expand"), *_expand_limits(request)]
        for name in dict.fromkeys(asked):
            source = next(s for s in sources if s.connection_id == row["connection_id"])
            children = [
                self.row(source, name, key)
                for key, data in source.streams.get(name, {}).items()
                if data.get("message_id") == row["id"]
            ]
            limit = _expand_limits(request).get(name, 10)
            page = {"object": "list", "data": children[:limit], "has_more": len(children) > limit}
            row.setdefault("expanded", {})[name] = page

    def _record(self, sources: list[Source], request: Request, stream: str, key: str) -> Answer:
        held = [source for source in sources if key in source.streams[stream]]
        if len(held) > 1:
            return self._ambiguous(stream)
        if not held:
            return _error(404, "not_found_error", "not_found", "No such record.")
        row = _cut(self.row(held[0], stream, key), request)
        self._expand(row, request, held)
        row["links"] = {"self": "/" + "/".join(request.path)}
        row["meta"] = {"count": {"kind": "none"}, "warnings": []}
        return Answer(200, row)

    def _window(self, sources: list[Source], request: Request, stream: str, key: str) -> Answer:
        held = [source for source in sources if key in source.streams[stream]]
        if len(held) > 1:
            return self._ambiguous(stream)
        if not held:
            return _error(404, "not_found_error", "not_found", "No such record.")
        name = request.values("field")[0]
        declared = self.declarations[stream]["properties"]
        if name not in declared:
            return _error(
                400, "invalid_request_error", "unknown_field", "No such field.", param="field"
            )
        value = held[0].streams[stream][key].get(name)
        if value is None:
            return _error(
                404, "not_found_error", "field_not_found", "No such field.", param="field"
            )
        if not isinstance(value, str):
            return _error(
                422, "unprocessable_error", "field_not_text", "Not a text.", param="field"
            )
        return _window_answer(held[0], stream, key, name, value, request)

    def _aggregate(self, sources: list[Source], request: Request, stream: str) -> Answer:
        rows = [r["data"] for r in self._rows(sources, stream) if _passes(r["data"], request)]
        metric = request.values("metric")[0]
        name = (request.values("field") or [""])[0]
        body: Json = {
            "object": "aggregation",
            "stream": stream,
            "metric": metric,
            "field": name or None,
            "approximate": False,
            "filtered_record_count": len(rows),
        }
        group = (request.values("group_by") or request.values("group_by_time") or [""])[0]
        if not group:
            body["value"] = _metric(metric, name, rows)
        else:
            body |= _groups(metric, name, group, rows, int((request.values("limit") or ["10"])[0]))
        return Answer(200, {**body, "meta": {"count": {"kind": "none"}, "warnings": []}})

    # search ----------------------------------------------------------------------------------
    def _search(self, request: Request) -> Answer:
        if len(request.path) > 2:
            code = "unsupported_search_mode"
            return _error(400, "invalid_request_error", code, "Only lexical.", param="mode")
        wanted = request.values("connection_id")
        sources = [s for s in self.sources if not wanted or s.connection_id == wanted[0]]
        if not sources:
            return self._unknown_connection(wanted[0])
        streams = request.values("streams")
        word = request.values("q")[0].lower()
        hits = [
            hit
            for source in sources
            for stream, records in source.streams.items()
            if not streams or stream in streams
            for key in records
            for hit in [self._hit(source, stream, key, word)]
            if hit is not None
        ]
        offset = _offset(request) or 0
        limit = int((request.values("limit") or ["25"])[0])
        page = hits[offset : offset + limit]
        body = _envelope(request, page, offset + limit if offset + limit < len(hits) else None)
        body["meta"]["count"] = {"kind": "exact", "value": len(hits)}
        body["meta"]["recall"] = {"complete": True, "ranking_scope": "all_matches"}
        counts: dict[str, int] = {}
        for hit in page:
            counts[hit["connection_id"]] = counts.get(hit["connection_id"], 0) + 1
        if len(counts) > 1:
            body["meta"]["source_mix"] = [
                {"connection_id": s.connection_id, "connector_key": s.connector_key,
                 "display_name": s.display_name, "count": counts[s.connection_id]}
                for s in sources
                if s.connection_id in counts
            ]  # fmt: skip
        return Answer(200, body)

    def _hit(self, source: Source, stream: str, key: str, word: str) -> Json | None:
        data = source.streams[stream][key]
        texts = {n: v for n, v in data.items() if isinstance(v, str) and word in v.lower()}
        if not texts:
            return None
        name, value = next(iter(texts.items()))
        at = value.lower().index(word)
        start = max(0, at - 60)
        preview = value[start : start + 160]
        row = self.row(source, stream, key)
        hit: Json = {**row, "object": "search_result", "record_key": key}
        del hit["data"]
        title = data.get("subject")
        if title:
            hit["title"] = title[:200]
        if data.get("sent_at"):
            hit["authored_at"] = data["sent_at"]
        hit["record_url"] = (
            f"/v1/streams/{quote(stream, safe='')}/records/{quote(key, safe='')}"
            f"?connection_id={source.connection_id}"
        )
        hit["matched_fields"] = list(texts)
        hit["evidence_excerpts"] = [
            {
                "object": "evidence_excerpt",
                "field_path": name,
                "preview_text": preview,
                "start_chars": start,
                "end_chars": start + len(preview),
                "match_ranges": [[at, at + len(word)]],
                "total_chars": len(value),
                "truncated": len(preview) < len(value),
            }
        ]
        return hit

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
        compact = request.values("view") == ["compact"]
        keys = list(dict.fromkeys(s.connector_key for s in matching))
        connectors = [
            self._connector(key, [s for s in matching if s.connector_key == key], streams, compact)
            for key in keys
        ]
        connectors = [connector for connector in connectors if connector["streams"]]
        body: Json = {
            "object": "schema",
            "bearer": {"token_kind": self.kind, "scope": "grant", "client_id": "planner"},
            "connector_count": len(connectors),
            "stream_count": sum(len(c["streams"]) for c in connectors),
            "unavailable_connections": self.unavailable,
            "connectors": connectors,
            "links": {"self": "/v1/schema"},
            "meta": {"count": {"kind": "none"}, "warnings": []},
        }
        return Answer(200, {**body, "detail": "compact"} if compact else body)

    def _connector(
        self, key: str, sources: list[Source], streams: list[str], compact: bool
    ) -> Json:
        names = dict.fromkeys(n for s in sources for n in s.streams if not streams or n in streams)
        rows = [
            self._row(name, [s for s in sources if name in s.streams], compact) for name in names
        ]
        connector: Json = {
            "object": "connector",
            "connector_key": key,
            "connector_id": key,
            "display_name": key.title(),
            "stream_count": len(rows),
        }
        if compact:
            sets = [json.dumps(row["granted_connections"]) for row in rows]
            if sets:
                common = max(sets, key=sets.count)
                connector["granted_connections"] = json.loads(common)
                for row, own in zip(rows, sets, strict=True):
                    if own == common:
                        del row["granted_connections"]
        return {**connector, "streams": rows}

    def _row(self, name: str, sources: list[Source], compact: bool) -> Json:
        declared = self.declarations[name]
        granted = [
            {
                "connection_id": s.connection_id,
                **({"display_name": s.display_name} if s.display_name else {}),
                **({"grant_id": s.grant_id} if self.kind == "mcp_package" else {}),
            }
            for s in sources
        ]
        if compact:
            return {
                "name": name,
                "primary_key": ["id"],
                "cursor_field": "sent_at",
                "consent_time_field": "sent_at",
                "sort": {"fields": ["sent_at"], "default": "-sent_at"},
                "count": ["none", "estimated", "exact"],
                "views": [{"id": "summary", "fields": ["id", "subject"]}],
                "search": {
                    "modes": ["lexical"],
                    "lexical_fields": ["subject"],
                    "semantic_fields": [],
                },
                "aggregate": {"metrics": ["count", "max", "min"]},
                "limits": {"default_limit": 25, "max_limit": 100},
                "field_capabilities": declared["flags"],
                "expand_capabilities": [
                    {k: v for k, v in e.items() if k != "child_parent_key_field"}
                    for e in declared["expand"]
                ],
                "granted_connections": granted,
            }
        return {
            "object": "stream_metadata",
            "name": name,
            "primary_key": ["id"],
            "cursor_field": "sent_at",
            "consent_time_field": "sent_at",
            "semantics": "mutable_state",
            "schema": {"type": "object", "properties": declared["properties"]},
            "views": [{"id": "summary", "fields": ["id", "subject"]}],
            "sort": {"fields": ["sent_at"], "default": "-sent_at"},
            "count": ["none", "estimated", "exact"],
            "search": {"modes": ["lexical"], "lexical_fields": ["subject"], "semantic_fields": []},
            "aggregate": {"metrics": ["count", "max", "min"]},
            "limits": {"default_limit": 25, "max_limit": 100},
            "field_capabilities": declared["capabilities"],
            "expand_capabilities": declared["expand"],
            "granted_connections": granted,
        }

    def _blob(self, request: Request, blob_id: str) -> Answer:
        held = self.blobs.get(blob_id)
        if held is None:
            return _error(404, "not_found_error", "blob_not_found", "No such blob.")
        kind, raw = held
        ranged = request.headers.get("range", "").removeprefix("bytes=0-")
        part = raw[: int(ranged) + 1] if ranged else raw
        headers = (("content-range", f"bytes 0-{len(part) - 1}/{len(raw)}"),) if ranged else ()
        return Answer(206 if ranged else 200, None, headers, part, kind)


def _window_answer(
    source: Source, stream: str, key: str, name: str, value: str, request: Request
) -> Answer:
    given = {
        n: int(request.values(n)[0]) for n in ("offset_chars", "limit_chars") if request.values(n)
    }
    start, limit = given.get("offset_chars", 0), given.get("limit_chars", 4096)
    match: tuple[int | None, int | None] = (None, None)
    if request.values("q"):
        word = request.values("q")[0]
        at = value.lower().find(word.lower())
        if at < 0:
            return _error(404, "not_found_error", "query_not_found", "No match.", param="q")
        start, match = max(0, at - (limit - len(word)) // 2), (at, at + len(word))
    text = value[start : start + limit]
    end = start + len(text)
    body: Json = {
        "object": "field_window",
        "stream": stream,
        "record_id": key,
        "connection_id": source.connection_id,
        "connector_key": source.connector_key,
        "field": {
            "path": name,
            "type": "string",
            "text_like": True,
            "size_chars": len(value),
            "digest": "sha256:" + hashlib.sha256(value.encode("utf-8", "replace")).hexdigest(),
        },
        "window": {
            "text": text,
            "start_chars": start,
            "end_chars": end,
            "total_chars": len(value),
            "limit_chars": limit,
            "complete": start == 0 and end >= len(value),
            "has_more": end < len(value),
            "next_offset_chars": end if end < len(value) else None,
            "previous_offset_chars": max(0, start - limit) if start else None,
            "match_start_chars": match[0],
            "match_end_chars": match[1],
        },
        "meta": {"count": {"kind": "none"}, "warnings": []},
    }
    return Answer(200, body)


def _metric(metric: str, name: str, rows: list[Json]) -> Any:
    values = [row[name] for row in rows if row.get(name) is not None] if name else []
    match metric:
        case "count":
            return len(rows)
        case "sum":
            return sum(values)
        case "min":
            return min(values, default=None)
        case "max":
            return max(values, default=None)
        case _:
            return len(set(values))


def _groups(metric: str, name: str, group: str, rows: list[Json], limit: int) -> Json:
    keyed: dict[Any, list[Json]] = {}
    for row in rows:
        keyed.setdefault(row.get(group), []).append(row)
    ordered = sorted(keyed.items(), key=lambda item: -len(item[1]))
    groups = [
        {"key": key, "count": len(held)}
        | ({} if metric == "count" else {"value": _metric(metric, name, held)})
        for key, held in ordered[:limit]
    ]
    other = sum(len(held) for _, held in ordered[limit:])
    body: Json = {
        "groups": groups,
        "group_count": len(ordered),
        "limit": limit,
        "other_count": other,
    }
    if metric == "sum":
        body["other_value"] = sum(_metric("sum", name, held) for _, held in ordered[limit:])
    return body


def _passes(data: Json, request: Request) -> bool:
    for name, value in request.query:
        if not name.startswith("filter["):
            continue
        field_name, _, operator = name.removeprefix("filter[").removesuffix("]").partition("][")
        held = data.get(field_name)
        text = json.dumps(held) if isinstance(held, bool | int | float) else str(held)
        passed = {
            "": text == value,
            "gte": text >= value,
            "gt": text > value,
            "lte": text <= value,
            "lt": text < value,
        }
        if not passed[operator]:
            return False
    return True


def _cut(row: Json, request: Request) -> Json:
    fields = request.values("fields")
    if not fields:
        return dict(row)
    kept = {name: value for name, value in row["data"].items() if name in {*fields, "id"}}
    return {**row, "data": kept}


def _expand_limits(request: Request) -> dict[str, int]:
    return {
        name.removeprefix("expand_limit[").removesuffix("]"): int(value)
        for name, value in request.query
        if name.startswith("expand_limit[")
    }


def _offset(request: Request) -> int | None:
    cursor = (request.values("cursor") or ["off-0"])[0]
    number = cursor.removeprefix("off-")
    return int(number) if cursor.startswith("off-") and number.isdigit() else None


def _envelope(request: Request, rows: list[Json], following: int | None) -> Json:
    path = "/" + "/".join(request.path)
    body: Json = {"object": "list", "url": path, "data": rows, "has_more": following is not None}
    if following is not None:
        body["next_cursor"] = f"off-{following}"
    body["links"] = {"self": path, "next": f"{path}?cursor=off-{following}" if following else None}
    return {**body, "meta": {"count": {"kind": "none"}, "warnings": []}}


def _error(status: int, kind: str, code: str, message: str, **members: Any) -> Answer:
    return Answer(status, {"error": {"type": kind, "code": code, "message": message, **members}})


def error_answer(status: int, code: str, **members: Any) -> Answer:
    """A refusal for a script."""
    return _error(status, "api_error", code, f"Refused with {code}.", **members)


def request_of(scope: Any) -> Request:
    raw = scope["raw_path"].decode()
    query: Pairs = parse_qsl(scope["query_string"].decode(), keep_blank_values=True)
    headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
    path = tuple(unquote(part) for part in raw.strip("/").split("/"))
    return Request(scope["method"], path, tuple(query), headers)


async def write_answer(answer: Answer, request: Request, send: Any, *, echo: bool = True) -> None:
    """Send an answer; with `echo`, under the id that the request brought."""
    raw = answer.content if answer.content is not None else b""
    if answer.content is None and answer.body is not None:
        raw = json.dumps(answer.body).encode()
    echoed = request.headers.get("request-id", "req_fake")
    headers = [("content-type", answer.content_type), ("content-length", str(len(raw)))]
    headers += [("request-id", echoed)] if echo else []
    headers += answer.headers
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": raw})


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
