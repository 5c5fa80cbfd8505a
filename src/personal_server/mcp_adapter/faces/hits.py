"""One search hit in both faces: its id first, its evidence bounded, the way to the whole field.

Source: MCP adapter contract 10.4, 8.3, 8.4, 8.5; decisions C8, C19.
"""

from typing import Any

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.calls import Call
from personal_server.mcp_adapter.cleaning import label, one_line
from personal_server.mcp_adapter.evidence.cutting import Measure, cut_payload
from personal_server.mcp_adapter.evidence.excerpts import Excerpt, excerpts_of
from personal_server.mcp_adapter.evidence.highlights import cut_marked, repaired
from personal_server.mcp_adapter.evidence.ladder import (
    Holder,
    default_window_chars,
    ladder_entry,
    ladder_line,
)
from personal_server.mcp_adapter.evidence.naming import event_time, record_address, record_title
from personal_server.mcp_adapter.faces.fit import Block
from personal_server.mcp_adapter.faces.rows import Place, holder_of, identity_members
from personal_server.mcp_adapter.faces.text import fact
from personal_server.mcp_adapter.handles import WindowRef, spells_connection, window_uri
from personal_server.rs_client.json_values import Json, as_object, as_text, is_list, is_object
from personal_server.rs_client.normalize import connector_key_of

text_members = (
    "title",
    "snippet",
    "evidence_excerpts",
    "match_windows",
    "field_windows",
    "matches",
)
kept_members = frozenset(
    {"matched_fields", "score", "scores", "retrieval_sources", "retrieval_mode"}
)


def render_hit(call: Call, hit: Json, place: Place, title: str, measure: Measure) -> Block:
    """One hit; excerpts are as long as the measure allows, in both faces."""
    holder = holder_of(call, hit, place)
    excerpts = excerpts_of(hit)
    ladder = _ladder(call, holder, excerpts)
    result = _result(call, hit, holder, ladder)
    lines = [f"[{title}] {holder.id}", f"title: {result['title']}", _source_line(hit, holder)]
    connection = holder.record.connection_id if holder.record else None
    if connection is not None and not spells_connection(holder.id):
        lines.append(f"connection_id: {one_line(connection)}")
    shown_chars = min(budgets.evidence, measure.preview)
    lines += [_match_line(excerpt, shown_chars) for excerpt in excerpts]
    lines += [ladder_line(entry) for entry in ladder]
    return Block(holder.id, _shown(hit, measure), tuple(lines), tuple(ladder), result)


def _ladder(call: Call, holder: Holder, excerpts: list[Excerpt]) -> list[Json]:
    entries: list[Json] = []
    for excerpt in excerpts:
        cut = excerpt.as_cut()
        if cut is None:
            continue
        entry = ladder_entry(call, holder, cut)
        entries.append(_starting_at(holder, entry, excerpt))
    return entries[: budgets.evidence_per_hit]


def _starting_at(holder: Holder, entry: Json, excerpt: Excerpt) -> Json:
    """A search excerpt is continued from where it begins, not from its length."""
    read = as_object(entry.get("read"))
    if not read or holder.record is None:
        return entry
    arguments = {**as_object(read.get("arguments")), "offset_chars": excerpt.start_chars}
    moved: Json = {**entry, "read": {**read, "arguments": arguments}}
    if "uri" in moved:
        moved["uri"] = window_at(holder, str(entry["field_path"]), excerpt.start_chars)
    return moved


def window_at(holder: Holder, field_path: str, offset_chars: int) -> str | None:
    """The URI of a window of the usual length."""
    if holder.record is None:
        return None
    return window_uri(WindowRef(holder.record, field_path, offset_chars, default_window_chars))


def _result(call: Call, hit: Json, holder: Holder, ladder: list[Json]) -> Json:
    payload = as_object(hit.get("data"))
    record = holder.record
    result: Json = {
        "id": holder.id,
        "title": record_title(hit, payload, record, holder.id),
        "url": record_address(call.provider_url, hit, payload, record) or holder.id,
        "stream": record.stream if record else as_text(hit.get("stream")) or "",
        "record_id": record.record_id if record else "",
        "connection_id": record.connection_id if record else None,
        "connector_key": connector_key_of(hit),
    }
    name, moment = as_text(hit.get("display_name")), event_time(hit, payload)
    if name:
        result["display_name"] = name
    if moment:
        result["timestamp"] = moment
    if ladder:
        result["content_ladder"] = ladder
    return result


def _source_line(hit: Json, holder: Holder) -> str:
    facts: list[str] = []
    key = connector_key_of(hit)
    if key:
        facts.append(fact("connector_key", label(key)))
    if holder.record is not None:
        facts.append(fact("stream", label(holder.record.stream)))
    name = as_text(hit.get("display_name"))
    if name:
        facts.append(fact("label", label(name)))
    moment = event_time(hit, as_object(hit.get("data")))
    if moment:
        facts.append(fact("at", label(moment)))
    return f"source: {'; '.join(facts)}"


def _match_line(excerpt: Excerpt, limit_chars: int) -> str:
    shown = one_line(cut_marked(excerpt.marked, limit_chars))
    name = label(excerpt.field_path) if excerpt.field_path else "text"
    mark = "" if excerpt.complete else " (cut)"
    return f"match {name}{mark}: {shown}"


def _shown(hit: Json, measure: Measure) -> Json:
    """The hit as sent, but for repaired tags and previews of over-long text."""
    shown: Json = {}
    for name, value in hit.items():
        if name in text_members:
            shown[name] = _text_member(value, measure)
        elif name in identity_members or name in kept_members:
            shown[name] = value
        else:
            shown[name] = _previewed(value, measure)
    if is_object(hit.get("data")):
        shown["data"] = cut_payload(hit["data"], measure)[0]
    return shown


def _text_member(value: Any, measure: Measure) -> Any:
    if isinstance(value, str):
        return _previewed(repaired(value), measure)
    if is_object(value):
        return {name: _text_member(item, measure) for name, item in value.items()}
    if is_list(value):
        return [_text_member(item, measure) for item in value]
    return value


def _previewed(value: Any, measure: Measure) -> Any:
    if isinstance(value, str) and len(value) > measure.preview:
        return cut_marked(value, measure.preview)
    return value
