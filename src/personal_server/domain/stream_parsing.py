"""One stream of a source declaration: its schema, keys, views and what may be asked of it.

Source: RS contract 17, `streams[]`.  Closed at every level; members about collection are kept,
not interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from personal_server.domain.declaration import (
    RANGE_OPERATORS,
    Aggregations,
    Cardinality,
    Property,
    Relationship,
    Semantics,
    Stream,
    View,
)
from personal_server.domain.findings import Members
from personal_server.domain.schema_properties import read_properties
from personal_server.domain.values import ValueKind

STREAM_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
MAX_KEY_FIELDS = 8
MAX_CHILDREN = 50

COLLECTION_MEMBERS = frozenset(
    {
        "description",
        "incremental",
        "required",
        "state_stream",
        "coverage_strategy",
        "coverage_policy",
        "freshness_strategy",
        "runtime_requirements",
        "setup",
        "extensions",
    }
)

TIMES = frozenset({ValueKind.DATE, ValueKind.INSTANT})
NUMBERS = frozenset({ValueKind.INTEGER, ValueKind.NUMBER})
SCALARS = frozenset(ValueKind)
STRINGS = frozenset({ValueKind.STRING, *TIMES})
_KEY_KINDS = frozenset({ValueKind.BOOLEAN, ValueKind.INTEGER, *STRINGS})

_AGGREGATED: Mapping[str, frozenset[ValueKind]] = {
    "sum": NUMBERS,
    "min": NUMBERS | TIMES,
    "max": NUMBERS | TIMES,
    "count_distinct": SCALARS,
    "group_by": SCALARS,
    "group_by_time": TIMES,
}

Properties = Mapping[str, Property]


def parse_stream(members: Members) -> Stream | None:
    """A stream without its expansions (they need the other streams), or `None` if it has faults."""
    before = len(members.findings.entries)
    name = members.text("name", required=True, limit=128, pattern=STREAM_NAME)
    semantics = members.choice("semantics", [s.value for s in Semantics], required=True)
    display = members.object("display", required=True)
    label = display.text("label", required=True) if display else None
    detail = display.text("detail") if display else None
    if display:
        display.close()
    schema = members.object("schema", required=True)
    properties = read_properties(schema) if schema and schema.present else {}
    required = _required(schema, properties)
    keys = _primary_key(members, properties, required)
    selection = members.object("selection", required=True)
    selectable = (selection.flag("fields"), selection.flag("resources")) if selection else (0, 0)
    if selection:
        selection.close()
    parsed = {
        "cursor_field": _cursor_field(members, properties),
        "consent_time_field": _consent_time_field(members, properties),
        "views": _views(members, properties),
        "relationships": _relationships(members),
        **_query(members, properties),
    }
    members.close(COLLECTION_MEMBERS)
    if len(members.findings.entries) != before or name is None or not properties:
        return None
    return Stream(
        name=name,
        semantics=Semantics(str(semantics)),
        label=str(label),
        detail=detail,
        properties=properties,
        primary_key=keys,
        required=required,
        raw=members.raw,
        selectable_fields=bool(selectable[0]),
        selectable_resources=bool(selectable[1]),
        **parsed,  # pyright: ignore[reportArgumentType] -- each value has its own reader above
    )


def declared_fields(
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


def _required(schema: Members | None, properties: Properties) -> tuple[str, ...]:
    named = schema.raw.get("required") if schema else None
    wanted = cast("list[object]", named) if isinstance(named, list) else []
    return tuple(name for name in properties if name in wanted)


def _primary_key(
    members: Members, properties: Properties, required: tuple[str, ...]
) -> tuple[str, ...]:
    names = members.names("primary_key", required=True)
    if members.has("primary_key") and not 1 <= len(names) <= MAX_KEY_FIELDS:
        members.fault("primary_key", f"Expected 1 to {MAX_KEY_FIELDS} property names.")
    for name in names if properties else ():
        found = properties.get(name)
        if found is None or name not in required:
            members.fault("primary_key", "Names a property that is not declared as required.")
        elif found.kind not in _KEY_KINDS or found.nullable:
            members.fault("primary_key", f"{name} is not a string, integer or boolean.")
    return names


def _cursor_field(members: Members, properties: Properties) -> str | None:
    name = members.text("cursor_field", limit=128)
    if name is not None and properties and (name not in properties or not properties[name].kind):
        members.fault("cursor_field", "Expected a declared boolean, number, string or time.")
    return name


def _consent_time_field(members: Members, properties: Properties) -> str | None:
    name = members.text("consent_time_field", limit=128)
    if name is None or not properties:
        return name
    found = properties.get(name)
    if found is None or found.kind not in TIMES or found.nullable:
        members.fault("consent_time_field", "Expected a declared, non-null date or date-time.")
    return name


def _views(members: Members, properties: Properties) -> tuple[View, ...]:
    views: list[View] = []
    for view in members.objects("views"):
        view_id = view.text("id", required=True, limit=128)
        label = view.text("label", required=True)
        view.value("fields", required=True)
        fields = declared_fields(view, "fields", properties, None)
        view.close({"description"})
        if view_id in {v.id for v in views}:
            view.fault("id", "Given twice.")
        if view_id and label:
            views.append(View(view_id, label, fields))
    return tuple(views)


def _relationships(members: Members) -> tuple[Relationship, ...]:
    found: list[Relationship] = []
    for relation in members.objects("relationships"):
        name = relation.text("name", required=True, limit=128, pattern=STREAM_NAME)
        stream = relation.text("stream", required=True, limit=128)
        key = relation.text("foreign_key", required=True, limit=128)
        cardinality = relation.choice("cardinality", [c.value for c in Cardinality], required=True)
        side = relation.choice("foreign_key_on", ["target", "self"]) or "target"
        relation.close({"description"})
        if name in {r.name for r in found}:
            relation.fault("name", "Given twice.")
        if side == "self" and cardinality == Cardinality.HAS_MANY:
            relation.fault("cardinality", "A key on this stream relates to one record: has_one.")
        if name and stream and key and cardinality:
            found.append(Relationship(name, stream, key, Cardinality(cardinality), side))
    return tuple(found)


def _query(members: Members, properties: Properties) -> Mapping[str, object]:
    query = members.object("query")
    if query is None:
        return {}
    search = query.object("search")
    aggregations = query.object("aggregations")
    query.items("expand")
    result = {
        "range_filters": _range_filters(query.object("range_filters"), properties),
        "lexical_fields": declared_fields(search, "lexical_fields", properties, STRINGS)
        if search
        else (),
        "semantic_fields": declared_fields(search, "semantic_fields", properties, STRINGS)
        if search
        else (),
        "aggregations": _aggregations(aggregations, properties),
    }
    if search:
        search.close()
    query.close()
    return result


def _range_filters(members: Members | None, properties: Properties) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    if members is None:
        return found
    for name in members.raw:
        operators = members.names(name)
        if name not in properties or properties[name].kind not in NUMBERS | TIMES:
            members.fault(name, "Expected a declared number, date or date-time.")
        if not operators or not set(operators) <= set(RANGE_OPERATORS):
            members.fault(name, "Expected operators among gte, gt, lte, lt.")
        found[name] = tuple(op for op in RANGE_OPERATORS if op in operators)
    return found


def _aggregations(members: Members | None, properties: Properties) -> Aggregations:
    if members is None:
        return Aggregations()
    if members.has("count") and members.raw["count"] is not True:
        members.fault("count", "Expected true.")
    fields = {
        kind: declared_fields(members, kind, properties, kinds)
        for kind, kinds in _AGGREGATED.items()
    }
    members.close()
    return Aggregations(count=members.raw.get("count") is True, **fields)
