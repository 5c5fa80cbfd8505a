"""The shapes of what reads answer.  Source: docs/contract/resource-server.md 2, 6 to 11."""

from __future__ import annotations

from collections.abc import Mapping

from personal_server.resource_server.shapes import (
    ANYTHING,
    COUNT,
    FLAG,
    IDENTITY,
    INSTANT,
    LABELS,
    MAP,
    PATH,
    TEXT,
    WORD,
    Shape,
    array,
    closed,
    constant,
    either,
    list_of,
    map_of,
    nullable,
    one_of,
    ref,
    single,
)

_RECORD_REQUIRED: Mapping[str, Shape] = {
    "object": constant("record"),
    "id": WORD,
    "record_id": WORD,
    "stream": WORD,
    "emitted_at": INSTANT,
    **IDENTITY,
}
_CHILDREN = closed(
    {"object": constant("list"), "data": array(ref("Record")), "has_more": FLAG}, {"url": PATH}
)
_EXPANDED = map_of(either(nullable(ref("Record")), _CHILDREN))
_RECORD_OPTIONAL: Mapping[str, Shape] = {**LABELS, "expanded": _EXPANDED}
RECORD = closed({**_RECORD_REQUIRED, "data": MAP}, _RECORD_OPTIONAL)
TOMBSTONE = closed({**_RECORD_REQUIRED, "deleted": constant(True), "deleted_at": INSTANT}, LABELS)
SINGLE_RECORD = single(
    "record",
    {k: v for k, v in {**_RECORD_REQUIRED, "data": MAP}.items() if k != "object"},
    _RECORD_OPTIONAL,
)

_OFFSET = nullable(COUNT)
FIELD_WINDOW = single(
    "field_window",
    {
        "stream": WORD,
        "record_id": WORD,
        **IDENTITY,
        "url": PATH,
        "field": closed(
            {
                "path": WORD,
                "type": constant("string"),
                "text_like": FLAG,
                "size_chars": COUNT,
                "digest": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"},
            },
            {"mime_type": TEXT},
        ),
        "window": closed(
            {
                "text": TEXT,
                "start_chars": COUNT,
                "end_chars": COUNT,
                "total_chars": COUNT,
                "limit_chars": COUNT,
                "complete": FLAG,
                "has_more": FLAG,
                "next_offset_chars": _OFFSET,
                "previous_offset_chars": _OFFSET,
                "match_start_chars": _OFFSET,
                "match_end_chars": _OFFSET,
            }
        ),
    },
    LABELS,
)
_GROUP = closed({"key": ANYTHING, "count": COUNT}, {"start": nullable(INSTANT), "value": ANYTHING})
AGGREGATION = single(
    "aggregation",
    {
        "stream": WORD,
        "metric": one_of("count", "sum", "min", "max", "count_distinct"),
        "field": nullable(WORD),
        "group_by": nullable(WORD),
        "group_by_time": nullable(WORD),
        "granularity": nullable(TEXT),
        "time_zone": nullable(TEXT),
        "approximate": constant(False),
        "filtered_record_count": COUNT,
    },
    {
        "value": ANYTHING,
        "groups": array(_GROUP),
        "group_count": COUNT,
        "limit": COUNT,
        "other_count": COUNT,
        "other_value": nullable({"type": "number"}),
        **IDENTITY,
        **LABELS,
    },
)
_EXCERPT = closed(
    {
        "object": constant("evidence_excerpt"),
        "field_path": WORD,
        "provenance": one_of("lexical_match", "semantic_match"),
        "preview_text": {"type": "string", "maxLength": 200},
        "start_chars": COUNT,
        "end_chars": COUNT,
        "match_ranges": array(array(COUNT, minItems=2, maxItems=2), maxItems=8),
        "total_chars": COUNT,
        "truncated": FLAG,
    }
)
SEARCH_RESULT = closed(
    {
        "object": constant("search_result"),
        "stream": WORD,
        "id": WORD,
        "record_id": WORD,
        "record_key": WORD,
        **IDENTITY,
        "connector_id": WORD,
        "emitted_at": INSTANT,
        "matched_fields": array(WORD, minItems=1),
        "record_url": PATH,
        "retrieval_mode": one_of("lexical", "semantic", "hybrid"),
        "snippet": closed({"field": WORD, "text": TEXT}),
        "evidence_excerpts": array(_EXCERPT, minItems=1, maxItems=2),
        "score": closed({"kind": TEXT, "order": TEXT, "value": {"type": "number"}}),
    },
    {
        "title": {"type": "string", "maxLength": 200},
        "authored_at": TEXT,
        "retrieval_sources": array(TEXT),
        "scores": MAP,
        **LABELS,
    },
)

READ_SHAPES: Mapping[str, Shape] = {
    "Record": RECORD,
    "Tombstone": TOMBSTONE,
    "SingleRecord": SINGLE_RECORD,
    "RecordList": list_of(either(ref("Record"), ref("Tombstone")), next_changes_since=WORD),
    "FieldWindow": FIELD_WINDOW,
    "Aggregation": AGGREGATION,
    "SearchResults": list_of(SEARCH_RESULT),
}


# Examples of answers, one per shape that readers of the document ask for first.
#
# Rule: every example fits its shape; ids and tokens are shortened and invented.


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
}
