"""Examples of answers, one per shape that readers of the document ask for first.

Rule: every example fits its shape; ids and tokens are shortened and invented.
"""

from __future__ import annotations

from collections.abc import Mapping

_PLACE: Mapping[str, object] = {"connection_id": "cin_diary", "connector_key": "journal"}
_META: Mapping[str, object] = {"count": {"kind": "none"}, "warnings": []}
_RECORD: Mapping[str, object] = {
    "object": "record",
    "id": "ent_41",
    "record_id": "ent_41",
    "stream": "entries",
    "data": {"id": "ent_41", "title": "Rain", "created_at": "2026-03-13T21:40:00Z"},
    "emitted_at": "2026-03-14T06:30:00.000Z",
    **_PLACE,
    "display_name": "Paper diary",
}
_RECORDS = "/v1/streams/entries/records"

EXAMPLES: Mapping[str, Mapping[str, object]] = {
    "Error": {
        "error": {
            "type": "permission_error",
            "code": "field_not_granted",
            "message": "Field 'salary' is not part of this grant.",
            "param": "fields",
            "request_id": "req_5b1c0d9e7a3f4c2b8d6e1f00",
        }
    },
    "Record": _RECORD,
    "RecordList": {
        "object": "list",
        "url": _RECORDS,
        "data": [_RECORD],
        "has_more": True,
        "next_cursor": "c2VhbGVk",
        "links": {
            "self": f"{_RECORDS}?limit=1",
            "next": f"{_RECORDS}?limit=1&cursor=c2VhbGVk",
        },
        "meta": {"count": {"kind": "exact", "value": 45}, "warnings": []},
    },
    "FieldWindow": {
        "object": "field_window",
        "stream": "entries",
        "record_id": "ent_41",
        **_PLACE,
        "url": f"{_RECORDS}/ent_41/field-window",
        "field": {
            "path": "body",
            "type": "string",
            "text_like": True,
            "size_chars": 9_000,
            "digest": "sha256:" + "1f" * 32,
        },
        "window": {
            "text": "walked home ",
            "start_chars": 400,
            "end_chars": 412,
            "total_chars": 9_000,
            "limit_chars": 12,
            "complete": False,
            "has_more": True,
            "next_offset_chars": 412,
            "previous_offset_chars": 388,
            "match_start_chars": None,
            "match_end_chars": None,
        },
        "links": {"self": f"{_RECORDS}/ent_41/field-window?field=body&offset_chars=400"},
        "meta": _META,
    },
    "Aggregation": {
        "object": "aggregation",
        "stream": "entries",
        "metric": "sum",
        "field": "word_count",
        "group_by": None,
        "group_by_time": "created_at",
        "granularity": "month",
        "time_zone": "Europe/Rome",
        "approximate": False,
        "filtered_record_count": 45,
        "group_count": 2,
        "groups": [
            {
                "key": "2026-03-01",
                "start": "2026-03-01T00:00:00+01:00",
                "count": 45,
                "value": 1_200,
            }
        ],
        "limit": 1,
        "other_count": 0,
        "other_value": 0,
        "links": {"self": "/v1/streams/entries/aggregate?metric=sum&field=word_count"},
        "meta": _META,
    },
    "IngestResult": {
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
    },
    "Blob": {
        "object": "blob",
        "blob_id": "blob_sha256_" + "2c" * 32,
        "sha256": "2c" * 32,
        "size_bytes": 3,
        "mime_type": "text/plain",
    },
}
