"""Search hits: what is shown of a matching record.

Rule: like `disclose`, everything is computed from granted fields of the record's own source; but
for title, snippet and excerpts a hit holds no text of the record.
Source: RS contract 11.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.criteria import Term
from personal_server.domain.record import Row, key_segment
from personal_server.domain.values import render_instant
from personal_server.enforcement.disclose import (
    WireRecord,
    granted_emitted_at_ns,
    granted_value,
    identity,
)
from personal_server.enforcement.evidence import (
    FieldMatches,
    find_matches,
    render_excerpts,
    render_snippet,
    strongest_first,
)
from personal_server.enforcement.searching import searchable_fields

TITLE_CHARS = 200


def disclose_hit(
    authority: ReadAuthority,
    source: ReadableSource,
    row: Row,
    terms: Sequence[Term],
    score: float,
) -> WireRecord | None:
    """The hit of a row, or `None` if the terms do not all match in its granted fields."""
    found = matches_in(source, row, terms)
    if found is None:
        return None
    granted = frozenset(source.fields)
    place = f"/v1/streams/{quote(row.stream, safe='')}/records/{key_segment(row.key)}"
    hit: WireRecord = {
        "object": "search_result",
        "stream": row.stream,
        "id": row.key,
        "record_id": row.key,
        "record_key": row.key,
        **identity(authority, source),
        "connector_id": source.connector_key,
        "emitted_at": render_instant(granted_emitted_at_ns(row, granted)),
        "matched_fields": [each.field for each in found],
        "record_url": f"{place}?connection_id={quote(row.connection_id, safe='')}",
        "retrieval_mode": "lexical",
        "snippet": render_snippet(found[0]),
        "evidence_excerpts": render_excerpts(found),
        "score": {"kind": "bm25", "order": "lower_is_better", "value": score},
    }
    title = granted_value(row, source, source.declared.title_field)
    if isinstance(title, str):
        hit["title"] = title[:TITLE_CHARS]
    authored = granted_value(row, source, source.declared.event_time_field)
    if isinstance(authored, str):
        hit["authored_at"] = authored
    return hit


def matches_in(
    source: ReadableSource, row: Row, terms: Sequence[Term]
) -> list[FieldMatches] | None:
    """The matches by field, strongest first, if every term matches somewhere."""
    found: list[FieldMatches] = []
    for name in searchable_fields(source):
        text = row.data.get(name)
        matches = find_matches(name, text, terms) if isinstance(text, str) else None
        if matches is not None:
            found.append(matches)
    matched = frozenset[int]().union(*(each.terms for each in found))
    if len(matched) < len(terms):
        return None
    return strongest_first(found, source.declared.title_field)
