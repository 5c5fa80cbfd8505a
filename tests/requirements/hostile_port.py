"""A resource server that answers anything, or nothing, at any time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from pdpp_mcp_server.rs_client.port import (
    Path,
    Query,
    RsInvalidResponse,
    RsResponse,
    RsTimeout,
    RsUnreachable,
)
from tests.requirements import hostile

Json = dict[str, Any]
failures = (RsTimeout, RsUnreachable, RsInvalidResponse)
statuses = (400, 401, 403, 404, 409, 410, 422, 429, 500, 503)
odd: list[Any] = [
    None,
    [],
    "text",
    7,
    {},
    {"data": None},
    {"data": [1, None]},
    {"data": {"data": 1}},
]
refusals: list[Any] = [
    {"error": {"code": "field_not_granted", "message": "no"}},
    {"error": {"code": "ambiguous_connection", "message": "long " * 5_000}},
    {"error": {"code": "x" * 900, "message": 7, "param": "y" * 900}},
    {"error": {"code": "invalid_cursor", "recovery": {"cursor": None}}},
    {"error": {"code": "rate_limit_exceeded", "message": "wait", "details": ["d" * 900] * 40}},
    {"error": "temporarily_unavailable", "error_description": "later"},
    {"code": "unknown_field", "message": "no such field", "suggestions": ["a", "b"]},
    {"detail": "Not Found"},
    None,
]  # fmt: skip


@dataclass(slots=True)
class HostilePort:
    """Remembers the paths of one call."""

    draw: random.Random
    paths: list[Path] = field(default_factory=list[Path])

    async def get(
        self, path: Path, query: Query = (), *, max_bytes: int | None = None
    ) -> RsResponse:
        draw = self.draw
        self.paths.append(path)
        chance = draw.random()
        if chance < 0.02:
            raise draw.choice(failures)
        if chance < 0.08:
            wait = draw.choice([None, 0, 30, 10**9])
            body = self.refusal()
            return RsResponse(draw.choice(statuses), body, retry_after_seconds=wait)
        if chance < 0.12:
            return RsResponse(draw.choice([200, 404, 500]), draw.choice(odd))
        if max_bytes is not None:
            return self.blob(max_bytes)
        return RsResponse(200, self.body(path, query), request_id="req_1")

    def refusal(self) -> Any:
        if self.draw.random() < 0.7:
            return self.draw.choice(refusals)
        entry = {
            "connector_instance_id": "cin_" + "z" * self.draw.choice([1, 400]),
            "connector_id": "https://registry.example/connectors/gmail",
            "display_name": "Owner label " * self.draw.choice([1, 300]),
            "grant_id": "grt_1",
            "has_stream": True,
            "reason": "connection_revoked",
        }
        count = self.draw.choice([0, 1, 40])
        error = {"code": "ambiguous_connection", "retry_with": {"field": "connection_id"}}
        listed = {"available_connections": [entry] * count, "unavailable_connections": [entry] * 9}
        return {"error": {**error, **listed}}

    def blob(self, max_bytes: int) -> RsResponse:
        if self.draw.random() < 0.3:
            return RsResponse(200, None, None, max_bytes + 1, "image/png")
        kind = self.draw.choice([None, "image/png", "text/html; charset=utf-8"])
        return RsResponse(206, None, b"bytes", 5, kind)

    def body(self, path: Path, query: Query) -> Any:
        draw = self.draw
        if path[:2] == ("v1", "search"):
            return hostile.page(draw, [hostile.hit(draw) for _ in range(draw.randrange(30))])
        if path[-1] == "timeline":
            entries = [hostile.row(draw) for _ in range(draw.randrange(30))]
            return hostile.page(draw, [row | {"object": "timeline_entry"} for row in entries])
        if path[-1] == "records":
            return hostile.page(draw, [hostile.row(draw) for _ in range(draw.randrange(30))])
        if path[-1] == "aggregate":
            return self.aggregation(query)
        if path[-1] == "field-window":
            return self.window()
        if path == ("v1", "schema"):
            return self.schema()
        return hostile.row(draw)

    def aggregation(self, query: Query) -> Json:
        draw = self.draw
        grouped = any(name.startswith("group_by") for name, _ in query)
        if not grouped:
            return {"value": hostile.value(draw), "filtered_record_count": draw.choice([None, 3])}
        limit = int(dict(query).get("limit", "10")) if draw.random() < 0.8 else 100
        keys = [hostile.value(draw) for _ in range(draw.randrange(min(limit, 100) + 1))]
        values: list[Any] = [2, 1.5, None, "2026-01-01T00:00:00Z", hostile.texts[0]]
        rows = [{"key": key, "count": 1, "value": draw.choice(values)} for key in keys]
        for row in rows:
            if draw.random() < 0.1:
                row["start"] = "2026-01-01T00:00:00Z"
            for name in ("label", "then", "then_label", "until"):
                if draw.random() < 0.2:
                    row[name] = hostile.value(draw)
        body: Json = {"groups": rows, "other_count": draw.choice([0, 9, None]), "limit": 10}
        return {**body, "approximate": draw.random() < 0.3, "other_value": draw.choice([None, 1.5])}

    def window(self) -> Json:
        draw = self.draw
        text = draw.choice(hostile.texts)
        begin = draw.choice([0, 9, None])
        window: Json = {"text": text, "start_chars": begin, "has_more": draw.random() < 0.5}
        window |= {"match_start_chars": draw.choice([None, 0]), "match_end_chars": 4}
        digest = draw.choice([None, "sha256:" + "a" * 64, "sha256:" + "b" * 64])
        size = draw.choice([None, len(text), 10**7])
        return {"field": {"size_chars": size, "digest": digest}, "window": window}

    def schema(self) -> Json:
        draw = self.draw
        count = draw.choice([1, 5, 200])
        rows = [
            {
                "name": draw.choice(["messages", "threads", f"stream {n}"]),
                "field_capabilities": {
                    f"f{m}": draw.choice(["t=string,eq", {"granted": False}, 7])
                    for m in range(draw.choice([2, 40]) if count > 5 else 900)
                },
                "expand_capabilities": draw.choice([[], [{"name": "attachments"}], None]),
                "granted_connections": [{"connector_instance_id": f"cin_{n}"}],
                "schema": draw.choice(
                    [None, {"type": "object", "properties": {"f0": {"type": 7}}}]
                ),
            }
            for n in range(count)
        ]
        top = draw.random() < 0.2
        found: Json = {"detail": draw.choice(["compact", None])}
        return {**found, "streams": rows} if top else {**found, "connectors": [{"streams": rows}]}
