"""One record of a page in both faces: identity whole, payload at a measure, the way to the rest.

Source: MCP adapter contract 7.1, 8.1, 10.2.3.
"""

from dataclasses import dataclass

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.calls import Call, Link
from personal_server.mcp_adapter.cleaning import clean_json, label, one_line
from personal_server.mcp_adapter.evidence.cutting import Cut, Measure, cut_payload
from personal_server.mcp_adapter.evidence.ladder import Holder, ladder_entry, ladder_line
from personal_server.mcp_adapter.evidence.naming import record_address
from personal_server.mcp_adapter.faces.fit import Block
from personal_server.mcp_adapter.handles import RecordRef, format_id, handle_chars
from personal_server.rs_client.json_values import (
    Json,
    as_object,
    as_text,
    is_list,
    is_object,
    objects_in,
)
from personal_server.rs_client.normalize import connection_of, record_key_of

longest_uri = budgets.link_fields - budgets.label
identity_members = frozenset(
    {
        "object",
        "id",
        "record_id",
        "record_key",
        "stream",
        "connection_id",
        "connector_instance_id",
        "connector_key",
        "connector_id",
        "display_name",
        "grant_id",
        "source",
        "emitted_at",
        "expanded",
        "deleted",
        "deleted_at",
        "links",
        "meta",
        "record_url",
    }
)


@dataclass(frozen=True, slots=True)
class Place:
    """What the request says about rows that do not say it themselves."""

    stream: str
    connection_id: str | None = None


def holder_of(call: Call, row: Json, place: Place) -> Holder:
    """The record a row is, and its id as shown."""
    key = record_key_of(row)
    stream = as_text(row.get("stream")) or place.stream
    if key is None or not stream:
        return Holder(_address(call, row), None)
    record = RecordRef(connection_of(row) or place.connection_id, stream, key)
    shown = format_id(record)
    if len(shown) > handle_chars:
        return Holder(_address(call, row), None)
    return Holder(shown, record)


def _address(call: Call, row: Json) -> str:
    return record_address(call.provider_url, row, {}, None) or "unidentified"


def payload_of(row: Json) -> Json:
    """The record's own members: `data` of a wrapper, else all that is not identity."""
    data = row.get("data")
    if is_object(data):
        return data
    return {name: value for name, value in row.items() if name not in identity_members}


def render_row(call: Call, row: Json, place: Place, title: str, measure: Measure) -> Block:
    """One record, with its sub-records; title is what stands in the brackets."""
    holder = holder_of(call, row, place)
    shown, cuts = cut_payload(payload_of(row), measure)
    ladder = [ladder_entry(call, holder, cut) for cut in cuts]
    edited = _with_payload(row, shown)
    lines = [f"[{title}] {holder.id}", *_payload_lines(row, shown), *map(ladder_line, ladder)]
    if is_object(row.get("expanded")):
        part = _expanded(call, row, holder, title, measure)
        edited = {**edited, "expanded": part.row}
        lines += part.lines
        ladder += part.ladder
    return Block(holder.id, edited, tuple(lines), tuple(ladder))


def _with_payload(row: Json, shown: Json) -> Json:
    if is_object(row.get("data")):
        return {**row, "data": shown}
    kept = {name: value for name, value in row.items() if name in identity_members}
    return {**kept, **shown}


def _payload_lines(row: Json, shown: Json) -> list[str]:
    if row.get("deleted") is True:
        when = as_text(row.get("deleted_at"))
        return [f"deleted: {one_line(when, 80) if when else 'true'}"]
    return [clean_json(shown)]


def _expanded(call: Call, row: Json, holder: Holder, title: str, measure: Measure) -> Block:
    shown: Json = {}
    lines: list[str] = []
    ladder: list[Json] = []
    number = 0
    connection = holder.record.connection_id if holder.record else None
    for relation, value in as_object(row.get("expanded")).items():
        children = (
            objects_in(value.get("data"))
            if is_object(value) and is_list(value.get("data"))
            else None
        )
        members = children if children is not None else [value] if is_object(value) else []
        kept = 0 if measure.compound == 0 else len(members)
        blocks: list[Block] = []
        for child in members[:kept]:
            number += 1
            place = Place(as_text(child.get("stream")) or relation, connection)
            blocks.append(render_row(call, child, place, f"{title}.{number}", measure))
        lines.append(_relation_line(relation, value, kept))
        lines += [line for block in blocks for line in block.lines]
        ladder += [entry for block in blocks for entry in block.ladder]
        shown[relation] = _relation(value, blocks, whole=children is not None)
        if kept < len(members):
            cut = Cut(f"expanded.{relation}", "json", "truncated", kept, len(members), 1 << 30)
            entry = ladder_entry(call, holder, cut)
            ladder.append(entry)
            lines.append(ladder_line(entry))
    return Block(holder.id, shown, tuple(lines), tuple(ladder))


def _relation(value: object, blocks: list[Block], *, whole: bool) -> object:
    rows = [block.row for block in blocks]
    if whole:
        held = as_object(value)
        cut = len(rows) < len(objects_in(held.get("data")))
        return {**held, "data": rows, **({"has_more": True} if cut else {})}
    return rows[0] if rows else None if is_object(value) else value


def _relation_line(relation: str, value: object, kept: int) -> str:
    more = is_object(value) and value.get("has_more") is True
    return f"expanded {label(relation)}: records={kept}" + ("; has_more=true" if more else "")


def links_of(call: Call, ladder: list[Json]) -> tuple[Link, ...]:
    """Resource links for the first cut values, when this caller gets any."""
    if not call.links_allowed:
        return ()
    found: list[Link] = []
    for entry in ladder:
        uri = as_text(entry.get("uri"))
        if uri and len(uri) <= longest_uri and len(found) < budgets.links:
            size = entry.get("size_bytes")
            found.append(
                Link(
                    one_line(entry["field_path"], 80),
                    uri,
                    as_text(entry.get("mime_type")),
                    size if isinstance(size, int) else None,
                )
            )
    return tuple(found)
