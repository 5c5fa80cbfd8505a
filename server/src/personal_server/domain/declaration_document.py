"""Source declarations: from the JSON a connector ships to a valid value, or all its faults.

Rule: the only maker of `SourceDeclaration`.  What decides about reads (`query`, `views`,
`relationships`, presets) is closed; other members that nobody knows are kept, not interpreted, and
named to the author; the connector-manifest spelling is a second way to write the same thing, and
what it says otherwise is adapted and told.
Source: docs/contract/resource-server.md 17.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping
from typing import cast

import orjson
from msgspec.structs import replace

from pdpp_kernel.aggregations import FIGURES_OF_FIELDS
from pdpp_kernel.declaration import (
    Aggregations,
    Cardinality,
    Expansion,
    Property,
    Relationship,
    Semantics,
    Stream,
    View,
)
from pdpp_kernel.errors import InvalidDeclaration
from pdpp_kernel.json_shapes import Members, ShapeFaults
from pdpp_kernel.operators import MEASURES, RANGE_OPERATORS
from pdpp_kernel.source_declaration import (
    Adaptation,
    SourceDeclaration,
)
from pdpp_kernel.values import TIMES, ValueKind
from personal_server.domain.stream_schema import read_properties

PROTOCOL_VERSION = "0.1.0"
SOURCE_KINDS = ("connector", "provider_native")
MAX_DEPTH = 128
MAX_KEY_FIELDS = 8
MAX_CHILDREN = 50
CONNECTOR_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
ABSOLUTE_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f<>\"{}|\\^`]+")
STREAM_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
MANIFEST_APPEND = "append"
STRINGS = frozenset({ValueKind.STRING, *TIMES})
_SHARED_KINDS = frozenset({ValueKind.STRING, ValueKind.INTEGER})
_KEY_KINDS = frozenset({ValueKind.BOOLEAN, ValueKind.INTEGER, *STRINGS})
Properties = Mapping[str, Property]


def parse_declaration(content: bytes | Mapping[str, object]) -> SourceDeclaration:
    """A declaration from its JSON text or its parsed form.

    Raises: InvalidDeclaration, with `errors` [{path, message}] (at most 100).
    """
    raw = _document(content)
    findings = ShapeFaults()
    members = Members(raw, "", findings)
    source_kind, source_id = _source(members)
    version = _version(members)
    display_name, display_detail = _display(members)
    key = members.text("connector_key", required=True, pattern=CONNECTOR_KEY)
    members.choice("protocol_version", [PROTOCOL_VERSION], required=True)
    publisher = members.object("publisher")
    publisher_id = publisher.text("id", required=True) or None
    publisher.keep_rest()
    staleness = _staleness(members.object("capabilities"))
    streams = _streams(members)
    _presets(members, streams)
    members.object("extensions")
    members.keep_rest()
    if findings:
        raise InvalidDeclaration("The source declaration has errors.", errors=findings.entries)
    return SourceDeclaration(
        source_kind=source_kind,
        source_id=source_id,
        connector_key=key,
        version=version,
        display_name=display_name,
        display_detail=display_detail or None,
        streams=streams,
        raw=raw,
        digest=digest_of(raw),
        publisher_id=publisher_id,
        maximum_staleness_seconds=staleness,
        kept=tuple(findings.kept),
        adapted=tuple(
            Adaptation(adaptation["path"], adaptation["message"]) for adaptation in findings.adapted
        ),
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
        raise _unreadable("The declaration is not JSON, or is nested too deeply.") from error
    if not isinstance(raw, dict):
        raise _unreadable("Expected an object.")
    if _is_too_deep(cast("object", raw)):
        raise _unreadable(f"Nested deeper than {MAX_DEPTH}.")
    return cast("dict[str, object]", raw)


def _is_too_deep(raw: object) -> bool:
    level = [raw]
    for _ in range(MAX_DEPTH):
        level = [member for value in level for member in _members(value)]
        if not level:
            return False
    return True


def _members(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _unreadable(message: str) -> InvalidDeclaration:
    return InvalidDeclaration(
        "The source declaration cannot be read.", errors=[{"path": "", "message": message}]
    )


def _source(members: Members) -> tuple[str, str]:
    manifest_id = _manifest_id(members)
    source = members.object("source", required=not manifest_id)
    if not source.present:
        return "connector", manifest_id
    kind = source.choice("kind", SOURCE_KINDS, required=True)
    source_id = source.text("id", required=True, limit=2_048, pattern=ABSOLUTE_URI)
    source.close()
    if manifest_id and source_id and manifest_id != source_id:
        members.fault("connector_id", "Differs from source.id.")
    return kind, source_id


def _manifest_id(members: Members) -> str:
    """The id in the manifest spelling: `connector_id`, or the URI beside a short one."""
    short = members.value("connector_id")
    if isinstance(short, str) and short == members.value("connector_key"):
        uri = members.text("manifest_uri", limit=2_048, pattern=ABSOLUTE_URI)
        if uri:
            members.adapt("connector_id", "The source is known by manifest_uri.")
        return uri
    return members.text("connector_id", limit=2_048, pattern=ABSOLUTE_URI)


def _version(members: Members) -> str:
    manifest = members.text("version", limit=64)
    version = members.text("declaration_version", required=not manifest, limit=64)
    if manifest and version and manifest != version:
        members.fault("version", "Differs from declaration_version.")
    return version or manifest


def _display(members: Members) -> tuple[str, str]:
    manifest = members.text("display_name", limit=200)
    display = members.object("display", required=not manifest)
    name = display.text("name", required=not manifest, limit=200)
    detail = display.text("detail")
    display.close()
    if manifest and name and manifest != name:
        members.fault("display_name", "Differs from display.name.")
    return name or manifest, detail


def _staleness(capabilities: Members) -> int | None:
    policy = capabilities.object("refresh_policy")
    capabilities.keep_rest()
    seconds = policy.integer("maximum_staleness_seconds", 1, 10 * 366 * 86_400)
    policy.keep_rest()
    return seconds


def _streams(members: Members) -> dict[str, Stream]:
    streams: dict[str, Stream] = {}
    read: list[tuple[Members, Stream | None]] = []
    items = members.objects("streams", required=True)
    if members.has("streams") and not items:
        members.fault("streams", "Expected at least one stream.")
    for item in items:
        stream = _stream(item)
        if stream is not None and stream.name in streams:
            item.fault("name", "Given twice.")
        if stream is not None:
            streams[stream.name] = stream
        read.append((item, stream))
    for item, stream in read:
        if stream is not None:
            sided = _with_sides(item, stream, streams)
            _check_relationships(item, sided, streams)
            streams[stream.name] = replace(sided, expansions=_expansions(item, sided, streams))
    return streams


def _stream(members: Members) -> Stream | None:
    """A stream without its expansions (they need the other streams), or `None` if it has faults."""
    before = len(members.findings.entries)
    name = members.text("name", required=True, pattern=STREAM_NAME)
    semantics = _semantics(members)
    label, detail = _stream_display(members, name)
    schema = members.object("schema", required=True)
    properties = read_properties(schema) if schema.present else {}
    keys = _primary_key(members, properties)
    required = _required(members, schema, properties, keys)
    selection = members.object("selection", required=True)
    selectable_fields, selectable_resources = selection.flag("fields"), selection.flag("resources")
    selection.keep_rest()
    parsed = {
        "cursor_field": _cursor_field(members, properties),
        "consent_time_field": _consent_time_field(members, properties),
        "views": _views(members, properties),
        "relationships": _relationships(members),
        **_query(members, properties),
    }
    members.keep_rest()
    if len(members.findings.entries) != before or not name or not properties:
        return None
    return Stream(
        name=name,
        semantics=Semantics(semantics),
        label=label,
        detail=detail,
        properties=properties,
        primary_key=keys,
        required=required,
        raw=members.raw,
        selectable_fields=selectable_fields,
        selectable_resources=selectable_resources,
        **parsed,  # pyright: ignore[reportArgumentType] -- each value has its own reader above
    )


def _semantics(members: Members) -> str:
    allowed = [semantic.value for semantic in Semantics]
    if members.raw.get("semantics") == MANIFEST_APPEND:
        members.value("semantics")
        members.adapt("semantics", "Treated as append_only.")
        return Semantics.APPEND_ONLY.value
    return members.choice("semantics", allowed, required=True)


def _stream_display(members: Members, name: str) -> tuple[str, str | None]:
    display = members.object("display")
    if not display.present:
        if not members.has("display") and name:
            members.adapt("display", "Named after the stream.")
        return name.replace("_", " ").capitalize(), None
    label = display.text("label", required=True)
    detail = display.text("detail") or None
    display.close()
    return label, detail


def _primary_key(members: Members, properties: Properties) -> tuple[str, ...]:
    names = members.names("primary_key", required=True)
    if members.has("primary_key") and not 1 <= len(names) <= MAX_KEY_FIELDS:
        members.fault("primary_key", f"Expected 1 to {MAX_KEY_FIELDS} property names.")
    for name in names if properties else ():
        field_of_key = properties.get(name)
        if field_of_key is None:
            members.fault("primary_key", "Names a property that is not declared.")
        elif field_of_key.kind not in _KEY_KINDS or field_of_key.nullable:
            members.fault("primary_key", f"{name} is not a string, integer or boolean.")
    return names


def _required(
    members: Members, schema: Members, properties: Properties, keys: tuple[str, ...]
) -> tuple[str, ...]:
    """What every record has: what the schema requires, and its key."""
    names = schema.raw.get("required")
    listed = cast("list[object]", names) if isinstance(names, list) else []
    for name in keys:
        if name in properties and name not in listed:
            members.adapt("primary_key", f"{name} is required, since it is part of the key.")
    return tuple(name for name in properties if name in listed or name in keys)


def _cursor_field(members: Members, properties: Properties) -> str | None:
    name = members.text("cursor_field")
    if name and properties and (name not in properties or not properties[name].kind):
        members.fault("cursor_field", "Expected a declared boolean, number, string or time.")
    return name or None


def _consent_time_field(members: Members, properties: Properties) -> str | None:
    """The field that time constraints are about; a record without a value lies outside each."""
    name = members.text("consent_time_field")
    if not name or not properties:
        return name or None
    kind = properties[name].kind if name in properties else None
    if kind in TIMES:
        return name
    if kind is ValueKind.INTEGER:  # seconds since an epoch that no one declares
        members.adapt("consent_time_field", "A number is no time: no limit in time is possible.")
        return None
    members.fault("consent_time_field", "Expected a declared date or date-time.")
    return name


def _views(members: Members, properties: Properties) -> tuple[View, ...]:
    views: list[View] = []
    for view in members.objects("views"):
        view_id = view.text("id", required=True, limit=128)
        label = view.text("label", required=True)
        view.value("fields", required=True)
        fields = _declared_fields(view, "fields", properties, None)
        view.close({"description"})
        if view_id in {v.id for v in views}:
            view.fault("id", "Given twice.")
        if view_id and label:
            views.append(View(view_id, label, fields))
    return tuple(views)


def _relationships(members: Members) -> tuple[Relationship, ...]:
    relationships: list[Relationship] = []
    for relation in members.objects("relationships"):
        name = relation.text("name", required=True, pattern=STREAM_NAME)
        stream = relation.text("stream", required=True, limit=128)
        key = relation.text("foreign_key", required=True, limit=128)
        cardinality = relation.choice("cardinality", [c.value for c in Cardinality], required=True)
        side = relation.choice("foreign_key_on", ["target", "self", "both"])
        relation.close({"description"})
        if name in {r.name for r in relationships}:
            relation.fault("name", "Given twice.")
        if side == "self" and cardinality == Cardinality.HAS_MANY:
            relation.fault("cardinality", "A key on this stream relates to one record: has_one.")
        if side == "both" and cardinality == Cardinality.HAS_ONE:
            relation.fault("cardinality", "A value on both relates to many records: has_many.")
        if name and stream and key and cardinality:
            relationships.append(Relationship(name, stream, key, Cardinality(cardinality), side))
    return tuple(relationships)


def _query(members: Members, properties: Properties) -> Mapping[str, object]:
    query = members.object("query")
    search = query.object("search")
    aggregations = query.object("aggregations")
    query.items("expand")
    result = {
        "range_filters": _range_filters(query.object("range_filters"), properties),
        "lexical_fields": _declared_fields(search, "lexical_fields", properties, STRINGS),
        "semantic_fields": _declared_fields(search, "semantic_fields", properties, STRINGS),
        "aggregations": _aggregations(aggregations, properties),
    }
    search.close()
    query.close()
    return result


def _range_filters(members: Members, properties: Properties) -> dict[str, tuple[str, ...]]:
    filters: dict[str, tuple[str, ...]] = {}
    for name in members.raw:
        operators = members.names(name)
        if name not in properties or properties[name].kind not in MEASURES:
            members.fault(name, "Expected a declared number, date or date-time.")
        if not operators or not set(operators) <= set(RANGE_OPERATORS):
            members.fault(name, f"Expected operators among {', '.join(RANGE_OPERATORS)}.")
        filters[name] = tuple(op for op in RANGE_OPERATORS if op in operators)
    return filters


def _aggregations(members: Members, properties: Properties) -> Aggregations:
    if members.has("count") and members.raw["count"] is not True:
        members.fault("count", "Expected true.")
    fields = {
        figure.value: _declared_fields(members, figure.value, properties, figure.kinds)
        for figure in FIGURES_OF_FIELDS
    }
    members.close()
    return Aggregations(count=members.raw.get("count") is True, **fields)


def _declared_fields(
    members: Members, name: str, properties: Properties, kinds: frozenset[ValueKind] | None
) -> tuple[str, ...]:
    """An array of declared property names, of the given kinds if any are given."""
    names = members.names(name)
    for field in names:
        if field not in properties:
            members.fault(name, "Names a property that the schema does not declare.")
        elif kinds is not None and properties[field].kind not in kinds:
            members.fault(name, f"The property {field} has another type than this needs.")
    return names


def _with_sides(item: Members, stream: Stream, streams: Mapping[str, Stream]) -> Stream:
    """The stream with the side of each foreign key.

    A manifest that does not name the side means the related stream, or, if that one does not
    declare the key, its own record.
    """
    sided: list[Relationship] = []
    for relation in stream.relationships:
        side, target = relation.foreign_key_on, streams.get(relation.stream)
        if not side:
            to_one = relation.cardinality is Cardinality.HAS_ONE
            elsewhere = target is not None and relation.foreign_key not in target.properties
            own = to_one and elsewhere and relation.foreign_key in stream.properties
            side = "self" if own else "target"
            if own:
                item.adapt("relationships", f"{relation.name}: the key is read from this stream.")
        sided.append(replace(relation, foreign_key_on=side))
    return replace(stream, relationships=tuple(sided))


def _check_relationships(item: Members, stream: Stream, streams: Mapping[str, Stream]) -> None:
    """The foreign key is a declared scalar of the side that holds it.

    A relation may name a stream that this version does not declare; it can then not be expanded
    (`related_stream_unknown`).
    """
    for relation in stream.relationships:
        name, target = relation.foreign_key, streams.get(relation.stream)
        holder = stream if relation.foreign_key_on == "self" else target
        if holder is None:
            continue
        field_declared = holder.properties.get(name)
        if field_declared is None or field_declared.kind is None:
            item.fault("relationships", f"{relation.name}: foreign_key is no declared scalar.")
        elif relation.foreign_key_on == "both":
            own = stream.properties.get(name)
            if (
                field_declared.kind not in _SHARED_KINDS
                or own is None
                or own.kind is not field_declared.kind
            ):
                item.fault(
                    "relationships",
                    f"{relation.name}: foreign_key is no string or integer of both streams.",
                )


def _expansions(
    item: Members, stream: Stream, streams: Mapping[str, Stream]
) -> tuple[Expansion, ...]:
    query = item.object("query")
    relations = {r.name: r for r in stream.relationships}
    expansions: list[Expansion] = []
    for entry in query.objects("expand"):
        name = entry.text("name")
        default = entry.integer("default_limit", 1, MAX_CHILDREN)
        most = _max_children(entry)
        entry.close()
        relation = relations.get(name)
        if relation is None or name in {e.relationship.name for e in expansions}:
            entry.fault("name", "Expected a declared relationship, once.")
            continue
        if relation.cardinality is Cardinality.HAS_ONE and (default or most):
            entry.fault("name", "Limits are for has_many only.")
        if not _has_simple_key(relation, stream, streams):
            entry.fault("name", "The referenced side needs a primary key of one field.")
        most = most or MAX_CHILDREN
        if default is not None and default > most:
            entry.fault("default_limit", "Above max_limit.")
        expansions.append(Expansion(relation, min(default or 10, most), most))
    return tuple(expansions)


def _max_children(entry: Members) -> int | None:
    most = entry.integer("max_limit", 1, sys.maxsize)
    if most is None or most <= MAX_CHILDREN:
        return most
    entry.adapt("max_limit", f"Taken as {MAX_CHILDREN}, the most that an expansion shows here.")
    return MAX_CHILDREN


def _has_simple_key(relation: Relationship, stream: Stream, streams: Mapping[str, Stream]) -> bool:
    if relation.foreign_key_on == "both":
        return True
    referenced = stream if relation.foreign_key_on == "target" else streams.get(relation.stream)
    return referenced is None or len(referenced.primary_key) == 1


def _presets(members: Members, streams: Mapping[str, Stream]) -> None:
    ids: set[str] = set()
    for preset in members.objects("selection_presets"):
        preset_id = preset.text("id", required=True, limit=128)
        preset.text("label", required=True)
        entries = preset.objects("streams", required=True)
        preset.close({"description"})
        if preset_id and preset_id in ids:
            preset.fault("id", "Given twice.")
        ids.add(preset_id)
        for entry in entries:
            _preset_stream(entry, streams)


def _preset_stream(entry: Members, streams: Mapping[str, Stream]) -> None:
    name = entry.text("name")
    view = entry.text("view")
    fields = entry.names("fields")
    entry.choice("necessity", ["required", "optional"])
    time_range = entry.object("time_range")
    entry.names("resources")
    entry.close()
    time_range.text("since")
    time_range.text("until")
    time_range.close()
    stream = streams.get(name)
    if stream is None:
        entry.fault("name", "Expected a declared stream.")
        return
    if view and (fields or stream.view(view) is None):
        entry.fault("view", "Expected a declared view, without fields.")
    if not set(fields) <= set(stream.properties):
        entry.fault("fields", "Names a property that the schema does not declare.")
