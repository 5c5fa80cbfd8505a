"""Field windows of the recording server."""

from __future__ import annotations

import hashlib

from adapter.tests.fake_sources import Source
from adapter.tests.fake_wire import Answer, Json, Request, refusal


def window_answer(
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
            return refusal(404, "not_found_error", "query_not_found", "No match.", param="q")
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
