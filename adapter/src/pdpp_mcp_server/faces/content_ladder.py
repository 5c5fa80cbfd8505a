"""The way on from everything that was cut: an entry in the structured face, a line in the text.

Source: docs/contract/mcp-adapter.md 8.1; docs/decisions.md C20, C23. Entries are names, not
permissions.
"""

from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import Link, ToolCall
from pdpp_mcp_server.errors import NextCall
from pdpp_mcp_server.faces.images import may_be_shown
from pdpp_mcp_server.faces.record_identity import Holder, blob_url, record_url
from pdpp_mcp_server.faces.truncation import EVERYTHING, Truncation
from pdpp_mcp_server.handles import (
    BlobRef,
    WindowRef,
    blob_uri,
    record_uri,
    window_uri,
)
from pdpp_mcp_server.rs_client.json_values import Json, as_count, as_object, as_text
from pdpp_mcp_server.safe_text import clean_json, one_line


def ladder_entry(call: ToolCall, holder: Holder, cut: Truncation) -> Json:
    """The structured entry of one cut."""
    entry: Json = {"id": holder.id, "field_path": cut.field_path, "kind": cut.kind}
    entry["status"] = cut.status
    if cut.kind == "binary":
        read = _read(holder, cut)
        reading = {} if read is None else {"read": read.as_json()}
        return {**entry, **_binary(call, holder, cut), **reading}
    names = ("shown_chars", "total_chars") if cut.kind == "text" else ("shown_items", "total_items")
    amounts = zip(names, (cut.shown, cut.total), strict=True)
    entry.update({name: amount for name, amount in amounts if amount is not None})
    read = _read(holder, cut)
    if read is not None:
        entry["read"] = read.as_json()
    uri = _uri(holder, cut)
    if uri is not None and call.link_rule != "never":
        entry["uri"] = uri
    return entry


def without_twin(entry: Json) -> Json:
    """An entry without the URI of what its call reads as well; of bytes it is the only way."""
    if "read" not in entry or entry["kind"] == "binary":
        return entry
    return {name: value for name, value in entry.items() if name != "uri"}


def _read(holder: Holder, cut: Truncation) -> NextCall | None:
    if holder.record is None:
        return None
    if cut.text_field:
        return NextCall("read_record_field", {"id": holder.id, "field_path": cut.text_field})
    if cut.kind == "binary":
        is_shown = cut.facts and cut.facts.blob_id and may_be_shown(cut.facts)
        arguments = {"id": holder.id, "fields": [cut.field_path], "as": "image"}
        return NextCall("fetch", arguments) if is_shown else None
    if cut.kind == "text":
        arguments = {"id": holder.id, "field_path": cut.field_path, "offset_chars": _next(cut)}
        return NextCall("read_record_field", arguments)
    if cut.json_chars > contract.JSON_READ_LIMIT or cut.field_path == EVERYTHING:
        return None
    return NextCall("fetch", {"id": holder.id, "fields": [cut.field_path]})


def _uri(holder: Holder, cut: Truncation) -> str | None:
    if holder.record is None:
        return None
    if cut.kind == "text":
        window = WindowRef(holder.record, cut.field_path, _next(cut), contract.WINDOW)
        return window_uri(window)
    return record_uri(holder.record)


def _next(cut: Truncation) -> int:
    return cut.shown if cut.next_chars is None else cut.next_chars


def _binary(call: ToolCall, holder: Holder, cut: Truncation) -> Json:
    facts = cut.facts
    if facts is None:
        return {}
    described: Json = {"mime_type": one_line(facts.mime_type, contract.LABEL)}
    if facts.size_bytes is not None:
        described["size_bytes"] = facts.size_bytes
    if facts.digest:
        described["digest"] = one_line(facts.digest, contract.LABEL)
    connection = holder.record.connection_id if holder.record else None
    if facts.blob_id:
        described["blob_id"] = facts.blob_id
        described["uri"] = blob_uri(BlobRef(connection, facts.blob_id))
        described["url"] = blob_url(call.provider_url, facts.blob_id, connection)
    elif holder.record is not None:
        described["uri"] = record_uri(holder.record)
        described["url"] = record_url(call.provider_url, holder.record)
    return described


def ladder_line(entry: Json) -> str:
    """The text line of one entry."""
    name = one_line(entry["field_path"], contract.LABEL)
    if entry["kind"] == "binary":
        size = f"{entry['size_bytes']} bytes" if "size_bytes" in entry else "size unknown"
        parts = (
            name,
            entry.get("mime_type", ""),
            size,
            entry.get("digest", ""),
            entry.get("uri", ""),
            _reading(entry),
        )
        return "binary: " + " ".join(part for part in parts if part)
    amount, reading = _amount(entry), _reading(entry)
    if reading:
        return f"cut: {name} {amount} {reading}"
    return f"cut: {name} {amount} {as_text(entry.get('uri')) or ''}".rstrip()


def _reading(entry: Json) -> str:
    read = as_object(entry.get("read"))
    return f"{read['tool']} {clean_json(read['arguments'])}" if read else ""


def _amount(entry: Json) -> str:
    if entry["kind"] == "text":
        return f"{entry['shown_chars']}/{entry.get('total_chars', 'unknown')}"
    return f"{entry['shown_items']}/{entry['total_items']} items"


def links_of(call: ToolCall, ladder: list[Json]) -> tuple[Link, ...]:
    """Resource links for the first cut values, when this caller gets any."""
    if not call.links_allowed:
        return ()
    found: list[Link] = []
    for entry in ladder:
        uri = as_text(entry.get("uri"))
        if uri and len(uri) <= contract.LINK_URI and len(found) < contract.LINKS:
            name, mime_type = one_line(entry["field_path"], 80), as_text(entry.get("mime_type"))
            found.append(Link(name, uri, mime_type, as_count(entry.get("size_bytes"))))
    return tuple(found)
