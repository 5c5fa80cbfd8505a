"""Search of the recording server: one word, one excerpt for each hit."""

from __future__ import annotations

from urllib.parse import quote

from adapter.tests.fake_lists import envelope, offset_of
from adapter.tests.fake_sources import Source, record_row
from adapter.tests.fake_wire import Answer, Json, Request


def search_answer(kind: str, sources: list[Source], request: Request) -> Answer:
    """Every hit of these sources, in their order."""
    streams = request.values("streams")
    word = request.values("q")[0].lower()
    hits = [
        hit
        for source in sources
        for stream, records in source.streams.items()
        if not streams or stream in streams
        for key in records
        for hit in [_hit(kind, source, stream, key, word)]
        if hit is not None
    ]
    offset = offset_of(request) or 0
    limit = int((request.values("limit") or ["25"])[0])
    page = hits[offset : offset + limit]
    body = envelope(request, page, offset + limit if offset + limit < len(hits) else None)
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


def _hit(kind: str, source: Source, stream: str, key: str, word: str) -> Json | None:
    data = source.streams[stream][key]
    texts = {n: v for n, v in data.items() if isinstance(v, str) and word in v.lower()}
    if not texts:
        return None
    name, value = next(iter(texts.items()))
    at = value.lower().index(word)
    start = max(0, at - 60)
    preview = value[start : start + 160]
    row = record_row(kind, source, stream, key)
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
