"""Source declarations: from the JSON a connector ships to a valid value, or all its faults.

Rule: the only maker of `SourceDeclaration`.  Closed at every level except inside `schema` and
`extensions`; the connector-manifest spelling is a second way to write the same thing.
Source: RS contract 17.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

import orjson

from personal_server.domain.declaration import (
    Cardinality,
    Expansion,
    Relationship,
    SourceDeclaration,
    Stream,
)
from personal_server.domain.findings import Findings, Members
from personal_server.domain.stream_parsing import MAX_CHILDREN, parse_stream
from personal_server.errors import InvalidDeclaration

PROTOCOL_VERSION = "0.1.0"
MAX_DEPTH = 128
CONNECTOR_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
ABSOLUTE_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f<>\"{}|\\^`]+")

COLLECTION_MEMBERS = frozenset(
    {
        "setup",
        "runtime_requirements",
        "coverage_strategy",
        "freshness_strategy",
        "manifest_uri",
        "description",
        "collection",
        "runtime",
        "auth",
        "schedule",
    }
)
REFRESH_MEMBERS = frozenset(
    {
        "recommended_mode",
        "recommended_interval_seconds",
        "minimum_interval_seconds",
        "interaction_posture",
        "rate_limit_sensitivity",
        "bot_detection_sensitivity",
        "background_safe",
        "assisted_after_owner_auth",
        "rationale",
    }
)


def parse_declaration(content: bytes | Mapping[str, object]) -> SourceDeclaration:
    """A declaration from its JSON text or its parsed form.

    Raises: InvalidDeclaration, with `errors` [{path, message}] (at most 100).
    """
    raw = _document(content)
    findings = Findings()
    members = Members(raw, "", findings)
    source_kind, source_id = _source(members)
    version = _version(members)
    display_name, display_detail = _display(members)
    key = members.text("connector_key", required=True, limit=64, pattern=CONNECTOR_KEY)
    members.choice("protocol_version", [PROTOCOL_VERSION], required=True)
    publisher = members.object("publisher")
    publisher_id = publisher.text("id", required=True) if publisher else None
    if publisher:
        publisher.close({"name", "uri"})
    staleness = _staleness(members.object("capabilities"))
    streams = _streams(members)
    _presets(members, streams)
    if (extensions := members.object("extensions")) is not None:
        extensions.close(extensions.raw)
    members.close(COLLECTION_MEMBERS)
    if findings:
        raise InvalidDeclaration("The source declaration has faults.", errors=findings.entries)
    return SourceDeclaration(
        source_kind=source_kind,
        source_id=str(source_id),
        connector_key=str(key),
        version=str(version),
        display_name=str(display_name),
        display_detail=display_detail,
        streams=streams,
        raw=raw,
        digest=digest_of(raw),
        publisher_id=publisher_id,
        maximum_staleness_seconds=staleness,
    )


def render_declaration(raw: Mapping[str, object]) -> bytes:
    """The minimal JSON text of a declaration, member order kept."""
    return orjson.dumps(raw)


def digest_of(raw: Mapping[str, object]) -> str:
    """`sha256:<hex>` of the minimal JSON text."""
    return "sha256:" + hashlib.sha256(render_declaration(raw)).hexdigest()


def _document(content: bytes | Mapping[str, object]) -> dict[str, object]:
    try:
        text = content if isinstance(content, bytes) else orjson.dumps(content)
        raw: object = orjson.loads(text)
    except (orjson.JSONDecodeError, TypeError) as error:  # TypeError: what orjson cannot encode
        raise _unreadable("Not JSON, or nested too deeply.") from error
    if not isinstance(raw, dict):
        raise _unreadable("Expected an object.")
    if _is_too_deep(cast("object", raw)):
        raise _unreadable(f"Nested deeper than {MAX_DEPTH}.")
    return cast("dict[str, object]", raw)


def _is_too_deep(raw: object) -> bool:
    level = [raw]
    for _ in range(MAX_DEPTH):
        level = [member for value in level for member in _members(value)]
    return bool(level)


def _members(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _unreadable(message: str) -> InvalidDeclaration:
    return InvalidDeclaration(
        "The source declaration cannot be read.", errors=[{"path": "", "message": message}]
    )


def _source(members: Members) -> tuple[str, str | None]:
    manifest_id = members.text("connector_id", limit=2_048, pattern=ABSOLUTE_URI)
    source = members.object("source", required=manifest_id is None)
    if source is None:
        return "connector", manifest_id
    kind = source.choice("kind", ["connector", "provider_native"], required=True)
    source_id = source.text("id", required=True, limit=2_048, pattern=ABSOLUTE_URI)
    source.close()
    if None not in (manifest_id, source_id) and manifest_id != source_id:
        members.fault("connector_id", "Differs from source.id.")
    return str(kind), source_id


def _version(members: Members) -> str | None:
    manifest = members.text("version", limit=64)
    version = members.text("declaration_version", required=manifest is None, limit=64)
    if None not in (manifest, version) and manifest != version:
        members.fault("version", "Differs from declaration_version.")
    return version or manifest


def _display(members: Members) -> tuple[str | None, str | None]:
    manifest = members.text("display_name", limit=200)
    display = members.object("display", required=manifest is None)
    if display is None:
        return manifest, None
    name = display.text("name", required=manifest is None, limit=200)
    detail = display.text("detail")
    display.close()
    if None not in (manifest, name) and manifest != name:
        members.fault("display_name", "Differs from display.name.")
    return name or manifest, detail


def _staleness(capabilities: Members | None) -> int | None:
    if capabilities is None:
        return None
    policy = capabilities.object("refresh_policy")
    capabilities.close({"human_interaction", "public_listing"})
    if policy is None:
        return None
    seconds = policy.integer("maximum_staleness_seconds", 1, 10 * 366 * 86_400)
    policy.close(REFRESH_MEMBERS)
    return seconds


def _streams(members: Members) -> dict[str, Stream]:
    streams: dict[str, Stream] = {}
    read: list[tuple[Members, Stream | None]] = []
    items = members.objects("streams", required=True)
    if members.has("streams") and not items:
        members.fault("streams", "Expected at least one stream.")
    for item in items:
        stream = parse_stream(item)
        if stream is not None and stream.name in streams:
            item.fault("name", "Given twice.")
        if stream is not None:
            streams[stream.name] = stream
        read.append((item, stream))
    for item, stream in read:
        if stream is not None:
            _check_relationships(item, stream, streams)
            streams[stream.name] = replace(stream, expansions=_expansions(item, stream, streams))
    return streams


def _check_relationships(item: Members, stream: Stream, streams: Mapping[str, Stream]) -> None:
    """The foreign key is a declared scalar of the side that holds it.

    A relation may name a stream that this version does not declare; it can then not be expanded
    (`related_stream_unknown`).
    """
    for relation in stream.relationships:
        holder = stream if relation.foreign_key_on == "self" else streams.get(relation.stream)
        if holder is None:
            continue
        found = holder.properties.get(relation.foreign_key)
        if found is None or found.kind is None:
            item.fault("relationships", f"{relation.name}: foreign_key is no declared scalar.")


def _expansions(
    item: Members, stream: Stream, streams: Mapping[str, Stream]
) -> tuple[Expansion, ...]:
    query = Members(item.raw.get("query", {}), item.path + "/query", item.findings)
    relations = {r.name: r for r in stream.relationships}
    found: list[Expansion] = []
    for entry in query.objects("expand"):
        name = entry.text("name", required=True)
        default = entry.integer("default_limit", 1, MAX_CHILDREN)
        most = entry.integer("max_limit", 1, MAX_CHILDREN)
        entry.close()
        relation = relations.get(name or "")
        if relation is None or name in {e.relationship.name for e in found}:
            entry.fault("name", "Expected a declared relationship, once.")
            continue
        if relation.cardinality is Cardinality.HAS_ONE and (default or most):
            entry.fault("name", "Limits are for has_many only.")
        if not _has_simple_key(relation, stream, streams):
            entry.fault("name", "The referenced side needs a primary key of one field.")
        most = most or MAX_CHILDREN
        if default is not None and default > most:
            entry.fault("default_limit", "Above max_limit.")
        found.append(Expansion(relation, min(default or 10, most), most))
    return tuple(found)


def _has_simple_key(relation: Relationship, stream: Stream, streams: Mapping[str, Stream]) -> bool:
    referenced = stream if relation.foreign_key_on == "target" else streams.get(relation.stream)
    return referenced is None or len(referenced.primary_key) == 1


def _presets(members: Members, streams: Mapping[str, Stream]) -> None:
    seen: set[str] = set()
    for preset in members.objects("selection_presets"):
        preset_id = preset.text("id", required=True, limit=128)
        preset.text("label", required=True)
        entries = preset.objects("streams", required=True)
        preset.close({"description"})
        if preset_id in seen:
            preset.fault("id", "Given twice.")
        seen.add(str(preset_id))
        for entry in entries:
            _preset_stream(entry, streams)


def _preset_stream(entry: Members, streams: Mapping[str, Stream]) -> None:
    name = entry.text("name", required=True)
    view = entry.text("view")
    fields = entry.names("fields")
    entry.choice("necessity", ["required", "optional"])
    time_range = entry.object("time_range")
    entry.names("resources")
    entry.close()
    if time_range:
        time_range.text("since")
        time_range.text("until")
        time_range.close()
    stream = streams.get(name or "")
    if stream is None:
        entry.fault("name", "Expected a declared stream.")
        return
    if view is not None and (fields or stream.view(view) is None):
        entry.fault("view", "Expected a declared view, without fields.")
    if not set(fields) <= set(stream.properties):
        entry.fault("fields", "Names a property that the schema does not declare.")
